"""`provision fetch`: put every file of some locks into one folder, for machines without a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from provisioner.cli.options import FormatOption, OutputFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.lock.format.model import Lock

LocksArgument = Annotated[
    list[Path], typer.Argument(metavar="LOCK...", readable=False, help="Locks, or folders that hold some.")
]
ToOption = Annotated[Path, typer.Option("--to", metavar="DIR", file_okay=False, help="The folder of the files.")]
ImageOption = Annotated[bool, typer.Option("--image", help="Save the base images there, too, as tar archives.")]
EngineOption = Annotated[str, typer.Option("--engine", metavar="NAME", help="Of --image: docker or podman.")]


def fetch(
    locks: LocksArgument,
    to: ToOption,
    *,
    image: ImageOption = False,
    engine: EngineOption = "docker",
    format: FormatOption = OutputFormat.TEXT,  # noqa: A002 - the option is called --format
) -> int:
    """Put every file of some locks into one folder, to install offline.

    Each is held to its hash. What is there stays, half a file goes on where it ended, and a file gets its name when it is
    complete.
    """
    from shlex import quote

    from provisioner.cli.display import Line, Paint, data, json_data, step, tell, warn
    from provisioner.index.activity import readable_size
    from provisioner.workflow.checking import locks_in
    from provisioner.workflow.fetching import FetchProgress, built_there, fetch, read_locks, wanted_files, write_requirements

    found = read_locks(locks_in(locks))
    progress = FetchProgress()
    with step("Fetching", progress.__str__):
        result = fetch(wanted_files(found), to, progress)
    requirements = write_requirements(found, to)
    builds = built_there(found, to)
    saved = _images(found, to, engine) if image else []
    names = sorted((*result.fetched, *result.kept))
    if format is OutputFormat.JSON:
        answer = {"status": "fetched", "folder": str(to), "files": names, "fetched": list(result.fetched), "size": result.size}
        answer |= {"requirements": list(requirements), "builds": {name: list(needed) for name, needed in builds.items()}}
        json_data({**answer, **({"images": saved} if image else {})})
        return 0
    there = f"; {len(result.kept)} of them were there" if result.kept else ""
    data(f"{to}: {len(names)} {'file' if len(names) == 1 else 'files'}, {readable_size(result.size)}{there}")
    for name in saved:
        data(f"{to / name}")
    if builds:
        needed = " ".join(quote(one) for one in sorted({one for several in builds.values() for one in several}))
        warn(
            f"{', '.join(builds)}: built from source where it is installed, and what the build requires is in no lock; "
            f"into the folder with it: pip wheel --wheel-dir {quote(str(to))} {needed}"
        )
    install = f"pip install --no-index --no-deps --find-links {quote(str(to))} --requirement {quote(str(to / requirements[0]))}"
    tell([Line(install, "next:", Paint.NEXT)])
    return 0


def _images(locks: Sequence[tuple[Path, Lock]], folder: Path, engine: str) -> list[str]:
    """Save the base images of the locks, and return the names of their archives."""
    from provisioner.cli.display import step, talk
    from provisioner.errors import UsageError
    from provisioner.validate.saving import ENGINES, save_image
    from provisioner.workflow.fetching import images_of

    if engine not in ENGINES:
        raise UsageError(f"`{engine}` is not an engine that saves images", hints=(f"choose one of {', '.join(ENGINES)}",))
    saved = []
    for one in images_of(locks):
        with step(f"Saving {one.reference}"):
            saved.append(save_image(engine, reference=one.reference, digest=one.digest, folder=folder, log=talk).name)
    return saved
