"""Find the most preferred answer to a problem instance, or prove that there is none: resolvelib, a check, and a SAT search."""
