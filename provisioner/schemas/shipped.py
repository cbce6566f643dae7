"""The JSON Schemas as they are shipped, by name, and the one that stands beside a spec."""

from __future__ import annotations

import json
from pathlib import Path

from provisioner.document import FileError, read_text
from provisioner.errors import UsageError
from provisioner.names import nearest

SCHEMAS: dict[str, str] = {
    "spec": "provision.yaml, what an environment needs",
    "host": "a host profile, the facts of one machine",
    "evidence": "evidence of a validation, which `provision validate` writes beside a lock",
    "matrix": "matrix.yaml, the index of a matrix",
    "matrix-component": "the file of one component in a matrix",
    "matrix-gpus": "gpus.yaml of a matrix",
    "matrix-images": "images.yaml of a matrix",
    "matrix-python-builds": "python_builds.yaml of a matrix",
    "matrix-distributions": "distributions.yaml of a matrix",
    "matrix-hazards": "hazards.yaml of a matrix",
    "matrix-knowledge": "knowledge.yaml of a matrix",
    "matrix-failures": "failures.yaml of a matrix",
    "matrix-driver-packages": "driver_packages.yaml of a matrix",
    "matrix-host-packages": "host_packages.yaml of a matrix",
    "matrix-wheels": "wheels.yaml of a matrix",
    "matrix-system-packages": "system_packages.yaml of a matrix",
    "matrix-system-wheels": "system_wheels.yaml of a matrix",
}
"""The documents by the name of their schema, each with what it is."""

SCHEMA_BESIDE = "provision.schema.json"
"""The name of the file beside a spec by which editors complete and check the spec."""

IDENTIFIER = "urn:provision:schema:"
"""The begin of the `$id` of each schema, by which a file is known as one of ours."""


def schema_path(name: str) -> Path:
    """Return the file of a shipped schema: inside the installed package, or at the top of a checkout."""
    package = Path(__file__).resolve().parent
    file = f"{name}.schema.json"
    packaged = package / file
    return packaged if packaged.is_file() else package.parent.parent / "schemas" / file


def schema_text(name: str) -> str:
    """Return a schema as JSON text; raises `UsageError` for a document that has none."""
    if name not in SCHEMAS:
        near = nearest(name, SCHEMAS)
        advice = f"did you mean `{near}`?" if near else f"there are {', '.join(SCHEMAS)}"
        raise UsageError(f"there is no schema `{name}`", hints=(advice,))
    return read_text(schema_path(name), kind="schema")


def require_own_schema(path: Path) -> None:
    """Raise `UsageError` if a file that is there is no schema of ours, so that it must not be replaced."""
    if not path.exists() and not path.is_symlink():
        return
    try:
        found = json.loads(read_text(path, kind="file"))
    except (FileError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not str(found.get("$id", "")).startswith(IDENTIFIER):
        hints = ("a schema for editors is written there; move the file, or choose another folder with --out",)
        raise UsageError(f"`{path}` was not written by provision", hints=hints)
