"""Comparison of compatibility tables published by other projects with the matrix, claim by claim."""
