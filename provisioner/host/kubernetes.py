"""Read Kubernetes nodes as hosts, using only the facts in node objects and in the labels of feature discovery.

Labels were read in NVIDIA/k8s-device-plugin v0.20.0 (docs/gpu-feature-discovery/README.md, internal/lm/nvml.go, resource.go,
mig-strategy.go, vgpu.go), NVIDIA/gpu-operator (controllers/state_manager.go), kubernetes-sigs/node-feature-discovery
(docs/usage/features.md) and ROCm/k8s-device-plugin (cmd/k8s-node-labeller/main.go), 2026-11-21, and Google's own label in "Run
GPUs in GKE Standard node pools", 2026-11-22.

A node that offers `nvidia.com/gpu` runs the device plugin with its GPUs in a container, so it has a container toolkit, of an
unknown version. If some nodes of a list show GPUs, a node that shows no sign of one has none. No label shows the flavour of the
kernel module or the C library: these facts stay unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from provisioner.accelerators import ACCELERATORS, GPU_ACCELERATORS
from provisioner.components import PRESENT
from provisioner.host import parse
from provisioner.host.gpu_names import NamedGpu
from provisioner.host.instance_types import instance_type
from provisioner.host.model import Driver, Host, HostGpu, OperatingSystem
from provisioner.host.remark import (
    AmdgpuModule,
    LabelsNotRead,
    MigChanging,
    MigNotOffered,
    MigSlices,
    MoreGpusThanLabelled,
    NodeRemark,
    NodeUnavailable,
    UnknownAcceleratorLabel,
    UnlabelledGpus,
    VirtualGpu,
)
from provisioner.platforms import platform_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.document import KeyPath
    from provisioner.host.catalogue import Catalogue
    from provisioner.platforms import HostPlatform

    Mistakes = list[tuple[KeyPath, str]]

_NVIDIA, _AMD = ACCELERATORS["cuda"].node_labels, ACCELERATORS["rocm"].node_labels
_NAMES_A_GPU = re.compile(r"(?:[\w.-]+/)?(?:gpu|accelerator)(?:[-_.](?:type|model|name|product))?")
"""Labels of their own by which clusters say which GPU a node has; `_NO_GPU` are values that say there is none."""

_NO_GPU = frozenset({"", "0", "false", "no", "none"})
_NFD = "feature.node.kubernetes.io/"
_DRIVER = ("driver-version.major", "driver-version.minor", "driver-version.revision")
_OLD_DRIVER = ("driver.major", "driver.minor", "driver.rev")
_VERSION = re.compile(r"\d+(?:\.\d+){1,2}")
_VENDORS = "|".join(row.pci_vendor.lower() for row in GPU_ACCELERATORS)
_PCI_GPU = re.compile(rf"{re.escape(_NFD)}pci-(?:(?P<class>03|12)[0-9a-f]{{2}}_)?(?P<vendor>{_VENDORS})(?:[_.].*)?\.present")
_KEPT = re.compile(
    r"kubernetes\.io/(?:arch|os)|node\.kubernetes\.io/instance-type"
    r"|nvidia\.com/(?:cuda|gpu|mig|mps|vgpu)\..*|(?:beta\.)?amd\.com/gpu\..*|cloud\.google\.com/gke-accelerator"
    r"|feature\.node\.kubernetes\.io/(?:kernel-version|system-os_release)\..*"
)
_OF_ONE_NODE = frozenset({"nvidia.com/gfd.timestamp", "nvidia.com/gpu.clique"})
_PRETTY = (
    (re.compile(r"Ubuntu (\d+\.\d+)"), "ubuntu"),
    (re.compile(r"Debian GNU/Linux (\d+)"), "debian"),
    (re.compile(r"Amazon Linux (\d+)"), "amzn"),
    (re.compile(r"Red Hat Enterprise Linux (\d+\.\d+)"), "rhel"),
    (re.compile(r"Rocky Linux (\d+\.\d+)"), "rocky"),
    (re.compile(r"AlmaLinux (\d+\.\d+)"), "almalinux"),
    (re.compile(r"Oracle Linux Server (\d+\.\d+)"), "ol"),
    (re.compile(r"CentOS (?:Linux|Stream) (\d+)"), "centos"),
    (re.compile(r"Fedora Linux (\d+)"), "fedora"),
    (re.compile(r"(?:Microsoft )?Azure Linux (\d+\.\d+)"), "azurelinux"),
    (re.compile(r"CBL-Mariner/Linux ?(\d+\.\d+)?"), "mariner"),
    (re.compile(r"Bottlerocket OS (\d+\.\d+\.\d+)"), "bottlerocket"),
    (re.compile(r"Talos \(v(\d+\.\d+\.\d+)"), "talos"),
)
"""Patterns for `status.nodeInfo.osImage`, and the `ID` of each distribution in /etc/os-release.

