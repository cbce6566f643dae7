"""Other published tables beside the matrix: what they claim, what we say, and why the two differ."""
