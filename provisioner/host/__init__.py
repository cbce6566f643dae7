"""Input 2: what a machine is."""
