"""`provision matrix audit`: rows of the matrix measured again from the artefacts they name.

JSON: `{"status", "rows": [{"row", "component", "version", "build", "platforms", "place", "artefact", "outcome", "why_not",
"findings": [{"field", "outcome", "stated", "read", "is_whole"}]}], "counts": {OUTCOME: n}, "unnamed", "fetched"}`. `status` is
`confirmed`, `refuted` or `not measurable`, an outcome likewise; `is_whole` is false where only a sample of the artefact was
read; `unnamed` counts builds that name no artefact; `fetched` is in bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from provisioner.cli.options import FormatOption, MatrixOption, OfflineOption, OutputFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.curate.artefacts import Artefacts
    from provisioner.curate.audit_verdict import Audited, Finding, Row
    from provisioner.matrix.model import Matrix

OUTCOMES = ("confirmed", "refuted", "not measurable")


def matrix_audit(
    wanted: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COMPONENT[==VERSION]]...", help="What to audit, shared-files, wheels and images too; default: everything."
        ),
    ] = None,
    *,
    full: Annotated[
        bool, typer.Option("--full", help="Read large libraries to their end, not as far as they bring news.")
    ] = False,
    limit: Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="Audit the first N rows only.")] = None,
    part: Annotated[
        str | None, typer.Option("--part", metavar="K/N", help="Audit every N-th row from the K-th on: N runs audit all.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", min=1, max=16, metavar="N", help="Read N artefacts side by side.")] = 2,
    show_all: Annotated[bool, typer.Option("--all", help="Show what was confirmed, too.")] = False,
    offline: OfflineOption = False,
    matrix: MatrixOption = None,
    format: FormatOption = OutputFormat.TEXT,  # noqa: A002 - the option is called --format
) -> int:
    """Measure rows of the matrix again, from the artefacts they name, by ranges of them; no artefact is fetched whole.

    What was measured is kept: an audit that was interrupted goes on where it stopped.
    """
    import os

    from msgspec.structs import replace

    from provisioner.cli.display import json_data
    from provisioner.curate.artefacts import Artefacts
    from provisioner.curate.audit import unnamed
    from provisioner.index.settings import settings_from_pip
    from provisioner.matrix.cache import cached_matrix

    loaded = cached_matrix(matrix)
    selections = [_selection(loaded, text) for text in wanted or ()] or [("", "")]
    rows = _part(_rows(loaded, selections), part)[:limit]
    without = sum(unnamed(loaded, component=component, version=version) for component, version in selections)
    settings = replace(settings_from_pip(os.environ), offline=offline)
    progress = _Progress(len(rows))
    with Artefacts(settings, is_full=full, progress=progress.reading) as artefacts:
        results = _audited(loaded, rows, artefacts, jobs=jobs, progress=progress)
        fetched = artefacts.fetched
    status = _status(results)
    if format is OutputFormat.JSON:
        json_data(_report(results, status=status, unnamed=without, fetched=fetched))
    else:
        _print(results, unnamed=without, fetched=fetched, show_all=show_all)
    return {"confirmed": 0, "refuted": 1}.get(status, 3)


def _part(rows: list[Row], text: str | None) -> list[Row]:
    from provisioner.errors import UsageError

    if text is None:
        return rows
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise UsageError(f"--part {text} is no part of the rows", hints=("write K/N with K from 1 to N, as 3/52",))
    return rows[int(number) - 1 :: int(count)]


def _selection(matrix: Matrix, text: str) -> tuple[str, str]:
    from provisioner.curate.derive_wheels import WHEELS
    from provisioner.curate.image_tags import IMAGES
    from provisioner.curate.shared_files import SHARED_FILES
    from provisioner.errors import UsageError
    from provisioner.names import nearest

    component, _, version = text.partition("==")
    if component == WHEELS:
        _require_distribution(matrix, version)
        return component, version
    if component == SHARED_FILES:
        _require_shared_file(matrix, version)
        return component, version
    if component == IMAGES:
        _require_image(matrix, version)
        return component, version
    if component not in matrix.components:
        near = nearest(component, matrix.components)
        raise UsageError(f"the matrix has no component `{component}`", hints=(f"did you mean `{near}`?",) if near else ())
    releases = matrix.components[component].releases
    if version and not any(str(release.version) == version for release in releases):
        newest = ", ".join(str(release.version) for release in releases[:3])
        raise UsageError(
            f"the matrix has no release {version} of {component}", hints=(f"its newest are {newest}",) if newest else ()
        )
    return component, version


def _require_shared_file(matrix: Matrix, name: str) -> None:
    from provisioner.errors import UsageError
    from provisioner.names import nearest

    known = [shared.name for shared in matrix.shared_files]
    if name and name not in known:
        near = nearest(name, known)
        raise UsageError(f"the matrix has no shared file `{name}`", hints=(f"did you mean `{near}`?",) if near else ())


def _require_image(matrix: Matrix, reference: str) -> None:
    from provisioner.errors import UsageError
    from provisioner.names import nearest

    known = [image.reference for image in matrix.images]
    if reference and reference not in known:
        near = nearest(reference, known)
        raise UsageError(f"the matrix has no image `{reference}`", hints=(f"did you mean `{near}`?",) if near else ())


def _require_distribution(matrix: Matrix, name: str) -> None:
    from provisioner.errors import UsageError
    from provisioner.names import nearest

    known = sorted({wheel.distribution for wheel in matrix.wheels})
    if name and name not in known:
        near = nearest(name, known)
        raise UsageError(f"the matrix has no GPU wheels of `{name}`", hints=(f"did you mean `{near}`?",) if near else ())


def _rows(matrix: Matrix, selections: Sequence[tuple[str, str]]) -> list[Row]:
    from provisioner.curate.audit import rows

    found = [row for component, version in selections for row in rows(matrix, component=component, version=version)]
    return list(dict.fromkeys(found)) if len(selections) > 1 else found


def _audited(matrix: Matrix, rows: Sequence[Row], artefacts: Artefacts, *, jobs: int, progress: _Progress) -> list[Audited]:
    from provisioner.curate.audit import audited

    found = {}
    for one in audited(matrix, rows, artefacts, jobs=jobs):
        found[id(one.row)] = one
        progress.done(one)
    return [found[id(row)] for row in rows]


class _Progress:
    """The progress of an audit, printed to stderr: a line for a step, unless another line was printed shortly before."""

    def __init__(self, total: int) -> None:
        from time import monotonic

        self._total = total
        self._count = 0
        self._clock = monotonic
        self._spoke = monotonic()

    def reading(self, text: str) -> None:
        """Report that the member `text` of an artefact is read next."""
        from provisioner.cli.display import PROGRESS_DELAY_SECONDS, talk

        if self._clock() - self._spoke > 5 * PROGRESS_DELAY_SECONDS:
            self._spoke = self._clock()
            talk(f"[{self._count}/{self._total}] reading {text} ...")

    def done(self, one: Audited) -> None:
        """Report that a row has been audited."""
        from provisioner.cli.display import PROGRESS_DELAY_SECONDS, talk

        self._count += 1
        if self._clock() - self._spoke > PROGRESS_DELAY_SECONDS:
            self._spoke = self._clock()
            talk(f"[{self._count}/{self._total}] {one.row.name}: {one.outcome}")


def _status(results: Sequence[Audited]) -> str:
    outcomes = {one.outcome for one in results}
    return next((outcome for outcome in ("refuted", "confirmed") if outcome in outcomes), "not measurable")


def _print(results: Sequence[Audited], *, unnamed: int, fetched: int, show_all: bool) -> None:
    from provisioner.cli.display import data, table

    for one in results:
        shown = [found for found in one.findings if show_all or found.outcome != "confirmed"]
        if shown or one.why_not:
            place = f" ({one.row.place})" if one.row.place else ""
            lines = [f"{one.row.name}{place}, {one.row.build.artefact}"]
            lines += [f"  not measurable: {one.why_not}"] if one.why_not else []
            data("\n".join(lines + [line for found in shown for line in _finding(found)]) + "\n")
    names = list(dict.fromkeys(one.row.component.name for one in results))
    counted = [(name, [one for one in results if one.row.component.name == name]) for name in names]
    lines_of_table = [(name, str(len(own)), *_counts(own), str(sum(len(one.findings) for one in own))) for name, own in counted]
    if len(names) > 1:
        lines_of_table.append(("all", str(len(results)), *_counts(results), str(sum(len(one.findings) for one in results))))
    table(("component", "rows", *OUTCOMES, "fields read"), lines_of_table)
    notes = [f"{fetched / 1e6:,.1f} MB fetched" if fetched >= 1e6 else f"{fetched / 1e3:,.0f} kB fetched"] if fetched else []
    notes += [f"{unnamed} builds name no artefact and cannot be measured"] if unnamed else []
    if any(not found.is_whole and found.outcome == "confirmed" for one in results for found in one.findings):
        notes.append("large libraries were sampled: confirmed means as far as they were read; --full reads them to the end")
    if notes:
        data("\n".join(notes))


def _counts(results: Sequence[Audited]) -> tuple[str, ...]:
    return tuple(str(sum(one.outcome == outcome for one in results)) for outcome in OUTCOMES)


def _finding(found: Finding) -> list[str]:
    extent = "" if found.is_whole or found.outcome != "confirmed" else " as far as read"
    return [f"  {found.field}: {found.outcome}{extent}", f"    stated: {found.stated}", f"    read:   {found.read}"]


def _report(results: Sequence[Audited], *, status: str, unnamed: int, fetched: int) -> dict[str, object]:
    from msgspec import to_builtins

    return {
        "status": status,
        "rows": [
            {
                "row": one.row.name,
                "component": one.row.component.name,
                "version": str(one.row.release.version),
                "build": one.row.build.name,
                "platforms": list(one.row.build.platforms),
                "place": one.row.place,
                "artefact": one.row.build.artefact,
                "outcome": one.outcome,
                "why_not": one.why_not,
                "findings": [to_builtins(found) for found in one.findings],
            }
            for one in results
        ],
        "counts": {outcome: sum(one.outcome == outcome for one in results) for outcome in OUTCOMES},
        "unnamed": unnamed,
        "fetched": fetched,
    }
