"""Find the most wanted answer to a problem instance, or prove that there is none: resolvelib, a check, and a SAT search."""
