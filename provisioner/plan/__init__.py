"""Plan the changes from today's stack and machines to a wanted stack, their order, and the machines that cannot have it."""
