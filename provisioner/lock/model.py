"""The nouns of a lock: artefacts with their hashes as PEP 751 has them, and what PEP 751 has no place for.

Everything a lock says about one platform stands in a `LockedStack`; packages are shared and name the platforms they are for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from provisioner.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from provisioner.resolver.stack import BaseImage


class Reason(Struct, frozen=True, kw_only=True):
    """Why a component is what it is, or a host must have something, as a lock records it.

    `text` and `where` are for people. The other fields are those of `provisioner.grounds.fields.GroundFields`, "" in locks of
    earlier versions: what kind of statement it is, its subject, what it is about, and the alternatives it allows of that.
    """

    component: str
    kind: str
    text: str
    where: str
    type: str = ""
    subject: str = ""
    object: str = ""
    ranges: tuple[str, ...] = ()
    source: str = ""
    place: str = ""


class LockedFile(Struct, frozen=True, kw_only=True):
    """One wheel, source distribution or other file. `sha256` is lower-case hex and never empty; `size` is in bytes.

    Exactly one of `url` (without credentials) and `path` (relative to the lock file, with forward slashes) is set.
    """

    filename: str
    sha256: str
    url: str = ""
    path: str = ""
    size: int | None = None
    upload_time: datetime | None = None


class LockedPackage(Struct, frozen=True, kw_only=True):
    """One Python package of the lock, for the platforms named; `marker` (PEP 508) says the same to installers.

    `index` is the name of the index it comes from and `index_url` its base URL, without credentials ("" for one on this
    machine); `requires` are the requirements that hold on these platforms and `dependencies` the names of the packages that
    meet them. `archive` is the file of a requirement by URL or path, and then there are no wheels and no source
    distribution. `attestations` are the identities that attest the files (PEP 740), as their index states them: recorded,
    not verified. `variants` is the index's list of wheel variants (draft PEP 825), kept where a lock has it.
    """

    name: str
    version: str
    platforms: tuple[str, ...]
    marker: str = ""
    requires_python: str = ""
    index: str = ""
    index_url: str = ""
    wheels: tuple[LockedFile, ...] = ()
    sdist: LockedFile | None = None
    archive: LockedFile | None = None
    variants: LockedFile | None = None
    attestations: tuple[Mapping[str, Any], ...] = ()
    requires: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()

    def __hash__(self) -> int:
        # attestations are mappings, which have none
        return hash((self.name, self.version, self.platforms, self.marker))

    @property
    def files(self) -> tuple[LockedFile, ...]:
        """Every file an installer may choose from."""
        return (*self.wheels, *(file for file in (self.sdist, self.archive) if file is not None))


class Installer(Struct, frozen=True, kw_only=True):
    """The program that installs this lock inside an image: its version and the one file it comes from."""

    name: str
    version: str
    file: LockedFile


class LockedPin(Struct, frozen=True, kw_only=True):
    """The choice for one component, and the requests and rules that led to it (host facts stay out of a lock)."""

    component: str
    version: str
    build: str = ""
    reasons: tuple[Reason, ...] = ()


class LockedStack(Struct, frozen=True, kw_only=True):
    """What was decided for one platform, without the facts of the machine it was solved for.

    `components` holds what an image or installer brings; what the host must bring stands as ranges in `host_requirements`.
    The other fields are those of `provisioner.resolver.stack.Stack`. `installer` is None where no image is built.
    `host_reasons` says which parts of the stack each host requirement comes from; locks of earlier versions have none.
    `relaxations` name what a policy allowed and the stack uses, with the component: `minor-version (cuda)`.
    """

    platform: str
    accelerator: str
    components: Mapping[str, str]
    runs: str = "container"
    basis: str = ""
    host_requirements: Mapping[str, str] = field(default_factory=dict)
    host_reasons: Mapping[str, tuple[Reason, ...]] = field(default_factory=dict)
    require_cuda: str = ""
    arch_list: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    unverified: tuple[str, ...] = ()
    relaxations: tuple[str, ...] = ()
    image: BaseImage | None = None
    installer: Installer | None = None
    pins: tuple[LockedPin, ...] = ()


class Lock(Struct, frozen=True, kw_only=True):
    """A stack made reproducible. `stacks` is never empty and holds one entry a platform, sorted by platform.

    `requires_python` is a PEP 440 specifier and `environments` are PEP 508 markers, one a platform, as in PEP 751.
    `spec_file` is the name of the specification, relative to the lock, `target` which of its targets this is for ("" where it
    has one alone), and `asked` are its keys that decided the answer (`provisioner.lock.asked`; empty in earlier locks). For a
    lock of several platforms, the properties that belong to a stack speak of the first one; `on` narrows it to another.
    """

    name: str
    requires_python: str
    environments: tuple[str, ...]
    packages: tuple[LockedPackage, ...]
    stacks: tuple[LockedStack, ...]
    tool_version: str
    matrix_digest: str
    spec_digest: str
    spec_file: str = "provision.yaml"
    target: str = ""
    asked: Mapping[str, str] = field(default_factory=dict)

    def on(self, platform: str) -> Lock:
        """The lock as it stands for one platform; raises `UsageError` naming the platforms it has."""
        known = tuple(stack.platform for stack in self.stacks)
        if platform not in known:
            raise UsageError(f"lock `{self.name}` has no platform `{platform}`", hints=(f"it has {', '.join(known)}",))
        packages = tuple(
            replace(package, platforms=(platform,), marker="") for package in self.packages if platform in package.platforms
        )
        stacks = tuple(stack for stack in self.stacks if stack.platform == platform)
        environments = tuple(self.environments[known.index(platform)] for _ in stacks if len(self.environments) == len(known))
        return replace(self, packages=packages, stacks=stacks, environments=environments)

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms this lock is for, sorted."""
        return tuple(stack.platform for stack in self.stacks)

    @property
    def platform(self) -> str:
        """The first platform."""
        return self.stacks[0].platform

    @property
    def accelerator(self) -> str:
        """`cuda`, `rocm`, `mps` or `cpu`."""
        return self.stacks[0].accelerator

    @property
    def runs(self) -> str:
        """`container` or `host`."""
        return self.stacks[0].runs

    @property
    def stack(self) -> Mapping[str, str]:
        """Component names and what was chosen for them, such as `pytorch`, `pytorch_build`, `cuda`, `python`."""
        return self.stacks[0].components

    @property
    def basis(self) -> str:
        """How the driver requirement is met: `native`, `minor-version`, `forward-compat`, or "" without CUDA."""
        return self.stacks[0].basis

    @property
    def host_requirements(self) -> Mapping[str, str]:
        """The range each host fact must meet."""
        return self.stacks[0].host_requirements

    @property
    def require_cuda(self) -> str:
        """The NVIDIA_REQUIRE_CUDA that says the same to a container runtime."""
        return self.stacks[0].require_cuda

    @property
    def arch_list(self) -> tuple[str, ...]:
        """The compiled targets of the framework build."""
        return self.stacks[0].arch_list

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables the stack needs at run time."""
        return self.stacks[0].environment

    @property
    def unverified(self) -> tuple[str, ...]:
        """What could not be verified, in words."""
        return self.stacks[0].unverified

    @property
    def image(self) -> BaseImage | None:
        """The base image; None when nothing runs in a container."""
        return self.stacks[0].image

    @property
    def installer(self) -> Installer | None:
        """The program that installs the packages inside the image."""
        return self.stacks[0].installer

    @property
    def indexes(self) -> Mapping[str, str]:
        """The name of the index each package comes from."""
        return {package.name: package.index for package in self.packages}
