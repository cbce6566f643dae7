"""Build it, run it, measure it, compare it with the lock."""
