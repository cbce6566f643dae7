"""Examine one machine, layer by layer: what is found, what is wanted, whether the two go together, and what to do."""
