"""Many hosts: the fewest stacks that serve them all, and which hosts none can serve."""
