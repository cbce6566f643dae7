"""Keeps the matrix true: derives it again, measures it again, compares it with what others publish."""
