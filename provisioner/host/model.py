"""A host profile: facts of one machine, as DESIGN section 3.3 lists them. A fact that is not stated is unknown, never assumed.

The types of the fields define the valid values; `profile_keys` lists the keys as plain rows, for the columns of a CSV file and
for checks that msgspec does not offer. A fact that rules, plans or messages name has a row in `provisioner.components` too.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Union, get_args, get_origin

from msgspec import Meta, Struct, convert
from msgspec.structs import fields

from provisioner.accelerators import ACCELERATORS, GPU_ACCELERATORS, AcceleratorName, accelerator_of_target
from provisioner.platforms import PLATFORMS, HostPlatform
from provisioner.strict_model import StrictModel, spelled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Holds(Enum):
    """The kind of value that a profile key holds; each value of the enumeration is a phrase for messages."""

    TEXT = "text"
    VERSION = "a version"
    VERSION_OR_ABSENT = "a version, or `none`"
    VERSION_OR_PRESENCE = "a version, `present` or `none`"
    TEXTS = "a list of texts"
    FLAG = "true or false"


VersionText = Annotated[str, Meta(extra={"holds": Holds.VERSION})]
"""A version as its vendor spells it."""

VersionOrAbsent = Annotated[str, Meta(extra={"holds": Holds.VERSION_OR_ABSENT})]
"""A version, or `none` for a part that is known to be missing."""

VersionOrPresence = Annotated[str, Meta(extra={"holds": Holds.VERSION_OR_PRESENCE})]
"""A version, `present` for a part that is installed in an unknown version, or `none`."""


NOT_LINUX = frozenset({"dragonfly", "freebsd", "macos", "netbsd", "openbsd", "windows"})
"""Systems that are no distribution of Linux, as `os.id` names them; the BSDs as their own /etc/os-release does."""


class OperatingSystem(StrictModel, frozen=True, kw_only=True):
    """An operating system as named by /etc/os-release (`id`, `version`) or macOS (`version`, `build`).

    `like` is the distribution and release that the system is derived from (`ubuntu 22.04`), which is used if the matrix has no
    row of the system's own release.
    """

    example: ClassVar[str] = '{id: ubuntu, version: "24.04"}'

    id: str
    version: str | None = None
    build: str | None = None
    like: str | None = None

    @property
    def system(self) -> str:
        """The system of the platforms that it can have: its own name if it is not a distribution of Linux, else `linux`."""
        return self.id if self.id in NOT_LINUX else "linux"

    @property
    def has_musl(self) -> bool:
        """Whether its C library is musl, for which wheels of the platforms `manylinux` are not (PEP 656)."""
        return "alpine" in {self.id, (self.like or "").partition(" ")[0]}


class Driver(StrictModel, frozen=True, kw_only=True):
    """The loaded GPU driver; `module` is the flavour of NVIDIA's kernel module."""

    example: ClassVar[str] = "{version: 535.104.05}"

    version: VersionText | None = None
    module: Literal["open", "proprietary"] | None = None
    kind: Literal["nvidia", "amdgpu", "webdriver"] = "nvidia"

    @property
    def may_be_of_amd(self) -> bool:
        """Whether a driver may be AMD's by what is told of it: AMD's have numbers up to 31, NVIDIA's in use three digits."""
        major = (self.version or "").partition(".")[0]
        return self.kind == "amdgpu" or (self.module is None and self.kind == "nvidia" and len(major) <= 2)


class HostGpu(StrictModel, frozen=True, kw_only=True):
    """The `count` GPUs of one kind in a machine; `compute_capability` (NVIDIA) or `gfx` (AMD) is the target of their code."""

    example: ClassVar[str] = "{name: NVIDIA A100-SXM4-80GB}"

    name: str | None = None
    compute_capability: Annotated[str, spelled(f"^{ACCELERATORS['cuda'].target}$", "9.0")] | None = None
    gfx: Annotated[str, spelled(f"^{ACCELERATORS['rocm'].target}$", "gfx942")] | None = None
    pci_device_id: str | None = None
    count: Annotated[int, Meta(ge=1)] = 1

    @classmethod
    def of_target(cls, target: str, *, name: str | None = None, count: int = 1) -> HostGpu:
        """Return GPUs with a target (`9.0`, `gfx942`); raises `ValueError` for text that is not the target of a GPU."""
        row = accelerator_of_target(target)
        if row is None:
            raise ValueError(f"`{target}` is not a target of a GPU, such as 9.0 or gfx942")
        return convert({"name": name, row.target_key: target, "count": count}, cls)

    @property
    def accelerator(self) -> AcceleratorName | None:
        """The accelerator of the GPU: `cuda` if `compute_capability` is stated, `rocm` if `gfx` is, None if neither is."""
        return next((row.name for row in GPU_ACCELERATORS if getattr(self, row.target_key)), None)

    @property
    def target(self) -> str | None:
        """The target of the GPU's code, a compute capability or gfx target; None if the profile states none."""
        return next((target for row in GPU_ACCELERATORS if (target := getattr(self, row.target_key))), None)


