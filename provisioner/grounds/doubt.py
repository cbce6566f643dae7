"""Doubts: unknown facts that an answer relies on, each with its component, and with the host that does not state the fact."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from provisioner.components import COMPONENTS
from provisioner.grounds.bound import Bound  # noqa: TC001 - part of types that are matched at run time
from provisioner.grounds.predicate import OlderThanCompiler  # noqa: TC001 - as above
from provisioner.grounds.requirement import Ground, Subject  # noqa: TC001 - as above
from provisioner.versions import Range  # noqa: TC001 - as above


class Doubt(Struct, frozen=True):
    """The base of all doubts."""

    is_of_choice: ClassVar[bool] = False
    """Whether the doubt is about the chosen release, which nobody measured or supports, so that another choice may avoid it."""

    @property
    def component(self) -> str:
        """The component of the unknown fact, such as `gpu` or `driver`."""
        raise NotImplementedError

    @property
    def is_assumption(self) -> bool:
        """Whether the doubt is listed as an assumption, and does not make an answer unverified.

        This is so if the stack would fail at once, with an error that names the assumption, or if the host proves the
        assumption because it runs today.
        """
        return False

    @property
    def of_host(self) -> str:
        """The label of the host that does not state a fact; "" when the doubt is not about a missing fact of one host."""
        return getattr(self, "host", "")


class NeededBy(Struct, frozen=True, kw_only=True):
    """A requirement on `needs`, a component that a host does not state, of the candidate `subject` or the rule named `rule`."""

    needs: str
    bound: Bound
    subject: Subject | None = None
    rule: str = ""


class Undecided(Struct, frozen=True, kw_only=True):
    """A row of the matrix whose condition cannot be evaluated without the unstated fact; `because` is the row's reason."""

    table: str
    name: str
    because: str


class Unstated(Doubt, frozen=True, kw_only=True):
    """A fact that a host does not state; `profile_key` is the key of a host profile that states it, "" when there is none.

    `reason` is a requirement or condition that depends on the fact, None when none is cited. `is_of_driver` is whether only a
    driver needs the fact on a host of which nobody knows whether it runs one: a driver that runs shows the fact to be good
    enough, and one that is installed against it fails at once and by name.
    """

    fact: str
    host: str
    profile_key: str = ""
    reason: NeededBy | Undecided | None = None
    is_of_driver: bool = False

    @property
    def component(self) -> str:
        return self.fact

    @property
    def is_assumption(self) -> bool:
        return self.is_of_driver or (self.fact in COMPONENTS and COMPONENTS[self.fact].is_assumed)


class UnstatedGpus(Doubt, frozen=True, kw_only=True):
    """The GPUs of a host that does not state them, so that they were not compared with compiled targets."""

    component: ClassVar[str] = "gpu"
    host: str
    profile_key: str


class NamelessGpu(Doubt, frozen=True, kw_only=True):
    """A GPU of a host without a stated name or compute capability; `index` is its index in the host profile."""

    component: ClassVar[str] = "gpu"
    of_host: ClassVar[str] = ""  # the other GPUs of the host may be known
    host: str
    index: int


class MissingToolkit(Doubt, frozen=True, kw_only=True):
    """A host without the NVIDIA Container Toolkit, which containers need for access to a GPU."""

    component: ClassVar[str] = "container_toolkit"
    host: str


class UnknownImage(Doubt, frozen=True, kw_only=True):
    """A base image that the matrix does not list, and whose facts in `unknown` (`glibc`, `python`) the spec does not state."""

    reference: str
    unknown: tuple[str, ...]

    @property
    def component(self) -> str:
        return self.unknown[0]


class TakenForKnown(Doubt, frozen=True, kw_only=True):
    """A base image whose name ends like that of one in the matrix (`known`), in another registry or below another path."""

    component: ClassVar[str] = "image"
    is_assumption: ClassVar[bool] = True
    reference: str
    known: str


class OwnFramework(Doubt, frozen=True, kw_only=True):
    """A base image with a framework of its own (`brought`), beside which the lock installs another release (`subject`)."""

    reference: str
    brought: str
    subject: Subject

    @property
    def component(self) -> str:
        """The framework."""
        return self.subject.name


class UnpinnedImage(Doubt, frozen=True, kw_only=True):
    """A base image that is not pinned by digest."""

    component: ClassVar[str] = "image"
    reference: str


class UndatedPackages(Doubt, frozen=True, kw_only=True):
    """Packages of the image's distribution, `names`, whose releases the day of the build decides."""

    component: ClassVar[str] = "apt"
    names: tuple[str, ...]


