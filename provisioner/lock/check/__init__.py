"""Does a lock still satisfy its spec, the matrix, the hosts and itself: findings, each with its place."""
