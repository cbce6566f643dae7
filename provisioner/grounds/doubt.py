"""Doubts: what an answer rests on and nobody knows, each with the component it is about and the host, where it is of one."""

from __future__ import annotations

from msgspec import Struct

from provisioner.grounds.bound import Bound  # noqa: TC001 - part of types that are matched at run time
from provisioner.grounds.requirement import Ground, Subject  # noqa: TC001 - as above
from provisioner.versions import Range  # noqa: TC001 - as above


class Doubt(Struct, frozen=True):
    """The base of all doubts."""

    @property
    def component(self) -> str:
        """The component it is about: `gpu`, `driver`, or the fact that is missing."""
        raise NotImplementedError

    @property
    def of_host(self) -> str:
        """The label of the host whose fact is missing; "" where none is."""
        return getattr(self, "host", "")


class NeededBy(Struct, frozen=True, kw_only=True):
    """What needs a fact: a candidate, or a rule by its name."""

    needs: str
    bound: Bound
    subject: Subject | None = None
    rule: str = ""


class Undecided(Struct, frozen=True, kw_only=True):
    """A row of the matrix of which nobody can say whether it holds without a fact."""

    table: str
    name: str
    because: str


class Unstated(Doubt, frozen=True, kw_only=True):
    """A host does not state a fact. `profile_key` is where its profile would state it, "" where none can."""

    fact: str
    host: str
    profile_key: str = ""
    reason: NeededBy | Undecided | None = None

    @property
    def component(self) -> str:
        return self.fact


class UnstatedGpus(Doubt, frozen=True, kw_only=True):
    """A host does not state its GPUs, so no compiled target was compared."""

    host: str
    profile_key: str

    @property
    def component(self) -> str:
        return "gpu"


class NamelessGpu(Doubt, frozen=True, kw_only=True):
    """A GPU of a host states neither its name nor its compute capability; `index` is its place in the profile."""

    host: str
    index: int

    @property
    def component(self) -> str:
        return "gpu"

    @property
    def of_host(self) -> str:
        return ""  # the other GPUs of the host may be known


class MissingToolkit(Doubt, frozen=True, kw_only=True):
    """A host has no NVIDIA Container Toolkit, without which no container is given a GPU."""

    host: str

    @property
    def component(self) -> str:
        return "container_toolkit"


class UnknownImage(Doubt, frozen=True, kw_only=True):
    """The matrix does not know a base image, so its glibc and Python were not compared."""

    reference: str

    @property
    def component(self) -> str:
        return "glibc"


class UnpinnedImage(Doubt, frozen=True, kw_only=True):
    """A base image is not pinned by digest."""

    reference: str

    @property
    def component(self) -> str:
        return "image"


class UnmeasuredTargets(Doubt, frozen=True, kw_only=True):
    """Nobody has read from the artefact which GPUs a build is compiled for."""

    subject: Subject

    @property
    def component(self) -> str:
        return "gpu"


class FromSource(Doubt, frozen=True, kw_only=True):
    """A build is compiled from source: no binary is published."""

    part: str
    subject: Subject

    @property
    def component(self) -> str:
        return self.part


class UnlistedBundle(Doubt, frozen=True, kw_only=True):
    """A distribution bundles a release of a component that the matrix does not list, so what that needs is not known."""

    bundled: str
    carrier: Subject

    @property
    def component(self) -> str:
        return self.bundled


class UnreadLine(Doubt, frozen=True, kw_only=True):
    """A line of the spec about a framework applies with some Pythons only, and no packages were solved to look at it.

    `python` is the one that was chosen, "" where none was.
    """

    part: str
    ground: Ground
    python: str

    @property
    def component(self) -> str:
        return self.part


class UnsupportedOverride(Doubt, frozen=True, kw_only=True):
    """AMD GPUs run code for another target by settings that nobody supports."""

    devices: tuple[str, ...]
    runs_as: str
    settings: tuple[tuple[str, str], ...]
    because: str

    @property
    def component(self) -> str:
        return "gpu"


class UnsupportedGpu(Doubt, frozen=True, kw_only=True):
    """A GPU has code in the build, but AMD does not list it as supported by the release of ROCm."""

    device: str
    rocm: str

    @property
    def component(self) -> str:
        return "gpu"


class UndocumentedKernel(Doubt, frozen=True, kw_only=True):
    """A host runs a driver on a kernel that it is not documented on; `documented` is None where nothing is documented."""

    host: str
    driver: str
    kernel: str
    documented: Range | None

    @property
    def component(self) -> str:
        return "kernel"


class OtherMinorNvcc(Doubt, frozen=True, kw_only=True):
    """An nvcc is of another minor release than the framework's CUDA, of which PyTorch warns."""

    nvcc: str
    cuda: str
    host: str = ""

    @property
    def component(self) -> str:
        return "nvcc"

    @property
    def of_host(self) -> str:
        return ""


class AssumedMacosBuild(Doubt, frozen=True, kw_only=True):
    """A host does not state its build of macOS, and one was assumed."""

    host: str
    build: str

    @property
    def component(self) -> str:
        return "macos"


class BroughtFramework(Doubt, frozen=True, kw_only=True):
    """A framework comes along with other packages, without its GPU build."""

    framework: str
    version: str

    @property
    def component(self) -> str:
        return self.framework


class AssumedDriver(Doubt, frozen=True, kw_only=True):
    """A host has a driver and does not state its version, and one was assumed."""

    driver: str
    host: str
    version: str
    profile_key: str

    @property
    def component(self) -> str:
        return self.driver


class UnsuitableFlavour(Doubt, frozen=True, kw_only=True):
    """A host does not state the flavour of its kernel modules, and one of the flavours would not do, on this ground."""

    host: str
    flavour: str
    ground: Ground
    profile_key: str

    @property
    def component(self) -> str:
        return "driver_module"


class NamelessForward(Doubt, frozen=True, kw_only=True):
    """A host does not name its GPUs, and forward compatibility is for data-centre GPUs only."""

    host: str
    profile_key: str

    @property
    def component(self) -> str:
        return "gpu_kind"


class SkippedClause(Doubt, frozen=True, kw_only=True):
    """A clause of an image's NVIDIA_REQUIRE_CUDA is about nothing that runtimes know."""

    clause: str
    reference: str

    @property
    def component(self) -> str:
        return "image"


class UndecidedGate(Doubt, frozen=True, kw_only=True):
    """Whether an image's NVIDIA_REQUIRE_CUDA lets a host in depends on properties that are not known."""

    reference: str
    host: str
    properties: tuple[str, ...]
    profile_key: str = ""

    @property
    def component(self) -> str:
        return "image"


class UndatedRelease(Doubt, frozen=True, kw_only=True):
    """No source says when a release came out, so it may be of the week that the policy leaves out."""

    name: str
    label: str

    @property
    def component(self) -> str:
        return self.name


class UndatedFile(Doubt, frozen=True, kw_only=True):
    """An index gives no upload time of a version, so it may be of the week that the policy leaves out."""

    name: str
    label: str
    index: str

    @property
    def component(self) -> str:
        return self.name


class UndesignatedBranch(Doubt, frozen=True, kw_only=True):
    """No source says whether a driver branch is a production branch or a feature branch."""

    branch: str

    @property
    def component(self) -> str:
        return "driver"


class BuiltMetadata(Doubt, frozen=True, kw_only=True):
    """What a source distribution requires was found by building it on one machine."""

    name: str
    filename: str

    @property
    def component(self) -> str:
        return self.name
