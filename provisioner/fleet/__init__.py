"""Cover a fleet: find the fewest stacks that serve all hosts of an inventory, and the hosts that no stack can serve."""
