"""The nouns of the compatibility matrix, frozen: what its YAML may say, what the solver reads, and what a wheel brings along.

One struct a row. Its fields are the keys of the YAML, in the order in which generated files write them. What a row means is
checked in `check`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Struct, field

from provisioner.accelerators import AcceleratorName
from provisioner.matrix.need import GpuKind, WrittenNeed, WrittenNeeds, WrittenRange, WrittenVersion
from provisioner.places import Place
from provisioner.platforms import PlatformName
from provisioner.strict_model import SpelledModel, Spelling

if TYPE_CHECKING:
    from provisioner.versions import Version


def like(example: str, pattern: str) -> Spelling:
    """Text that matches a pattern wholly; a mistake shows the example. A matrix that was packed is not asked again."""

    def read(text: object) -> object:
        if not isinstance(text, str) or re.fullmatch(pattern, text) is None:
            raise ValueError(f"`{text}` is not spelled like {example}")
        return text

    return Spelling(str, read, str)


Date = Annotated[str, like("2025-06-04 or 2025-06", r"(\d{4}-\d{2}(-\d{2})?)?")]
Sass = Annotated[str, like("sm_90", r"sm_\d+[af]?")]
Ptx = Annotated[str, like("compute_90", r"compute_\d+[af]?")]
Gfx = Annotated[str, like("gfx942", r"(gfx[0-9a-f]{3,5}(-generic)?|gfx\d+(-\d+)?-generic)")]
MaybeGfx = Annotated[str, like("gfx942", r"(gfx[0-9a-f]{3,5}(-generic)?|gfx\d+(-\d+)?-generic)?")]
Capability = Annotated[str, like("9.0", r"(\d+\.\d+)?")]
Sha256 = Annotated[str, like("a SHA-256 of 64 hexadecimal digits", r"([0-9a-f]{64})?")]
RecordHash = Annotated[str, like("sha256= and 43 characters, as a wheel's RECORD has it", r"sha256=[A-Za-z0-9_-]{43}")]
DeviceId = Annotated[str, like("2330", r"[0-9A-F]{4}")]
ModuleFlavour = Literal["open", "proprietary"]
Cited = tuple[str, ...]
"""The keys of the sources that a row cites."""


class Row(SpelledModel, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A row of a file, or part of one; fields that have their default are not written."""


class Citation(Row, frozen=True, kw_only=True):
    """Where facts were read: document, place in it, date read, and whether they were measured from the artefact itself."""

    title: str
    where: str = ""
    url: str = ""
    read: Date = ""
    measured: bool = False

    def __str__(self) -> str:
        return f"{self.title}, {self.where}" if self.where else self.title


class Build(Row, frozen=True, kw_only=True):
    """One variant of a release with exact needs of its own (`cu126` on linux/amd64).

    `sass` and `ptx` are the compiled targets (`sm_90`, `compute_90`); None means nobody measured them, which is not the
    same as none; so `gfx`, AMD's targets. `cxx11_abi` is the C++ ABI extensions must be built with. `compiled`: nobody
    publishes a binary, whoever wants it compiles it. `install` is the PEP 508 requirement that installs it (`jax[cuda12]`)
    where it is not the distribution of the component. `index` is `pypi` or the framework index of this variant
    (`pytorch-cu126`). `local` is the local version label of its wheels (`cu126`, or "" when the wheel has none on its index).
    `artefact` names the file measured, `sha256` is its hash. A build without a `source` has that of its release.
    """

    name: str
    platforms: tuple[PlatformName, ...] = ()
    default: bool = False
    index: str = ""
    local: str = ""
    accelerator: AcceleratorName | Literal[""] = ""
    requires: WrittenNeeds = ()
    sass: tuple[Sass, ...] | None = None
    ptx: tuple[Ptx, ...] | None = None
    gfx: tuple[Gfx, ...] | None = None
    cxx11_abi: bool | None = None
    compiled: bool = False
    install: str = ""
    artefact: str = ""
    sha256: Sha256 = ""
    source: Cited = ()


class DriverMinimum(Row, frozen=True, kw_only=True):
    """The three different "minimum drivers" of one CUDA release, kept apart.

    `toolkit`: the driver its release notes list beside it (not a floor for running programs). `minor_version`: the floor
    of its major family under minor-version compatibility; None where the family has none (before CUDA 11).
    `forward_compat`: driver branches the forward-compatibility package of this release supports, data-centre GPUs only.
    """

    toolkit: WrittenVersion | None = None
    minor_version: WrittenVersion | None = None
    forward_compat: tuple[str, ...] = ()


class PatchedKernels(Row, frozen=True, kw_only=True):
    """Kernels a driver release builds on with the patches some distribution carries (`by`), never without them."""

    kernel: WrittenRange
    by: str
    source: Cited = ()


