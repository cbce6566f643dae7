"""`provision matrix check`: lint the matrix, count its measured rows, and compare it with other published tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from provisioner.cli.options import FormatOption, MatrixOption, OutputFormat

if TYPE_CHECKING:
    from provisioner.compare.diff import Comparison
    from provisioner.matrix.families import Coverage
    from provisioner.matrix.lint import Counts, Finding


def matrix_check(matrix: MatrixOption = None, output_format: FormatOption = OutputFormat.TEXT) -> None:
    """Lint the matrix, and count its rows, measurements and disagreements; list the releases of which no row speaks.

    Mistakes (a citation that leads nowhere, a rule that points up, a row given twice) leave with 2. Findings (rules that
    never apply or bind nothing, rows nothing refers to, rows out of order) and disagreements with other published tables
    that nobody explained leave with 1. A release about which a family of rows is silent is no finding: it is taken last, and
    an answer with it is unverified.
    """
    from provisioner.cli.display import json_data, step
    from provisioner.compare.diff import compare
    from provisioner.compare.tables import disagreements, shipped_tables
    from provisioner.matrix.families import families_of
    from provisioner.matrix.lint import count, lint
    from provisioner.matrix.load import load_matrix

    with step("Checking the matrix"):
        loaded = load_matrix(matrix)
        counts, findings = count(loaded), lint(loaded)
        comparison = compare(loaded, shipped_tables(matrix), disagreements(matrix))
        coverage = families_of(loaded).coverage()
    if output_format is OutputFormat.JSON:
        json_data({**_report(counts, findings, comparison), "families": [_family(one) for one in coverage]})
    else:
        _print(counts, findings, comparison, coverage)
    if findings or comparison.unexplained or comparison.idle:
        raise typer.Exit(1)


def _print(counts: Counts, findings: tuple[Finding, ...], comparison: Comparison, coverage: tuple[Coverage, ...]) -> None:
    from provisioner.cli.display import data, table

    for finding in findings:
        data(f"{finding.where}: {finding.text}  [{finding.kind}]")
    _print_silent(coverage)
    kinds = [(kind, str(number), str(counts.measured_kinds.get(kind, 0))) for kind, number in counts.kinds.items()]
    table(("rows of", "rows", "measured"), [*kinds, ("all", str(counts.rows), str(counts.measured))])
    found = comparison.counts()
    claims = sum(found.values())
    data(
        f"{counts.rows} rows, every one cited, {counts.measured} measured from an artefact; {claims} claims of other tables: "
        f"{found['agrees']} agree, {found['explained']} differ with a reason, {found['unexplained']} unexplained, "
        f"{found['silent']} about what this matrix does not hold"
    )


def _print_silent(coverage: tuple[Coverage, ...]) -> None:
    from provisioner.cli.display import data

    judged = [one for one in coverage if one.family is not None]
    silent = [one for one in judged if one.silent]
    others = [one for one in coverage if one.family is None and one.silent]
    data(f"{len(judged)} families of rows speak of every release, or should; a silent one makes an answer unverified:")
    for one in silent:
        data(f"  {one.subject} and {one.object}: {len(one.silent)} of {one.releases} releases: {', '.join(one.silent)}")
    data(f"{len(others)} other families are silent about some releases, which is no limit; --format json has them")


def _family(one: Coverage) -> dict[str, object]:
    return {
        "subject": one.subject,
        "object": one.object,
        "releases": one.releases,
        "silent": list(one.silent),
        "silence": "unverified" if one.family is not None else "no limit",
        **({"because": one.family.because} if one.family is not None else {}),
    }


def _report(counts: Counts, findings: tuple[Finding, ...], comparison: Comparison) -> dict[str, object]:
    return {
        "rows": counts.rows,
        "measured": counts.measured,
        "kinds": {
            kind: {"rows": number, "measured": counts.measured_kinds.get(kind, 0)} for kind, number in counts.kinds.items()
        },
        "claims": comparison.counts(),
        "findings": [{"kind": one.kind, "where": one.where, "text": one.text} for one in findings],
    }
