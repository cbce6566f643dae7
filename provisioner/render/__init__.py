"""A lock as text; sees only the lock."""