class SecureBoot(StrictModel, frozen=True, kw_only=True):
    """Whether Secure Boot is enabled, and whether a machine-owner key is enrolled that can sign self-built modules."""

    example: ClassVar[str] = "{enabled: false}"

    enabled: bool
    mok_enrolled: bool | None = None


class Libraries(StrictModel, frozen=True, kw_only=True):
    """The versions of system libraries that would be loaded in place of the copies in wheels.

    `on_path` are the environment variables through which the loader finds these libraries. `rocm` is the release of ROCm that
    is installed, for wheels that do not contain it.
    """

    example: ClassVar[str] = "{cudnn: 9.1.0}"

    cudnn: VersionText | None = None
    nccl: VersionText | None = None
    cublas: VersionText | None = None
    rocm: VersionText | None = None
    on_path: tuple[str, ...] = ()

    @property
    def versions(self) -> dict[str, str]:
        """The versions that the profile states, by component (`cudnn`)."""
        stated = {"cudnn": self.cudnn, "nccl": self.nccl, "cublas": self.cublas}
        return {name: version for name, version in stated.items() if version is not None}


class Jetson(StrictModel, frozen=True, kw_only=True):
    """A Jetson's Linux-for-Tegra and JetPack releases."""

    example: ClassVar[str] = "{l4t: '36.4'}"

    l4t: VersionText | None = None
    jetpack: VersionText | None = None


class Host(StrictModel, frozen=True, kw_only=True):
    """All facts of a machine that `inspect` can read and rules can use; None is an unknown fact."""

    platform: HostPlatform | None = None
    os: OperatingSystem | None = None
    kernel: VersionText | None = None
    glibc: VersionText | None = None
    driver: Driver | None = None
    gpus: tuple[HostGpu, ...] | None = None
    container_toolkit: VersionOrPresence | None = None
    secure_boot: SecureBoot | None = None
    kernel_headers: VersionOrAbsent | None = None
    kernel_gcc: VersionText | None = None
    gcc: VersionText | None = None
    nvcc: VersionText | None = None
    loaded_modules: tuple[str, ...] | None = None
    python_arch: str | None = None
    libraries: Libraries | None = None
    userspace_driver: VersionText | None = None
    fabric_manager: VersionOrAbsent | None = None
    nvswitch: Literal["present", "none"] | None = None
    mig: Literal["disabled", "divided", "undivided"] | None = None
    virtualization: Literal["none", "wsl1", "wsl2", "vm", "container"] | None = None
    jetson: Jetson | None = None
    cuda_driver: VersionText | None = None
    sip: str | None = None
    xcode: VersionText | None = None

    def platform_among(self, platforms: Sequence[str]) -> str:
        """Return the platform of the host, else the first of `platforms` that its system can have; "" if that is none."""
        found = (one for one in platforms if self.os is None or PLATFORMS[one].system == self.os.system)
        return self.platform or next(found, "")


class ProfileKey(Struct, frozen=True):
    """A key of a profile that has a single value: its path (`("driver", "version")`), and the kind of its value."""

    path: tuple[str, ...]
    holds: Holds


@cache
def profile_keys() -> tuple[ProfileKey, ...]:
    """Return every key of a profile, in the order of `Host`, except those of the GPUs, which are a list."""
    return tuple(_keys(Host, ()))


def _keys(kind: object, path: tuple[str, ...]) -> Iterator[ProfileKey]:
    if isinstance(kind, type) and issubclass(kind, Struct):
        for field in fields(kind):
            yield from _keys(field.type, (*path, field.encode_name))
    elif get_origin(kind) in {Union, UnionType}:
        for part in get_args(kind):
            yield from _keys(part, path)
    elif kind == tuple[str, ...]:
        yield ProfileKey(path, Holds.TEXTS)
    elif kind is bool:
        yield ProfileKey(path, Holds.FLAG)
    elif get_origin(kind) is Annotated:
        extras = (meta.extra or {} for meta in get_args(kind)[1:])
        yield ProfileKey(path, next((extra["holds"] for extra in extras if "holds" in extra), Holds.TEXT))
    elif kind is str or get_origin(kind) is Literal:
        yield ProfileKey(path, Holds.TEXT)
