"""The answer: one release and build per component, the packages beside them, and what is still unverified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.index.model import IndexFile
    from provisioner.versions import Version


class Reason(Struct, frozen=True, kw_only=True):
    """Why a pin is what it is: a request, a rule or a host fact, in words, with `file:line` or a citation."""

    component: str
    kind: str
    text: str
    where: str


class Pin(Struct, frozen=True, kw_only=True):
    """The choice for one component. `build` is "" where the release has no builds; `host` names the host it belongs to."""

    component: str
    version: Version
    build: str = ""
    host: str = ""
    reasons: tuple[Reason, ...] = ()


class PackagePin(Struct, frozen=True, kw_only=True):
    """One Python package of the answer. `requires` are the requirements that apply in this environment (PEP 508 text)."""

    name: str
    version: str
    file: IndexFile
    requires: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()


class BaseImage(Struct, frozen=True, kw_only=True):
    """The base image of a container: reference (tag as given), digest when a registry was asked, and what it holds."""

    reference: str
    digest: str = ""
    glibc: str = ""
    python: str = ""
    apt_python: str = ""
    require_cuda: str = ""


class Relaxation(Struct, frozen=True, kw_only=True):
    """What a policy allowed and the answer used: its name (`minor-version`), for what, in words, and where that is written."""

    name: str
    component: str
    text: str
    where: str


class HeldBack(Struct, frozen=True, kw_only=True):
    """A component that is older than the spec, the host and the matrix would have it, and the package that keeps it back."""

    component: str
    chosen: str
    newest: str
    text: str
    where: str


class Move(Struct, frozen=True, kw_only=True):
    """What became of one version of an earlier lock where some of it was to be upgraded, and why; `before` may be `after`."""

    name: str
    before: str
    after: str
    because: str
    where: str = ""


class Stack(Struct, frozen=True, kw_only=True):
    """Everything decided for one platform.

    `components` maps component names to what is printed for them (host facts included, `pytorch_build` too); `basis` is how
    the driver requirement is met ("" when no CUDA); `host_requirements` are the ranges a host must meet (`driver`:
    `>=525.60.13`, `gpu`: `7.5, 8.0, 9.0`, `kernel`, `glibc`); `require_cuda` is the NVIDIA_REQUIRE_CUDA equal to them;
    `arch_list` the compiled targets of the framework build; `environment` the variables the stack needs at run time;
    `warnings` say what of the request had no effect and what was not looked at, `moves` what an upgrade by name did,
    `held_back` which component a package keeps from a newer release; none of them is locked.
    """

    platform: str
    accelerator: str
    components: Mapping[str, str]
    pins: tuple[Pin, ...]
    basis: str = ""
    host_requirements: Mapping[str, str] = field(default_factory=dict)
    require_cuda: str = ""
    arch_list: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    unverified: tuple[str, ...] = ()
    image: BaseImage | None = None
    packages: tuple[PackagePin, ...] = ()
    runs: str = "container"
    relaxations: tuple[Relaxation, ...] = ()
    warnings: tuple[str, ...] = ()
    moves: tuple[Move, ...] = ()
    held_back: tuple[HeldBack, ...] = ()

    @property
    def verdict(self) -> str:
        """`yes`, or `unverified` when a fact was missing."""
        return "unverified" if self.unverified else "yes"


AT_ONCE = 3
"""How many different things one hint may change; the same thing on several hosts is one."""


class Hint(Struct, frozen=True, kw_only=True):
    """One complete change that was re-solved and works, and what it would give.

    `hosts` names, for each of `changes`, the host to change, "" for the spec and where there is only one host.
    """

    changes: tuple[tuple[str, str], ...]
    text: str
    gives: Mapping[str, str] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()


class Conflict(Struct, frozen=True, kw_only=True):
    """A minimal set of requests, rules and facts that cannot hold together, in order, what follows, and the ways out."""

    members: tuple[Reason, ...]
    hints: tuple[Hint, ...] = ()
    conclusion: str = ""
