"""A host profile: facts of one machine, as DESIGN section 3.3 lists them. A fact left out is unknown, never assumed.

The types of the fields say what a profile may hold; `profile_keys` are the same as plain rows, for the columns of a CSV file
and for checks that msgspec has no words for. A fact that rules, plans or people speak of by name has a row in
`provisioner.components` too.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Literal, Union, get_args, get_origin

from msgspec import Meta, Struct, convert
from msgspec.structs import fields

from provisioner.accelerators import ACCELERATORS, GPU_ACCELERATORS, AcceleratorName, accelerator_of_target
from provisioner.platforms import PlatformName
from provisioner.strict_model import StrictModel, spelled

if TYPE_CHECKING:
    from collections.abc import Iterator


class Holds(Enum):
    """What stands under one key of a profile."""

    TEXT = "text"
    VERSION = "a version"
    VERSION_OR_ABSENT = "a version, or `none`"
    TEXTS = "a list of texts"
    FLAG = "true or false"


VersionText = Annotated[str, Meta(extra={"holds": Holds.VERSION})]
"""A version as its vendor spells it."""

VersionOrAbsent = Annotated[str, Meta(extra={"holds": Holds.VERSION_OR_ABSENT})]
"""A version, or `none` for a part that is known to be missing."""


class OperatingSystem(StrictModel, frozen=True, kw_only=True):
    """As /etc/os-release (`id`, `version`) or macOS (`version`, `build`) states it."""

    id: str
    version: str | None = None
    build: str | None = None


class Driver(StrictModel, frozen=True, kw_only=True):
    """The loaded GPU driver. `module` is the flavour of NVIDIA's kernel module."""

    version: VersionText | None = None
    module: Literal["open", "proprietary"] | None = None
    kind: Literal["nvidia", "amdgpu", "webdriver"] = "nvidia"


class HostGpu(StrictModel, frozen=True, kw_only=True):
    """One kind of GPU in the machine, `count` of them."""

    name: str | None = None
    compute_capability: Annotated[str, spelled(f"^{ACCELERATORS['cuda'].target}$")] | None = None
    gfx: Annotated[str, spelled(f"^{ACCELERATORS['rocm'].target}$")] | None = None
    pci_device_id: str | None = None
    count: Annotated[int, Meta(ge=1)] = 1

    @classmethod
    def of_target(cls, target: str, *, name: str | None = None, count: int = 1) -> HostGpu:
        """Return the GPUs that run such code (`9.0`, `gfx942`); raises `ValueError` for what is no target of a GPU."""
        row = accelerator_of_target(target)
        if row is None:
            raise ValueError(f"`{target}` is not a target of a GPU, such as 9.0 or gfx942")
        return convert({"name": name, row.target_key: target, "count": count}, cls)

    @property
    def accelerator(self) -> AcceleratorName | None:
        """The accelerator whose code it runs, going by the key that says which; None where the profile has no such key."""
        return next((row.name for row in GPU_ACCELERATORS if getattr(self, row.target_key)), None)

    @property
    def target(self) -> str | None:
        """Which code it runs: its compute capability or gfx target; None where the profile does not say."""
        return next((target for row in GPU_ACCELERATORS if (target := getattr(self, row.target_key))), None)


class SecureBoot(StrictModel, frozen=True, kw_only=True):
    """Whether firmware verifies what it loads, and whether a machine-owner key is enrolled for self-built modules."""

    enabled: bool
    mok_enrolled: bool | None = None


class Libraries(StrictModel, frozen=True, kw_only=True):
    """System copies of libraries that would shadow a wheel's own."""

    cudnn: VersionText | None = None
    nccl: VersionText | None = None
    cublas: VersionText | None = None
    on_path: tuple[str, ...] = ()


class Jetson(StrictModel, frozen=True, kw_only=True):
    """A Jetson's Linux-for-Tegra and JetPack releases."""

    l4t: VersionText | None = None
    jetpack: VersionText | None = None


class Host(StrictModel, frozen=True, kw_only=True):
    """Everything `inspect` can see and a rule can use."""

    platform: PlatformName | None = None
    os: OperatingSystem | None = None
    kernel: VersionText | None = None
    glibc: VersionText | None = None
    driver: Driver | None = None
    gpus: tuple[HostGpu, ...] | None = None
    container_toolkit: VersionOrAbsent | None = None
    secure_boot: SecureBoot | None = None
    kernel_headers: VersionOrAbsent | None = None
    kernel_gcc: VersionText | None = None
    gcc: VersionText | None = None
    nvcc: VersionText | None = None
    loaded_modules: tuple[str, ...] | None = None
    python_arch: str | None = None
    libraries: Libraries | None = None
    userspace_driver: VersionText | None = None
    fabric_manager: VersionText | None = None
    nvswitch: Literal["present", "none"] | None = None
    virtualization: Literal["none", "wsl1", "wsl2", "vm", "container"] | None = None
    jetson: Jetson | None = None
    cuda_driver: VersionText | None = None
    sip: str | None = None
    xcode: VersionText | None = None


class ProfileKey(Struct, frozen=True):
    """One key of a profile that holds a single thing, as a path (`("driver", "version")`), and what it holds."""

    path: tuple[str, ...]
    holds: Holds


@cache
def profile_keys() -> tuple[ProfileKey, ...]:
    """Return every key of a profile, in its order; the GPUs, of which a machine has a list, are not among them."""
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
