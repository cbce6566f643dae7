"""`provision matrix refresh`: derive the generated files of the matrix again from the package index."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from provisioner.cli.options import DryRunOption, FormatOption, MatrixOption, OfflineOption, OutputFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.curate.refresh import Refreshed

_MOST_YANKED = 5
"""The most yanked releases that the text for people names; a whole refresh meets hundreds, none of which is news."""


def matrix_refresh(
    components: Annotated[
        list[str] | None, typer.Argument(metavar="[COMPONENT]...", help="What to refresh; default: all that can be.")
    ] = None,
    matrix: MatrixOption = None,
    *,
    dry_run: DryRunOption = False,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure", help="Also read compiled targets, C++ ABI and glibc inside new wheels, mostly up to 12 MB for each."
        ),
    ] = False,
    allow_removals: Annotated[
        bool, typer.Option("--allow-removals", help="Take rows out of the matrix that the index no longer has.")
    ] = False,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Leave as it is what cannot be read or would lose rows; refresh the rest.")
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", min=1, max=64, metavar="N", help="Files read side by side.")] = 8,
    offline: OfflineOption = False,
    output_format: FormatOption = OutputFormat.TEXT,
) -> None:
    """Derive the generated files of the matrix again from the package index, and show what changed as a diff.

    Reads file lists, wheel metadata and single members of wheels by range requests, never a whole wheel; what was read is
    kept, so an interrupted run goes on where it stopped. Facts measured inside an artefact survive as long as its hash does.

    Leaves with 1 when the index has less than the matrix, when the matrix could not be loaded with what it has, and with
    --dry-run when anything would change. With --keep-going, what could not be read is told, and makes the exit code 3.
    """
    from datetime import UTC, datetime

    from msgspec.structs import replace

    from provisioner.cli.display import data, json_data, steps, talk, warn
    from provisioner.curate.refresh import Options, refresh
    from provisioner.curate.wheel_index import WheelIndex
    from provisioner.document import write_together
    from provisioner.index.settings import settings_from_pip
    from provisioner.matrix.location import default_directory
    from provisioner.words.notation import listed

    directory = matrix if matrix is not None else default_directory()
    settings = replace(settings_from_pip(os.environ), offline=offline)
    with steps("reading the package index") as progress, WheelIndex(settings, workers=jobs, progress=progress) as index:
        today = datetime.now(UTC).date().isoformat()
        options = Options(today=today, allow_removals=allow_removals, measure=measure, keep_going=keep_going)
        found = refresh(directory, components or (), index, options=options)
    changed = [one for one in found if one.is_changed]
    if not dry_run:
        write_together({one.path: one.after.encode() for one in changed})
    unread = [text for one in found for text in one.unread]
    for note in (*(note for one in found for note in one.notes), *(f"not refreshed: {text}" for text in unread)):
        warn(note)
    if output_format is OutputFormat.JSON:
        json_data({**_report(found, index.fetched, is_written=bool(changed) and not dry_run), "yanked": list(index.yanked)})
    else:
        if changed:
            data("".join(one.diff for one in changed))
        if index.yanked:
            more = len(index.yanked) - _MOST_YANKED
            shown = [*list(index.yanked)[:_MOST_YANKED], *([f"{more} more, which --format json names"] if more > 0 else [])]
            talk(f"left out because they were yanked: {listed(shown)}")
        talk(_summary(found, index.fetched))
    if unread:
        raise typer.Exit(3)
    if dry_run and changed:
        raise typer.Exit(1)


def _report(found: Sequence[Refreshed], fetched: int, *, is_written: bool) -> dict[str, object]:
    return {
        "status": "changed" if any(one.is_changed for one in found) else "unchanged",
        "written": is_written,
        "fetched_bytes": fetched,
        "files": [
            {
                "component": one.component,
                "path": one.name,
                "changed": one.is_changed,
                "releases": one.releases,
                "builds": one.builds,
                "removed": list(one.lost),
                "dropped_measurements": list(one.notes),
                "unread": list(one.unread),
                "diff": one.diff,
            }
            for one in found
        ],
    }


def _summary(found: Sequence[Refreshed], fetched: int) -> str:
    from provisioner.curate.derive_python_builds import PYTHON_BUILDS
    from provisioner.curate.derive_wheels import WHEELS
    from provisioner.curate.image_tags import IMAGES
    from provisioner.curate.refresh import APART

    changed = [one.name for one in found if one.is_changed]
    tables = [one for one in found if one.component not in APART]
    counts = (
        [f"{sum(one.releases for one in tables)} releases with {sum(one.builds for one in tables)} builds"] if tables else []
    )
    counts += [f"{one.releases} rows of GPU code in {one.builds} wheels" for one in found if one.component == WHEELS]
    counts += [f"{one.releases} rows of base images" for one in found if one.component == IMAGES]
    counts += [f"{one.builds} archives of CPython" for one in found if one.component == PYTHON_BUILDS]
    as_is = "1 file is" if len(found) == 1 else f"{len(found)} files are"
    what = f"{len(changed)} of {len(found)} files changed" if changed else f"{as_is} as the index says"
    return f"{what}: {', '.join(counts)}; {fetched / 1e6:.1f} MB were read from the index"
