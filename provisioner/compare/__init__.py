"""Comparison of the matrix with compatibility tables published by other projects, claim (line of a table) by claim."""