class Release(Row, frozen=True, kw_only=True):
    """One published version of a component, spelled as its vendor spells it; it or each of its builds cites its source.

    `platforms` bounds a release without builds. `prerelease` says what it is where it is no final release (`Vulkan beta`) and
    its version does not tell. A component may have several files: a release that a later one repeats only adds builds to it.
    """

    version: WrittenVersion
    released: Date = ""
    end_of_life: Date = ""
    prerelease: str = ""
    platforms: tuple[PlatformName, ...] = ()
    ptx_isa: str = ""
    requires: WrittenNeeds = ()
    driver: DriverMinimum | None = None
    patched: tuple[PatchedKernels, ...] = ()
    builds: tuple[Build, ...] = ()
    source: Cited = ()


class Rule(Row, frozen=True, kw_only=True):
    """When `when` is in range, on hosts where all of `on` holds, all of `require` holds too, because of the citation."""

    name: str
    when: WrittenNeed
    on: WrittenNeeds = ()
    require: WrittenNeeds
    because: str
    source: Cited = ()


class DriverBranch(Row, frozen=True, kw_only=True):
    """One driver branch: the newest CUDA it runs natively (which also bounds the PTX it can compile), and its life."""

    branch: str
    native_cuda: WrittenVersion
    designation: str = ""
    end_of_life: Date = ""
    source: Cited = ()


class Gpu(Row, frozen=True, kw_only=True):
    """One GPU product: NVIDIA's has a compute capability, AMD's a gfx target; the other is "".

    Forward compatibility depends on `kind`.
    """

    name: str
    compute_capability: Capability = ""
    gfx: MaybeGfx = ""
    architecture: str
    kind: GpuKind | Literal[""] = ""
    pci_device_ids: tuple[DeviceId, ...] = ()
    first_driver: WrittenVersion | None = None
    modules: tuple[ModuleFlavour, ...] = ()
    source: Cited = ()


class GfxOverride(Row, frozen=True, kw_only=True):
    """AMD targets that run the code of another one with the variables of `set`; nobody supports it, many people use it.

    `when` says in builds of which ROCm releases it works, of all where it is left out.
    """

    name: str
    when: WrittenNeeds = ()
    gfx: tuple[Gfx, ...]
    runs_as: Gfx
    set: dict[str, str]
    because: str
    source: Cited = ()


class ImageFacts(Row, frozen=True, kw_only=True):
    """One base image by its full tag, for tags are data and no templates: its glibc, its Python if any, and what it demands.

    `require_cuda` is its NVIDIA_REQUIRE_CUDA, which many images share: its file has the name of one of its `gates` instead.
    """

    reference: str
    kind: Literal["slim", "distribution", "cuda-base", "cuda-runtime", "cuda-devel", ""]
    distribution: str = ""
    glibc: str
    python: str = ""
    apt_python: str = ""
    cuda: str = ""
    cudnn: str = ""
    require_cuda: str = field(default="", name="gate")
    end_of_life: Date = ""
    platforms: tuple[PlatformName, ...] = ()
    source: Cited = ()


class Variables(Row, frozen=True, kw_only=True):
    """Environment variables (`set`) that a stack needs to run or build when `when` is in range, on hosts where `on` holds."""

    name: str
    when: WrittenNeed
    on: WrittenNeeds = ()
    set: dict[str, str]
    because: str
    source: Cited = ()


class Failure(Row, frozen=True, kw_only=True):
    """A failure people met: texts it shows in logs, the component at fault (`layer`), its cause, and what to do.

    `when` and `on` narrow it to the stacks it is known of.
    """

    name: str
    layer: str
    when: WrittenNeeds = ()
    on: WrittenNeeds = ()
    symptoms: tuple[str, ...]
    cause: str
    remedy: str
    source: Cited = ()


class DriverPackage(Row, frozen=True, kw_only=True):
    """One way a distribution ships a driver: its package, for which driver branches and kernels, built where, signed by whom.

    `kind`: `precompiled` modules are built for certain kernels, `dkms` and `akmod` build on the host (headers, compiler,
    and under Secure Boot an enrolled key), `runfile` is NVIDIA's installer. `signed` is None where nobody says.
    """

    name: str
    os: str
    kind: Literal["precompiled", "dkms", "akmod", "runfile", "host-provided"]
    branches: tuple[str, ...] = ()
    modules: tuple[ModuleFlavour, ...] = ()
    kernel: str = ""
    signed: bool | None = None
    headers: str = ""
    note: str = ""
    source: Cited = ()


