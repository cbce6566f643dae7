"""What the YAML files of a matrix may say: one pydantic model for each kind of file. Meaning is checked in `check`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict

if TYPE_CHECKING:
    from collections.abc import Callable


def _spelled(pattern: str, example: str) -> Callable[[str], str]:
    """A validator that asks for a spelling by example."""
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if compiled.fullmatch(value) is None:
            raise ValueError(f"`{value}` is not spelled like {example}")
        return value

    return check


Date = Annotated[str, AfterValidator(_spelled(r"(\d{4}-\d{2}(-\d{2})?)?", "2025-06-04 or 2025-06"))]
Platform = Literal["linux/amd64", "linux/arm64", "macos/x86_64", "macos/arm64"]
Accelerator = Literal["cuda", "cpu", "rocm", "mps"]
GpuKind = Literal["datacenter", "workstation", "geforce", "jetson"]
ImageKind = Literal["slim", "distribution", "cuda-base", "cuda-runtime", "cuda-devel"]
Capability = Annotated[str, AfterValidator(_spelled(r"\d+\.\d+", "9.0"))]
Sass = Annotated[str, AfterValidator(_spelled(r"sm_\d+[af]?", "sm_90"))]
Ptx = Annotated[str, AfterValidator(_spelled(r"compute_\d+[af]?", "compute_90"))]
DeviceId = Annotated[str, AfterValidator(_spelled(r"[0-9A-F]{4}", "2330"))]
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
    read: Date = ""
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
    released: Date = ""
    end_of_life: Date = ""
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
    end_of_life: Date = ""
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
    pci_device_ids: tuple[DeviceId, ...] = ()
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


class ImpliedEntry(StrictModel):
    """What some versions of a distribution need although their metadata does not say so."""

    versions: str
    require: Needs
    because: str
    served_by: Literal["default", "variant-index", ""] = ""
    source: Cited = ()


class DistributionEntry(StrictModel):
    """A Python distribution: the component it is compiled against, who serves its wheels, and what its metadata omits."""

    name: str
    compiled_against: str = ""
    versions: str = ""
    served_by: Literal["default", "variant-index"] = "default"
    implies: tuple[ImpliedEntry, ...] = ()
    source: Cited = ()


class LimitEntry(StrictModel):
    """When `when` holds (on platforms in `on`), the distribution in `allow` is in its specifier if it is there at all."""

    name: str
    when: Needs
    on: Needs = {}
    allow: dict[str, str]
    because: str
    source: Cited = ()


class DistributionFile(StrictModel):
    """Python distributions, and limits on them."""

    sources: Sources = {}
    distributions: tuple[DistributionEntry, ...] = ()
    limits: tuple[LimitEntry, ...] = ()


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
    distributions: str = ""
