"""Build the stack for users and locks from the chosen candidates, with its reasons, doubts and relaxations."""
