"""Faults of a machine, each in a layer of the stack, and remedies, as typed values: what `doctor` finds and advises."""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import Struct

from provisioner.grounds.conflict import Conflict, Fix  # noqa: TC001 - part of a type that is matched at run time
from provisioner.grounds.doubt import Doubt  # noqa: TC001 - as above
from provisioner.grounds.finding import Finding  # noqa: TC001 - as above
from provisioner.grounds.requirement import Subject  # noqa: TC001 - as above
from provisioner.grounds.step import Action, Detail  # noqa: TC001 - as above
from provisioner.host.remark import Builder, Remark  # noqa: TC001 - as above
from provisioner.layers import LayerName  # noqa: TC001 - as above


class Part(Struct, frozen=True, kw_only=True):
    """One value that was found or is wanted, of a component or distribution.

    `origin` says where a value is from, if it is no fact of the machine: the `driver` brings it, the locked `image` has it, the
    `environment` holds it. `title` is the product of a GPU, and `count` how many of them there are.
    """

    name: str
    value: str
    origin: Literal["", "driver", "image", "environment"] = ""
    title: str = ""
    count: int = 1


class Fault(Struct, frozen=True, kw_only=True):
    """The base of all faults; `layer` is the one in which the fault is to be mended.

    `failure` is the name of the row of the matrix on the failure that the fault leads to, "" for none.
    """

    verdict: ClassVar[str] = "no"
    failure: ClassVar[str] = ""
    layer: LayerName


class Contradicts(Fault, frozen=True, kw_only=True):
    """A conflict of the resolver: facts of the machine, and of what runs on it, that cannot hold together."""

    conflict: Conflict


class Doubted(Fault, frozen=True, kw_only=True):
    """A fact that is unknown, or that nobody measured, on which the answer of the resolver depends."""

    verdict: ClassVar[str] = "unverified"
    doubt: Doubt


class Reported(Fault, frozen=True, kw_only=True):
    """A finding of the check of the lock: a wheel that cannot be installed here."""

    finding: Finding


class Unsettled(Fault, frozen=True, kw_only=True):
    """A finding of the check of the lock that depends on an unknown fact: a wheel for a C library that nobody stated."""

    verdict: ClassVar[str] = "unverified"
    finding: Finding


class Unlisted(Fault, frozen=True, kw_only=True):
    """A locked or installed release that the matrix does not list, so that nothing is known about it."""

    verdict: ClassVar[str] = "unverified"
    subject: Subject


class Seen(Fault, frozen=True, kw_only=True):
    """A remark of the inspection that tells of a GPU or driver that does not work."""

    remark: Remark


class Unseen(Fault, frozen=True, kw_only=True):
    """A remark of the inspection on a fact that could not be determined."""

    verdict: ClassVar[str] = "unverified"
    remark: Remark


class NotServed(Fault, frozen=True, kw_only=True):
    """A machine of a system that no environment can be locked for; `platform` is its name."""

    platform: str


class NoDriver(Fault, frozen=True, kw_only=True):
    """No driver of the machine's GPUs is loaded; `component` is the driver that is missing."""

    component: str


class NotBuilt(Fault, frozen=True, kw_only=True):
    """A driver that DKMS has for other kernels than the running one; `lacks_headers`: those of the running one are missing."""

    failure: ClassVar[str] = "driver-module-not-loaded"
    component: str
    version: str
    kernel: str
    kernels: tuple[str, ...]
    lacks_headers: bool


class KeyNotEnrolled(Fault, frozen=True, kw_only=True):
    """A driver that was built and signed on the machine, with a key that Secure Boot does not know: its module is refused."""

    failure: ClassVar[str] = "key-rejected-by-secure-boot"
    version: str
    builder: Builder


class LinuxDriverInWsl(Fault, frozen=True, kw_only=True):
    """A driver for Linux in WSL 2, beside the libcuda that the driver of Windows brings."""

    failure: ClassVar[str] = "wsl-linux-driver-installed"
    files: tuple[str, ...]
    packages: tuple[str, ...]


class MissingDevices(Fault, frozen=True, kw_only=True):
    """Device files without which no GPU of the machine computes; `is_container`: they are those of its host."""

    files: tuple[str, ...]
    accelerator: str
    is_container: bool = False


class ForbiddenDevices(Fault, frozen=True, kw_only=True):
    """Device files that this user may not open; `groups` may."""

    files: tuple[str, ...]
    groups: tuple[str, ...]


class NoWslLibrary(Fault, frozen=True, kw_only=True):
    """WSL 2 without the libcuda that the driver of Windows brings."""


