"""The commands: thin, one verb a file."""
