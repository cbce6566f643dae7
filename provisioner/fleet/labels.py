"""The label sets of Kubernetes nodes: those of an inventory, or the ones that a host's facts imply."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.host.kubernetes import product_label
from provisioner.node_labels import (
    AMD_DEVICE,
    AMD_DRIVER,
    AMD_PRODUCT,
    ARCHITECTURE,
    COMPUTE,
    DRIVER,
    KERNEL,
    KERNEL_FULL,
    KNOWN,
    OLD_DRIVER,
    OS_ID,
    OS_VERSION,
    PRODUCT,
    SYSTEM,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provisioner.host.inventory import InventoryHost
    from provisioner.host.model import Host, HostGpu


class LabelSet(Struct, frozen=True, kw_only=True):
    """Hosts with equal values of all labels that an affinity may use (`KNOWN`): their names, and their different profiles."""

    labels: Mapping[str, str]
    names: tuple[str, ...]
    hosts: tuple[Host, ...]


def label_sets(listed: Iterable[InventoryHost]) -> tuple[LabelSet, ...]:
    """Group hosts by their labels: those of the Kubernetes node if any are known, else the ones that the host's facts imply.

    The groups are in the order of their first hosts.
    """
    own: dict[tuple[int, int], Mapping[str, str]] = {}
    found: dict[frozenset[tuple[str, str]], tuple[Mapping[str, str], list[str], dict[int, Host]]] = {}
    groups: dict[tuple[int, int], tuple[list[str], dict[int, Host]]] = {}
    for one in listed:
        identity = (id(one.host), id(one.labels) if one.labels else 0)
        if identity not in groups:
            own[identity] = _spoken_of(one.labels) if one.labels else labels_of(one.host)
            _, names, hosts = found.setdefault(frozenset(own[identity].items()), (own[identity], [], {}))
            groups[identity] = (names, hosts)
        names, hosts = groups[identity]
        names.append(one.name)
        hosts.setdefault(id(one.host), one.host)
    return tuple(
        LabelSet(labels=labels, names=tuple(names), hosts=tuple(hosts.values())) for labels, names, hosts in found.values()
    )


def _spoken_of(labels: Mapping[str, str]) -> dict[str, str]:
    return {key: labels[key] for key in KNOWN if key in labels}


def drivers_named(labels: Mapping[str, str]) -> tuple[str, str, str]:
    """Return the names of the labels of a node's driver version (major, minor, revision).

    These are the current names, or the former ones if the node has only those.
    """
    return OLD_DRIVER if DRIVER[0] not in labels and OLD_DRIVER[0] in labels else DRIVER


def with_newer_driver(labels: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield the labels of a node after upgrades of its driver: to a later release of its branch, and to a later branch.

    Yields nothing if no label shows the driver's version in numbers, as for AMD GPUs.
    """
    major, minor = (labels.get(key, "") for key in drivers_named(labels)[:2])
    if not (major.isdecimal() and minor.isdecimal()):
        return
    for parts in ((major, str(int(minor) + 1), "0"), (str(int(major) + 1), "0", "0")):
        keys = (names for names in (DRIVER, OLD_DRIVER) if names[0] in labels)
        yield {**labels, **{key: part for names in keys for key, part in zip(names, parts, strict=True)}}


def labels_of(host: Host) -> dict[str, str]:
    """Return the labels that node and GPU feature discovery write on a node with the facts of a host; unknown facts give none.

    A node has one set of GPU labels, which describes an arbitrary one if it has several products, so a GPU label is returned
    only if all GPUs agree on it.
    """
    labels: dict[str, str] = {}
    system, _, architecture = (host.platform or "").partition("/")
    if system == "linux":
        labels |= {ARCHITECTURE: architecture, SYSTEM: "linux"}
    if host.os is not None and system != "macos":
        labels[OS_ID] = host.os.id
        if host.os.version:
            labels[OS_VERSION] = host.os.version
    if host.kernel:
        labels |= dict(_kernel(host.kernel))
    gpus = host.gpus or ()
    if gpus and all(gpu.gfx or (host.driver is not None and host.driver.kind == "amdgpu") for gpu in gpus):
        labels |= dict(_amd(host, gpus))
    elif gpus:
        labels |= dict(_nvidia(host, gpus))
    return labels


def _kernel(release: str) -> Iterator[tuple[str, str]]:
    """Yield the kernel labels of a release, split as by source/kernel/version.go of node feature discovery."""
    full = re.sub(r"[^-A-Za-z0-9_.]", "_", release).strip("-_.")
    yield KERNEL_FULL, full
    match = re.fullmatch(r"(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-.*)?", full)
    if match is not None:
        yield from ((key, part or "") for key, part in zip(KERNEL, match.groups(), strict=True))


def _nvidia(host: Host, gpus: tuple[HostGpu, ...]) -> Iterator[tuple[str, str]]:
    capabilities = {gpu.compute_capability for gpu in gpus}
    if len(capabilities) == 1 and (capability := capabilities.pop()):
        yield from zip(COMPUTE, capability.split("."), strict=True)
    names = {gpu.name for gpu in gpus}
    if len(names) == 1 and (name := names.pop()):
        yield PRODUCT, product_label(name)
    version = host.driver.version if host.driver is not None and host.driver.kind == "nvidia" else None
    parts = version.split(".") if version else []
    # Feature discovery refuses a version of another shape, and leaves the revision of a version without one empty.
    if len(parts) in {2, 3}:
        padded = (*parts, "")[:3]
        yield from zip(DRIVER, padded, strict=True)
        yield from zip(OLD_DRIVER, padded, strict=True)


def _amd(host: Host, gpus: tuple[HostGpu, ...]) -> Iterator[tuple[str, str]]:
    devices, names = {gpu.pci_device_id for gpu in gpus}, {gpu.name for gpu in gpus}
    if len(devices) == 1 and (device := devices.pop()):
        yield AMD_DEVICE, device.lower()
    if len(names) == 1 and (name := names.pop()):
        yield AMD_PRODUCT, re.sub(r"[()]", "", name).replace(" ", "_")
    if host.driver is not None and host.driver.version:
        yield AMD_DRIVER, host.driver.version
