"""Whether what a matrix knows beside versions can be meant: variables, failures, driver packages, overrides."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pydantic import BaseModel

    from provisioner.document import KeyPath
    from provisioner.errors import Mistake
    from provisioner.matrix.check_needs import NeedChecker
    from provisioner.matrix.files import MatrixFiles, Parsed

    Cited = Callable[[Parsed[BaseModel], KeyPath, Sequence[str], str], Iterator[Mistake]]


def check_knowledge(files: MatrixFiles, *, needs: NeedChecker, cited: Cited) -> Iterator[Mistake]:
    """Every mistake of meaning in those files; `cited` judges the sources of one entry."""
    if files.knowledge is not None:
        yield from _variables(files.knowledge, needs, cited)
        yield from _failures(files, files.knowledge, needs, cited=cited)
    if files.driver_packages is not None:
        yield from _packages(files, files.driver_packages, cited)
    if files.gpus is not None:
        entries = files.gpus.content.overrides
        yield from files.gpus.repeated("overrides", "override", [entry.name for entry in entries])
        for index, entry in enumerate(entries):
            path = ("overrides", index)
            yield from needs.condition(files.gpus, (*path, "when"), entry.when)
            for component in entry.when:
                if component != "rocm":
                    text = f"an override may depend on `rocm` only, not on `{component}`"
                    yield files.gpus.mistake((*path, "when", component), text)
            yield from cited(files.gpus, path, entry.source, f"override `{entry.name}`")


def _variables(file: Parsed[BaseModel], needs: NeedChecker, cited: Cited) -> Iterator[Mistake]:
    entries = file.content.variables  # type: ignore[attr-defined]
    yield from file.repeated("variables", "variables", [entry.name for entry in entries])
    for index, entry in enumerate(entries):
        path = ("variables", index)
        if len(entry.when) != 1:
            text = f"`{entry.name}` must have one component in `when`, it has {len(entry.when)}"
            yield file.mistake((*path, "when"), text)
        yield from needs.condition(file, (*path, "when"), entry.when)
        yield from needs.guards(file, (*path, "on"), entry.on)
        yield from cited(file, path, entry.source, f"variables `{entry.name}`")


def _failures(files: MatrixFiles, file: Parsed[BaseModel], needs: NeedChecker, *, cited: Cited) -> Iterator[Mistake]:
    entries = file.content.failures  # type: ignore[attr-defined]
    yield from file.repeated("failures", "failure", [entry.name for entry in entries])
    for index, entry in enumerate(entries):
        path = ("failures", index)
        if entry.layer not in files.index.content.components:
            yield file.mistake((*path, "layer"), f"there is no component `{entry.layer}`")
        if not entry.symptoms:
            yield file.mistake((*path, "symptoms"), f"failure `{entry.name}` has no symptom, so nobody can recognise it")
        yield from needs.condition(file, (*path, "when"), entry.when)
        yield from needs.guards(file, (*path, "on"), entry.on)
        yield from cited(file, path, entry.source, f"failure `{entry.name}`")


def _packages(files: MatrixFiles, file: Parsed[BaseModel], cited: Cited) -> Iterator[Mistake]:
    known = {row.version for part in files.components.get("os", ()) for row in part.content.releases}
    for index, entry in enumerate(file.content.packages):  # type: ignore[attr-defined]
        path = ("packages", index)
        if known and entry.os not in known and not any(one.startswith(f"{entry.os} ") for one in known):
            yield file.mistake((*path, "os"), f"there is no operating system `{entry.os}` in this matrix")
        yield from cited(file, path, entry.source, f"driver package `{entry.name}`")
