"""The request of a resolution: the spec, the hosts that the stack must run on, and the line of each of their keys."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.json import encode
from msgspec.structs import replace
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from provisioner.components import COMPONENTS, CUDA_LIBRARIES, FRAMEWORKS, TOOLKIT_PARTS
from provisioner.host.gpu_names import may_be_made_by
from provisioner.names import COMPONENT_OF_DISTRIBUTION
from provisioner.outputs import OUTPUTS
from provisioner.places import HostPlace, Place
from provisioner.spec.model import ANY_CUDA
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provisioner.host.inventory import InventoryHost
    from provisioner.host.model import Host, HostGpu
    from provisioner.spec.model import Spec


_WITH_CUDA_COMPAT = ("/nvidia/cuda:", "/nvidia/pytorch:")
"""Parts of `image.base`, after a slash, that select an image with cuda-compat, also in a mirror of its registry."""

_GPUS = 16
"""The number of kinds of GPU per host whose facts get a file and line, more than any machine has."""


class TargetHost(Struct, frozen=True, kw_only=True):
    """One host that the stack must run on. `label` names it in messages; `places` has the line that states each fact."""

    label: str
    host: Host
    places: Mapping[str, Place] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    """The labels of all hosts with the same facts, if this one represents several; else empty."""

    @property
    def count(self) -> int:
        """The number of hosts that this one represents."""
        return len(self.names) or 1

    def place(self, fact: str) -> HostPlace:
        """Return the file and line that state a fact of this host; if unknown, a place with the host's label as its file."""
        place = self.places.get(fact)
        return HostPlace(Place(self.label)) if place is None else HostPlace(place, self.count - 1)


def listed_target(one: InventoryHost, *, label: str = "", place: Place | None = None) -> TargetHost:
    """Return a host of an inventory as one of a request, in which every fact has the place that lists the host.

    `label` and `place` stand for those of the inventory, where paths must be relative to something else.
    """
    at = place or one.place
    keys = (*(row.key for row in COMPONENTS.values() if row.key), *(f"gpus.{index}" for index in range(_GPUS)))
    return TargetHost(label=label or one.name, host=one.host, places=dict.fromkeys(keys, at) if at is not None else {})


def merge_equal_hosts(targets: Sequence[TargetHost]) -> tuple[TargetHost, ...]:
    """Return one host for each set of hosts with equal facts, in the order of the first host of each.

    Its label names that first host and counts the others; `names` has the labels of all.
    """
    groups: dict[bytes, list[TargetHost]] = {}
    for target in targets:
        groups.setdefault(encode(target.host), []).append(target)
    merged = []
    for group in groups.values():
        first, others = group[0], len(group) - 1
        label = f"{first.label} (and {others} host{'' if others == 1 else 's'} like it)"
        names = tuple(target.label for target in group)
        merged.append(replace(first, label=label, names=names) if others else first)
    return tuple(merged)