class UnmeasuredTargets(Doubt, frozen=True, kw_only=True):
    """A build whose compiled targets were never read from its artefact, so that the GPUs that it supports are unknown."""

    is_of_choice: ClassVar[bool] = True
    component: ClassVar[str] = "gpu"
    subject: Subject


class SilentRows(Doubt, frozen=True, kw_only=True):
    """A chosen release for which no row of the matrix says which releases of a component (`object`) it works with."""

    subject: Subject
    object: str

    @property
    def component(self) -> str:
        return self.subject.name


class UnmeasuredWheel(Doubt, frozen=True, kw_only=True):
    """A wheel whose GPU code was never read, while wheels of other versions of the distribution have some.

    `uploaded` is the day on which it was uploaded, and `older_than` what it is older than, if it cannot have machine code for a
    GPU of the hosts; "" and None otherwise.
    """

    is_of_choice: ClassVar[bool] = True
    subject: Subject
    uploaded: str = ""
    older_than: OlderThanCompiler | None = None

    @property
    def component(self) -> str:
        return self.subject.name


class DeclaredForOthers(Doubt, frozen=True, kw_only=True):
    """A wheel that nobody has read, and whose recipe declares the targets `targets`, none of which runs on the GPUs `gpus`.

    With `has_ptx`, PTX of these targets does, which the spec does not allow.
    """

    is_of_choice: ClassVar[bool] = True
    subject: Subject
    targets: tuple[str, ...]
    gpus: tuple[str, ...]
    has_ptx: bool = False

    @property
    def component(self) -> str:
        return self.subject.name


class MissingLibraries(Doubt, frozen=True, kw_only=True):
    """A wheel that needs shared libraries of CUDA or ROCm (`sonames`), which nothing chosen is known to provide.

    `providers` are distributions that provide these libraries, () when none is known to. With `is_reached`, the wheel finds
    them in these distributions without LD_LIBRARY_PATH. `runtime` is the ROCm that contains them, such as `ROCm 7`; "" for
    libraries of CUDA. `in_container`: the stack runs in a container, where libraries of the host are not used.
    """

    is_of_choice: ClassVar[bool] = True
    subject: Subject
    sonames: tuple[str, ...]
    providers: tuple[str, ...]
    is_reached: bool
    runtime: str = ""
    in_container: bool

    @property
    def component(self) -> str:
        return self.subject.name


class LacksOfSystem(Doubt, frozen=True, kw_only=True):
    """Libraries or tools of the system (`names`) that `subject` needs, and that the image is not known to have.

    `distribution` is the Linux distribution of the base image, "" when unknown. `packages` are packages of it that have what is
    needed, and that are not installed because only a part of the subject needs them, or the spec wants no compiler. `bases` are
    words of `image.base` for images that have it.
    """

    subject: Subject
    names: tuple[str, ...]
    image: str
    distribution: str
    packages: tuple[str, ...] = ()
    because: str = ""
    bases: tuple[str, ...] = ()
    is_of_tools: bool = False

    @property
    def component(self) -> str:
        return self.subject.name

    @property
    def is_assumption(self) -> bool:
        # A missing tool stops the first compilation, and a missing library the import, with its name. But of an image whose
        # distribution is known, and packages no such library, it is known that the import fails.
        return self.is_of_tools or not self.distribution or bool(self.packages)


class UnreadWheels(Doubt, frozen=True, kw_only=True):
    """Distributions of whose wheels none was read for the libraries of the system that it links to."""

    component: ClassVar[str] = "libraries"
    is_assumption: ClassVar[bool] = True
    distributions: tuple[str, ...]


class UnreachedLibraries(Doubt, frozen=True, kw_only=True):
    """A wheel that needs shared libraries of CUDA (`sonames`) from other wheels, in folders where the loader does not look.

    `folders` are those of the distributions `providers`. With `is_of_pytorch`, PyTorch loads libraries of these names when it
    is imported: a program that imports it first works, and another one fails at once, naming the library. `call` is a function
    of the wheel that loads them, "" if it has none.
    """

    is_of_choice: ClassVar[bool] = True
    subject: Subject
    sonames: tuple[str, ...]
    providers: tuple[str, ...]
    folders: tuple[str, ...]
    is_of_pytorch: bool
    call: str = ""

    @property
    def component(self) -> str:
        return self.subject.name

    @property
    def is_assumption(self) -> bool:
        return self.is_of_pytorch


