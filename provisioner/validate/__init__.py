"""Build the image of a lock, run and measure it, and compare the measurement with the lock."""
