"""`provision matrix list`: the components of the matrix, or the releases of one.

JSON, without COMPONENT: `{"components": [{"name", "title", "virtual", "releases", "builds", "rules", "newest", "rows",
"measured", "end_of_life"}]}`; with it: `{"component", "title", "releases": […], "citations": {KEY: …}}`, with releases and
citations of the same form as in `provision matrix show`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from provisioner.cli.options import FormatOption, MatrixOption, OutputFormat

if TYPE_CHECKING:
    from provisioner.matrix.model import Component, Matrix, Release

ComponentArgument = Annotated[
    str | None, typer.Argument(metavar="COMPONENT", help="List the releases of this component, such as cuda.")
]


def matrix_list(
    component: ComponentArgument = None,
    *,
    matrix: MatrixOption = None,
    format: FormatOption = OutputFormat.TEXT,  # noqa: A002 - the option is called --format
) -> int:
    """List the components of the matrix, or the releases of one."""
    from provisioner.matrix.cache import cached_matrix

    loaded = cached_matrix(matrix)
    if component is None:
        _components(loaded, format)
        return 0
    from provisioner.browse.query import component_named

    _releases(loaded, component_named(loaded, component), format)
    return 0


def _components(matrix: Matrix, output_format: OutputFormat) -> None:
    from provisioner.browse.summary import summaries
    from provisioner.cli.display import json_data, table

    found = summaries(matrix)
    if output_format is OutputFormat.JSON:
        rows = [
            {
                "name": one.name,
                "title": one.title,
                "virtual": one.is_virtual,
                "releases": one.releases,
                "builds": one.builds,
                "rules": one.rules,
                "newest": one.newest,
                "rows": one.rows,
                "measured": one.measured,
                "end_of_life": one.end_of_life,
            }
            for one in found
        ]
        json_data({"components": rows})
        return
    columns = ("component", "releases", "builds", "rules", "newest", "measured", "end of life", "what it is")
    table(
        columns,
        [
            (
                one.name,
                str(one.releases),
                str(one.builds or ""),
                str(one.rules or ""),
                one.newest,
                one.share,
                one.end_of_life,
                f"{one.title} (of the host)" if one.is_virtual else one.title,
            )
            for one in found
        ],
    )


def _releases(matrix: Matrix, component: Component, output_format: OutputFormat) -> None:
    from provisioner.browse.rows import citations_of, release_data
    from provisioner.browse.summary import newest_first
    from provisioner.cli.display import json_data, table, talk

    releases = newest_first(component)
    if output_format is OutputFormat.JSON:
        rows = [release_data(matrix, component, release) for release in releases]
        json_data(
            {"component": component.name, "title": component.title, "releases": rows, "citations": citations_of(matrix, rows)}
        )
        return
    if not releases:
        talk(f"{component.name} has no releases of its own in the matrix")
        return
    columns = ("release", "released", "end of life", "builds", "needs", "source")
    table(columns, [_line(matrix, release) for release in releases])


def _line(matrix: Matrix, release: Release) -> tuple[str, ...]:
    from provisioner.browse.summary import is_measured, sources_of

    sources = sources_of(release)
    needs = "; ".join(f"{need.component} {need}" for need in release.requires)
    if release.driver is not None and release.driver.minor_version is not None:
        needs = "; ".join(filter(None, (needs, f"driver >={release.driver.minor_version}")))
    shown = ", ".join(sources[:2]) + (f" and {len(sources) - 2} more" if len(sources) > 2 else "")
    measured = " (measured)" if is_measured(matrix, sources) else ""
    builds = ", ".join(dict.fromkeys(build.name for build in release.builds))
    return (str(release.version), release.released, release.end_of_life, builds, needs, f"{shown}{measured}")
