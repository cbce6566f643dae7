"""The container gate: what `NVIDIA_REQUIRE_*` demands of a host, and whether a host meets it."""
