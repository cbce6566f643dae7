"""`provision matrix diff`: the differences between the matrix and other published tables, with the reason for each."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotation
from typing import TYPE_CHECKING, Annotated

import typer

from provisioner.cli.options import FormatOption, MatrixOption, OutputFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.compare.claims import Disagreement, Table
    from provisioner.compare.diff import Compared, Comparison


def matrix_diff(
    against: Annotated[
        list[Path] | None,
        typer.Option("--against", metavar="FILE", readable=False, help="A table in its own format; default: those shipped."),
    ] = None,
    extract: Annotated[
        bool, typer.Option("--extract", help="Print what the tables claim as YAML, as it is kept in matrices/published.")
    ] = False,
    show_all: Annotated[bool, typer.Option("--all", help="Show what agrees and what is not in the matrix, too.")] = False,
    matrix: MatrixOption = None,
    output_format: FormatOption = OutputFormat.TEXT,
) -> None:
    """Compare the matrix with other published tables; every difference has our evidence, and a reason.

    Reads uv's backend.rs, cog's *_compatibility.json, Spack's cuda.py, py-torch and cudnn packages, CUDA.jl's
    compatibility.jl, conda-forge's cuda-version recipe and pinning, and extracts of such tables in YAML.
    """
    from provisioner.cli.display import data, json_data
    from provisioner.compare.diff import compare
    from provisioner.compare.tables import disagreements, extract_text, read_table, shipped_tables
    from provisioner.matrix.cache import cached_matrix

    tables = tuple(read_table(path) for path in against) if against else shipped_tables(matrix)
    if extract:
        data("---\n".join(extract_text(table) for table in tables))
        return
    comparison = compare(cached_matrix(matrix), tables, disagreements(matrix))
    idle = () if against else comparison.idle
    if output_format is OutputFormat.JSON:
        json_data(_report(tables, comparison, show_all=show_all, is_complete=not against))
    else:
        _print(tables, comparison, show_all=show_all)
        _print_idle(idle)
    if comparison.unexplained or idle:
        raise typer.Exit(1)


def _print(tables: Sequence[Table], comparison: Comparison, *, show_all: bool) -> None:
    from provisioner.cli.display import data, table
    from provisioner.compare.claims import QUESTIONS

    for one in comparison.compared:
        if one.outcome in {"explained", "unexplained"}:
            data("\n".join([*_difference(one, QUESTIONS[one.claim.question]), ""]) + "\n")
        elif show_all:
            note = "agrees" if one.outcome == "agrees" else f"not judged: {one.result.ours}"
            data(f"{one.table}: {one.claim.subject}, {one.claim.question}: {one.claim.says} ({note})")
    rows = []
    for name in dict.fromkeys(found.name for found in tables):
        counts = comparison.counts(name)
        rows.append((name, str(sum(counts.values())), *(str(count) for count in counts.values())))
    totals = comparison.counts()
    rows.append(("all", str(sum(totals.values())), *(str(count) for count in totals.values())))
    table(("table", "claims", "agree", "explained", "unexplained", "not in the matrix"), rows)


def _difference(one: Compared, question: str) -> list[str]:
    line = f" (line {one.claim.line})" if one.claim.line else ""
    return [
        f"{one.table}{line}: {one.claim.subject}: {question}",
        f"  theirs: {one.claim.says}",
        f"  ours:   {one.result.ours}",
        *(f"  {found}" for found in one.result.evidence),
        f"  reason: {one.reason}" if one.reason else "  reason: none was written; this is a disagreement to settle",
    ]


def _print_idle(idle: Sequence[Disagreement]) -> None:
    from provisioner.cli.display import data

    for entry in idle:
        data(f"{entry.table}, {entry.question}, {entry.subject}: the reason explains no difference any more: {entry.because}")


def _report(tables: Sequence[Table], comparison: Comparison, *, show_all: bool, is_complete: bool) -> dict[str, object]:
    from msgspec import to_builtins

    shown = [one for one in comparison.compared if show_all or one.outcome in {"explained", "unexplained"}]
    return {
        "tables": {
            name: {"where": [found.where for found in tables if found.name == name], **comparison.counts(name)}
            for name in dict.fromkeys(found.name for found in tables)
        },
        "differences": [
            {
                "table": one.table,
                "question": one.claim.question,
                "subject": one.claim.subject,
                "line": one.claim.line,
                "theirs": one.claim.says,
                "ours": one.result.ours,
                "outcome": one.outcome,
                "evidence": list(one.result.evidence),
                "reason": one.reason,
            }
            for one in shown
        ],
        "idle": [to_builtins(entry) for entry in comparison.idle] if is_complete else [],
    }
