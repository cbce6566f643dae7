"""The answer: one release and build for each component, the packages, and the doubts that remain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.grounds.choice import Caution, HeldBack, Move
    from provisioner.grounds.doubt import Doubt
    from provisioner.grounds.relaxation import Relaxation
    from provisioner.grounds.requirement import Ground
    from provisioner.index.model import IndexFile
    from provisioner.versions import Version


class Pin(Struct, frozen=True, kw_only=True):
    """The choice for one component and its reasons.

    `build` is "" where the release has no builds; `host` is the label of the host it belongs to, "" where all share it.
    """

    component: str
    version: Version
    build: str = ""
    host: str = ""
    reasons: tuple[Ground, ...] = ()


class PackagePin(Struct, frozen=True, kw_only=True):
    """One Python package of the answer. `requires` are the requirements that apply in this environment (PEP 508 text)."""

    name: str
    version: str
    file: IndexFile
    requires: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()


class BaseImage(Struct, frozen=True, kw_only=True):
    """The base image of a container: reference (tag as given), digest (of the reference or a registry), and its contents."""

    reference: str
    digest: str = ""
    glibc: str = ""
    python: str = ""
    apt_python: str = ""
    require_cuda: str = ""


class Stack(Struct, frozen=True, kw_only=True):
    """Everything decided for one platform.

    `components` maps component names to their text in reports (host facts and `pytorch_build` included); `basis` is how
    the driver requirement is met ("" when no CUDA); `host_requirements` are the ranges a host must meet (`driver`:
    `>=525.60.13`, `gpu`: `7.5, 8.0, 9.0`, `kernel`, `glibc`); `require_cuda` is the NVIDIA_REQUIRE_CUDA equal to them;
    `arch_list` the compiled targets of the framework build; `environment` the variables the stack needs at run time;
    `doubts` are the unverified facts. `warnings` are requests without effect and indexes out of reach, `moves` the version
    changes of an upgrade by name, `held_back` the frameworks that a package keeps from a newer release; none of them is
    locked.
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
    doubts: tuple[Doubt, ...] = ()
    image: BaseImage | None = None
    packages: tuple[PackagePin, ...] = ()
    runs: str = "container"
    relaxations: tuple[Relaxation, ...] = ()
    warnings: tuple[Caution, ...] = ()
    moves: tuple[Move, ...] = ()
    held_back: tuple[HeldBack, ...] = ()

    @property
    def verdict(self) -> str:
        """`yes`, or `unverified` when a fact was missing."""
        return "unverified" if self.doubts else "yes"
