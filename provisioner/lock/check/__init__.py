"""Checks whether a lock still satisfies its spec, the matrix, the hosts and itself; each problem is a `Finding`."""
