"""The problem (matrix + target + spec + index) -> a verified stack, or a minimal conflict with hints that were re-solved."""
