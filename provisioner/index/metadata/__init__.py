"""Reading of one file of a distribution: its requirements, and the details that a lock file records (hash, attestations)."""