class Request(Struct, frozen=True, kw_only=True, dict=True):
    """A spec, the hosts and the platform to resolve for, and the line of each key (`requires.cuda`: `provision.yaml:7`).

    Paths in `places` and labels of hosts are relative to the folder of the spec, so that answers do not depend on the working
    directory.
    """

    spec: Spec
    hosts: tuple[TargetHost, ...]
    platform: str
    places: Mapping[str, Place] = field(default_factory=dict)
    preferred: Mapping[str, str] = field(default_factory=dict)
    """The versions of an earlier lock (`pytorch`: `2.7.1+cu126`). The solver tries them first, to avoid needless changes."""
    has_strict_option: bool = False
    """Whether the command line has `--strict`, which means the same as `policy.strict` of the spec."""
    upgraded: Mapping[str, str] = field(default_factory=dict)
    """The components and packages to upgrade, each with its version in the earlier lock, "" if the lock lacks it.

    The solver chooses upgraded packages last, so that locked packages need not give way to them.
    """

    def place(self, key: str) -> Place:
        """Return the file and line of a key of the spec, such as `requires.cuda`; if the spec lacks it, the spec's file."""
        return self.places.get(key) or self.places.get("") or Place("the spec")

    @cached_property
    def allowed(self) -> frozenset[str]:
        """The relaxations (such as `prerelease`) that may be used (see `Policy.permitted`)."""
        return frozenset(self.spec.policy.permitted)

    @cached_property
    def host_by_label(self) -> dict[str, Host]:
        """Every host by its label."""
        return {target.label: target.host for target in self.hosts}

    @property
    def is_strict(self) -> bool:
        """Whether an unknown fact makes the answer unverified even if it would otherwise be an assumption."""
        return self.has_strict_option or self.spec.policy.strict

    @property
    def system(self) -> str:
        """The operating system of the platform: `linux` or `macos`."""
        return self.platform.partition("/")[0]

    @cached_property
    def runs(self) -> str:
        """`container` or `host`: the spec's `runs`, by default `container` if an output is an image recipe; `host` on macOS."""
        if self.system == "macos":
            return "host"
        has_recipe = any(OUTPUTS[output.format].is_for_containers for output in self.spec.files)
        return self.spec.runs_in or ("container" if has_recipe else "host")

    @property
    def loads_host_libraries(self) -> bool:
        """Whether the CUDA libraries of a host may be loaded in place of those of wheels, as no container does."""
        return self.runs == "host" and self.accelerator == "cuda"

    @property
    def has_no_gpu(self) -> bool:
        """Whether every host states that it has no GPU; a host that does not state its GPUs may have one."""
        return bool(self.hosts) and all(target.host.gpus == () for target in self.hosts)

    @cached_property
    def accelerator(self) -> str:
        """The accelerator of the spec, by default that of the hosts' GPUs; `cpu` if every host states that it has no GPU.

        A Mac without a stated GPU of NVIDIA computes on what Apple supports: `mps` on Apple silicon, `cpu` on Intel.
        """
        if self.spec.accelerator is not None:
            return self.spec.accelerator
        if self.has_no_gpu:
            return "cpu"
        if self.platform == "macos/arm64":
            return "mps"
        if self.platform == "macos/x86_64" and not any(may_compute_on_nvidia(target.host) for target in self.hosts):
            return "cpu"
        # A generator, so that `all` stops early: this property is read for every fact of every host of a fleet.
        is_amd = all(_is_amd(gpu, target.host) for target in self.hosts for gpu in target.host.gpus or ())
        return "rocm" if is_amd and any(target.host.gpus for target in self.hosts) else "cuda"

    @cached_property
    def named_packages(self) -> frozenset[str]:
        """The distributions that the spec names, normalized."""
        return _names(self.spec.packages)

    @cached_property
    def names_framework(self) -> bool:
        """Whether the spec names a framework, as a component or as a package; a framework bundles its CUDA and libraries."""
        requires = self.spec.requires
        is_required = "pytorch_build" in requires or any(name in requires for name in FRAMEWORKS)
        return is_required or not self.named_packages.isdisjoint(COMPONENT_OF_DISTRIBUTION)

    @property
    def toolkit(self) -> tuple[str, ...]:
        """CUDA, its libraries and tools that the spec requires; () if it names a framework or does not use CUDA."""
        asked = tuple(name for name in ("cuda", *CUDA_LIBRARIES, *TOOLKIT_PARTS) if name in self.spec.requires)
        return asked if asked and self.accelerator == "cuda" and not self.names_framework else ()

    @property
    def image_base(self) -> str:
        """The base image of the spec; `auto` becomes `cuda-devel`, which has the compiler, if CUDA code is compiled."""
        base = self.spec.image.base
        is_compiling = self.spec.build is not None and self.accelerator == "cuda"
        return "cuda-devel" if base == "auto" and is_compiling else base

    @property
    def has_cuda_compat(self) -> bool:
        """Whether the image has cuda-compat, the libcuda with which a container runs on an older driver branch.

        NVIDIA's own images install cuda-compat in their base stage (NVIDIA container images, dist/*/base/Dockerfile), and so do
        its images of PyTorch (`_CUDA_COMPAT_PATH` in their environment). For another image, `image.cuda_compat` of the spec
        states it.
        """
        base = self.image_base
        has_kind = base.startswith("cuda-")
        return bool(self.spec.image.cuda_compat) or has_kind or any(part in f"/{base}" for part in _WITH_CUDA_COMPAT)

    @property
    def stated_cuda_compat(self) -> Version | None:
        """The CUDA release of the base image's cuda-compat; None if the spec does not state it."""
        text = self.spec.image.cuda_compat
        return Version.parse(text) if text and text != ANY_CUDA else None

    @property
    def may_take_cuda_compat(self) -> bool:
        """Whether an image with cuda-compat may be chosen for an older driver.

        This holds if the spec leaves the image of a CUDA container open and allows forward compatibility.
        """
        is_open = self.runs == "container" and self.image_base == "auto" and not self.spec.image.cuda_compat
        return is_open and self.accelerator == "cuda" and "forward-compat" in self.allowed


@lru_cache(maxsize=16)
def _names(packages: tuple[str, ...]) -> frozenset[str]:
    return frozenset(canonicalize_name(Requirement(text).name) for text in packages)


def may_compute_on_nvidia(host: Host) -> bool:
    """Return whether a Mac states a GPU or a driver of NVIDIA, which no Mac has after macOS 10.13."""
    return bool(host.driver or host.cuda_driver) or any(map(_may_be_nvidias, host.gpus or ()))


def _may_be_nvidias(gpu: HostGpu) -> bool:
    return bool(gpu.compute_capability) or (not gpu.gfx and may_be_made_by("NVIDIA", gpu.name or ""))


def _is_amd(gpu: HostGpu, host: Host) -> bool:
    """Return whether a GPU is made by AMD, judged by its target, else by its product, else by the driver of its host."""
    if gpu.gfx or gpu.compute_capability:
        return bool(gpu.gfx)
    if gpu.name:
        return gpu.name.startswith("AMD ")
    return host.driver is not None and host.driver.kind == "amdgpu"
