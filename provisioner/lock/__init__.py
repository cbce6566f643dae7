"""Locks: a stack with a hash for every file, in a standard lock file (PEP 751); create, read, check and compare them."""
