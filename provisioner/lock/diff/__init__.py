"""Comparison of two locks: the changes and their causes, as far as the two files and the indexes show them."""
