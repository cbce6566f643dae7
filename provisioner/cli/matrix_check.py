"""`provision matrix check`: does the matrix hold together, and how much of it was measured."""

from __future__ import annotations

from provisioner.cli.options import FormatOption, MatrixOption, OutputFormat


def matrix_check(matrix: MatrixOption = None, output_format: FormatOption = OutputFormat.TEXT) -> None:
    """Lint the matrix, and count its rows, measurements and disagreements."""
    from provisioner.cli.display import data, json_data
    from provisioner.matrix.count import count
    from provisioner.matrix.load import load_matrix

    counts = count(load_matrix(matrix))
    if output_format is OutputFormat.JSON:
        json_data({"rows": counts.rows, "measured": counts.measured, "kinds": dict(counts.kinds)})
    else:
        data(f"{counts.rows} rows, {counts.measured} of them measured from an artefact")
