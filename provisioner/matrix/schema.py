"""What the YAML files of a matrix may say: one pydantic model for each kind of file. Meaning is checked in `check`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Date = Annotated[str, Field(pattern=r"^\d{4}-\d{2}(-\d{2})?$")]
Platform = Literal["linux/amd64", "linux/arm64", "macos/x86_64", "macos/arm64"]
Accelerator = Literal["cuda", "cpu", "rocm", "mps"]
GpuKind = Literal["datacenter", "workstation", "geforce", "jetson"]
ImageKind = Literal["slim", "distribution", "cuda-base", "cuda-runtime", "cuda-devel"]
Capability = Annotated[str, Field(pattern=r"^\d+\.\d+$")]
Sass = Annotated[str, Field(pattern=r"^sm_\d+[af]?$")]
Ptx = Annotated[str, Field(pattern=r"^compute_\d+[af]?$")]
Needs = dict[str, str | tuple[str, ...]]
"""Component -> a range (`>=12,<13`), or a list of exact versions (or names) of which one must be chosen."""


class StrictModel(BaseModel):
    """Frozen, strict, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SourceEntry(StrictModel):
    """Where facts were read: a document and the place in it, the date read, and whether the artefact itself was measured."""

    title: str
    where: str = ""
    url: str = ""
    read: Date | Literal[""] = ""
    measured: bool = False


Sources = dict[str, SourceEntry]
Cited = tuple[str, ...]


class DriverEntry(StrictModel):
    """The three minimum drivers of a CUDA release, kept apart (see `model.DriverMinimum`)."""

    toolkit: str | None = None
    minor_version: str | None = None
    forward_compat: tuple[str, ...] = ()


class BuildEntry(StrictModel):
    """One build of a release. Left out: `sass` and `ptx` are unknown; `[]` means measured and none."""

    name: str
    platforms: tuple[Platform, ...] = ()
    default: bool = False
    index: str = ""
    local: str = ""
    accelerator: Accelerator | Literal[""] = ""
    requires: Needs = {}
    sass: tuple[Sass, ...] | None = None
    ptx: tuple[Ptx, ...] | None = None
    artefact: str = ""
    source: Cited = ()


class ReleaseEntry(StrictModel):
    """One release; it or each of its builds cites its source."""

    version: str
    released: Date | Literal[""] = ""
    end_of_life: Date | Literal[""] = ""
    requires: Needs = {}
    driver: DriverEntry | None = None
    builds: tuple[BuildEntry, ...] = ()
    source: Cited = ()


class RuleEntry(StrictModel):
    """When `when` holds (on hosts where `on` holds), `require` holds too."""

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
    end_of_life: Date | Literal[""] = ""
    source: Cited = ()


class ComponentFile(StrictModel):
    """One component: its sources, releases and rules; the driver's file has its branches too."""

    sources: Sources = {}
    branches: tuple[BranchEntry, ...] = ()
    releases: tuple[ReleaseEntry, ...] = ()
    rules: tuple[RuleEntry, ...] = ()


class GpuEntry(StrictModel):
    """One GPU product."""

    name: str
    compute_capability: Capability
    architecture: str
    kind: GpuKind | Literal[""] = ""
    pci_device_ids: tuple[Annotated[str, Field(pattern=r"^[0-9A-F]{4}$")], ...] = ()
    first_driver: str | None = None
    modules: tuple[Literal["open", "proprietary"], ...] = ()
    source: Cited = ()


class GpuFile(StrictModel):
    """GPU products."""

    sources: Sources = {}
    gpus: tuple[GpuEntry, ...] = ()


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
    platforms: tuple[Platform, ...] = ()
    source: Cited = ()


class ImageFile(StrictModel):
    """Base images, and the `NVIDIA_REQUIRE_CUDA` texts several of them share."""

    sources: Sources = {}
    gates: dict[str, str] = {}
    images: tuple[ImageEntry, ...] = ()


class ComponentEntry(StrictModel):
    """A component of the order: its file, or its `values` when they are a few names."""

    title: str
    file: str = ""
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
