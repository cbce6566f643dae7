"""Requests: where the installer is configured to ask, who we are there, how many at once, and one pooled session."""
