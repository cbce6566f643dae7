"""Input 4: where artefacts are: package indexes and image registries."""
