"""Input 3: what the user wants."""
