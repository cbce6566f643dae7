"""ProblemInstance -> the best choice, or that there is none: resolvelib, the check of its answer, and the complete search."""
