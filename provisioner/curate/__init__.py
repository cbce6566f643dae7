"""Maintenance of the matrix: deriving its files from a package index, and auditing its rows by measuring artefacts."""
