"""Translate Python distributions of package indexes, URLs and paths to candidates and requirements."""