`osImage` is the PRETTY_NAME of /etc/os-release: `Ubuntu 22.04.5 LTS`, `Amazon Linux 2023.5.20240916`.
"""

_CORE_OS = re.compile(r"Red Hat Enterprise Linux CoreOS (\d+\.(\d)(\d+)\.[\d-]+)")
"""`Red Hat Enterprise Linux CoreOS 416.94.202410172137-0` is built of RHEL 9.4 (OpenShift documentation, RHCOS versions)."""

_INSTANCE_TYPE = "node.kubernetes.io/instance-type"
_GOOGLE = "cloud.google.com/gke-accelerator"
_MIG_RESOURCE = f"{_NVIDIA}mig-"
_CHANGING = {
    "pending": MigChanging("pending"),
    "rebooting": MigChanging("rebooting"),
    "failed": MigChanging("failed"),
}
"""Values of the MIG manager's label `nvidia.com/mig.config.state`, except `success`."""
_MIG_COUNT = re.compile(rf"{re.escape(_MIG_RESOURCE)}.*\.count")


def product_label(name: str) -> str:
    """Return a product name as GPU feature discovery writes it in the label `nvidia.com/gpu.product` (internal/lm/resource.go).

    `NVIDIA A100-SXM4-80GB` -> `NVIDIA-A100-SXM4-80GB`.
    """
    return "-".join(re.sub(r"[^A-Za-z0-9\-_. ]", "", name).split())


class Node(Struct, frozen=True, kw_only=True):
    """One Kubernetes node: its name, its facts, its labels about hardware and software, and remarks on both."""

    name: str
    host: Host
    labels: Mapping[str, str]
    remarks: tuple[NodeRemark, ...] = ()


def is_kubernetes(data: object) -> bool:
    """Return whether a document is a Kubernetes object rather than a host profile."""
    return isinstance(data, Mapping) and "kind" in data and not data.keys().isdisjoint({"apiVersion", "items", "metadata"})


