"""The spec: the requirements of the user, in `provision.yaml` or a `pyproject.toml`."""
