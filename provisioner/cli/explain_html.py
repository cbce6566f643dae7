"""`provision explain --html FILE`: a lock as one page to read and to show to others.

JSON: `{"status": "explained", "verdict": "yes | no | unverified", "written": [FILE]}`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.cli.options import OutputFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.grounds.change import Comparison
    from provisioner.workflow.explaining_lock import ExplainedLock

STDOUT = "-"
"""What stands for stdout, as a file to write; for a lock it would be stdin."""


class Wanted(Struct, frozen=True, kw_only=True):
    """What a page is asked about: a `path`, which is a lock or the spec of one, and the lock `old` to compare it with, if any.

    `hosts`, `matrix`, `target` and `platform` are the options of the same names.
    """

    path: Path
    old: Path | None = None
    hosts: Sequence[Path] = ()
    matrix: Path | None = None
    target: str | None = None
    platform: str | None = None


def explain_html(wanted: Wanted, file: str, format: OutputFormat) -> int:  # noqa: A002 - the option is called --format
    """Write the page of a lock to `file`, `-` for stdout, and return 1 if the lock no longer holds, else 0.

    Raises `UsageError` when stdout would get two documents.
    """
    from provisioner.browse.explanation_page import Subject, explanation_page
    from provisioner.cli.display import data, json_data, step, talk
    from provisioner.document import write_text
    from provisioner.errors import UsageError
    from provisioner.workflow.checking import Question
    from provisioner.workflow.explaining_lock import explain_lock_file

    if file == STDOUT and format is OutputFormat.JSON:
        raise UsageError("--html - and --format json cannot share stdout", hints=("name a file for the page",))
    path = lock_of(wanted)
    with step(f"Explaining {path.name}"):
        found = explain_lock_file(path, Question(hosts=tuple(wanted.hosts), matrix=wanted.matrix), platform=wanted.platform)
        subject = Subject(
            file=path.name,
            verdict=found.verdict,
            findings=found.findings,
            evidence=found.evidence,
            headlines=_headlines(found),
            old=_name(wanted.old) if wanted.old is not None else "",
            comparison=_comparison(wanted.old, path) if wanted.old is not None else None,
        )
        text = explanation_page(subject, found.platforms, found.matrix)
    if file == STDOUT:
        data(text)
    else:
        write_text(Path(file), text)
        talk(f"wrote {file}")
    if format is OutputFormat.JSON:
        json_data({"status": "explained", "verdict": found.verdict, "written": [file]})
    return 1 if found.verdict == "no" else 0


def is_lock(path: Path) -> bool:
    """Return whether a path is called like a lock file of PEP 751."""
    from packaging.pylock import is_valid_pylock_path

    return is_valid_pylock_path(path)


def lock_of(wanted: Wanted) -> Path:
    """Return the path of the lock: the one named, or that of the spec named.

    Raises `UsageError` if the spec has no lock, or for stdin, and the errors of `read_inputs`.
    """
    from provisioner.errors import UsageError
    from provisioner.lock.format.file import lock_path
    from provisioner.workflow.inputs import read_inputs

    if str(wanted.path) == STDOUT:
        message = "--html explains a lock with the spec beside it, and stdin has none beside it"
        raise UsageError(message, hints=("name the lock by its path; the one it is compared with may be `-`",))
    if is_lock(wanted.path):
        return wanted.path
    inputs = read_inputs(wanted.path, hosts=tuple(wanted.hosts), matrix=wanted.matrix, target=wanted.target)
    path = inputs.path.parent / inputs.target / lock_path(inputs.spec.name)
    if not path.is_file():
        message = f"--html explains a lock, and `{wanted.path}` has none: `{path}` is missing"
        raise UsageError(message, hints=(f"`provision solve {wanted.path}` writes it",))
    return path


def _headlines(found: ExplainedLock) -> dict[str, str]:
    """Return the first line of the answer for each platform that has one."""
    from provisioner.cli.stack_words import answer_lines

    stacks = [one.stack for one in found.platforms if one.stack is not None]
    return {one.platform: answer_lines(one, found.inputs.spec)[0].text for one in stacks} if found.inputs is not None else {}


def _comparison(old: Path, new: Path) -> Comparison:
    from provisioner.cli.explain_diff import lock_text
    from provisioner.lock.diff.compare import compare_texts

    return compare_texts((_name(old), lock_text(old)), (new.name, lock_text(new)))


def _name(old: Path) -> str:
    from provisioner.document import STDIN

    return "(stdin)" if old == STDIN else old.name
