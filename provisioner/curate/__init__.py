"""Keeps the matrix true: derives it again from the package index, and measures it again."""
