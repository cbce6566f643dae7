"""What can be chosen of every component, in order of preference, and what bounds it from outside."""
