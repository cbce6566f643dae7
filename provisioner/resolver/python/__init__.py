"""Python distributions as candidates and requirements of the same problem."""
