"""The components of a stack, such as `driver` or `pytorch`: one row each with everything that is not data of the matrix.

A row says who provides a component and where a host profile states it, how much work a change is for a person, how a plan
changes it, and its name in messages. Which versions work together is data of the matrix, with sources. Every other table of
components is derived from this one.
"""

from __future__ import annotations

from enum import Enum, IntEnum, StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.accelerators import ACCELERATORS, ON_GPUS, RUNTIMES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.platforms import System

ABSENT = "none"
"""The value of a fact that is known to be missing, such as headers that are not installed; an omitted fact is unknown."""

PRESENT = "present"
"""The value of a fact whose component is known to be installed, in an unknown version."""


class Supplier(Enum):
    """Who provides a component, which decides whether a host's value of the component constrains a stack."""

    SPEC = "a line of the spec: the policy, the architectures to compile for"
    INSTALLER = "an installer or an image, never the host: frameworks, CUDA, Python"
    BASE_IMAGE = "the base image of a container, and the host for what runs on it directly: the C library, compilers"
    HOST = "the host, for containers too: the kernel, the driver"
    HOST_OF_CONTAINERS = "the host, for containers alone: the NVIDIA Container Toolkit"
    HOST_WITHOUT_CONTAINERS = "the host, for what runs on it directly alone: Xcode, the architecture of its Python"


class Effort(IntEnum):
    """How much work a change of a component is for a person, from the least to the most.

    The hints of a conflict are in this order: other versions in the spec (first packages, then Python, CUDA and frameworks),
    then changes of machines, then fewer hosts or requests in the spec, then other hardware.
    """

    BUILD = 0
    PACKAGE = 1
    PYTHON = 2
    TOOLKIT = 3
    FRAMEWORK = 4
    POLICY = 5
    CONTAINER = 6
    RELOAD = 7
    """To reload kernel modules, or to reboot, so that an installed version runs."""
    BESIDE_DRIVER = 8
    """To install or configure something beside a driver or kernel that does not change, such as its Fabric Manager."""
    DRIVER = 9
    KERNEL = 10
    SYSTEM = 11
    FEWER_HOSTS = 12
    NO_GPU = 13
    FEWER_REQUESTS = 14
    HARDWARE = 15


class Move(StrEnum):
    """A kind of change that a plan makes to a machine as one step, in the order in which people make them."""

    SECURE_BOOT = "secure_boot"
    LOADED_MODULES = "loaded_modules"
    MIG = "mig"
    SYSTEM = "os"
    KERNEL = "kernel"
    GCC = "gcc"
    DRIVER = "driver"
    CUDA_DRIVER = "cuda_driver"
    CONTAINER_TOOLKIT = "container_toolkit"


_OF_HOSTS = (Supplier.HOST, Supplier.HOST_OF_CONTAINERS, Supplier.HOST_WITHOUT_CONTAINERS)
_BINDING_CONTAINERS = (Supplier.HOST, Supplier.HOST_OF_CONTAINERS)
_BINDING_HOSTS = (Supplier.HOST, Supplier.HOST_WITHOUT_CONTAINERS, Supplier.BASE_IMAGE)

_ANYWHERE: frozenset[System] = frozenset({"linux", "macos"})
_LINUX: frozenset[System] = frozenset({"linux"})
_MACOS: frozenset[System] = frozenset({"macos"})
_ON_ANYTHING = frozenset(ACCELERATORS)
_ON_CUDA, _ON_ROCM = frozenset({"cuda"}), frozenset({"rocm"})


