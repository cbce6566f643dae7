"""The commands by name: a line for the list of all, and examples for each. Plain data, so that listing imports nothing."""

from __future__ import annotations

COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "init": (
        "Write a commented provision.yaml for this machine",
        ("provision init", "provision init --profile h100 --out trainer.yaml"),
    ),
    "solve": (
        "Find a stack and its packages, lock them, write what is asked for",
        (
            "provision solve",
            "provision solve trainer.yaml --host hosts/a100.yaml --host hosts/h100.yaml",
            "provision solve --stack-only --format json",
        ),
    ),
    "explain": (
        "Say why this version and not a newer one, or why nothing fits",
        ("provision explain", "provision explain provision.yaml pytorch"),
    ),
    "check": (
        "Say whether locks and rendered files still hold; works offline",
        ("provision check", "provision check environments/ --format json"),
    ),
    "render": (
        "Write a Dockerfile, or a sibling of it, from a lock alone",
        ("provision render pylock.trainer.toml --to dockerfile",),
    ),
    "validate": (
        "Build and run an image, and compare what is in it with its lock",
        ("provision validate pylock.trainer.toml", "provision validate pylock.trainer.toml --level 2"),
    ),
    "inspect": (
        "Describe this machine as a host profile",
        ("provision inspect > hosts/this.yaml", "provision inspect --root saved/node-7"),
    ),
    "matrix": (
        "Browse, lint, measure and compare the compatibility matrix",
        ("provision matrix check",),
    ),
}
"""For each command, in the order in which a user meets them: its summary and its examples."""

MATRIX_COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "check": (
        "Lint the matrix, and count its rows, measurements and disagreements",
        ("provision matrix check", "provision matrix check --matrix my-matrices --format json"),
    ),
}
"""The commands under `provision matrix`, likewise; each is a function `matrix_NAME` in `cli/matrix_NAME.py`."""
