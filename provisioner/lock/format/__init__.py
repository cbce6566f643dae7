"""The lock file: its model, its writer, and its reader, which reports every mistake with its place in the file."""
