"""The answer of the resolver: a release and build of each component, the packages, and what in it is unverified."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote, urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from provisioner.spellings import ImageName, KnownDigest, Sha256
from provisioner.strict_model import StrictModel, spelled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.grounds.choice import Caution, HeldBack, InstalledForGpu, Move, ShownByDriver, Unread
    from provisioner.grounds.doubt import Doubt
    from provisioner.grounds.relaxation import Relaxation
    from provisioner.grounds.requirement import Ground
    from provisioner.index.model import IndexFile
    from provisioner.setups import HostSetup
    from provisioner.versions import Version


class Pin(Struct, frozen=True, kw_only=True):
    """The release and build chosen for one component.

    `build` is "" if the release has no builds; `host` is the label of the component's host, "" if all hosts share the
    component. `reasons` are the grounds of the requirements that led to the choice.
    """

    component: str
    version: Version
    build: str = ""
    host: str = ""
    reasons: tuple[Ground, ...] = ()


class PackagePin(Struct, frozen=True, kw_only=True):
    """The version and file chosen for one Python package.

    `requires` are the requirements in its metadata that apply in this environment, as PEP 508 text; `dependencies` are the
    names of the chosen packages that meet them.
    """

    name: str
    version: str
    file: IndexFile
    requires: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()


class ManagedPython(StrictModel, frozen=True, kw_only=True):
    """An archive of CPython, of release `version`, to be installed in a base image."""

    version: Annotated[str, spelled(r"^\d+\.\d+\.\d+$")]
    url: Annotated[str, spelled(r"^https?://[^\x00-\x20\x7f]+$")]
    sha256: Sha256

    @property
    def filename(self) -> str:
        """The name of the archive: the last part of its address, decoded."""
        return unquote(urlsplit(self.url).path.rpartition("/")[2])


class RuntimeImage(StrictModel, frozen=True, kw_only=True):
    """The image without compilers that has the same distribution and the same libraries as a base image with them.

    `digest` is "" when unknown.
    """

    reference: ImageName
    digest: KnownDigest = ""


class SystemPackage(Struct, frozen=True, kw_only=True):
    """A package of the base image's Linux distribution that is installed in the image; `name` may end in `=VERSION`."""

    name: str
    reasons: tuple[Ground, ...] = ()


class BaseImage(Struct, frozen=True, kw_only=True):
    """The base image of a container.

    `reference` is the image with its tag, as given; `digest` is the digest in the reference or from a registry, "" when
    unknown. The other fields describe the image's contents: `glibc`, its own `python`, the Python that its Linux distribution
    offers (`apt_python`) and NVIDIA_REQUIRE_CUDA (`require_cuda`); "" means none or unknown. `managed_python` is the Python to
    install in the image if neither the image nor its Linux distribution has the Python of the stack, otherwise None.
    `runtime` is the image to ship in place of this one once everything is built; None when this one is shipped. `snapshot` is
    the time whose packages of the distribution are installed, `20260901T000000Z`; "" for those of the day of the build.
    """

    reference: str
    digest: str = ""
    glibc: str = ""
    python: str = ""
    apt_python: str = ""
    require_cuda: str = ""
    managed_python: ManagedPython | None = None
    runtime: RuntimeImage | None = None
    snapshot: str = ""

    @property
    def images(self) -> tuple[BaseImage | RuntimeImage, ...]:
        """The base image and, where another one is shipped, that one."""
        return (self, self.runtime) if self.runtime is not None else (self,)

    def with_digests(self, digests: Mapping[str, str]) -> BaseImage:
        """Return the image with those digests, by reference, that are not known yet."""
        runtime = self.runtime
        if runtime is not None:
            runtime = replace(runtime, digest=runtime.digest or digests.get(runtime.reference, ""))
        return replace(self, digest=self.digest or digests.get(self.reference, ""), runtime=runtime)


class Stack(Struct, frozen=True, kw_only=True):
    """The complete answer for one platform.

    `components` maps each component's name to its version as shown in reports (host facts and `pytorch_build` included).
    `basis` is the way in which the driver supports CUDA, such as `native`, "" without CUDA. `host_requirements` are the ranges
    that a host must meet (`driver`: `>=525.60.13`, `gpu`: `7.5, 8.0, 9.0`, `kernel`, `glibc`), `gpus` the GPUs that each reason
    for `gpu` allows, and `require_cuda` is the value of NVIDIA_REQUIRE_CUDA that demands the same. `arch_list` has the GPU
    targets that the framework's build is compiled for; `environment` the variables that the stack needs at run time. `doubts`
    are the unverified facts, which decide the verdict; `assumes` those that the request assumes; `accepts` those that the
    spec's `policy.accept` names. `system_packages` are installed in the image beside the `packages`. `relaxations` are the
    features in use that the policy allows and could forbid. `host_setups` are the ways to bring the hosts to the stack, if an
    output of the spec sets up hosts.

    Not written to a lock: `warnings`, requests without effect and indexes out of reach; `moves`, the version changes of an
    upgrade by name; `held_back`, frameworks and packages whose newest release is excluded; `shown`, the facts that running
    drivers prove; `unread`, the stated facts of hosts on which nothing in the stack depends; `installed_for_gpu`, the
    frameworks that are installed as more than the spec names.
    """

    platform: str
    accelerator: str
    components: Mapping[str, str]
    pins: tuple[Pin, ...]
    basis: str = ""
    host_requirements: Mapping[str, str] = field(default_factory=dict)
    gpus: Mapping[Ground, tuple[str, ...]] = field(default_factory=dict)
    require_cuda: str = ""
    arch_list: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    doubts: tuple[Doubt, ...] = ()
    assumes: tuple[Doubt, ...] = ()
    accepts: tuple[Doubt, ...] = ()
    image: BaseImage | None = None
    system_packages: tuple[SystemPackage, ...] = ()
    packages: tuple[PackagePin, ...] = ()
    host_setups: tuple[HostSetup, ...] = ()
    runs: str = "container"
    relaxations: tuple[Relaxation, ...] = ()
    warnings: tuple[Caution, ...] = ()
    moves: tuple[Move, ...] = ()
    held_back: tuple[HeldBack, ...] = ()
    shown: tuple[ShownByDriver, ...] = ()
    unread: tuple[Unread, ...] = ()
    installed_for_gpu: tuple[InstalledForGpu, ...] = ()

    @property
    def verdict(self) -> str:
        """The verdict on the request: `unverified` if there are `doubts`, otherwise `yes`."""
        return "unverified" if self.doubts else "yes"
