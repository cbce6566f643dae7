"""What the YAML files about Python distributions may say. Meaning is checked in `check_distributions` and `check_hazards`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from provisioner.matrix.schema import Cited, Needs, Sha256, Sources, StrictModel, spelled

RecordHash = Annotated[
    str, AfterValidator(spelled(r"sha256=[A-Za-z0-9_-]{43}", "sha256= and 43 characters, as a wheel's RECORD has it"))
]


class ImpliedEntry(StrictModel):
    """What some versions of a distribution need although their metadata does not say so.

    `require` is of components, `packages` of other distributions (name -> PEP 440 specifier), `brings` the CUDA runtime that
    the distribution has for itself, `cxx11_abi` the C++ ABI that its wheels for Linux on the default index are compiled with.
    """

    versions: str
    require: Needs = Field(default_factory=dict)
    packages: dict[str, str] = Field(default_factory=dict)
    brings: Needs = Field(default_factory=dict)
    cxx11_abi: bool | None = None
    because: str
    served_by: Literal["default", "variant-index", ""] = ""
    source: Cited = ()


class DistributionEntry(StrictModel):
    """A Python distribution: the component it is compiled against, who serves its wheels, and what its metadata omits."""

    name: str
    compiled_against: str = ""
    versions: str = ""
    served_by: Literal["default", "variant-index"] = "default"
    gpu_twin: str = ""
    implies: tuple[ImpliedEntry, ...] = ()
    source: Cited = ()


class LimitEntry(StrictModel):
    """When `when` holds (on platforms in `on`), the distribution in `allow` is in its specifier if it is there at all."""

    name: str
    when: Needs
    on: Needs = Field(default_factory=dict)
    allow: dict[str, str]
    because: str
    source: Cited = ()


class DistributionFile(StrictModel):
    """Python distributions, and limits on them."""

    sources: Sources = Field(default_factory=dict)
    distributions: tuple[DistributionEntry, ...] = ()
    limits: tuple[LimitEntry, ...] = ()


class OwnerEntry(StrictModel):
    """A distribution that has the file of a row, in these versions, and the wheel where it was seen."""

    distribution: str
    versions: str = ""
    artefact: str
    sha256: Sha256
    content: RecordHash


class SharedFileEntry(StrictModel):
    """A path that several distributions write, each with its own content (see `model_distributions.SharedFile`)."""

    name: str
    path: str
    refused: bool = True
    because: str
    owners: tuple[OwnerEntry, ...]
    source: Cited = ()


class HazardFile(StrictModel):
    """What does not go together in one environment although no metadata says so."""

    sources: Sources = Field(default_factory=dict)
    shared_files: tuple[SharedFileEntry, ...] = ()