class Component(Struct, frozen=True, kw_only=True):
    """One component; a field that does not apply to the component has its default value."""

    name: str
    supplier: Supplier
    title: str = ""
    """The name of the component in messages; "" if that is `name`."""
    phrases: Mapping[str, str] = {}
    """How messages say that a host has a value, by value; "" is for the others, with the field `{value}`.

    Empty if that is the name of the component, or its title for a name of several words, with the value after it.
    """
    is_named: bool = False
    """Whether the values of the component are names (`open`, `ubuntu 24.04`) and not versions."""
    distribution: str = ""
    """The Python distribution that is the component, with the same versions (`torch` for `pytorch`); "" if none is."""

    key: str = ""
    """The key under which a host profile states the component; "" if host profiles do not state it."""
    is_fact: bool = True
    """Whether a host has exactly one value of the component, which the host states or the solver chooses.

    False for a component of which a host has several values (`gpu`), or which rules only depend on.
    """
    accelerators: frozenset[str] = _ON_ANYTHING
    """The accelerators whose stacks depend on a host's value of the component."""
    systems: frozenset[System] = _ANYWHERE
    """The operating systems on which the component exists."""
    driver_kind: str = ""
    """The `driver.kind` of the host profiles that state this driver; "" for a component that is not a driver."""
    is_chosen: bool = False
    """Whether the solver chooses a value for a host that states none, because the component can be installed."""
    is_build_tool: bool = False
    """Whether the component is needed only to compile something."""
    is_shown_by_driver: bool = False
    """Whether a running driver proves that the host's value meets the driver's requirements on it.

    The solver chooses such a value, and a person must find it out, only if a driver is installed or changed.
    """
    is_assumed: bool = False
    """Whether an unknown value is an assumption and not a doubt, which makes an answer unverified.

    A value is assumed if ordinary sources do not show it, or if a wrong value fails at once with an error that names the
    component.
    """
    how_to_find: str = ""
    """What a person must find out to know the value, as a clause of a message."""

    effort: Effort | None = None
    """How much work a change of the component is; rows of equal effort are in the order of cost, the cheapest first."""

    move: Move | None = None
    """The kind of change of a plan that changes the component; None if no plan changes the component by itself.

    Of several components with one kind, the one that has the name of the kind is the main one.
    """
    installed_with: str = ""
    """Another component whose installation includes this one; without a `move`, this one always has the other's version."""
    shows_installed: str = ""
    """The component whose installed version this one's value shows, such as `kernel` for `kernel_headers`.

    If that version is newer than the running one, a reload or a reboot suffices to change to it.
    """
    is_prepared: bool = False
    """Whether the value may prevent another change, so that a plan corrects the value together with that change."""
    remedy: str = ""
    """The value set by such a correction (see `is_prepared`); "" if the value depends on the other change."""
    reboots: bool = False
    """Whether a change takes effect only after a reboot."""
    reloads_modules: bool = False
    """Whether a change of the component reloads the driver's kernel modules, which the matrix must then list for the kernel.

    Modules that are loaded already are not checked.
    """
    instruction: str = ""
    """The text of a plan's step, with the fields `{before}` and `{after}` for the values; "" means to install `after`."""

    @property
    def label(self) -> str:
        """The name of the component in messages."""
        return self.title or self.name

    @property
    def is_of_host(self) -> bool:
        """Whether the component belongs to the machine itself, so that a host profile states it and no image contains it."""
        return self.supplier in _OF_HOSTS

    def binds(self, runs: str) -> bool:
        """Return whether a host's value of the component constrains a stack; `runs` is `container` or `host`, as in a spec."""
        return self.supplier in (_BINDING_CONTAINERS if runs == "container" else _BINDING_HOSTS)