class NodeReader:
    """Reads nodes; nodes with equal facts share one `Host`, those with equal labels one mapping, so that grouping is cheap.

    `mistakes` are pairs of a key path in the document and a message; a wrong label that equal nodes share is recorded once.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self.mistakes: Mistakes = []
        self._catalogue = catalogue
        self._labels: dict[frozenset[tuple[str, str]], Mapping[str, str]] = {}
        self._facts: dict[tuple[object, ...], tuple[Host, tuple[NodeRemark, ...]]] = {}

    def read(self, data: Mapping[str, Any]) -> Iterator[tuple[KeyPath, Node]]:
        """Yield the nodes of `kubectl get nodes -o json`, or a single node, each with its key path in the document.

        If some nodes have GPUs, a node without any sign of a GPU counts as having none (`gpus=()`), not unknown GPUs, which the
        cluster's labellers and device plugins would have shown.
        """
        found = list(self._listed(data))
        if not any(node.host.gpus for _, node in found):
            yield from found
            return
        without: dict[int, tuple[Host, Host]] = {}
        for path, node in found:
            if node.host.gpus is None and not _is_of_gpus(node.labels):
                _, host = without.setdefault(id(node.host), (node.host, replace(node.host, gpus=())))
                yield path, replace(node, host=host)
            else:
                yield path, node

    def _listed(self, data: Mapping[str, Any]) -> Iterator[tuple[KeyPath, Node]]:
        kind, items = data.get("kind"), data.get("items")
        if kind == "Node":
            yield from self._node(data, ())
        elif kind not in ("List", "NodeList"):  # a set would hash it, whatever it is
            text = f"`{kind}` is neither a Node nor a List of them: save what `kubectl get nodes -o json` prints"
            self.mistakes.append((("kind",), text))
        elif not isinstance(items, Sequence) or isinstance(items, str):
            self.mistakes.append((("items",), "must be a list of nodes"))
        else:
            for index, item in enumerate(items):
                if not isinstance(item, Mapping):
                    self.mistakes.append((("items", index), "must be a node"))
                elif item.get("kind", "Node") != "Node":
                    self.mistakes.append((("items", index, "kind"), f"`{item['kind']}` is not a Node"))
                else:
                    yield from self._node(item, ("items", index))

    def _node(self, item: Mapping[str, Any], path: KeyPath) -> Iterator[tuple[KeyPath, Node]]:
        metadata, status = self._mapping(item, "metadata", path), self._mapping(item, "status", path)
        name = metadata.get("name")
        if not isinstance(name, str) or not name:
            self.mistakes.append(((*path, "metadata", "name"), "a node must have a name"))
            return
        given = self._mapping(metadata, "labels", (*path, "metadata"))
        labels = self._labels_of(given, path)
        info, capacity = (self._mapping(status, key, (*path, "status")) for key in ("nodeInfo", "capacity"))
        seen = tuple(_text(info, key) for key in ("architecture", "kernelVersion", "operatingSystem", "osImage"))
        amounts = (_text(capacity, f"{_NVIDIA}gpu"), _text(capacity, f"{_AMD}gpu"))
        has_slices = any(_count(_text(capacity, key)) for key in capacity if key.startswith(_MIG_RESOURCE))
        has_slices = has_slices or any(_count(_text(given, key)) for key in given if _MIG_COUNT.fullmatch(key))
        signs = tuple(sorted(key for key in given if _is_sign(key)))
        identity = (id(labels), seen, amounts, has_slices, signs)
        if identity not in self._facts:
            facts = _Facts(labels, info, self._catalogue)
            host = facts.host(signs, amounts, has_slices=has_slices)
            self._facts[identity] = (self._catalogue.identify(host), tuple(facts.remarks))
            self.mistakes += (((*path, "metadata", "labels", label), text) for label, text in facts.mistakes)
        host, remarks = self._facts[identity]
        yield (
            path,
            Node(name=name, host=host, labels=labels, remarks=(*remarks, *_unread(given, host), *_condition(item, status))),
        )

    def _mapping(self, item: Mapping[str, Any], key: str, path: KeyPath) -> Mapping[str, Any]:
        value = item.get(key)
        if isinstance(value, Mapping):
            return value
        if value is not None:
            self.mistakes.append(((*path, key), "must be a mapping"))
        return {}

    def _labels_of(self, labels: Mapping[str, Any], path: KeyPath) -> Mapping[str, str]:
        kept = {}
        for key, value in labels.items():
            if not isinstance(value, str):
                text = f"`{value}` is not text; Kubernetes writes every label in quotes"
                self.mistakes.append(((*path, "metadata", "labels", key), text))
            elif _KEPT.fullmatch(key) and key not in _OF_ONE_NODE:
                kept[key] = value
        return self._labels.setdefault(frozenset(kept.items()), kept)


class _Facts:
    """Reads the facts of a node from its labels and kubelet's report; `mistakes` are pairs of a wrong label and a message."""

    def __init__(self, labels: Mapping[str, str], info: Mapping[str, Any], catalogue: Catalogue) -> None:
        self._labels = labels
        self._info = info
        self._gpus = catalogue.gpus
        self._modules = catalogue.modules
        self.remarks: list[NodeRemark] = []
        self.mistakes: list[tuple[str, str]] = []

    def host(self, signs: tuple[str, ...], amounts: tuple[str, str], *, has_slices: bool) -> Host:
        """Return the facts of the node.

        `signs` are the names of the labels about PCI devices and a hypervisor, `amounts` the numbers of NVIDIA and of AMD GPUs
        that kubelet reports ("" for none), and `has_slices` is whether kubelet or labels report MIG slices.
        """
        nvidia, amd = (_count(amount) for amount in amounts)
        gpus = self._nvidia(nvidia, signs, has_slices=has_slices) or self._amd(amd, signs)
        if gpus is None and _says_none(self._labels, signs):
            gpus = ()
        return Host(
            platform=self._platform(),
            os=self._system(),
            kernel=parse.kernel_release(
                _text(self._info, "kernelVersion") or self._labels.get(f"{_NFD}kernel-version.full", "")
            ),
            driver=self._driver() or self._driver_of_some_version(is_nvidia=bool(nvidia) or has_slices, is_amd=bool(amd)),
            gpus=gpus,
            mig=self._mig(has_slices=has_slices),
            container_toolkit=PRESENT if nvidia or has_slices else None,
            virtualization="vm" if f"{_NFD}cpu-cpuid.HYPERVISOR" in signs or self._is_virtual_gpu() else None,
        )

    def _platform(self) -> HostPlatform | None:
        """Return the platform that kubelet reports or its labels name; its systems are those of Go, `linux` and `windows`."""
        if "windows" in {_text(self._info, "operatingSystem"), self._labels.get("kubernetes.io/os")}:
            return "windows"
        return platform_of("linux", _text(self._info, "architecture") or self._labels.get("kubernetes.io/arch", ""))

    def _system(self) -> OperatingSystem | None:
        identity = self._labels.get(f"{_NFD}system-os_release.ID")
        if identity:
            return OperatingSystem(id=identity, version=self._labels.get(f"{_NFD}system-os_release.VERSION_ID") or None)
        image = _text(self._info, "osImage")
        core_os = _CORE_OS.match(image)
        if core_os is not None:
            return OperatingSystem(id="rhcos", version=core_os[1], like=f"rhel {core_os[2]}.{core_os[3]}")
        matches = ((pattern.match(image), name) for pattern, name in _PRETTY)
        return next((OperatingSystem(id=name, version=match[1]) for match, name in matches if match), None)

    def _driver(self) -> Driver | None:
        """Return NVIDIA's driver from its current labels, else its deprecated ones, or AMD's driver; None if it is unknown.

        None, too, for a Jetson, whose driver is labelled `unknown`, and for a malformed label, which is recorded as a mistake.
        """
        for names in (_DRIVER, _OLD_DRIVER):
            parts = [self._labels.get(f"{_NVIDIA}cuda.{name}", "") for name in names]
            if not any(parts):
                continue
            version = ".".join(part for part in parts if part)
            if _VERSION.fullmatch(version):
                return Driver(version=version)
            if set(parts) != {"unknown"}:
                self.mistakes.append((f"{_NVIDIA}cuda.{names[0]}", f"`{version}` is not the version of a driver"))
            return None
        amd = self._labels.get(f"{_AMD}gpu.driver-version")
        if not amd:
            return None
        if not re.fullmatch(r"\d+(?:\.\d+)+(?:[-+.\w]*)", amd):
            self.mistakes.append((f"{_AMD}gpu.driver-version", f"`{amd}` is not the version of a driver"))
            return None
        release = parse.amdgpu_release(amd) or self._modules.get(amd)
        if release is None:
            self.remarks.append(AmdgpuModule(amd))
        return Driver(version=release, kind="amdgpu")

    def _driver_of_some_version(self, *, is_nvidia: bool, is_amd: bool) -> Driver | None:
        """Return a driver of unknown version for a node that offers GPUs, which a device plugin finds only with a driver.

        `is_nvidia` and `is_amd` are whether the node offers GPUs of this vendor. None if it offers no GPUs, and for a Jetson,
        whose driver is labelled `unknown`.
        """
        if "unknown" in {self._labels.get(f"{_NVIDIA}cuda.{name}") for name in (*_DRIVER, *_OLD_DRIVER)}:
            return None
        return Driver() if is_nvidia else Driver(kind="amdgpu") if is_amd else None

    def _is_virtual_gpu(self) -> bool:
        return self._labels.get(f"{_NVIDIA}vgpu.present") == "true"

    def _nvidia(self, amount: int | None, signs: tuple[str, ...], *, has_slices: bool) -> tuple[HostGpu, ...] | None:
        capability, product = self._capability(), self._labels.get(f"{_NVIDIA}gpu.product", "")
        google = self._labels.get(_GOOGLE, "")
        if not capability and not product and google:
            return self._of_google(google, amount)
        if not capability and not product and (amount or has_slices) and (found := self._of_instance(amount)):
            return found
        if not capability and not product:
            if amount or has_slices or self._labels.get(f"{_NVIDIA}gpu.present") == "true" or _has_gpu(signs, "10de"):
                self.remarks.append(UnlabelledGpus("nvidia"))
                return (HostGpu(count=amount or 1),)
            return None
        whole, _, slice_ = product.removesuffix("-SHARED").partition("-MIG-")
        is_shared = product.endswith("-SHARED")
        count = _count(self._labels.get(f"{_NVIDIA}gpu.count"))
        if slice_:
            self.remarks.append(MigNotOffered() if slice_ == "INVALID" else MigSlices(slice_))
        if self._is_virtual_gpu():
            self.remarks.append(VirtualGpu(self._labels.get(f"{_NVIDIA}vgpu.host-driver-version", "")))
        read = self._gpus.read(whole) if whole else None
        # A name that the matrix does not list is useful only beside a compute capability: alone it would stop the solver.
        name = read.product if isinstance(read, NamedGpu) else whole
        known = read.target if isinstance(read, NamedGpu) and "." in read.target else None
        target = capability or known
        gpu = HostGpu(
            name=(name or None) if target else None, compute_capability=target, count=count if count and not slice_ else 1
        )
        return (gpu, *self._others(amount, count, is_divided=bool(slice_) or is_shared))

    def _mig(self, *, has_slices: bool) -> Literal["undivided"] | None:
        """Return `undivided` if every GPU is in MIG mode and none has an instance, so that CUDA finds no device; else None.

        Feature discovery counts no replicas of a GPU if all are in MIG mode, and with the strategy `mixed` every instance has
        labels (NVIDIA/k8s-device-plugin, internal/lm/mig-strategy.go, resource.go). With `single` the same labels also mean
        instances that it cannot offer, and with `none` nothing is told of instances.
        """
        changing = _CHANGING.get(self._labels.get(f"{_NVIDIA}mig.config.state", ""))
        if changing is not None:
            self.remarks.append(changing)
            return None
        is_divided = self._labels.get(f"{_NVIDIA}gpu.replicas") == "0" and bool(_count(self._labels.get(f"{_NVIDIA}gpu.count")))
        is_told = self._labels.get(f"{_NVIDIA}mig.strategy") == "mixed"
        return "undivided" if is_divided and is_told and not has_slices else None

    def _of_google(self, label: str, amount: int | None) -> tuple[HostGpu, ...]:
        """Return the GPUs of a node without GPU feature discovery that GKE labels `gke-accelerator: nvidia-tesla-t4`.

        `label` is the value of that label, `amount` the number of GPUs that kubelet reports, None if it reports none.
        """
        read = self._gpus.read(label)
        if not isinstance(read, NamedGpu):
            self.remarks.append(UnknownAcceleratorLabel(label=_GOOGLE, value=label))
            return (HostGpu(count=amount or 1),)
        return (HostGpu(name=read.product, compute_capability=read.target, count=amount or 1),)

    def _of_instance(self, amount: int | None) -> tuple[HostGpu, ...] | None:
        """Return the GPUs of the node's instance type, for a node without a product label; None if the type is not listed."""
        found = instance_type(self._labels.get(_INSTANCE_TYPE, ""))
        gpus = found.host.gpus if found is not None else None
        return tuple(replace(gpu, count=min(gpu.count, amount or gpu.count)) for gpu in gpus) if gpus else None

    def _capability(self) -> str:
        names = [f"{_NVIDIA}gpu.compute.{part}" for part in ("major", "minor")]
        parts = [self._labels.get(name, "") for name in names]
        if not any(parts):
            return ""
        for name, part in zip(names, parts, strict=True):
            if not re.fullmatch(r"[0-9]{1,3}", part):
                self.mistakes.append((name, f"`{part}` is not a number" if part else "is missing beside the other half"))
                return ""
        return ".".join(str(int(part)) for part in parts)

    def _others(self, amount: int | None, count: int | None, *, is_divided: bool) -> tuple[HostGpu, ...]:
        """Return the GPUs that kubelet counts beyond those that labels describe, which are of only one product of a node.

        `amount` is the number of GPUs that kubelet reports, `count` the number in the label. The result is empty if `amount` is
        not above `count`, and if `is_divided`, because the numbers of MIG slices and shared GPUs cannot be compared.
        """
        strategy = self._labels.get(f"{_NVIDIA}gpu.sharing-strategy", "none")
        if amount is None or count is None or is_divided or strategy not in {"none", ""} or amount <= count:
            return ()
        self.remarks.append(MoreGpusThanLabelled(counted=amount, labelled=count))
        return (HostGpu(count=amount - count),)

    def _amd(self, amount: int | None, signs: tuple[str, ...]) -> tuple[HostGpu, ...] | None:
        products, devices = self._counted("product-name"), self._counted("device-id")
        if not products and not devices:
            if amount and (found := self._of_instance(amount)):
                return found
            if amount or _has_gpu(signs, "1002"):
                self.remarks.append(UnlabelledGpus("amd"))
                return (HostGpu(count=amount or 1),)
            return None
        if len(devices) <= 1 and len(products) <= 1:
            (_, counted), *_ = (*devices.items(), *products.items())
            return (self._amd_gpu(next(iter(products), ""), device=next(iter(devices), ""), count=amount or counted),)
        return tuple(self._amd_gpu(name, device="", count=count) for name, count in sorted(products.items())) or (
            HostGpu(count=amount or 1),
        )

    def _amd_gpu(self, label: str, *, device: str, count: int) -> HostGpu:
        """Return `count` AMD GPUs of one kind; `label` is their product label, `device` their PCI device id, "" if missing.

        A GPU without a product label, such as a virtual function, gets its target from the device id.
        """
        identity = device.upper() if re.fullmatch(r"[0-9a-fA-F]{4}", device) else None
        read = self._gpus.read(label) if label else None
        named = read if isinstance(read, NamedGpu) else None
        known = named or (self._gpus.by_device(identity, vendor="AMD") if identity else None)
        gfx = known.target if known is not None and known.target.startswith("gfx") else None
        return HostGpu(name=named.product if named else None, gfx=gfx, pci_device_id=identity, count=count)

    def _counted(self, kind: str) -> dict[str, int]:
        """Return the number of GPUs for each value of an AMD label, which `kind` names: `product-name` or `device-id`.

        The label is `amd.com/gpu.device-id: 74a1` if all GPUs are alike, and then counts as one GPU; otherwise there is a label
        `amd.com/gpu.device-id.74a1: "8"` for each kind.
        The labeller first wrote `beta.amd.com/…`, and still does.
        """
        for prefix in (f"{_AMD}gpu.{kind}", f"beta.{_AMD}gpu.{kind}"):
            if prefix in self._labels:
                return {self._labels[prefix]: 1}
            own = {key.removeprefix(f"{prefix}."): value for key, value in self._labels.items() if key.startswith(f"{prefix}.")}
            if own:
                return {name: _count(value) or 1 for name, value in own.items()}
        return {}


