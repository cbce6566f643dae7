"""Solve, lock, render and validate machine-learning environments, from the kernel up to the Python packages."""

__version__ = "0.1.0"
