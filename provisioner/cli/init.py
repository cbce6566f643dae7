"""`provision init`: write a commented provision.yaml for this machine or a named profile."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - Typer reads the annotations when the program runs
from typing import TYPE_CHECKING, Annotated

import typer

from provisioner.cli.options import DEFAULT_SPEC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.host.model import Host
    from provisioner.importers.importing import Imported


def init(
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="NAME",
            help="A kind of machine, such as h100, cpu, p5.48xlarge or 'RTX 5060 Ti', instead of this one.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write.")] = DEFAULT_SPEC,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
    sources: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="FILE",
            show_default=False,
            help="Carry over what this file asks for: a requirements.txt, pyproject.toml, conda environment.yml, cog.yaml or "
            "Dockerfile. May be given several times.",
        ),
    ] = None,
) -> None:
    """Write a commented provision.yaml for this machine, or for a named profile.

    The file is valid as it stands: `provision solve` can be the next command. What could not be carried over from the files of
    `--from` is listed at its end. Beside it stands its JSON Schema, by which editors complete and check it.
    """
    from provisioner.accelerators import ON_GPUS
    from provisioner.cli.display import talk, warn
    from provisioner.document import write_together
    from provisioner.errors import UsageError
    from provisioner.host.model import Host
    from provisioner.host.profile import host_document
    from provisioner.platforms import DEFAULT_PLATFORM
    from provisioner.schemas.shipped import SCHEMA_BESIDE, require_own_schema, schema_text
    from provisioner.spec.template import Machine, spec_name, spec_template
    from provisioner.words.omission import omission_words

    if not force and (out.exists() or out.is_symlink()):
        raise UsageError(f"`{out}` already exists", hints=("--force overwrites it; --out FILE writes another",))
    schema = out.parent / SCHEMA_BESIDE
    require_own_schema(schema)
    imported = _imported(sources or [], out.parent)
    content = imported.content if imported is not None else None
    host, subject = _described(profile)
    wanted = content.accelerator if content is not None else None
    if profile is None and wanted is not None and wanted.value in ON_GPUS and host.gpus == ():
        host, subject = Host(platform=host.platform), "The machine it must run on: what `provision inspect` prints there"
        warn(
            f"this machine has no GPU, and {wanted.place} asks for {wanted.value}: "
            "state the machine that it must run on under `target.host`, or give --profile"
        )
    notes = [omission_words(one) for one in imported.omissions] if imported is not None else []
    text = spec_template(
        name=spec_name((content.name if content is not None else "") or out.absolute().parent.name),
        machine=Machine(platform=host.platform or DEFAULT_PLATFORM, subject=subject, host=host_document(host)),
        content=content,
        notes=notes,
        schema=SCHEMA_BESIDE,
    )
    write_together({out: text.encode(), schema: schema_text("spec").encode()})
    named = "" if out == DEFAULT_SPEC else f" {out}"
    if notes:
        talk(f"not carried over: {len(notes)}, listed at the end of `{out}`, too")
        for note in notes:
            talk(f"  {note}")
    talk(f"wrote `{out}`, and `{schema}` for editors; edit what it requires, then run `provision solve{named}`")


def _imported(sources: Sequence[Path], folder: Path) -> Imported | None:
    """Return what files ask for, as the content of a spec in a folder; None if no file is named."""
    if not sources:
        return None
    from provisioner.importers.formats import import_files
    from provisioner.matrix.cache import cached_matrix

    return import_files(sources, folder=folder, matrix=cached_matrix(None))


def _described(profile: str | None) -> tuple[Host, str]:
    """Return the host for which to write the spec, and the comment of the spec that names the source of the host's facts.

    The host is that of the shipped profile, instance type or GPU called `profile`, or this machine if `profile` is None.
    """
    if profile is None:
        from provisioner.cli.inspect import inspected

        return inspected().host, "The machine it must run on: this one, as `provision inspect` saw it"
    from provisioner.matrix.cache import cached_matrix
    from provisioner.workflow.inputs import machine_called

    shipped = machine_called(profile, cached_matrix(None))
    return shipped.host, f"The machine it must run on: {shipped.description}"
