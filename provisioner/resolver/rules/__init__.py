"""The requirements on hosts and candidates that come from the matrix, the policy, the gates of images and compiling."""
