"""`provision init`: write a commented provision.yaml for this machine or a named profile."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - Typer reads the annotations when the program runs
from typing import TYPE_CHECKING, Annotated

import typer

from provisioner.cli.options import DEFAULT_SPEC

if TYPE_CHECKING:
    from provisioner.host.model import Host


def init(
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile", metavar="NAME", help="A kind of machine, such as h100, cpu or p5.48xlarge, instead of this one."
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write.")] = DEFAULT_SPEC,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
) -> None:
    """Write a commented provision.yaml for this machine, or for a named profile.

    The file is valid as it stands: `provision solve` can be the next command.
    """
    from provisioner.cli.display import talk
    from provisioner.document import write_text
    from provisioner.errors import UsageError
    from provisioner.host.profile import host_document
    from provisioner.platforms import DEFAULT_PLATFORM
    from provisioner.spec.template import spec_name, spec_template

    if not force and (out.exists() or out.is_symlink()):
        raise UsageError(f"`{out}` already exists", hints=("--force overwrites it; --out FILE writes another",))
    host, subject = _described(profile)
    text = spec_template(
        name=spec_name(out.absolute().parent.name),
        platform=host.platform or DEFAULT_PLATFORM,
        subject=subject,
        host=host_document(host),
    )
    write_text(out, text)
    named = "" if out == DEFAULT_SPEC else f" {out}"
    talk(f"wrote `{out}`; edit what it requires, then run `provision solve{named}`")


def _described(profile: str | None) -> tuple[Host, str]:
    """Return the host for which to write the spec, and the comment of the spec that names the source of the host's facts.

    The host is that of the shipped profile called `profile`, or this machine if `profile` is None.
    """
    if profile is None:
        from provisioner.cli.inspect import inspected

        return inspected().host, "The machine it must run on: this one, as `provision inspect` saw it"
    from provisioner.host.profile import load_profile

    shipped = load_profile(profile)
    return shipped.host, f"The machine it must run on: {shipped.description}"
