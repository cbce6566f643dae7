"""Decide which facts of a host matter to a request, and which components the solver chooses if a host does not state them.

A fact is the value of a component on a host, such as the driver's version. The description of a component, and its key in a
host profile, is a row of `provisioner.components`; its value on a host is read by `provisioner.host.facts`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.accelerators import ACCELERATORS, GPU_ACCELERATORS
from provisioner.components import ABSENT, COMPONENTS, Move, Supplier
from provisioner.host import parse
from provisioner.host.facts import stated
from provisioner.matrix.once import once_per_matrix
from provisioner.platforms import PLATFORMS
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.components import Component
    from provisioner.host.model import Host
    from provisioner.matrix.model import Matrix
    from provisioner.request import Request
    from provisioner.versions import Range

FACTS: dict[str, Component] = {
    row.name: row for row in COMPONENTS.values() if row.is_fact and (row.is_of_host or row.supplier is Supplier.BASE_IMAGE)
}
"""The components that are facts of a host: a host has one value of each, stated or not."""

DRIVERS = frozenset(row.name for row in COMPONENTS.values() if row.move in {Move.DRIVER, Move.CUDA_DRIVER})
"""The drivers, each for the GPUs of one vendor: a stack for GPUs of another vendor does not have that driver."""

COMPILERS = frozenset({"gcc", "clang", "xcode"})
"""Host compilers, of which a stack uses one: needs that are about the other two do not bind."""

PLACES = {"gpu_kind": "gpus[].name", "driver_version": "driver.version"}
"""Facts that are not components, each with the key of a host profile that states it."""

NOT_ON_JETSONS = frozenset({"driver", "driver_module", "userspace_driver", "fabric_manager", "dcgm"})
"""Components that NVIDIA releases for PCs and servers only: the driver of a Jetson is a part of Jetson Linux."""

DRIVER_KINDS = {row.name: row.driver_kind for row in COMPONENTS.values() if row.driver_kind}


def profile_key(fact: str, host: Host | None = None) -> str:
    """Return the key of a host profile that states a fact; "" when no profile can state it.

    If the host already states Secure Boot, the fact that is missing is whether its machine owner key (MOK) is enrolled.
    """
    if fact == "secure_boot" and host is not None and host.secure_boot is not None:
        return "secure_boot.mok_enrolled"
    return COMPONENTS[fact].key if fact in COMPONENTS else PLACES.get(fact, fact)


def has_driver_of_some_version(host: Host, component: str) -> bool:
    """Return whether a host states that a driver is installed but not its version.

    No version must then be chosen for it.
    """
    driver = host.driver
    return driver is not None and driver.version is None and driver.kind == DRIVER_KINDS.get(component)


def virtualizations(host: Host) -> frozenset[str]:
    """Return the virtualizations that a host may have: the stated one, otherwise those that its other facts allow.

    Only WSL runs Microsoft's kernels. A stated flavour of NVIDIA's kernel module excludes WSL, where the driver is that of
    Windows.
    """
    if host.virtualization is not None:
        return frozenset({host.virtualization})
    if host.kernel is not None:
        wsl = parse.wsl(host.kernel)
        return frozenset({wsl}) if wsl is not None else NOT_WSL
    return NOT_WSL if host.driver is not None and host.driver.module is not None else NOT_WSL | WSL


NOT_WSL, WSL = frozenset({"none", "vm", "container"}), frozenset({"wsl1", "wsl2"})


def is_stated_as(value: str | None, label: str) -> bool:
    """Return whether a host that states `value` may have the release `label`: the same, or a release of the stated series."""
    return value is not None and (label == value or label.startswith(f"{value}."))


def interpreter(host: Host, platform: str) -> str | None:
    """Return the architecture of a host's Python: the one that the host states, otherwise the machine's.

    None for a Mac with Apple silicon that does not state it, because Python may be of either architecture there.
    """
    found = stated(host, "python_arch")
    if found is not None or platform == "macos/arm64":
        return found
    return {"aarch64": "arm64"}.get(PLATFORMS[platform].machine, PLATFORMS[platform].machine)


def binds(component: str, request: Request) -> bool:
    """Return whether a host's value of a component restricts the requested environment; True if it is not one of `FACTS`."""
    row = FACTS.get(component)
    if row is None:
        return True
    return row.binds(request.runs) and is_used(component, request) and _is_for(row, request)


def _is_for(row: Component, request: Request) -> bool:
    return request.accelerator in row.accelerators and request.system in row.systems


def is_installable(component: str, request: Request) -> bool:
    """Return whether a component could be installed for a request.

    False only for a driver that does not serve the request's accelerator or operating system: NVIDIA's is not for a ROCm stack.
    """
    if component not in DRIVERS or not ACCELERATORS[request.accelerator].vendor:
        return True
    return _is_for(COMPONENTS[component], request)


def is_used(component: str, request: Request) -> bool:
    """Return whether a request uses a component; all but build tools are always used.

    nvcc is used if the spec compiles or requires it; of the host compilers it is GCC, unless the spec requires another.
    """
    requires = request.spec.requires
    if component == "nvcc":
        return request.spec.build is not None or component in requires
    if component == "gcc":
        return component in requires or "clang" not in requires
    return component != "clang" or component in requires


