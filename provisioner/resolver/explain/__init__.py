"""Explain why a problem has no answer: a minimal conflict in words, and fixes that were verified by solving again."""