_ROWS = (
    # Of the spec alone, or installed: other builds, then other releases, then Python and CUDA.
    Component(
        name="pytorch_build", supplier=Supplier.SPEC, title="PyTorch build", is_named=True, effort=Effort.BUILD,
    ),
    Component(name="pytorch", supplier=Supplier.INSTALLER, distribution="torch", effort=Effort.FRAMEWORK),
    Component(name="tensorflow", supplier=Supplier.INSTALLER, distribution="tensorflow", effort=Effort.FRAMEWORK),
    Component(name="jax", supplier=Supplier.INSTALLER, distribution="jax", effort=Effort.FRAMEWORK),
    # Every distribution without a row of its own:
    Component(name="package", supplier=Supplier.INSTALLER, effort=Effort.PACKAGE),
    Component(name="cudnn", supplier=Supplier.INSTALLER, effort=Effort.PACKAGE),
    Component(name="nccl", supplier=Supplier.INSTALLER, effort=Effort.PACKAGE),
    Component(name="triton", supplier=Supplier.INSTALLER, effort=Effort.PACKAGE),
    Component(name="tensorrt", supplier=Supplier.INSTALLER, effort=Effort.PACKAGE),
    Component(name="python", supplier=Supplier.INSTALLER, effort=Effort.PYTHON),
    Component(
        name="python_arch", supplier=Supplier.HOST_WITHOUT_CONTAINERS, title="architecture of the Python", key="python_arch",
        is_named=True, phrases={"": "a Python for {value}"}, is_assumed=True, effort=Effort.PYTHON,
    ),
    Component(name="arch_list", supplier=Supplier.SPEC, is_named=True, effort=Effort.TOOLKIT),
    *(Component(name=runtime, supplier=Supplier.INSTALLER, effort=Effort.TOOLKIT) for runtime in RUNTIMES),
    # What the base image of a container brings, or the host where there is none.
    Component(
        name="nvcc", supplier=Supplier.BASE_IMAGE, key="nvcc", accelerators=_ON_CUDA, is_chosen=True, is_build_tool=True,
        effort=Effort.TOOLKIT,
    ),
    Component(
        name="gcc", supplier=Supplier.BASE_IMAGE, title="GCC", key="gcc", systems=_LINUX, is_chosen=True, is_build_tool=True,
        effort=Effort.TOOLKIT, move=Move.GCC, is_prepared=True,
    ),
    Component(name="clang", supplier=Supplier.BASE_IMAGE, systems=_LINUX, is_build_tool=True, effort=Effort.TOOLKIT),
    Component(
        name="xcode", supplier=Supplier.HOST_WITHOUT_CONTAINERS, key="xcode", systems=_MACOS, is_chosen=True,
        is_build_tool=True, effort=Effort.TOOLKIT,
    ),
    Component(name="policy", supplier=Supplier.SPEC, effort=Effort.POLICY),
    Component(name="accelerator", supplier=Supplier.SPEC, is_named=True, effort=Effort.POLICY),
    Component(name="image", supplier=Supplier.INSTALLER, is_named=True, effort=Effort.CONTAINER),
    Component(
        name="glibc", supplier=Supplier.BASE_IMAGE, key="glibc", systems=_LINUX, is_chosen=True, is_assumed=True,
        effort=Effort.SYSTEM, move=Move.SYSTEM, installed_with="os",
    ),
    Component(name="libraries", supplier=Supplier.HOST, key="libraries", is_fact=False),
    # What the host installs beside its driver.
    Component(
        name="container_toolkit", supplier=Supplier.HOST_OF_CONTAINERS, title="NVIDIA Container Toolkit",
        key="container_toolkit", accelerators=_ON_CUDA, systems=_LINUX,
        how_to_find="which NVIDIA Container Toolkit is installed, if any", is_assumed=True,
        effort=Effort.CONTAINER, move=Move.CONTAINER_TOOLKIT,
    ),
    Component(name="dcgm", supplier=Supplier.HOST, accelerators=_ON_CUDA, systems=_LINUX),
    Component(
        name="fabric_manager", supplier=Supplier.HOST, title="Fabric Manager", key="fabric_manager", accelerators=_ON_CUDA,
        systems=_LINUX, is_assumed=True, effort=Effort.BESIDE_DRIVER, installed_with="driver", is_prepared=True,
    ),
    Component(
        name="userspace_driver", supplier=Supplier.HOST, title="user-mode driver libraries", key="userspace_driver",
        accelerators=_ON_CUDA, systems=_LINUX, is_shown_by_driver=True, effort=Effort.BESIDE_DRIVER,
        installed_with="driver", shows_installed="driver", is_prepared=True,
    ),
    Component(
        name="loaded_modules", supplier=Supplier.HOST, title="loaded modules", key="loaded_modules", is_named=True,
        accelerators=ON_GPUS,
        phrases={"free": "a GPU that no other module holds", "": "the loaded module {value}"},
        systems=_LINUX, is_shown_by_driver=True, effort=Effort.BESIDE_DRIVER, move=Move.LOADED_MODULES,
        is_prepared=True, remedy="free", reboots=True,
        instruction="keep {before} off the GPU: blacklist it, rebuild the initramfs and reboot",
    ),
    Component(
        name="mig", supplier=Supplier.HOST, title="MIG", key="mig", is_named=True, accelerators=_ON_CUDA, systems=_LINUX,
        is_assumed=True, effort=Effort.BESIDE_DRIVER, move=Move.MIG, is_prepared=True, remedy="divided",
        instruction="make instances of the GPUs: nvidia-smi mig -cgi PROFILE -C; or turn MIG off: nvidia-smi -mig 0",
    ),
    Component(
        name="kernel_headers", supplier=Supplier.HOST, title="kernel headers", key="kernel_headers", accelerators=ON_GPUS,
        systems=_LINUX, is_shown_by_driver=True, effort=Effort.BESIDE_DRIVER, installed_with="kernel",
        shows_installed="kernel", is_prepared=True,
    ),
    Component(
        name="kernel_gcc", supplier=Supplier.HOST, title="GCC of the kernel", key="kernel_gcc", accelerators=ON_GPUS,
        phrases={"": "a kernel built with GCC {value}"}, systems=_LINUX, is_shown_by_driver=True, effort=Effort.DRIVER,
    ),
    Component(
        name="host_gcc", supplier=Supplier.HOST_OF_CONTAINERS, title="GCC of the host", key="gcc", accelerators=ON_GPUS,
        systems=_LINUX, is_build_tool=True, is_shown_by_driver=True, effort=Effort.DRIVER,
    ),
    # The drivers.
    Component(
        name="driver_module", supplier=Supplier.HOST, title="kernel module flavour", key="driver.module", is_named=True,
        phrases={"": "the {value} kernel module"},
        accelerators=_ON_CUDA, systems=_LINUX, is_chosen=True,
        how_to_find="which flavour of kernel modules is loaded, open or proprietary",
        effort=Effort.DRIVER, move=Move.DRIVER, reboots=True, reloads_modules=True,
    ),
    Component(
        name="cuda_driver", supplier=Supplier.HOST, title="CUDA driver", key="cuda_driver", accelerators=_ON_CUDA,
        systems=_MACOS, is_chosen=True, effort=Effort.DRIVER, move=Move.CUDA_DRIVER, reboots=True,
    ),
    Component(
        name="webdriver", supplier=Supplier.HOST, title="Web Driver", key="driver", accelerators=_ON_CUDA, systems=_MACOS,
        driver_kind="webdriver", is_chosen=True, how_to_find="which Web Driver is installed, if any", effort=Effort.DRIVER,
        move=Move.DRIVER, reboots=True,
    ),
    Component(
        name="driver", supplier=Supplier.HOST, key="driver", accelerators=_ON_CUDA, systems=_LINUX, driver_kind="nvidia",
        is_chosen=True, how_to_find="which driver is loaded, if any", effort=Effort.DRIVER, move=Move.DRIVER, reboots=True,
        reloads_modules=True,
    ),
    Component(
        name="amdgpu", supplier=Supplier.HOST, title="amdgpu driver", key="driver", accelerators=_ON_ROCM, systems=_LINUX,
        driver_kind="amdgpu", is_chosen=True, how_to_find="which amdgpu driver is loaded, if any", effort=Effort.DRIVER,
        move=Move.DRIVER, reboots=True, reloads_modules=True,
    ),
    Component(name="jetson", supplier=Supplier.HOST, key="jetson", accelerators=_ON_CUDA, systems=_LINUX, effort=Effort.DRIVER),
    # The machine.
    Component(
        name="sip", supplier=Supplier.HOST, key="sip", is_named=True, accelerators=_ON_CUDA, systems=_MACOS,
        effort=Effort.KERNEL,
    ),
    Component(
        name="secure_boot", supplier=Supplier.HOST, title="Secure Boot", key="secure_boot", is_named=True, accelerators=ON_GPUS,
        systems=_LINUX,
        phrases={
            "disabled": "Secure Boot switched off", "enrolled": "Secure Boot with an enrolled key",
            "enforced": "Secure Boot without an enrolled key",
        },
        is_shown_by_driver=True, effort=Effort.KERNEL, move=Move.SECURE_BOOT, is_prepared=True, remedy="enrolled", reboots=True,
        instruction="enrol the key that signs modules built on this host (mokutil --import), and confirm it on the next boot",
    ),
    Component(
        name="kernel", supplier=Supplier.HOST, key="kernel", accelerators=ON_GPUS, systems=_LINUX, is_chosen=True,
        how_to_find="which kernel runs", is_shown_by_driver=True, effort=Effort.KERNEL, move=Move.KERNEL, installed_with="os",
        reboots=True, reloads_modules=True, instruction="boot kernel {after} in place of {before}",
    ),
    Component(
        name="os", supplier=Supplier.HOST, title="operating system", key="os", is_named=True, systems=_LINUX,
        effort=Effort.SYSTEM, move=Move.SYSTEM, reboots=True, reloads_modules=True, instruction="upgrade {before} to {after}",
    ),
    Component(
        name="macos", supplier=Supplier.HOST, title="macOS", key="os", systems=_MACOS, is_chosen=True, effort=Effort.SYSTEM,
        move=Move.SYSTEM, reboots=True, instruction="upgrade macOS {before} to {after}",
    ),
    Component(
        name="nvswitch", supplier=Supplier.HOST, title="NVSwitch", key="nvswitch", is_named=True, accelerators=_ON_CUDA,
        systems=_LINUX, how_to_find="whether an NVSwitch joins the GPUs (lspci -d 10de::0680)",
    ),
    Component(
        name="virtualization", supplier=Supplier.HOST, key="virtualization", is_named=True, is_fact=False,
        how_to_find="whether the machine is virtual, and how", effort=Effort.SYSTEM,
    ),
    Component(name="platform", supplier=Supplier.HOST, key="platform", is_named=True, is_fact=False),
    Component(name="target", supplier=Supplier.SPEC, effort=Effort.FEWER_HOSTS),
    Component(
        name="gpu", supplier=Supplier.HOST, key="gpus", is_named=True, is_fact=False, how_to_find="which GPUs the machine has",
        effort=Effort.HARDWARE,
    ),
)  # fmt: skip

