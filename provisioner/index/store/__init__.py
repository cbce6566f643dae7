"""What was read from indexes before, on disk: shared by concurrent runs, damaged without harm, kept from growing."""
