"""Read published tables in their own formats, or from extracts of them (YAML) that are shipped beside the matrix."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from provisioner.compare import read_cog, read_conda_forge, read_cuda_jl, read_debian, read_spack, read_ubuntu, read_uv
from provisioner.compare.claims import QUESTIONS, Claim, DisagreementFile, Table, TableFile
from provisioner.document import FileError, load_document, parse_model
from provisioner.errors import ProvisionError
from provisioner.matrix.location import PUBLISHED, default_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from provisioner.compare.claims import Disagreement

KIND = "published table"
DISAGREEMENTS = "disagreements.yaml"
LARGEST_TABLE = 64 * 1024 * 1024
"""The size in bytes above which a file is not read; the largest are the package lists of an archive."""


class UnknownTableError(ProvisionError):
    """Raised when a file is in none of the formats that can be compared."""

    code = "unknown-table"
    exit_code = 2


class _Format(NamedTuple):
    """A format of published tables: its title, the test for a text in this format, and the function that yields its claims."""

    title: str
    recognises: Callable[[str], bool]
    claims: Callable[[str], Iterator[Claim]]


_FORMATS = {
    "uv": _Format("uv's accelerator table (backend.rs)", lambda text: read_uv.MARK in text, read_uv.claims),
    "cuda.jl": _Format("CUDA.jl's compatibility.jl", lambda text: read_cuda_jl.MARK in text, read_cuda_jl.claims),
    "spack": _Format("Spack's cuda.py, py-torch or cudnn", read_spack.is_spack, read_spack.claims),
    "cog": _Format("cog's *_compatibility.json", read_cog.is_cog, read_cog.claims),
    "conda-forge": _Format("conda-forge's cuda-version or pinning", read_conda_forge.is_conda_forge, read_conda_forge.claims),
    "debian": _Format("Debian's packages of NVIDIA's modules (apt-cache show)", read_debian.is_debian, read_debian.claims),
    "ubuntu": _Format("Ubuntu's packages of NVIDIA's modules (apt-cache show)", read_ubuntu.is_ubuntu, read_ubuntu.claims),
}
"""The formats by short name; a text is read with the first one whose test is true of it."""


def read_table(path: Path) -> Table:
    """Read a published table in its own format, or an extract of one.

    Raises `FileError` when the file cannot be read, `UnknownTableError` when it is in no known format or holds no claim.
    """
    if path.suffix in {".yaml", ".yml"} and (extract := _extract(path)) is not None:
        return extract
    text = _text(path)
    for name, format_ in _FORMATS.items():
        if format_.recognises(text):
            found = _claims(path, name, format_.claims, text)
            if found:
                return Table(name=name, title=format_.title, claims=found, where=path.name)
    known = ", ".join(format_.title for format_ in _FORMATS.values())
    raise UnknownTableError(f"`{path}` is none of the tables that can be compared", hints=(f"known are {known}",))


def shipped_tables(directory: Path | None = None) -> tuple[Table, ...]:
    """Return the tables of the extracts in a matrix directory (default: the shipped one).

    Raises `InvalidDocumentError` when one of them is malformed.
    """
    folder = (directory or default_directory()) / PUBLISHED
    paths = sorted(path for path in folder.glob("*.yaml") if path.name != DISAGREEMENTS)
    return tuple(_table(parse_model(load_document(path, kind=KIND), TableFile, kind=KIND)) for path in paths)


def extract_text(table: Table) -> str:
    """Return a table as the YAML of an extract; `url` and `read` are "" for a table that was read in its own format."""
    lines = [f"table: {table.name}", f"title: {_quoted(table.title)}", f"where: {_quoted(table.where)}"]
    lines += [f"url: {_quoted(table.url)}", f"read: {_quoted(table.read)}", "claims:"]
    for question in QUESTIONS:
        claims = [claim for claim in table.claims if claim.question == question]
        if claims:
            lines += [f"  {question}:", *(f"    - {{{_entry(claim)}}}" for claim in claims)]
    return "\n".join(lines) + "\n"


def disagreements(directory: Path | None = None) -> tuple[Disagreement, ...]:
    """Return the known disagreements in a matrix directory (default: the shipped one); empty without a file of these."""
    path = (directory or default_directory()) / PUBLISHED / DISAGREEMENTS
    if not path.is_file():
        return ()
    document = load_document(path, kind="disagreements")
    return parse_model(document, DisagreementFile, kind="disagreements").disagreements


def _claims(path: Path, name: str, claims: Callable[[str], Iterator[Claim]], text: str) -> tuple[Claim, ...]:
    try:
        return tuple(claims(text))
    except (ValueError, KeyError, TypeError, IndexError, SyntaxError, AttributeError, RecursionError) as error:
        raise UnknownTableError(
            f"`{path}` looks like the table of {name} and cannot be read as one: {error}",
            hints=("its format may have changed; compare an older edition, or report it",),
        ) from None


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST_TABLE:
            raise UnknownTableError(f"`{path}` is larger than {LARGEST_TABLE // 1024 // 1024} MiB, which no known table is")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UnknownTableError(f"`{path}` is not text, and so none of the tables that can be compared") from None
    except OSError as error:
        raise FileError(f"`{path}` cannot be read: {(error.strerror or 'unknown reason').lower()}") from None


def _entry(claim: Claim) -> str:
    scope = f", scope: {_quoted(claim.scope)}" if claim.scope else ""
    return f"subject: {_quoted(claim.subject)}, says: {_quoted(claim.says)}{scope}, line: {claim.line}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _extract(path: Path) -> Table | None:
    """Return the table in an extract, which is YAML with the key `table`; None for a file of other YAML."""
    if not _text(path).lstrip("# \n").startswith("table:") and "\ntable:" not in _text(path):
        return None
    return _table(parse_model(load_document(path, kind=KIND), TableFile, kind=KIND))


def _table(file: TableFile) -> Table:
    unknown = next((question for question in file.claims if question not in QUESTIONS), None)
    if unknown is not None:
        raise UnknownTableError(
            f"`{unknown}` is no question that can be compared", hints=(f"known are {', '.join(QUESTIONS)}",)
        )
    return Table(
        name=file.table,
        title=file.title,
        where=file.where,
        url=file.url,
        read=file.read,
        claims=tuple(
            Claim(question=question, subject=entry.subject, says=entry.says, scope=entry.scope, line=entry.line)
            for question, entries in file.claims.items()
            for entry in entries
        ),
    )