class NoContainerToolkit(Fault, frozen=True, kw_only=True):
    """No NVIDIA Container Toolkit, without which no container is given a GPU."""

    failure: ClassVar[str] = "container-toolkit-missing"


class StaleCdi(Fault, frozen=True, kw_only=True):
    """A CDI specification that mounts the files of another driver than the one that is installed."""

    file: str
    mounts: str
    driver: str


class CpuBuild(Fault, frozen=True, kw_only=True):
    """An installed framework that uses no GPU, on a machine that has some.

    `lacks` is the beginning of the name of the distribution that is missing for it, "" for a build without code for GPUs.
    """

    subject: Subject
    accelerator: str
    lacks: str = ""


class OtherPython(Fault, frozen=True, kw_only=True):
    """An environment of another Python than the locked one."""

    locked: str
    installed: str


class Difference(Struct, frozen=True, kw_only=True):
    """A distribution that is installed in another version than is needed; `installed` is "" if it is missing."""

    name: str
    needed: str
    installed: str
    by: str = ""
    """The distribution that needs it, "" for the lock."""


class NotAsLocked(Fault, frozen=True, kw_only=True):
    """Distributions of an environment that are not those of the lock; `count` is how many the lock has for the layer."""

    differences: tuple[Difference, ...]
    count: int


class UnmetRequirements(Fault, frozen=True, kw_only=True):
    """Requirements of installed distributions that the environment does not meet."""

    differences: tuple[Difference, ...]


class Mend(Struct, frozen=True, kw_only=True):
    """A change that the resolver proposes and has solved again."""

    fix: Fix


class Carry(Struct, frozen=True, kw_only=True):
    """A step as a plan makes it, with its details."""

    action: Action
    details: tuple[Detail, ...] = ()


class LoadModule(Struct, frozen=True):
    """To load a kernel module that is installed."""

    name: str


class BuildModule(Struct, frozen=True, kw_only=True):
    """To build the modules of a driver for a kernel, with its headers where they are missing."""

    kernel: str
    needs_headers: bool


class WriteCdi(Struct, frozen=True):
    """To write a CDI specification anew."""

    file: str


class InstallToolkit(Struct, frozen=True):
    """To install the NVIDIA Container Toolkit and make it known to the container engine."""

    engine: str


class JoinGroups(Struct, frozen=True):
    """To make this user a member of groups; of none: device files that only root may open."""

    groups: tuple[str, ...]


class EnrolKey(Struct, frozen=True):
    """To enrol the key that signs modules which are built on the machine."""

    builder: Builder


class MakeDevices(Struct, frozen=True):
    """To make the device files of NVIDIA's driver, and to install the program that makes them."""


class PassGpus(Struct, frozen=True):
    """To start a container with the GPUs of its host."""


class RemovePackages(Struct, frozen=True):
    """To remove a driver for Linux from WSL; `packages` are those that are known to have it."""

    packages: tuple[str, ...]


class RestartWsl(Struct, frozen=True):
    """To update the driver of Windows and restart WSL."""


class UseWsl(Struct, frozen=True):
    """To run the job in the Linux that Windows can hold: WSL 2, or a container of it."""


class ProvideDevices(Struct, frozen=True):
    """To provide device files that are missing: by loading the driver, and for a container by passing them on."""

    files: tuple[str, ...]


class InstallBuild(Struct, frozen=True, kw_only=True):
    """To install a build of a framework; `requirement` is PEP 508, `index` the address of the build's index, "" for none."""

    requirement: str
    index: str = ""


class InstallLock(Struct, frozen=True):
    """To install a lock into the environment; `file` is its name."""

    file: str
    python: str = ""
    """The Python of the lock, for a new environment; "" to keep the one there is."""


class SolveAnew(Struct, frozen=True):
    """To solve the spec of a lock for this machine.

    `spec` is the file of the spec, "" if it is not there, and `host` that of the machine's profile, "" if none is recorded.
    """

    spec: str
    host: str


class InstallMissing(Struct, frozen=True):
    """To install what installed distributions require."""

    requirements: tuple[str, ...]


Act = (
    Mend
    | Carry
    | LoadModule
    | BuildModule
    | WriteCdi
    | InstallToolkit
    | JoinGroups
    | EnrolKey
    | MakeDevices
    | PassGpus
    | RemovePackages
    | RestartWsl
    | UseWsl
    | ProvideDevices
    | InstallBuild
    | InstallLock
    | InstallMissing
    | SolveAnew
)
"""What a remedy does."""


class Remedy(Struct, frozen=True, kw_only=True):
    """One step to mend a layer; `command` carries it out on the machine, "" where no single command does.

    `is_alternative`: it takes the place of the step before it, and is no further one.
    """

    act: Act
    command: str = ""
    is_alternative: bool = False
