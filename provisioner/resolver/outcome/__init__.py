"""Make of the chosen candidates the stack that users and locks see, with its reasons, doubts and relaxations."""
