"""The reports of `provision check` for other programs: one module for each format, with one public function `text`.

A format is a row of `NAMES`, and a module called like it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from provisioner.cli.check_formats.remark import Environment

NAMES = ("sarif", "junit", "github", "gitlab")
"""The formats, as `--format` names them."""


def formatted(name: str, environments: Sequence[Environment]) -> str:
    """Return the findings on some environments in the format `name`: the same bytes for the same findings."""
    from importlib import import_module

    text: Callable[[Sequence[Environment]], str] = import_module(f"provisioner.cli.check_formats.{name}").text
    return text(environments)