def is_chosen(component: str, request: Request) -> bool:
    """Return whether the solver chooses a component that a host neither states nor shows to be good enough."""
    row = FACTS.get(component)
    if row is None or not row.is_chosen or not binds(component, request):
        return False
    return not row.is_build_tool or request.spec.build is not None


@once_per_matrix
def shown_by_drivers(matrix: Matrix) -> frozenset[str]:
    """Return the facts that a running driver shows to be good enough: only drivers, and other such facts, need them.

    A host profile states the driver that is loaded, so the host's kernel, headers and the like meet that driver's needs.
    """
    shown = {name for name, row in COMPONENTS.items() if row.is_shown_by_driver}
    of_driver = shown.union(DRIVER_KINDS, {"driver_module", "jetson"})
    releases = [one for name, row in matrix.components.items() if name not in of_driver for one in row.releases]
    needs = (
        *(rule.require for rule in matrix.rules if rule.when.component not in of_driver),
        *(release.requires for release in releases),
        *(build.requires for release in releases for build in release.builds),
    )
    return frozenset(shown.difference(need.component for every in needs for need in every))


def has_running_driver(host: Host) -> bool:
    """Return whether a host states the version of the driver that it runs, and has a GPU that this driver runs.

    A host that does not state its GPUs, or of what vendor they are, has such a GPU. In WSL 1, whose programs reach no GPU, the
    driver of Windows does not run.
    """
    driver = host.driver
    if driver is None or driver.version in {None, ABSENT} or virtualizations(host) == {"wsl1"}:
        return False
    accelerators = {gpu.accelerator for gpu in host.gpus or ()}
    kinds = {DRIVER_KINDS.get(name) for one in GPU_ACCELERATORS if one.name in accelerators for name in one.drivers}
    return not accelerators or None in accelerators or driver.kind in kinds


@once_per_matrix
def _jetson_gpus(matrix: Matrix) -> frozenset[str]:
    """Return the names and compute capabilities of the GPUs of Jetsons; no other product has one of these capabilities."""
    rows = [gpu for gpu in matrix.gpus if gpu.kind == "jetson"]
    return frozenset({name for gpu in rows for name in (gpu.name, *gpu.aliases)} | {gpu.compute_capability for gpu in rows})


def is_jetson(matrix: Matrix, host: Host) -> bool:
    """Return whether a host is a Jetson, whose driver is a part of Jetson Linux and no release of NVIDIA's drivers for PCs."""
    known = _jetson_gpus(matrix)
    return host.jetson is not None or any({gpu.name, gpu.compute_capability} & known for gpu in host.gpus or ())


@once_per_matrix
def all_boards(matrix: Matrix) -> tuple[tuple[Range, tuple[str, ...]], ...]:
    """Return releases of Jetson Linux, each range with the compute capabilities of the boards that these releases run on."""
    return tuple(
        (rule.when.range, tuple(map(str, need.one_of)))
        for rule in matrix.rules
        for need in rule.require
        if rule.when.component == "jetson" and need.component == "gpu"
    )


def boards(matrix: Matrix, host: Host) -> tuple[str, ...]:
    """Return the compute capabilities that the GPU of a host may have which states its Jetson Linux, and no GPUs.

    () if it states its GPUs, or if no rule says on which boards its Jetson Linux runs.
    """
    if host.gpus is not None or host.jetson is None or host.jetson.l4t is None:
        return ()
    release = Version.parse(host.jetson.l4t)
    return next((found for releases, found in all_boards(matrix) if releases.allows(release)), ())


def board_drivers(matrix: Matrix) -> dict[str, Range]:
    """Return the drivers that releases of Jetson Linux bring, newest first, each with the range of these releases."""
    found = {
        clause.version.text: rule.when.range
        for rule in matrix.rules
        for need in rule.require
        for clause in need.range.clauses
        if rule.when.component == "jetson" and need.component == "driver"
    }
    return dict(sorted(found.items(), key=lambda one: Version.parse(one[0]), reverse=True))


def is_settled_by_driver(component: str, host: Host) -> bool:
    """Return whether the running driver of a host fixes the value of a component that the host does not state.

    A running driver has modules of one flavour already, and runs on one kernel: a solver can choose neither.
    """
    row = COMPONENTS.get(component)
    is_part = row is not None and (row.is_shown_by_driver or row.move is Move.DRIVER)
    return is_part and has_running_driver(host) and stated(host, component) is None


def shown(host: Host, request: Request) -> Iterator[tuple[str, str]]:
    """Yield the facts of a host, as names and values, that are displayed with a stack even if no rule needs them."""
    for name, row in FACTS.items():
        value = stated(host, name)
        is_ours = request.runs == "host" or row.binds("container")
        is_for_drivers = row.is_build_tool and row.supplier is Supplier.HOST_OF_CONTAINERS
        if (
            value is not None
            and is_ours
            and not is_for_drivers
            and (name not in DRIVERS or request.accelerator in row.accelerators)
        ):
            yield name, value