class ImpliedNeed(Row, frozen=True, kw_only=True):
    """What some versions of a distribution need although their metadata does not say so.

    `versions` is a PEP 440 specifier, "" for every version. `require` is of components, `packages` of other distributions
    (name -> PEP 440 specifier). `brings` is the CUDA runtime it bundles for itself, whatever a framework's is: the driver and
    the GPUs must be good for that one too. `cxx11_abi` is the C++ ABI of its wheels for Linux on the default index where they
    call PyTorch with strings or lists, None where nothing is known or needed: a build of PyTorch of the other ABI does not have
    the functions they call. A file of a variant index has the ABI of the build it is compiled for. `served_by` is `default` or
    `variant-index` when the row is about the files of that index only, "" when it is about all of them.
    """

    versions: str
    require: WrittenNeeds = ()
    packages: dict[str, str] = field(default_factory=dict)
    brings: WrittenNeeds = ()
    cxx11_abi: bool | None = None
    because: str
    served_by: Literal["default", "variant-index", ""] = ""
    source: Cited = ()


class Distribution(Row, frozen=True, kw_only=True):
    """What is known of a Python distribution beyond its metadata.

    `compiled_against` is the component whose CUDA build its wheels are compiled for, for the releases in `versions` (a PEP
    440 specifier, "" for all). `served_by` is `variant-index` when the framework's indexes have wheels of it, else `default`.
    `gpu_twin` is the distribution with the same modules that uses a GPU, which this one never does.
    """

    name: str
    compiled_against: str = ""
    versions: str = ""
    served_by: Literal["default", "variant-index"] = "default"
    gpu_twin: str = ""
    implies: tuple[ImpliedNeed, ...] = ()
    source: Cited = ()


class DistributionLimit(Row, frozen=True, kw_only=True):
    """When `when` is in range, on platforms in `on`, the distribution in `allow` is in its specifier (PEP 440), if any."""

    name: str
    when: WrittenNeed
    on: WrittenNeeds = ()
    allow: dict[str, str]
    because: str
    source: Cited = ()

    @property
    def distribution(self) -> str:
        """The distribution that is bounded."""
        return next(iter(self.allow))

    @property
    def specifier(self) -> str:
        """The versions of it that are allowed."""
        return self.allow[self.distribution]


class FileOwner(Row, frozen=True, kw_only=True):
    """A distribution whose wheels have a file that another one's have too, in `versions` (PEP 440, "" for all).

    `artefact` is the wheel it was read from and `sha256` its hash; `content` is the file's own hash as the wheel's RECORD
    states it.
    """

    distribution: str
    versions: str = ""
    artefact: str
    sha256: Sha256
    content: RecordHash


class SharedFile(Row, frozen=True, kw_only=True):
    """A path that wheels of several distributions write, with different content: whoever is installed last is in effect.

    `refused`: no two of the owners may be in one environment. Otherwise such an answer is named, and a policy may forbid it.
    """

    name: str
    path: str
    refused: bool = True
    because: str
    owners: tuple[FileOwner, ...]
    source: Cited = ()


class Component(Struct, frozen=True, kw_only=True):
    """A part of the stack and its releases. `virtual`: the host provides it. `named`: its values are names, not versions."""

    name: str
    title: str
    releases: tuple[Release, ...] = ()
    virtual: bool = False
    named: bool = False


WHOLE = Place("the matrix")
"""The place of rows whose line is not known."""


class Matrix(Struct, frozen=True, kw_only=True):
    """All components, rules, driver branches, GPUs, base images and distributions of one set of files; validated and frozen.

    `digest` is the hash of the files. `positions` are the places of every rule (`rule:NAME`), release (`pytorch==2.7.1`), build
    (`pytorch==2.7.1+cu126`), limit (`limit:NAME`), shared file (`shared-file:NAME`), row of variables (`variables:NAME`),
    failure (`failure:NAME`) and distribution (`distribution:NAME`, `distribution:NAME VERSIONS` for what some versions imply).
    """

    order: tuple[str, ...]
    components: dict[str, Component]
    rules: tuple[Rule, ...]
    branches: tuple[DriverBranch, ...]
    gpus: tuple[Gpu, ...]
    images: tuple[ImageFacts, ...]
    citations: dict[str, Citation]
    digest: str
    positions: dict[str, Place] = field(default_factory=dict)
    distributions: tuple[Distribution, ...] = ()
    limits: tuple[DistributionLimit, ...] = ()
    shared_files: tuple[SharedFile, ...] = ()
    overrides: tuple[GfxOverride, ...] = ()
    variables: tuple[Variables, ...] = ()
    failures: tuple[Failure, ...] = ()
    driver_packages: tuple[DriverPackage, ...] = ()

    def place_of(self, name: str) -> Place:
        """Return the place of a row of `positions`; that of the whole matrix where it has no such row."""
        return self.positions.get(name, WHOLE)

    def native_cuda(self, driver: Version) -> Version | None:
        """The newest CUDA a driver runs natively; None when its branch is not in the matrix."""
        branch = self.branch_of(str(driver.release[0])) if driver.release else None
        return branch.native_cuda if branch is not None else None

    def branch_of(self, driver: str) -> DriverBranch | None:
        """The branch an NVIDIA driver such as `535.104.05` belongs to; None for one the matrix does not list."""
        number = driver.partition(".")[0]
        return next((branch for branch in self.branches if branch.branch == number), None)
