"""The answer of the resolver: one release and build for each component, the packages, and the facts that were missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Struct, field

from provisioner.strict_model import StrictModel, spelled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.grounds.choice import Caution, HeldBack, Move, ShownByDriver, Unread
    from provisioner.grounds.doubt import Doubt
    from provisioner.grounds.relaxation import Relaxation
    from provisioner.grounds.requirement import Ground
    from provisioner.index.model import IndexFile
    from provisioner.versions import Version


class Pin(Struct, frozen=True, kw_only=True):
    """The release and build chosen for one component, with the requirements that led to it as `reasons`.

    `build` is "" if the release has no builds; `host` is the label of the component's host, "" if all hosts share the
    component.
    """

    component: str
    version: Version
    build: str = ""
    host: str = ""
    reasons: tuple[Ground, ...] = ()


class PackagePin(Struct, frozen=True, kw_only=True):
    """The version and file chosen for one Python package.

    `requires` are the requirements of its metadata that apply in this environment, as PEP 508 text; `dependencies` are the
    names of the chosen packages that these requirements are on.
    """

    name: str
    version: str
    file: IndexFile
    requires: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()


class ManagedPython(StrictModel, frozen=True, kw_only=True):
    """An archive of CPython that is installed in a base image: its version, address and hash."""

    version: Annotated[str, spelled(r"^\d+\.\d+\.\d+$")]
    url: Annotated[str, spelled(r"^https?://[^\x00-\x20\x7f]+$")]
    sha256: Annotated[str, spelled(r"^[0-9a-f]{64}$")]


class BaseImage(Struct, frozen=True, kw_only=True):
    """The base image of a container.

    `reference` is the image with its tag, as given; `digest` is that of the reference or of a registry, "" when unknown; the
    other fields describe its contents, with its NVIDIA_REQUIRE_CUDA as `require_cuda`; "" means none or unknown.
    `managed_python` is the Python that is installed in it where neither the image nor its distribution has the stack's.
    """

    reference: str
    digest: str = ""
    glibc: str = ""
    python: str = ""
    apt_python: str = ""
    require_cuda: str = ""
    managed_python: ManagedPython | None = None


class Stack(Struct, frozen=True, kw_only=True):
    """The complete answer for one platform.

    `components` maps component names to their text in reports (host facts and `pytorch_build` included). `basis` is the way in
    which the driver supports CUDA, such as `native`, "" without CUDA. `host_requirements` are the ranges a host must meet
    (`driver`: `>=525.60.13`, `gpu`: `7.5, 8.0, 9.0`, `kernel`, `glibc`); `require_cuda` is the NVIDIA_REQUIRE_CUDA equal to
    them. `arch_list` has the GPU targets that the framework's build is compiled for; `environment` the variables the stack
    needs at run time; `doubts` the unverified facts, which decide the verdict; `assumes` the assumptions; `accepts` the unknown
    facts that the spec's `policy.accept` names.

    Not written to a lock: `warnings`, requests without effect and indexes out of reach; `moves`, the version changes of an
    upgrade by name; `held_back`, the frameworks of which a package excludes a newer release; `shown`, the facts that running
    drivers prove; `unread`, stated facts of hosts that made no difference.
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
    assumes: tuple[Doubt, ...] = ()
    accepts: tuple[Doubt, ...] = ()
    image: BaseImage | None = None
    packages: tuple[PackagePin, ...] = ()
    runs: str = "container"
    relaxations: tuple[Relaxation, ...] = ()
    warnings: tuple[Caution, ...] = ()
    moves: tuple[Move, ...] = ()
    held_back: tuple[HeldBack, ...] = ()
    shown: tuple[ShownByDriver, ...] = ()
    unread: tuple[Unread, ...] = ()

    @property
    def verdict(self) -> str:
        """The verdict on the request: `unverified` when a fact was missing, otherwise `yes`."""
        return "unverified" if self.doubts else "yes"