COMPONENTS: dict[str, Component] = {row.name: row for row in _ROWS}
"""Every component by its name, from the top of a stack down to the hardware."""

FOLLOWERS: dict[str, tuple[str, ...]] = {
    leader: tuple(row.name for row in reversed(_ROWS) if row.installed_with == leader and row.move is None)
    for leader in dict.fromkeys(row.installed_with for row in _ROWS if row.installed_with and row.move is None)
}
"""The followers of each component that has some: what is installed with it and always has its version.

The most expensive to change comes first. See the rules `userspace-driver-is-of-the-kernel-module`,
`fabric-manager-is-of-the-driver` and `kernel-headers-are-of-the-kernel` of the matrix.
"""

NEVER_ALONE = frozenset(name for names in FOLLOWERS.values() for name in names)
"""The components that change only together with another one."""

CUDA_LIBRARIES = ("cudnn", "nccl", "tensorrt")
"""The libraries for CUDA that are components, and no part of a toolkit."""

RUNTIME_LIBRARIES = ("cublas", "cufft", "curand", "cusolver", "cusparse", "nvjitlink", "nvrtc")
"""The libraries of a CUDA toolkit that are components, and that each of NVIDIA's images with a CUDA runtime has."""

TOOLKIT_PARTS = (
    *RUNTIME_LIBRARIES,
    "cusparselt",
    "nvshmem",
    "cufile",
    "cupti",
    "nvtx",
    "nvcc",
    "nsight_systems",
    "nsight_compute",
)
"""The parts of a CUDA toolkit, and libraries beside it, that are components."""

FRAMEWORKS = tuple(row.name for row in _ROWS if row.distribution)
"""The frameworks; a stack is named after the first of these that it contains."""

LEADS = (*FRAMEWORKS, *RUNTIMES)
"""Frameworks and runtimes: the components whose releases and builds determine the requirements on machines."""

DRIVERS = tuple(row.name for row in _ROWS if row.driver_kind)
"""The driver components; a machine has one of them."""
