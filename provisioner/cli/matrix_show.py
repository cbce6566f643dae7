"""`provision matrix show`: the releases that work with a release, the stacks that run on a host, or one row of the matrix.

JSON has one of three shapes, distinguished by `kind`:

- `release`: `{"question", "kind", "component", "title", "releases", "rules", "with", "gpus", "images", "citations"}`. A
  release is `{"component", "version", "released", "end_of_life", "platforms", "needs": {COMPONENT: RANGE}, "driver":
  {"toolkit", "minor_version", "forward_compat"}, "builds", "sources": [KEY], "place"}`; `with` lists per component the
  releases (and builds) that are stated to work with the release in question; `of` is the number of releases of the component
  in the matrix, `basis` the way in which a driver runs a CUDA release.
- `stacks`: `{"question", "kind", "host", "runs", "refused", "rules", "unverified", "citations"}`. An entry of `runs` is
  `{"component", "release", "build", "basis", "verdict", "stack"}`; one of `refused` is `{"component", "releases", "rules",
  "members"}`, where `members` are the statements of the conflict.
- `row`: `{"question", "kind", "row", "name", "says", "citations"}` for a rule, a source, a product, an image, a failure.

A citation is `{"title", "where", "url", "read", "measured"}`. A key without a value is left out. For a single fact about a
component of hosts (`driver==535.54.03`), the `release` answer also has, under `stacks`, the stacks that run on a host
with this fact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from provisioner.cli.options import FormatOption, MatrixOption, OutputFormat

if TYPE_CHECKING:
    from provisioner.browse.query import Query
    from provisioner.matrix.model import Matrix

QuestionArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="QUESTION...",
        help="Facts such as cuda==11.3, gpu=6.1, sm_61, gpu='NVIDIA A100', driver=535, kernel=6.8;"
        " or one name: a rule, a source, a product, a component.",
    ),
]

AllowOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow", metavar="WAY", help="Also let stacks run by forward-compat or ptx-jit, as policy.allow of a spec does."
    ),
]

WAYS = ("minor-version", "forward-compat", "ptx-jit")


def matrix_show(
    question: QuestionArgument,
    *,
    allow: AllowOption = None,
    matrix: MatrixOption = None,
    format: FormatOption = OutputFormat.TEXT,  # noqa: A002 - the option is called --format
) -> int:
    """Show what goes with a release, which stacks run on a host, or one row with its sources."""
    from provisioner.browse.query import read_query
    from provisioner.cli.display import json_data
    from provisioner.matrix.cache import cached_matrix

    ways = _ways(allow or [])
    loaded = cached_matrix(matrix)
    read = read_query(loaded, question)
    if read.name in loaded.components:
        from provisioner.cli.matrix_list import matrix_list

        return matrix_list(read.name, matrix=matrix, format=format)
    answer, code = _answer(loaded, read, ways)
    if format is OutputFormat.JSON:
        json_data(answer)
    else:
        from provisioner.cli.answers import tell

        tell(answer)
    return code


def _ways(allow: list[str]) -> tuple[str, ...]:
    from provisioner.errors import UsageError

    wrong = next((way for way in allow if way not in WAYS), None)
    if wrong is not None:
        raise UsageError(f"--allow `{wrong}` is no way to run a stack", hints=(f"ways: {', '.join(WAYS)}",))
    return tuple(dict.fromkeys(("minor-version", *allow)))


def _answer(matrix: Matrix, question: Query, ways: tuple[str, ...]) -> tuple[dict[str, Any], int]:
    """Return the answer as data, and the exit code: 1 if no stack runs on the host, else 0."""
    from provisioner.browse import show

    if question.name:
        from provisioner.browse.rows import citations_of, row_named

        row = row_named(matrix, question.name)
        shown = {"question": question.name, "kind": "row", "row": row.kind, "name": row.name, "says": row.data}
        return {**shown, "citations": citations_of(matrix, row.data)}, 0
    first, *others = question.facts
    component = matrix.components.get(first.name)
    is_of_host = component is None or component.virtual
    if others or first.name == "gpu" or component is None:
        answer = show.stacks_answer(matrix, question.facts, ways)
        return answer, 0 if answer["runs"] else 1
    answer = show.release_answer(matrix, first)
    if is_of_host and first.is_exact:
        answer["stacks"] = show.stacks_answer(matrix, question.facts, ways)
    return answer, 0
