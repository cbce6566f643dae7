"""`provision schema`: print the JSON Schema of a document."""

from __future__ import annotations

from typing import Annotated

import typer


def schema(
    document: Annotated[
        str | None,
        typer.Argument(metavar="[DOCUMENT]", help="spec, host, validation, matrix or matrix-…; without, all are listed."),
    ] = None,
) -> None:
    """Print the JSON Schema of a document, for editors and checks.

    Without DOCUMENT, list the documents that have one.
    """
    from provisioner.cli.display import data, table
    from provisioner.schemas.shipped import SCHEMAS, schema_text

    if document is None:
        table(("document", "is"), SCHEMAS.items())
    else:
        data(schema_text(document))
