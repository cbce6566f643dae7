"""A stack made reproducible: every artefact with its hash, in a standard lock file."""
