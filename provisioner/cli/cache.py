"""`provision cache`: the folder and size of the cache, and the removal of old entries or all."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from provisioner.cli.options import FormatOption, OutputFormat

if TYPE_CHECKING:
    from provisioner.index.pruning import Pruned


class Action(StrEnum):
    """An action of `provision cache`."""

    SHOW = "show"
    DIR = "dir"
    PRUNE = "prune"
    CLEAN = "clean"


LONGEST = 36_500
"""The most days that `prune` accepts: a hundred years, more than the age of any cache."""

ActionArgument = Annotated[
    Action,
    typer.Argument(metavar="[show|dir|prune|clean]", help="Say how large it is, or where; take old things away, or all."),
]
DaysOption = Annotated[
    int | None,
    typer.Option("--days", metavar="DAYS", min=0, max=LONGEST, help="Of `prune`: what was not used for so long goes."),
]


def cache(
    action: ActionArgument = Action.SHOW,
    *,
    days: DaysOption = None,
    format: FormatOption = OutputFormat.TEXT,  # noqa: A002 - the option is called --format
) -> int:
    """Say what the cache holds, and take old things from it, or all.

    Nothing is lost but time: what an index said is asked for again. Runs prune by themselves, once a day, what nobody has used
    for 90 days; runs with --offline never do. Other runs may go on meanwhile.
    """
    from provisioner.caches import cache_directory
    from provisioner.cli.display import data, json_data, warn
    from provisioner.errors import UsageError
    from provisioner.index.pruning import DAYS, clean, prune, size_of

    if days is not None and action is not Action.PRUNE:
        raise UsageError(f"--days belongs to `provision cache prune`, not to `{action}`")
    directory = cache_directory()
    if action is Action.DIR and format is OutputFormat.TEXT:
        data(str(directory))
        return 0
    removed = None
    if action is Action.PRUNE:
        removed = prune(directory, days=DAYS if days is None else days)
    elif action is Action.CLEAN:
        removed = clean(directory)
    size = size_of(directory)
    if format is OutputFormat.JSON:
        went = {"removed": {"rows": removed.rows, "files": removed.files, "size": removed.size}} if removed else {}
        json_data({"directory": str(directory), "size": size, **went})
    else:
        data("\n".join([*([_pruned_words(removed)] if removed else []), f"{directory}: {_readable(size)}"]))
    if removed is not None and not removed.is_complete:
        warn(f"the tables in {directory} are in use by another run, or no tables; nothing was taken from them")
        return 3
    return 0


def _pruned_words(removed: Pruned) -> str:
    return f"removed {_readable(removed.size)} (rows of tables: {removed.rows}, files: {removed.files})"


def _readable(size: int) -> str:
    return f"{size / 2**20:.1f} MiB" if size >= 2**20 else f"{size / 2**10:.1f} KiB"