class ShadowedLibrary(Doubt, frozen=True, kw_only=True):
    """A copy of a library on a host that the loader finds before the copy in the chosen wheels.

    `stated` is the version of the host's copy, `chosen` that of the wheels; `variables` are the environment variables that name
    the directory of the host's copy.
    """

    component: ClassVar[str] = "libraries"
    host: str
    library: str
    stated: str
    chosen: str
    variables: tuple[str, ...]


class NothingAccelerated(Doubt, frozen=True, kw_only=True):
    """An accelerator that the spec asks for and on which nothing chosen is known to compute.

    `instead` are pairs: a chosen distribution that runs on the CPU only, and its counterpart for GPUs.
    """

    component: ClassVar[str] = "accelerator"
    accelerator: str
    instead: tuple[tuple[str, str], ...]


class Unrealised(Doubt, frozen=True, kw_only=True):
    """CUDA, a library or tool of it, or ROCm that the spec asks for and that nothing is known to contain where the lock runs.

    `subject` is the chosen release of it. `distribution` is NVIDIA's Python distribution of it for the chosen CUDA, "" when
    none is known; `is_version`: the distribution's version is that of the release. `base` is a value of `image.base` for an
    image that contains it, "" for none. `image` is "" without a container; with `is_installed` the script that sets up the host
    would install it. `is_service`: it is a service of hosts, which no profile states, and whose clients fail at once.
    """

    subject: Subject
    image: str
    distribution: str
    is_version: bool = True
    base: str = ""
    is_installed: bool = False
    is_service: bool = False

    @property
    def component(self) -> str:
        return self.subject.name

    @property
    def is_assumption(self) -> bool:
        return self.is_service


class FromSource(Doubt, frozen=True, kw_only=True):
    """A build that is compiled from source, because no binary is published; `part` is its component."""

    is_of_choice: ClassVar[bool] = True
    part: str
    subject: Subject

    @property
    def component(self) -> str:
        return self.part


class UnlistedBundle(Doubt, frozen=True, kw_only=True):
    """A release of a component (`bundled`) that a distribution (`carrier`) bundles and the matrix does not list.

    The requirements of such a release are unknown.
    """

    is_of_choice: ClassVar[bool] = True
    bundled: str
    carrier: Subject

    @property
    def component(self) -> str:
        return self.bundled


class UnreadLine(Doubt, frozen=True, kw_only=True):
    """A line of the spec about a framework (`part`) whose marker depends on Python, left out because no packages were solved.

    `python` is the chosen Python to which the line applies, "" when none was chosen.
    """

    part: str
    ground: Ground
    python: str

    @property
    def component(self) -> str:
        return self.part


class UnsupportedOverride(Doubt, frozen=True, kw_only=True):
    """AMD GPUs that run code compiled for another target, `runs_as`, through settings that are not supported.

    `devices` are the GPUs' own targets, `settings` are environment variables with their values, and `because` is the reason of
    the matrix.
    """

    is_of_choice: ClassVar[bool] = True
    component: ClassVar[str] = "gpu"
    devices: tuple[str, ...]
    runs_as: str
    settings: tuple[tuple[str, str], ...]
    because: str


class UnsupportedGpu(Doubt, frozen=True, kw_only=True):
    """A GPU for which a build has code, but which AMD does not list as supported by the release of ROCm."""

    is_of_choice: ClassVar[bool] = True
    component: ClassVar[str] = "gpu"
    device: str
    rocm: str


class ApartGpus(Doubt, frozen=True, kw_only=True):
    """A host with several GPUs and a library (`subject`) that has no kernels for some of them (`devices`).

    Programs use the library on several GPUs only; `because` says for what.
    """

    is_of_choice: ClassVar[bool] = True
    host: str
    subject: Subject
    devices: tuple[str, ...]
    because: str

    @property
    def component(self) -> str:
        return self.subject.name

    @property
    def of_host(self) -> str:
        return ""  # the host states its GPUs


class UndocumentedKernel(Doubt, frozen=True, kw_only=True):
    """A driver that a host runs on a Linux kernel version not documented for it; it was patched, or the documentation is old.

    `documented` are the documented kernel versions, None when there are none; `kernel` is then "", because no version would be
    documented.
    """

    component: ClassVar[str] = "kernel"
    is_assumption: ClassVar[bool] = True
    host: str
    driver: str
    kernel: str
    documented: Range | None


