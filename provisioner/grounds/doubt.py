"""Doubts: unknown facts that an answer relies on, each with its component, and with the host that does not state the fact."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from provisioner.components import COMPONENTS
from provisioner.grounds.bound import Bound  # noqa: TC001 - part of types that are matched at run time
from provisioner.grounds.requirement import Ground, Subject  # noqa: TC001 - as above
from provisioner.versions import Range  # noqa: TC001 - as above


class Doubt(Struct, frozen=True):
    """The base of all doubts."""

    is_of_choice: ClassVar[bool] = False
    """Whether it is about what was chosen, which nobody measured or supports, so that another choice may be without it."""

    @property
    def component(self) -> str:
        """The component of the unknown fact, such as `gpu` or `driver`."""
        raise NotImplementedError

    @property
    def is_assumption(self) -> bool:
        """Whether it is listed as an assumption, and does not make an answer unverified.

        If it is wrong, the stack fails at once and by name, or the machine shows by running that it is right.
        """
        return False

    @property
    def of_host(self) -> str:
        """The label of the host that does not state a fact; "" when the doubt is not about a missing fact of one host."""
        return getattr(self, "host", "")


class NeededBy(Struct, frozen=True, kw_only=True):
    """A requirement on an unstated fact (`needs`), of a candidate (`subject`) or of a rule by its name."""

    needs: str
    bound: Bound
    subject: Subject | None = None
    rule: str = ""


class Undecided(Struct, frozen=True, kw_only=True):
    """A row of the matrix whose condition cannot be evaluated without a fact."""

    table: str
    name: str
    because: str


class Unstated(Doubt, frozen=True, kw_only=True):
    """A host does not state a fact; `profile_key` is the key of a host profile that states it, "" when there is none."""

    fact: str
    host: str
    profile_key: str = ""
    reason: NeededBy | Undecided | None = None

    @property
    def component(self) -> str:
        return self.fact

    @property
    def is_assumption(self) -> bool:
        return self.fact in COMPONENTS and COMPONENTS[self.fact].is_assumed


class UnstatedGpus(Doubt, frozen=True, kw_only=True):
    """A host does not state its GPUs, so they were not compared with compiled targets."""

    component: ClassVar[str] = "gpu"
    host: str
    profile_key: str


class NamelessGpu(Doubt, frozen=True, kw_only=True):
    """A GPU of a host states neither its name nor its compute capability; `index` is its index in the host profile."""

    component: ClassVar[str] = "gpu"
    of_host: ClassVar[str] = ""  # the other GPUs of the host may be known
    host: str
    index: int


class MissingToolkit(Doubt, frozen=True, kw_only=True):
    """A host has no NVIDIA Container Toolkit, which containers need for access to a GPU."""

    component: ClassVar[str] = "container_toolkit"
    host: str


class UnknownImage(Doubt, frozen=True, kw_only=True):
    """The matrix does not know a base image, so its glibc and Python were not compared."""

    component: ClassVar[str] = "glibc"
    reference: str


class UnpinnedImage(Doubt, frozen=True, kw_only=True):
    """A base image is not pinned by digest."""

    component: ClassVar[str] = "image"
    reference: str


class UnmeasuredTargets(Doubt, frozen=True, kw_only=True):
    """The compiled targets of a build were never read from its artefact, so the GPUs that it supports are unknown."""

    is_of_choice: ClassVar[bool] = True
    component: ClassVar[str] = "gpu"
    subject: Subject


class SilentRows(Doubt, frozen=True, kw_only=True):
    """No row of the matrix says which releases of a component (`object`) go with a chosen release."""

    subject: Subject
    object: str

    @property
    def component(self) -> str:
        return self.subject.name


class UnmeasuredWheel(Doubt, frozen=True, kw_only=True):
    """The GPU code of a distribution's wheel was never read, but other versions of the distribution have some."""

    is_of_choice: ClassVar[bool] = True
    subject: Subject

    @property
    def component(self) -> str:
        return self.subject.name


class MissingLibraries(Doubt, frozen=True, kw_only=True):
    """A wheel needs shared libraries of CUDA that nothing chosen is known to provide; `providers` are distributions that do."""

    is_of_choice: ClassVar[bool] = True
    subject: Subject
    sonames: tuple[str, ...]
    providers: tuple[str, ...]
    in_container: bool

    @property
    def component(self) -> str:
        return self.subject.name


class ShadowedLibrary(Doubt, frozen=True, kw_only=True):
    """The loader of a host finds a copy of a library in a directory of the host before that of the chosen wheels.

    `stated` is the version of the host's copy, `chosen` that of the wheels, `variables` those that name the directory.
    """

    component: ClassVar[str] = "libraries"
    host: str
    library: str
    stated: str
    chosen: str
    variables: tuple[str, ...]


class NothingAccelerated(Doubt, frozen=True, kw_only=True):
    """The spec asks for an accelerator and nothing chosen is known to compute on it.

    `instead` has each chosen distribution for the CPU that has a twin for GPUs, with that twin.
    """

    component: ClassVar[str] = "accelerator"
    accelerator: str
    instead: tuple[tuple[str, str], ...]


class Unrealised(Doubt, frozen=True, kw_only=True):
    """The spec asks for CUDA or a library for it, and neither the base image nor the lock is known to have it.

    `distribution` is the one of NVIDIA's that has it, "" when none is known; `is_version`: its version is that of the release.
    `base` is a keyword of `image.base` for an image that has it, "" for none.
    """

    subject: Subject
    image: str
    distribution: str
    is_version: bool = True
    base: str = ""

    @property
    def component(self) -> str:
        return self.subject.name


