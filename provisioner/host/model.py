"""A host profile: facts of one machine, as DESIGN section 3.3 lists them. A fact left out is unknown, never assumed."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from provisioner.strict_model import StrictModel, spelled


class OperatingSystem(StrictModel, frozen=True, kw_only=True):
    """As /etc/os-release (`id`, `version`) or macOS (`version`, `build`) states it."""

    id: str
    version: str | None = None
    build: str | None = None


class Driver(StrictModel, frozen=True, kw_only=True):
    """The loaded GPU driver. `module` is the flavour of NVIDIA's kernel module."""

    version: str | None = None
    module: Literal["open", "proprietary"] | None = None
    kind: Literal["nvidia", "amdgpu", "webdriver"] = "nvidia"


class HostGpu(StrictModel, frozen=True, kw_only=True):
    """One kind of GPU in the machine, `count` of them."""

    name: str | None = None
    compute_capability: Annotated[str, spelled(r"^\d+\.\d+$")] | None = None
    gfx: Annotated[str, spelled(r"^gfx[0-9a-f]+$")] | None = None
    pci_device_id: str | None = None
    count: Annotated[int, Meta(ge=1)] = 1


class SecureBoot(StrictModel, frozen=True, kw_only=True):
    """Whether firmware verifies what it loads, and whether a machine-owner key is enrolled for self-built modules."""

    enabled: bool
    mok_enrolled: bool | None = None


class Libraries(StrictModel, frozen=True, kw_only=True):
    """System copies of libraries that would shadow a wheel's own."""

    cudnn: str | None = None
    nccl: str | None = None
    cublas: str | None = None
    on_path: tuple[str, ...] = ()


class Jetson(StrictModel, frozen=True, kw_only=True):
    """A Jetson's Linux-for-Tegra and JetPack releases."""

    l4t: str | None = None
    jetpack: str | None = None


class Host(StrictModel, frozen=True, kw_only=True):
    """Everything `inspect` can see and a rule can use."""

    platform: Literal["linux/amd64", "linux/arm64", "macos/x86_64", "macos/arm64"] | None = None
    os: OperatingSystem | None = None
    kernel: str | None = None
    glibc: str | None = None
    driver: Driver | None = None
    gpus: tuple[HostGpu, ...] | None = None
    container_toolkit: str | None = None
    secure_boot: SecureBoot | None = None
    kernel_headers: str | None = None
    kernel_gcc: str | None = None
    gcc: str | None = None
    nvcc: str | None = None
    loaded_modules: tuple[str, ...] | None = None
    python_arch: str | None = None
    libraries: Libraries | None = None
    userspace_driver: str | None = None
    fabric_manager: str | None = None
    virtualization: Literal["none", "wsl1", "wsl2", "vm", "container"] | None = None
    jetson: Jetson | None = None
    cuda_driver: str | None = None
    sip: str | None = None
    xcode: str | None = None
