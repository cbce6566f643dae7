"""Input 2: the facts of a machine (host profiles, inventories, inspection)."""