class FromSource(Doubt, frozen=True, kw_only=True):
    """A build is compiled from source: no binary is published."""

    is_of_choice: ClassVar[bool] = True
    part: str
    subject: Subject

    @property
    def component(self) -> str:
        return self.part


class UnlistedBundle(Doubt, frozen=True, kw_only=True):
    """A distribution bundles a release of a component that the matrix does not list, so that release's needs are unknown."""

    is_of_choice: ClassVar[bool] = True
    bundled: str
    carrier: Subject

    @property
    def component(self) -> str:
        return self.bundled


class UnreadLine(Doubt, frozen=True, kw_only=True):
    """A line of the spec about a framework has a marker on Python, and was not evaluated because no packages were solved.

    `python` is the chosen Python to which the line applies, "" when none was chosen.
    """

    part: str
    ground: Ground
    python: str

    @property
    def component(self) -> str:
        return self.part


class UnsupportedOverride(Doubt, frozen=True, kw_only=True):
    """AMD GPUs run code that is compiled for another target, by settings that are not supported."""

    is_of_choice: ClassVar[bool] = True
    component: ClassVar[str] = "gpu"
    devices: tuple[str, ...]
    runs_as: str
    settings: tuple[tuple[str, str], ...]
    because: str


class UnsupportedGpu(Doubt, frozen=True, kw_only=True):
    """A build has code for a GPU, but AMD does not list the GPU as supported by the release of ROCm."""

    is_of_choice: ClassVar[bool] = True
    component: ClassVar[str] = "gpu"
    device: str
    rocm: str


class UndocumentedKernel(Doubt, frozen=True, kw_only=True):
    """A host runs a driver on a Linux kernel version that is not documented for it, so it was patched or the document is old.

    `documented` are the documented kernel versions, None when there are none; `kernel` is then "", for no kernel would do.
    """

    component: ClassVar[str] = "kernel"
    is_assumption: ClassVar[bool] = True
    host: str
    driver: str
    kernel: str
    documented: Range | None


class Unexpected(Doubt, frozen=True, kw_only=True):
    """A chosen version is not what `subject` is expected to need, though no source states the need.

    `because` is the reason of the rule that expects it, "" for what the row of the release itself expects.
    """

    subject: Subject
    needs: str
    bound: Bound
    chosen: str
    because: str = ""

    @property
    def component(self) -> str:
        return self.subject.name


class OtherMinorNvcc(Doubt, frozen=True, kw_only=True):
    """The nvcc has another minor release than the framework's CUDA, about which PyTorch warns."""

    is_of_choice: ClassVar[bool] = True
    component: ClassVar[str] = "nvcc"
    of_host: ClassVar[str] = ""
    nvcc: str
    cuda: str
    host: str = ""


class AssumedMacosBuild(Doubt, frozen=True, kw_only=True):
    """A host does not state its build of macOS, and one was assumed."""

    component: ClassVar[str] = "macos"
    host: str
    build: str


class UnlistedSeries(Doubt, frozen=True, kw_only=True):
    """A host has a version of a component of whose series the matrix has no release, so that no row speaks of it.

    `newest` is the newest release of the matrix if the version is newer than that, "" if it is not. The version was then judged
    as that release, where `is_judged` is set, and by its number alone where it is not.
    """

    name: str
    host: str
    version: str
    newest: str = ""
    is_judged: bool = False

    @property
    def component(self) -> str:
        return self.name


class StatedSeries(Doubt, frozen=True, kw_only=True):
    """A host states the series of a component (`nvcc 12.4`) and not the release, and some releases of it would not do.

    `assumed` is the release that was taken, `failing` are the releases of the matrix that would not do, () if none is known.
    """

    name: str
    host: str
    series: str
    assumed: str
    failing: tuple[str, ...]
    profile_key: str

    @property
    def component(self) -> str:
        return self.name


class BroughtFramework(Doubt, frozen=True, kw_only=True):
    """A framework is installed as a dependency of other packages, without its GPU build."""

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


class NamelessForward(Doubt, frozen=True, kw_only=True):
    """A host does not state the names of its GPUs, and forward compatibility works on data-centre GPUs only."""

    component: ClassVar[str] = "gpu_kind"
    host: str
    profile_key: str


class SkippedClause(Doubt, frozen=True, kw_only=True):
    """A clause of an image's NVIDIA_REQUIRE_CUDA names a property that container runtimes do not know."""

    component: ClassVar[str] = "image"
    clause: str
    reference: str


class UndecidedGate(Doubt, frozen=True, kw_only=True):
    """An image's NVIDIA_REQUIRE_CUDA may or may not admit a host, depending on unknown properties of the host."""

    component: ClassVar[str] = "image"
    reference: str
    host: str
    properties: tuple[str, ...]
    profile_key: str = ""


class UndatedRelease(Doubt, frozen=True, kw_only=True):
    """The release date is unknown, so the release may be too recent for the policy (less than a week old)."""

    name: str
    label: str

    @property
    def component(self) -> str:
        return self.name


class UndatedFile(Doubt, frozen=True, kw_only=True):
    """The upload time of a version is unknown, so the version may be too recent for the policy (less than a week old)."""

    name: str
    label: str
    index: str

    @property
    def component(self) -> str:
        return self.name


class UndesignatedBranch(Doubt, frozen=True, kw_only=True):
    """No source says whether a driver branch is a production branch or a feature branch."""

    component: ClassVar[str] = "driver"
    branch: str


class BuiltMetadata(Doubt, frozen=True, kw_only=True):
    """The requirements of a source distribution were found by building it on one machine; elsewhere they may differ."""

    name: str
    filename: str

    @property
    def component(self) -> str:
        return self.name
