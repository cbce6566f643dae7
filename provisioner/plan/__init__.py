"""From today's stack and machines to a wanted stack: which changes, in which order, and which machines cannot follow."""
