"""What the YAML files of a matrix may say: one pydantic model for each kind of file. Meaning is checked in `check`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict

from provisioner.accelerators import AcceleratorName  # noqa: TC001 - pydantic reads the annotation at run time
from provisioner.platforms import PlatformName  # noqa: TC001 - pydantic reads the annotation at run time

if TYPE_CHECKING:
    from collections.abc import Callable


def spelled(pattern: str, example: str) -> Callable[[str], str]:
    """A validator that asks for a spelling by example."""
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if compiled.fullmatch(value) is None:
            raise ValueError(f"`{value}` is not spelled like {example}")
        return value

    return check


Date = Annotated[str, AfterValidator(spelled(r"(\d{4}-\d{2}(-\d{2})?)?", "2025-06-04 or 2025-06"))]
GpuKind = Literal["datacenter", "workstation", "geforce", "jetson", "radeon", "apu"]
ImageKind = Literal["slim", "distribution", "cuda-base", "cuda-runtime", "cuda-devel"]
Capability = Annotated[str, AfterValidator(spelled(r"\d+\.\d+", "9.0"))]
Sass = Annotated[str, AfterValidator(spelled(r"sm_\d+[af]?", "sm_90"))]
Ptx = Annotated[str, AfterValidator(spelled(r"compute_\d+[af]?", "compute_90"))]
Gfx = Annotated[str, AfterValidator(spelled(r"gfx[0-9a-f]{3,5}(-generic)?|gfx\d+(-\d+)?-generic", "gfx942"))]
Sha256 = Annotated[str, AfterValidator(spelled(r"([0-9a-f]{64})?", "a SHA-256 of 64 hexadecimal digits"))]
DeviceId = Annotated[str, AfterValidator(spelled(r"[0-9A-F]{4}", "2330"))]
Needs = dict[str, str | tuple[str, ...]]
"""Component -> a range (`>=12,<13`), a list of exact versions (or names) of which one must be chosen, or `same`: the version
of the subject itself, as a fabric manager must be of its driver's."""


class StrictModel(BaseModel):
    """Frozen, strict, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SourceEntry(StrictModel):
    """Where facts were read: a document and the place in it, the date read, and whether the artefact itself was measured."""

    title: str
    where: str = ""
    url: str = ""
    read: Date = ""
    measured: bool = False


Sources = dict[str, SourceEntry]
Cited = tuple[str, ...]


class DriverEntry(StrictModel):
    """The three minimum drivers of a CUDA release, kept apart (see `model.DriverMinimum`)."""

    toolkit: str | None = None
    minor_version: str | None = None
    forward_compat: tuple[str, ...] = ()


class PatchedEntry(StrictModel):
    """Kernels a driver release builds on with the patches that some distribution carries."""

    kernel: str
    by: str
    source: Cited


class BuildEntry(StrictModel):
    """One build of a release. Left out: `sass`, `ptx` and `gfx` are unknown; `[]` means measured and none.

    `install` is the PEP 508 requirement that installs the build (`jax[cuda12]`) where it is not the component's own
    distribution; `compiled` says that nobody publishes a binary: whoever wants it compiles it.
    """

    name: str
    platforms: tuple[PlatformName, ...] = ()
    default: bool = False
    index: str = ""
    local: str = ""
    accelerator: AcceleratorName | Literal[""] = ""
    requires: Needs = {}
    sass: tuple[Sass, ...] | None = None
    ptx: tuple[Ptx, ...] | None = None
    gfx: tuple[Gfx, ...] | None = None
    cxx11_abi: bool | None = None
    compiled: bool = False
    install: str = ""
    artefact: str = ""
    sha256: Sha256 = ""
    source: Cited = ()


class ReleaseEntry(StrictModel):
    """One release; it or each of its builds cites its source. `platforms` bounds a release without builds.

    A component may have several files: a release that a later file repeats only adds builds to the first.
    """

    version: str
    released: Date = ""
    end_of_life: Date = ""
    prerelease: str = ""
    platforms: tuple[PlatformName, ...] = ()
    ptx_isa: str = ""
    requires: Needs = {}
    driver: DriverEntry | None = None
    patched: tuple[PatchedEntry, ...] = ()
    builds: tuple[BuildEntry, ...] = ()
    source: Cited = ()


class RuleEntry(StrictModel):
    """When `when` holds (on hosts where `on` holds), `require` holds too.

    In `on`, `none` means that the host does not state the fact: `driver: none` is a driver still to be installed.
    """

    name: str
    when: Needs
    on: Needs = {}
    require: Needs
    because: str
    source: Cited = ()


class BranchEntry(StrictModel):
    """One driver branch."""

    branch: str
    native_cuda: str
    designation: str = ""
    end_of_life: Date = ""
    source: Cited = ()


class ComponentFile(StrictModel):
    """One component: its sources, releases and rules; the driver's file has its branches too."""

    sources: Sources = {}
    branches: tuple[BranchEntry, ...] = ()
    releases: tuple[ReleaseEntry, ...] = ()
    rules: tuple[RuleEntry, ...] = ()


