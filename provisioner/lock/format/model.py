"""The nouns of a lock: artefacts with their hashes as PEP 751 has them, and what PEP 751 has no place for.

Everything a lock says about one platform stands in a `LockedStack`; packages are shared and name the platforms they are for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from provisioner.errors import UsageError
from provisioner.strict_model import StrictModel

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from provisioner.resolver.stack import BaseImage


class Reason(StrictModel, frozen=True, kw_only=True, omit_defaults=True):
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


class LockedPin(StrictModel, frozen=True, kw_only=True, omit_defaults=True):
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
    has one alone), and `asked` are its keys that decided the answer (`provisioner.lock.requested`; empty in earlier locks).
    `on` narrows a lock to one platform.
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
        """Return the lock of one platform alone; raises `UsageError` naming the platforms it has."""
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
    def stack(self) -> LockedStack:
        """The stack of a lock of one platform, as `on` returns it; raises `ValueError` where there are several."""
        (stack,) = self.stacks
        return stack


def relaxation(name: str, component: str) -> str:
    """Return a relaxation as a lock records it: `minor-version (cuda)`."""
    return f"{name} ({component})"


def relaxed_by(recorded: str) -> str:
    """Return the component of a recorded relaxation."""
    return recorded.partition(" (")[2].removesuffix(")")
