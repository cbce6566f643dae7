"""`provision matrix`: the commands about the compatibility matrix itself."""

from __future__ import annotations

import typer

from provisioner.cli.commands import MatrixGroup

matrix = typer.Typer(
    cls=MatrixGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@matrix.callback()
def _about() -> None:
    """Browse, lint, measure and compare the compatibility matrix."""
