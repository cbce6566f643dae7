"""The commands of `provision`, one per module; each calls `provisioner.workflow` or another package and prints the result."""
