"""Input 1: what is compatible with what, every fact cited."""
