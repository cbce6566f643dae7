"""The lock file: its model, how it is written, and how it is read back with the place of every mistake."""
