"""Input 4: package indexes and image registries, which offer the artefacts (wheels, source distributions, images)."""
