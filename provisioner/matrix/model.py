"""The nouns of the compatibility matrix, frozen: what the solver reads, however the YAML that holds it was loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence  # noqa: TC003 - msgspec reads the annotations at run time

from msgspec import Struct, field

from provisioner.matrix.model_distributions import Distribution, DistributionLimit, SharedFile  # noqa: TC001 - as above
from provisioner.matrix.need import Need  # noqa: TC001 - as above
from provisioner.versions import Range, Version  # noqa: TC001 - as above


class Citation(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """Where a fact was read: document, place in it, date read, and whether it was measured from the artefact itself."""

    key: str
    title: str
    where: str = ""
    url: str = ""
    read: str = ""
    measured: bool = False

    def __str__(self) -> str:
        return f"{self.title}, {self.where}" if self.where else self.title


class Build(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """One variant of a release with exact needs of its own (`cu126` on linux/amd64).

    `sass` and `ptx` are the compiled targets (`sm_90`, `compute_90`); None means nobody measured them, which is not the
    same as none; so `gfx`, AMD's targets. `cxx11_abi` is the C++ ABI extensions must be built with. `is_compiled`: nobody
    publishes a binary. `install` is the requirement that installs it (`jax[cuda12]`) where it is not the distribution of the
    component. `index` is `pypi` or the framework index of this variant (`pytorch-cu126`). `local` is the local version
    label of its wheels (`cu126`, or "" when the wheel has none on its index). `artefact` names the file measured, `sha256` is
    its hash.
    """

    name: str
    platforms: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    sass: tuple[str, ...] | None = None
    ptx: tuple[str, ...] | None = None
    gfx: tuple[str, ...] | None = None
    cxx11_abi: bool | None = None
    is_compiled: bool = False
    install: str = ""
    index: str = ""
    local: str = ""
    accelerator: str = ""
    is_default: bool = False
    artefact: str = ""
    sha256: str = ""
    sources: tuple[str, ...] = ()


class PatchedKernels(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """Kernels a driver release builds on with the patches some distribution carries (`by`), never without them."""

    kernel: Range
    by: str
    sources: tuple[str, ...] = ()


class DriverMinimum(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """The three different "minimum drivers" of one CUDA release, kept apart.

    `toolkit`: the driver its release notes list beside it (not a floor for running programs). `minor_version`: the floor
    of its major family under minor-version compatibility; None where the family has none (before CUDA 11).
    `forward_compat`: driver branches the forward-compatibility package of this release supports, data-centre GPUs only.
    """

    toolkit: Version | None = None
    minor_version: Version | None = None
    forward_compat: tuple[str, ...] = ()


class Release(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """One published version of a component, spelled as its vendor spells it.

    `prerelease` says what it is where it is no final release (`Vulkan beta`) and its version does not tell.
    """

    version: Version
    builds: tuple[Build, ...] = ()
    needs: tuple[Need, ...] = ()
    driver: DriverMinimum | None = None
    platforms: tuple[str, ...] = ()
    ptx_isa: str = ""
    patched: tuple[PatchedKernels, ...] = ()
    released: str = ""
    end_of_life: str = ""
    sources: tuple[str, ...] = ()
    prerelease: str = ""


class Component(Struct, frozen=True, kw_only=True):
    """A named part of the stack. `is_virtual`: the host provides it. `is_named`: its values are names, not versions."""

    name: str
    title: str
    releases: Sequence[Release] = ()
    is_virtual: bool = False
    is_named: bool = False


class Rule(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """When `when` is in range (on hosts where every guard holds), every need holds too, because of the citation."""

    name: str
    when: Need
    guards: tuple[Need, ...] = ()
    needs: tuple[Need, ...] = ()
    because: str
    sources: tuple[str, ...] = ()


class DriverBranch(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """One driver branch: the newest CUDA it runs natively (which also bounds the PTX it can compile), and its life."""

    branch: str
    native_cuda: Version
    designation: str = ""
    end_of_life: str = ""
    sources: tuple[str, ...] = ()


class Gpu(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """One GPU product. `kind`: datacenter, workstation, geforce or jetson; forward compatibility depends on it.

    NVIDIA's has a compute capability, AMD's (`kind` also radeon, apu) a gfx target; the other is "".
    """

    name: str
    compute_capability: str
    gfx: str = ""
    architecture: str = ""
    kind: str = ""
    pci_device_ids: tuple[str, ...] = ()
    first_driver: Version | None = None
    modules: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


class GfxOverride(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """AMD targets that run the code of another one when `variables` are set, without anybody's support.

    `when` are the ROCm releases it works with, () for all.
    """

    name: str
    gfx: tuple[str, ...]
    runs_as: str
    variables: tuple[tuple[str, str], ...]
    because: str
    when: tuple[Need, ...] = ()
    sources: tuple[str, ...] = ()


class ImageFacts(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """What a base image holds: its glibc, its Python if any, and what its NVIDIA_REQUIRE_CUDA demands of the host."""

    reference: str
    glibc: str
    distribution: str = ""
    python: str = ""
    apt_python: str = ""
    cuda: str = ""
    cudnn: str = ""
    require_cuda: str = ""
    kind: str = ""
    end_of_life: str = ""
    platforms: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


class Variables(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """Environment variables a stack needs when `when` is in range (on hosts where every guard holds)."""

    name: str
    when: Need
    guards: tuple[Need, ...] = ()
    variables: tuple[tuple[str, str], ...]
    because: str
    sources: tuple[str, ...] = ()


class Failure(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """A failure people met: texts it shows in logs, the component at fault, its cause, and what to do."""

    name: str
    layer: str
    symptoms: tuple[str, ...]
    cause: str
    remedy: str
    when: tuple[Need, ...] = ()
    guards: tuple[Need, ...] = ()
    sources: tuple[str, ...] = ()


class DriverPackage(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """One way a distribution ships a driver; `signed` is None where nobody says. See `schema.DriverPackageEntry`."""

    name: str
    os: str
    kind: str
    branches: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    kernel: str = ""
    signed: bool | None = None
    headers: str = ""
    note: str = ""
    sources: tuple[str, ...] = ()


class Matrix(Struct, frozen=True, kw_only=True):
    """All components, rules, driver branches, GPUs, base images and distributions of one set of files; validated and frozen."""

    order: tuple[str, ...]
    components: Mapping[str, Component]
    rules: Sequence[Rule]
    branches: Sequence[DriverBranch]
    gpus: Sequence[Gpu]
    images: Sequence[ImageFacts]
    citations: Mapping[str, Citation]
    digest: str
    positions: Mapping[str, str] = field(default_factory=dict)
    """`file:line` of every rule (`rule:NAME`), release (`pytorch==2.7.1`), build (`pytorch==2.7.1+cu126`), limit
    (`limit:NAME`), shared file (`shared-file:NAME`) and distribution (`distribution:NAME`, `distribution:NAME VERSIONS` for
    what some versions imply)."""
    distributions: Sequence[Distribution] = ()
    limits: Sequence[DistributionLimit] = ()
    shared_files: Sequence[SharedFile] = ()
    overrides: Sequence[GfxOverride] = ()
    variables: Sequence[Variables] = ()
    failures: Sequence[Failure] = ()
    driver_packages: Sequence[DriverPackage] = ()

    def native_cuda(self, driver: Version) -> Version | None:
        """The newest CUDA a driver runs natively; None when its branch is not in the matrix."""
        branch = self.branch_of(str(driver.release[0])) if driver.release else None
        return branch.native_cuda if branch is not None else None

    def branch_of(self, driver: str) -> DriverBranch | None:
        """The branch an NVIDIA driver such as `535.104.05` belongs to; None for one the matrix does not list."""
        number = driver.partition(".")[0]
        return next((branch for branch in self.branches if branch.branch == number), None)
