"""NVIDIA_REQUIRE_*, the requirements an image has of its host: how they are read, and whether a host meets them."""