class Unexpected(Doubt, frozen=True, kw_only=True):
    """A chosen version that differs from what `subject` is expected to need, though no source states the need.

    `needs` is the needed component and `bound` the expected range. `because` is the reason of the rule that expects it, "" when
    the matrix row of `subject` itself expects it.
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
    """An nvcc of another minor release than the framework's CUDA, about which PyTorch warns."""

    is_of_choice: ClassVar[bool] = True
    component: ClassVar[str] = "nvcc"
    of_host: ClassVar[str] = ""
    nvcc: str
    cuda: str
    host: str = ""


class AssumedMacosBuild(Doubt, frozen=True, kw_only=True):
    """The build of macOS that was assumed for a host that does not state one."""

    component: ClassVar[str] = "macos"
    host: str
    build: str


class UnlistedSeries(Doubt, frozen=True, kw_only=True):
    """A host's version of a component for whose release series the matrix has no release, so that no row covers it.

    `newest` is the newest release of the matrix if the version is newer than that, otherwise "". `is_judged`: the host's
    version was treated as `newest`; otherwise only the number of the version was compared.
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
    """A series that a host states for a component (`nvcc 12.4`) in place of a release, if not every release is known to work.

    `assumed` is the release that was taken. `failing` are the releases of the series that do not work; () if the matrix lists
    no release of the component.
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
    """A framework that is installed as a dependency of other packages only, and without its GPU build.

    `install` is what a GPU would need in its place, such as `jax[cuda13]`; "" if the matrix has no build for it.
    """

    framework: str
    version: str
    install: str = ""

    @property
    def component(self) -> str:
        return self.framework


class FindsLibrary(Doubt, frozen=True, kw_only=True):
    """A framework that is installed as it is named, and that finds a library beside it for which it was not built.

    `bound` is what its build for GPUs needs of the library.
    """

    is_of_choice: ClassVar[bool] = True
    framework: str
    version: str
    library: Subject
    bound: Bound

    @property
    def component(self) -> str:
        return self.framework


class AssumedDriver(Doubt, frozen=True, kw_only=True):
    """The version that was assumed for the driver of a host that does not state it."""

    driver: str
    host: str
    version: str
    profile_key: str

    @property
    def component(self) -> str:
        return self.driver


class NamelessForward(Doubt, frozen=True, kw_only=True):
    """A host that does not state the names of its GPUs, while forward compatibility works on data-centre GPUs only."""

    component: ClassVar[str] = "gpu_kind"
    host: str
    profile_key: str


class UnlistedBranches(Doubt, frozen=True, kw_only=True):
    """An older driver of a host that loads the base image's cuda-compat of the release `cuda`, whose branches nobody knows.

    `native` is the oldest driver that does not load it, "" when none is known.
    """

    component: ClassVar[str] = "cuda_compat"
    of_host: ClassVar[str] = ""  # no fact of the host is missing
    host: str
    driver: str
    cuda: str
    native: str


class SkippedClause(Doubt, frozen=True, kw_only=True):
    """A clause of an image's NVIDIA_REQUIRE_CUDA about a property that container runtimes do not know.

    One runtime skips such a clause, another refuses it.
    """

    component: ClassVar[str] = "image"
    clause: str
    reference: str


class UndecidedGate(Doubt, frozen=True, kw_only=True):
    """An image's NVIDIA_REQUIRE_CUDA that may or may not admit a host, depending on unknown `properties` of the host."""

    component: ClassVar[str] = "image"
    reference: str
    host: str
    properties: tuple[str, ...]
    profile_key: str = ""


class UndatedRelease(Doubt, frozen=True, kw_only=True):
    """A release without a known date, so that it may be too recent for the policy (less than a week old)."""

    name: str
    label: str

    @property
    def component(self) -> str:
        return self.name


class UndatedFile(Doubt, frozen=True, kw_only=True):
    """A version without a known upload time, so that it may be too recent for the policy (less than a week old)."""

    name: str
    label: str
    index: str

    @property
    def component(self) -> str:
        return self.name


class UndesignatedBranch(Doubt, frozen=True, kw_only=True):
    """A driver branch of which no source says whether it is a production branch or a feature branch."""

    component: ClassVar[str] = "driver"
    branch: str


class PackedMetadata(Doubt, frozen=True, kw_only=True):
    """A source distribution whose requirements are those that it was packed with, which a build may change."""

    name: str
    filename: str

    @property
    def component(self) -> str:
        return self.name


class BuiltMetadata(Doubt, frozen=True, kw_only=True):
    """A source distribution whose requirements were found by building it on one machine; on another, they may differ."""

    name: str
    filename: str

    @property
    def component(self) -> str:
        return self.name
