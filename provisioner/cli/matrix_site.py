"""`provision matrix site`: write the matrix as a static site.

JSON: `{"written": [PATH], "bytes": N}`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from provisioner.cli.options import FormatOption, MatrixOption, OutputFormat

OutOption = Annotated[
    Path,
    typer.Option(
        "--out", metavar="DIR", file_okay=False, help="Write the site into this folder; its index.html opens as it is."
    ),
]

DocsOption = Annotated[
    str,
    typer.Option("--docs", metavar="ADDRESS", help="Link to the documentation: an address, whole or as seen from the site."),
]


def matrix_site(
    out: OutOption,
    *,
    docs: DocsOption = "",
    matrix: MatrixOption = None,
    format: FormatOption = OutputFormat.TEXT,  # noqa: A002 - the option is called --format
) -> int:
    """Write a static site to explore the matrix; it works offline, from the files alone."""
    from provisioner.browse.site import site_files
    from provisioner.cli.display import bar, json_data, talk
    from provisioner.document import write_together
    from provisioner.matrix.cache import cached_matrix
    from provisioner.processes import processors

    loaded = cached_matrix(matrix)
    with bar("Deciding every build on every GPU and driver") as told:
        files = site_files(loaded, docs=docs, processes=processors(), told=told)
    write_together({out / name: content for name, content in files.items()})
    size = sum(len(content) for content in files.values())
    if format is OutputFormat.JSON:
        json_data({"written": [str(out / name) for name in files], "bytes": size})
    else:
        talk(f"wrote {len(files)} files, {size / 1e6:.1f} MB; open {out / 'index.html'}")
    return 0