def _is_sign(key: str) -> bool:
    return _PCI_GPU.fullmatch(key) is not None or key == f"{_NFD}cpu-cpuid.HYPERVISOR" or _is_pci(key)


def _is_pci(key: str) -> bool:
    return key.startswith(f"{_NFD}pci-") and key.endswith(".present")


def _has_gpu(signs: tuple[str, ...], vendor: str) -> bool:
    return any(match["vendor"] == vendor for sign in signs if (match := _PCI_GPU.fullmatch(sign)))


def _says_none(labels: Mapping[str, str], signs: tuple[str, ...]) -> bool:
    """Return whether a node is known to have no GPU.

    The GPU operator labels a node that lost its GPUs `nvidia.com/gpu.present: "false"`. Node feature discovery labels every
    device of classes 03 (display) and 12 (accelerator), so that a node with labels of PCI devices, but no device of NVIDIA or
    AMD among them, has no GPU; the caller has looked for these. Without labels of PCI devices, nothing is known about a node.
    """
    return labels.get(f"{_NVIDIA}gpu.present") == "false" or any(_is_pci(sign) for sign in signs)


def _is_of_gpus(labels: Mapping[str, str]) -> bool:
    """Return whether a node has labels about GPUs, even unreadable ones, or is of an instance type with GPUs."""
    is_labelled = any(key.startswith((_NVIDIA, _AMD, f"beta.{_AMD}", _GOOGLE)) for key in labels)
    return is_labelled or instance_type(labels.get(_INSTANCE_TYPE, "")) is not None


