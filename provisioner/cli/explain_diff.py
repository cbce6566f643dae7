"""`provision explain --diff OLD NEW`: what changed between two locks and why, for the person who reviews it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.cli.options import OutputFormat
from provisioner.document import STDIN
from provisioner.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.grounds.change import Comparison


def explain_diff(old: Path, new: Path, format: OutputFormat) -> int:  # noqa: A002 - the option is called --format
    """Print the changes between two locks and return 0, whether or not there are any, as `git diff` does.

    One of them may be stdin, to compare with the output of `git show main:pylock.trainer.toml`.
    """
    from provisioner.cli.display import Line, json_data, report
    from provisioner.lock.diff.compare import compare_texts
    from provisioner.words.change import comparison_lines

    if old == STDIN == new:
        raise UsageError("both locks of `--diff - -` come from stdin", hints=("name at least one of them by its path",))
    texts = {path: lock_text(path) for path in (old, new)}
    comparison = compare_texts((_name(old), texts[old]), (_name(new), texts[new]))
    if format is OutputFormat.JSON:
        json_data({"status": "compared", "old": _name(old), "new": _name(new), **_as_json(comparison)})
    else:
        report(map(Line, comparison_lines(comparison, old=_name(old), new=_name(new))))
    return 0


def _name(path: Path) -> str:
    return "(stdin)" if path == STDIN else str(path)


def lock_text(path: Path) -> str:
    """Return the text of a lock, from stdin for `STDIN`; raises `FileError`."""
    from provisioner.document import read_printed, read_text
    from provisioner.lock.format.file import KIND

    return (read_printed if path == STDIN else read_text)(path, kind=KIND)


def _as_json(comparison: Comparison) -> dict[str, object]:
    from msgspec import to_builtins

    from provisioner.cli.changes_report import cause_data
    from provisioner.words.change import change_words, note_words

    changes = []
    for change in comparison.changes:
        fields = {key: value for key, value in to_builtins(change).items() if value or key in {"old", "new", "is_breaking"}}
        fields["text"] = change_words(change)
        fields["causes"] = [cause_data(cause) for cause in change.causes]
        fields["breaking"] = fields.pop("is_breaking")
        changes.append(fields)
    return {
        "breaking": comparison.is_breaking,
        "platforms": list(comparison.platforms),
        "unchanged": comparison.unchanged,
        "notes": list(map(note_words, comparison.notes)),
        "changes": changes,
    }
