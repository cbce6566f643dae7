"""NVIDIA_REQUIRE_*, the requirements of an image on its host (its gate): parsing, and evaluation on the facts of a host."""
