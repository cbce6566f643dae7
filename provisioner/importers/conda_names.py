"""Packages of conda that have another name on a package index, or no Python package: `conda_names.yaml` with its sources."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from msgspec import Struct, field

from provisioner.document import load_document, parse_model
from provisioner.strict_model import StrictModel

KIND = "table of conda's names"


class Source(StrictModel, frozen=True, kw_only=True):
    """The document that rows cite, and the day it was read."""

    title: str
    where: str
    url: str
    read: str


class ComponentRow(StrictModel, frozen=True, kw_only=True):
    """A conda package that is a component of the matrix.

    `accelerator` is what its choice asks for; the row of a package that is nothing else has no `component`. With `compiler` the
    package holds nvcc besides.
    """

    conda: str
    component: str = ""
    accelerator: Literal["cuda", "cpu", ""] = ""
    compiler: bool = False
    source: tuple[str, ...]


class DistributionRow(StrictModel, frozen=True, kw_only=True):
    """A conda package with the name of its distribution on a package index."""

    conda: str
    distribution: str
    source: tuple[str, ...]


class SystemRow(StrictModel, frozen=True, kw_only=True):
    """A conda package instead of which a system has tools or libraries, named as in the matrix's system packages."""

    conda: str
    tools: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    source: tuple[str, ...]


class OtherRow(StrictModel, frozen=True, kw_only=True):
    """A conda package without a Python package; a name that ends in `*` stands for all that begin so."""

    conda: str
    source: tuple[str, ...]


class NamesFile(StrictModel, frozen=True, kw_only=True):
    """The keys of `conda_names.yaml`."""

    sources: dict[str, Source]
    components: tuple[ComponentRow, ...]
    distributions: tuple[DistributionRow, ...]
    systems: tuple[SystemRow, ...]
    others: tuple[OtherRow, ...]


class CondaNames(Struct, frozen=True):
    """The rows of the table by the name of the conda package; `prefixes` are those of packages that no Python package is."""

    components: dict[str, ComponentRow]
    distributions: dict[str, str]
    systems: dict[str, SystemRow]
    others: frozenset[str]
    prefixes: tuple[str, ...] = field(default=())

    def has(self, name: str) -> bool:
        """Return whether a conda package is known to be a component, a distribution, a part of the system, or none of these."""
        return name in self.components or name in self.distributions or name in self.systems or self.is_other(name)

    def is_other(self, name: str) -> bool:
        """Return whether a conda package is known to be no Python package."""
        return name in self.others or name.startswith(self.prefixes)


def names_file() -> NamesFile:
    """Return the table as it is written."""
    path = Path(__file__).with_name("conda_names.yaml")
    return parse_model(load_document(path, kind=KIND, is_ours=True), NamesFile, kind=KIND)


@cache
def conda_names() -> CondaNames:
    """Return the table by name."""
    file = names_file()
    return CondaNames(
        components={row.conda: row for row in file.components},
        distributions={row.conda: row.distribution for row in file.distributions},
        systems={row.conda: row for row in file.systems},
        others=frozenset(row.conda for row in file.others if not row.conda.endswith("*")),
        prefixes=tuple(row.conda.removesuffix("*") for row in file.others if row.conda.endswith("*")),
    )
