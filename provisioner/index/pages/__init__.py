"""Project pages -> releases, each with the file an installer would take on the target."""
