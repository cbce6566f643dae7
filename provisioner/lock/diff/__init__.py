"""What changed between two locks, and why, as far as the two files and the indexes know."""
