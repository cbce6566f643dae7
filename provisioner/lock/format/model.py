"""The model of a lock: packages and files as in PEP 751, and the stacks, for which PEP 751 has no fields.

A `LockedStack` has everything about one platform except packages. Platforms share packages; each package lists its platforms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from provisioner.errors import UsageError
from provisioner.grounds.requirement import Subject
from provisioner.spellings import SystemPackageName
from provisioner.strict_model import StrictModel

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from provisioner.resolver.stack import BaseImage
    from provisioner.setups import HostSetup


class Reason(StrictModel, frozen=True, kw_only=True, omit_defaults=True):
    """A recorded reason for the version of a component, or for a host requirement.

    `text`, a sentence, and `where`, its source, are for people. `component` and `kind` are those of the ground. The other
    fields are those of `provisioner.grounds.fields.GroundFields`, "" in locks of earlier versions of this program. `gpus` are
    the GPUs that a reason for the host requirement `gpu` allows, if it lists them; () in locks of earlier versions, too.
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
    gpus: tuple[str, ...] = ()


INSTALLER = "uv"
"""The distribution of the program that installs a lock inside an image, which rendered files call."""


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
    """One Python package of the lock on `platforms`; `marker` (PEP 508) selects the same platforms for installers.

    `index` is the name of the package's index and `index_url` that index's base URL, without credentials ("" for one on this
    machine); `requires` are the package's requirements that hold on these platforms and `dependencies` the names of the
    packages that meet them. `archive` is the file of a package that was requested by URL or path, which has no wheels and no
    source distribution then. `attestations` are the identities that attest the files (PEP 740), as their index states them:
    recorded, not verified. `licenses` are what the metadata declares: one SPDX expression, or names. `variants` is the
    index's list of wheel variants (draft PEP 825), None when the lock has none.
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
    licenses: tuple[str, ...] = ()

    def __hash__(self) -> int:
        # `attestations` are mappings, which cannot be hashed
        return hash((self.name, self.version, self.platforms, self.marker))

    @property
    def subject(self) -> Subject:
        """The name and version of the package, as reasons and the findings of `check` cite them."""
        return Subject(self.name, self.version)

    @property
    def files(self) -> tuple[LockedFile, ...]:
        """Every file that an installer may choose from."""
        return (*self.wheels, *(file for file in (self.sdist, self.archive) if file is not None))


class Installer(Struct, frozen=True, kw_only=True):
    """The program that installs this lock inside an image: its version and the one file it comes from."""

    name: str
    version: str
    file: LockedFile


class LockedPin(StrictModel, frozen=True, kw_only=True, omit_defaults=True):
    """The chosen version of one component, and the requests and rules that led to it; host facts are not recorded in a lock."""

    component: str
    version: str
    build: str = ""
    reasons: tuple[Reason, ...] = ()


class LockedSystemPackage(StrictModel, frozen=True, kw_only=True, omit_defaults=True):
    """A package of the base image's distribution to install, as apt-get names it, with the reasons for it."""

    name: SystemPackageName
    reasons: tuple[Reason, ...] = ()


class LockedStack(Struct, frozen=True, kw_only=True):
    """The part of a lock about one platform except its packages, without facts of the machine that it was solved for.

    `components` are the versions that an image or an installer provides; `host_requirements` are the ranges that a host must
    meet, and `host_reasons` the rules behind each, empty in locks of earlier versions of this program. `installer` is None
    when no image is built. `apt` are the packages of its distribution to install in the image.
    `host_setups` are the ways to bring hosts to the stack, empty unless an output of the spec sets up hosts.
    `relaxations` name what the stack uses and a stricter policy would refuse, with the component:
    `minor-version (cuda)`. The other fields are those of `provisioner.resolver.stack.Stack`.
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
    assumes: tuple[str, ...] = ()
    accepts: tuple[str, ...] = ()
    relaxations: tuple[str, ...] = ()
    image: BaseImage | None = None
    installer: Installer | None = None
    apt: tuple[LockedSystemPackage, ...] = ()
    host_setups: tuple[HostSetup, ...] = ()
    pins: tuple[LockedPin, ...] = ()


class Lock(Struct, frozen=True, kw_only=True):
    """The content of a lock file; `stacks` has one entry for each platform, sorted by platform, and is never empty.

    `requires_python` is a PEP 440 specifier and `environments` are PEP 508 markers, one for each platform, as in PEP 751.
    `spec_file` is the name of the specification, relative to the lock, and `target` the target of the specification that the
    lock is for ("" when it has only one). `asked` are the keys of the specification that influenced the answer
    (`provisioner.lock.requested`; empty in locks of earlier versions of this program). `on` narrows a lock to one platform.
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
        """Return the lock narrowed to one platform; raises `UsageError`, which lists the lock's platforms, for any other."""
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
    def files(self) -> tuple[LockedFile, ...]:
        """Every file that the lock names: those of the packages, then the installers of images."""
        installers = tuple(stack.installer.file for stack in self.stacks if stack.installer is not None)
        return (*(file for package in self.packages for file in package.files), *installers)

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms that this lock is for, sorted."""
        return tuple(stack.platform for stack in self.stacks)

    @property
    def stack(self) -> LockedStack:
        """The stack of a lock for one platform, such as `on` returns; raises `ValueError` when there are several platforms."""
        (stack,) = self.stacks
        return stack


def relaxation(name: str, component: str) -> str:
    """Return a relaxation as a lock records it: `minor-version (cuda)`."""
    return f"{name} ({component})"


def relaxed_by(recorded: str) -> str:
    """Return the component of a recorded relaxation: `cuda` for `minor-version (cuda)`."""
    return recorded.partition(" (")[2].removesuffix(")")