def _unread(labels: Mapping[str, Any], host: Host) -> Iterator[NodeRemark]:
    """Yield the remark on labels that look as if they named the GPU of a node, about whose GPUs nothing else is known."""
    names = [name for name, value in labels.items() if _NAMES_A_GPU.fullmatch(name) and str(value).lower() not in _NO_GPU]
    if host.gpus is None and names:
        yield LabelsNotRead(tuple(sorted(names)))


def _condition(item: Mapping[str, Any], status: Mapping[str, Any]) -> Iterator[NodeUnavailable]:
    spec, conditions = item.get("spec"), status.get("conditions")
    for condition in conditions if isinstance(conditions, Sequence) and not isinstance(conditions, str) else ():
        if isinstance(condition, Mapping) and condition.get("type") == "Ready" and condition.get("status") != "True":
            yield NodeUnavailable("not-ready")
    if isinstance(spec, Mapping) and spec.get("unschedulable") is True:
        yield NodeUnavailable("cordoned")


def _count(amount: str | None) -> int | None:
    """Return the number in the text of a resource's amount or of a label (`"8"`); None if it is missing or not whole."""
    return int(amount) if amount and re.fullmatch(r"[0-9]{1,6}", amount) else None


def _text(item: Mapping[str, Any], key: str) -> str:
    """Return the text under a key of a node object, "" if the key is missing or holds no text."""
    value = item.get(key)
    return value if isinstance(value, str) else ""
