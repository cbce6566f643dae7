"""One file of a distribution -> what it requires, what a lock states of it."""
