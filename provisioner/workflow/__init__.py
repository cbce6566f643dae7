"""The jobs of the program (solve, check, explain) as functions over values, between the command line and the other packages."""