class GpuEntry(StrictModel):
    """One GPU product: NVIDIA's has a compute capability, AMD's a gfx target."""

    name: str
    compute_capability: Capability | Literal[""] = ""
    gfx: Gfx | Literal[""] = ""
    architecture: str
    kind: GpuKind | Literal[""] = ""
    pci_device_ids: tuple[DeviceId, ...] = ()
    first_driver: str | None = None
    modules: tuple[Literal["open", "proprietary"], ...] = ()
    source: Cited = ()


class OverrideEntry(StrictModel):
    """AMD targets that run another target's code when these variables are set; nobody supports it, many people use it.

    `when` says in builds of which ROCm this works; left out: in all.
    """

    name: str
    when: Needs = {}
    gfx: tuple[Gfx, ...]
    runs_as: Gfx
    set: dict[str, str]
    because: str
    source: Cited = ()


class GpuFile(StrictModel):
    """GPU products, and AMD targets that can pass for others."""

    sources: Sources = {}
    gpus: tuple[GpuEntry, ...] = ()
    overrides: tuple[OverrideEntry, ...] = ()


class ImageEntry(StrictModel):
    """One base image, by its full tag: tags are data, not templates. `gate` names one of the file's `gates`."""

    reference: str
    kind: ImageKind
    distribution: str = ""
    glibc: str
    python: str = ""
    apt_python: str = ""
    cuda: str = ""
    cudnn: str = ""
    gate: str = ""
    end_of_life: Date = ""
    platforms: tuple[PlatformName, ...] = ()
    source: Cited = ()


class ImageFile(StrictModel):
    """Base images, and the `NVIDIA_REQUIRE_CUDA` texts several of them share."""

    sources: Sources = {}
    gates: dict[str, str] = {}
    images: tuple[ImageEntry, ...] = ()


class VariableEntry(StrictModel):
    """Environment variables a stack needs at run or build time when `when` holds (on hosts where `on` holds)."""

    name: str
    when: Needs
    on: Needs = {}
    set: dict[str, str]
    because: str
    source: Cited = ()


class FailureEntry(StrictModel):
    """A known failure: where it shows (`symptoms`, texts of logs), what causes it, what to do.

    `when` and `on` narrow it to the stacks it is known of; `layer` is the component at fault.
    """

    name: str
    layer: str
    when: Needs = {}
    on: Needs = {}
    symptoms: tuple[str, ...]
    cause: str
    remedy: str
    source: Cited = ()


class KnowledgeFile(StrictModel):
    """What is known beside versions: variables to set, and failures people met."""

    sources: Sources = {}
    variables: tuple[VariableEntry, ...] = ()
    failures: tuple[FailureEntry, ...] = ()


class DriverPackageEntry(StrictModel):
    """One way a distribution ships a driver: its package, for which driver branches and kernels, built where, signed by whom.

    `kind`: `precompiled` modules are built for certain kernels, `dkms` and `akmod` build on the host (headers, compiler,
    and under Secure Boot an enrolled key), `runfile` is NVIDIA's installer.
    """

    name: str
    os: str
    kind: Literal["precompiled", "dkms", "akmod", "runfile", "host-provided"]
    branches: tuple[str, ...] = ()
    modules: tuple[Literal["open", "proprietary"], ...] = ()
    kernel: str = ""
    signed: bool | None = None
    headers: str = ""
    note: str = ""
    source: Cited = ()


class DriverPackageFile(StrictModel):
    """How distributions ship drivers."""

    sources: Sources = {}
    packages: tuple[DriverPackageEntry, ...] = ()


class ComponentEntry(StrictModel):
    """A component of the order: its file or files, or its `values` when they are a few names."""

    title: str
    file: str | tuple[str, ...] = ""
    values: tuple[str, ...] = ()
    virtual: bool = False
    named: bool = False


class MatrixFile(StrictModel):
    """`matrix.yaml`: the order rules point down, and where everything else is."""

    order: tuple[str, ...]
    components: dict[str, ComponentEntry]
    sources: Sources = {}
    gpus: str = ""
    images: str = ""
    distributions: str = ""
    hazards: str = ""
    knowledge: str = ""
    driver_packages: str = ""
