"""A request: the spec, the hosts that the answer must run on, and the lines of files that both were read from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.json import encode
from msgspec.structs import replace

from provisioner.outputs import OUTPUTS
from provisioner.places import HostPlace, Place

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provisioner.host.model import Host, HostGpu
    from provisioner.spec.model import Spec


class TargetHost(Struct, frozen=True, kw_only=True):
    """One host of the target. `label` tells hosts apart in messages; `places` has the line that states each fact."""

    label: str
    host: Host
    places: Mapping[str, Place] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    """The hosts it stands for, where they are several that state the same."""

    @property
    def count(self) -> int:
        """How many hosts it stands for."""
        return len(self.names) or 1

    def place(self, fact: str) -> HostPlace:
        """Return where a fact of this host was read; the host's label where no place is known."""
        place = self.places.get(fact)
        return HostPlace(Place(self.label)) if place is None else HostPlace(place, self.count - 1)


def alike(targets: Sequence[TargetHost]) -> tuple[TargetHost, ...]:
    """Hosts that state the same as one, in the order given: the solver asks of each what it asks of the first."""
    groups: dict[bytes, list[TargetHost]] = {}
    for target in targets:
        groups.setdefault(encode(target.host), []).append(target)
    return tuple(_one_of(some) for some in groups.values())


def _one_of(targets: Sequence[TargetHost]) -> TargetHost:
    first, *others = targets
    if not others:
        return first
    label = f"{first.label} (and {len(others)} host{'' if len(others) == 1 else 's'} like it)"
    return replace(first, label=label, names=tuple(target.label for target in targets))


class Request(Struct, frozen=True, kw_only=True):
    """The spec, the lines its keys stand on (`requires.cuda`, in line 7 of `provision.yaml`), and the hosts of the target.

    Places and labels of hosts are relative to the folder of the spec, so that answers do not depend on where they were asked
    for.
    """

    spec: Spec
    hosts: tuple[TargetHost, ...]
    platform: str
    places: Mapping[str, Place] = field(default_factory=dict)
    preferred: Mapping[str, str] = field(default_factory=dict)
    """What an earlier lock chose (`pytorch`: `2.7.1+cu126`): tried first, so that nothing moves needlessly."""
    upgraded: Mapping[str, str] = field(default_factory=dict)
    """What is to be upgraded, by name, and what the earlier lock had of it. It is chosen after what the lock keeps."""

    def place(self, key: str) -> Place:
        """Return where a key of the spec stands; the spec as a whole when it was left out."""
        return self.places.get(key) or self.places.get("") or Place("the spec")

    @property
    def allowed(self) -> frozenset[str]:
        """The relaxations that may be used: what the policy allows, less what it forbids by name."""
        return frozenset(self.spec.policy.allow).difference(self.spec.policy.forbid)

    @property
    def system(self) -> str:
        """The operating system of the platform: `linux` or `macos`."""
        return self.platform.partition("/")[0]

    @property
    def runs(self) -> str:
        """`container` when any output is an image recipe, `host` otherwise, unless the spec says; nothing contains macOS."""
        if self.system == "macos":
            return "host"
        has_recipe = any(OUTPUTS[output].is_image_recipe for output in self.spec.outputs)
        return self.spec.runs or ("container" if has_recipe else "host")

    @property
    def has_no_gpu(self) -> bool:
        """Whether every host states that it has no GPU, which is not the same as saying nothing."""
        return bool(self.hosts) and all(target.host.gpus == () for target in self.hosts)

    @property
    def accelerator(self) -> str:
        """What the spec asks for, or what the target's GPUs call for: CPU only where every host states it has none."""
        if self.spec.accelerator is not None:
            return self.spec.accelerator
        if self.has_no_gpu:
            return "cpu"
        if self.platform == "macos/arm64":
            return "mps"
        # The first GPU that is none of AMD's settles it: this is asked for every fact of every host of a fleet.
        is_amd = all(_is_amd(gpu, target.host) for target in self.hosts for gpu in target.host.gpus or ())
        return "rocm" if is_amd and any(target.host.gpus for target in self.hosts) else "cuda"

    @property
    def image_base(self) -> str:
        """The base image asked for; where CUDA code is compiled in a container, `auto` is one that has the compiler."""
        base = self.spec.image.base
        is_compiling = self.spec.build is not None and self.accelerator == "cuda"
        return "cuda-devel" if base == "auto" and is_compiling else base

    @property
    def bundles_cuda_compat(self) -> bool:
        """Whether the image brings a forward-compatibility libcuda, without which an older driver branch helps nobody.

        NVIDIA's own images install cuda-compat in their base stage (NVIDIA container images, dist/*/base/Dockerfile); other
        bases say so with `image.cuda_compat`.
        """
        return bool(self.spec.image.cuda_compat) or self.image_base.startswith(("cuda-", "nvidia/cuda:"))


def _is_amd(gpu: HostGpu, host: Host) -> bool:
    """Whether a GPU is AMD's: by its gfx target, by its product, or, where neither is stated, by the driver beside it."""
    if gpu.gfx or gpu.compute_capability:
        return bool(gpu.gfx)
    if gpu.name:
        return gpu.name.startswith("AMD ")
    return host.driver is not None and host.driver.kind == "amdgpu"
