"""Diagnose error logs: read a log, recognise its messages, tell causes from consequences, and compute remedies."""
