"""What the matrix, the policy, gates of images and compilers ask of hosts and of candidates, as requirements."""
