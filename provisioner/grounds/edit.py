"""Edits: changes of a request that the user could make; a fix consists of edits, and `apply` carries one out.

The JSON output names each edit by its `component` and `change`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from msgspec import Struct
from msgspec.structs import replace
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from provisioner.accelerators import ACCELERATORS, accelerator_of_target
from provisioner.host.facts import with_change
from provisioner.host.model import HostGpu

if TYPE_CHECKING:
    from collections.abc import Callable

    from provisioner.grounds.requirement import Ground
    from provisioner.host.model import Host
    from provisioner.request import Request

LEFT_OUT = "left out"
"""The `change` of an edit that removes a line or a host, as the JSON output has it."""


class Edit(Struct, frozen=True):
    """The base of all edits; `is_of_spec`: it changes a key that only a spec has, and no list of requirements."""

    is_of_spec: ClassVar[bool] = False

    @property
    def component(self) -> str:
        """The component, distribution or key that is changed, as the JSON output names it."""
        raise NotImplementedError

    @property
    def change(self) -> str:
        """The new value, as the JSON output spells it; `LEFT_OUT` for an edit that removes something."""
        return LEFT_OUT

    @property
    def host_label(self) -> str:
        """The host whose fact is changed; "" for an edit of the spec."""
        return ""

    @property
    def gives_up(self) -> bool:
        """Whether the edit drops a request."""
        return False

    @property
    def identity(self) -> tuple[object, ...]:
        """A key for comparison: edits with the same identity are the same edit, whatever they replace."""
        return self.component, self.change, self.host_label

    def apply(self, request: Request) -> Request:
        """Return the request with the edit applied."""
        raise NotImplementedError


class SetComponent(Edit, frozen=True, kw_only=True):
    """An edit that requests one version of a component, or one build, in place of `requests`."""

    name: str
    value: str
    requests: tuple[Ground, ...] = ()

    @property
    def component(self) -> str:
        return self.name

    @property
    def change(self) -> str:
        is_version = self.name != "pytorch_build" and self.value[:1].isdigit()
        return f"=={self.value}" if is_version else self.value

    def apply(self, request: Request) -> Request:
        requires = {**request.spec.requires, self.name: self.change}
        return replace(request, spec=replace(request.spec, requires=requires))


def _with_lines_about(request: Request, distribution: str, change: Callable[[Requirement], None]) -> Request:
    """Return a request in which each line of `packages:` about a distribution is changed by `change`."""
    lines = []
    for text in request.spec.packages:
        requirement = Requirement(text)
        if canonicalize_name(requirement.name) == distribution:
            change(requirement)
            text = str(requirement)  # noqa: PLW2901 - a line that stays is the text that the spec has
        lines.append(text)
    return replace(request, spec=replace(request.spec, packages=tuple(lines)))


class SetDistribution(Edit, frozen=True, kw_only=True):
    """An edit that requests one version of a distribution in `packages:`, in place of `requests`.

    `name` is the component that the distribution is, or the distribution's own name if it is none. `extras` are those that the
    version is requested with besides those of `requests`.
    """

    name: str
    distribution: str
    value: str
    requests: tuple[Ground, ...] = ()
    extras: frozenset[str] = frozenset()

    @property
    def component(self) -> str:
        return self.name

    @property
    def change(self) -> str:
        extras = f"[{','.join(sorted(self.extras))}]" if self.extras else ""
        return f"{extras}=={self.value}"

    def apply(self, request: Request) -> Request:
        def pin(requirement: Requirement) -> None:
            requirement.extras |= self.extras
            requirement.specifier = SpecifierSet(f"=={self.value}")
            requirement.url = None

        return _with_lines_about(request, self.distribution, pin)


def permitting(request: Request, distribution: str, specifier: str = "") -> Request:
    """Return a request in which the lines of `packages:` about a distribution state `specifier`, "" for any, and no URL."""

    def open_range(requirement: Requirement) -> None:
        requirement.specifier = SpecifierSet(specifier)
        requirement.url = None

    return _with_lines_about(request, distribution, open_range)


class DropRequest(Edit, frozen=True, kw_only=True):
    """The base of edits that drop the `requests` for `name`, a component or a distribution that is not one."""

    gives_up: ClassVar[bool] = True
    name: str
    requests: tuple[Ground, ...] = ()

    @property
    def component(self) -> str:
        return self.name

    @property
    def identity(self) -> tuple[object, ...]:
        return self.component, self.change, self.requests


class DropComponent(DropRequest, frozen=True, kw_only=True):
    """An edit that removes a line of `requires:`."""

    def apply(self, request: Request) -> Request:
        requires = {name: text for name, text in request.spec.requires.items() if name != self.name}
        return replace(request, spec=replace(request.spec, requires=requires))


class DropDistribution(DropRequest, frozen=True, kw_only=True):
    """An edit that removes the lines of `packages:` about a distribution."""

    distribution: str

    def apply(self, request: Request) -> Request:
        packages = (text for text in request.spec.packages if canonicalize_name(Requirement(text).name) != self.distribution)
        return replace(request, spec=replace(request.spec, packages=tuple(packages)))


class AddDistributions(Edit, frozen=True, kw_only=True):
    """An edit that adds distributions to `packages:`, in any version."""

    names: tuple[str, ...]

    @property
    def component(self) -> str:
        return "packages"

    @property
    def change(self) -> str:
        return ", ".join(self.names)

    def apply(self, request: Request) -> Request:
        return replace(request, spec=replace(request.spec, packages=(*request.spec.packages, *self.names)))


class DropBound(Edit, frozen=True, kw_only=True):
    """An edit that removes every line `requirement` of `constraints:` or `overrides:`; `key` says which list."""

    key: str
    distribution: str
    requirement: str

    @property
    def component(self) -> str:
        return f"{self.key}.{self.distribution}"

    @property
    def identity(self) -> tuple[object, ...]:
        return self.component, self.change, self.requirement

    def apply(self, request: Request) -> Request:
        kept = tuple(text for text in getattr(request.spec, self.key) if text != self.requirement)
        return replace(request, spec=replace(request.spec, **{self.key: kept}))


class DropHashes(Edit, frozen=True, kw_only=True):
    """An edit that removes the hashes of a distribution from the spec."""

    distribution: str

    @property
    def component(self) -> str:
        return f"hashes.{self.distribution}"

    def apply(self, request: Request) -> Request:
        hashes = {name: digests for name, digests in request.spec.hashes.items() if name != self.distribution}
        return replace(request, spec=replace(request.spec, hashes=hashes))


class DropRequiresPython(Edit, frozen=True, kw_only=True):
    """An edit that removes `requires-python` from the project of the spec; `ranges` are its values."""

    component: ClassVar[str] = "requires-python"
    ranges: tuple[str, ...]

    @property
    def identity(self) -> tuple[object, ...]:
        return self.component, self.change, self.ranges

    def apply(self, request: Request) -> Request:
        return replace(request, spec=replace(request.spec, requires_python=()))


class SetPolicyWords(Edit, frozen=True, kw_only=True):
    """An edit that sets the words of `policy.allow` or `policy.forbid`; `key` is `allow` or `forbid`."""

    is_of_spec: ClassVar[bool] = True
    component: ClassVar[str] = "policy"
    key: str
    words: tuple[str, ...]

    @property
    def change(self) -> str:
        return f"{self.key}: [{', '.join(self.words)}]"

    def apply(self, request: Request) -> Request:
        policy = replace(request.spec.policy, **{self.key: self.words})
        return replace(request, spec=replace(request.spec, policy=policy))


class SetStrategy(Edit, frozen=True, kw_only=True):
    """An edit that sets another strategy of the policy."""

    is_of_spec: ClassVar[bool] = True
    component: ClassVar[str] = "policy"
    strategy: str

    @property
    def change(self) -> str:
        return f"strategy: {self.strategy}"

    def apply(self, request: Request) -> Request:
        policy = replace(request.spec.policy, strategy=self.strategy)
        return replace(request, spec=replace(request.spec, policy=policy))


class SetAccelerator(Edit, frozen=True, kw_only=True):
    """An edit that requests another accelerator in place of `before`, "" for none.

    `build` is the build that the spec requests and that is for this accelerator, "" if it requests none of its builds.
    """

    is_of_spec: ClassVar[bool] = True
    component: ClassVar[str] = "accelerator"
    accelerator: str
    before: str = ""
    build: str = ""

    @property
    def change(self) -> str:
        return f"=={self.accelerator}"

    def apply(self, request: Request) -> Request:
        return replace(request, spec=replace(request.spec, accelerator=self.accelerator))


class SetImage(Edit, frozen=True, kw_only=True):
    """An edit that requests another base image in place of `before`."""

    is_of_spec: ClassVar[bool] = True
    component: ClassVar[str] = "image"
    base: str
    before: str

    @property
    def change(self) -> str:
        return self.base

    def apply(self, request: Request) -> Request:
        return replace(request, spec=replace(request.spec, image=replace(request.spec.image, base=self.base)))


class SetRuns(Edit, frozen=True, kw_only=True):
    """An edit that sets `runs`, in a container or on the host itself, in place of `before`."""

    is_of_spec: ClassVar[bool] = True
    component: ClassVar[str] = "runs"
    runs: Literal["container", "host"]
    before: str

    @property
    def change(self) -> str:
        return self.runs

    def apply(self, request: Request) -> Request:
        return replace(request, spec=replace(request.spec, runs=self.runs))


class CompileFromSource(Edit, frozen=True, kw_only=True):
    """An edit that locks the system alone, with a framework that is compiled from source, and asks for the script of the host.

    `requirement` is the range in `requires:`, and `distribution` is left out of `packages:`, because no index has that build.
    The result is solved with `--stack-only`.
    """

    name: str
    requirement: str
    distribution: str

    @property
    def component(self) -> str:
        return self.name

    @property
    def change(self) -> str:
        return f"{self.requirement} compiled from source"

    def apply(self, request: Request) -> Request:
        left = DropDistribution(name=self.name, distribution=self.distribution).apply(request).spec
        requires = {**left.requires, self.name: self.requirement}
        return replace(request, spec=replace(left, requires=requires, outputs=("host-script",)))


class SetExtras(Edit, frozen=True, kw_only=True):
    """An edit that requires a distribution in `packages:` with other extras.

    `extras` and `before` are the new and the former extras, as `cuda12,opt`, "" for none.
    """

    name: str
    distribution: str
    extras: str
    before: str

    @property
    def component(self) -> str:
        return f"{self.name}[{self.before}]"

    @property
    def change(self) -> str:
        return f"{self.name}[{self.extras}]" if self.extras else self.name

    def apply(self, request: Request) -> Request:
        def set_extras(requirement: Requirement) -> None:
            requirement.extras = {extra for extra in self.extras.split(",") if extra}

        return _with_lines_about(request, self.distribution, set_extras)


class SetTwin(Edit, frozen=True, kw_only=True):
    """An edit that requires another distribution of the same modules, `twin`, in place of a distribution in `packages:`.

    `kept` is the range of versions that is asked for of both, as `==1.2`; "" for any version of the twin, for those of the two
    may differ. `is_for_cpu`: the twin uses no GPU.
    """

    name: str
    twin: str
    kept: str = ""
    is_for_cpu: bool = False

    @property
    def component(self) -> str:
        return self.name

    @property
    def change(self) -> str:
        return f"{self.twin}{self.kept}"

    @property
    def identity(self) -> tuple[object, ...]:
        return self.component, self.twin

    def apply(self, request: Request) -> Request:
        def swap(requirement: Requirement) -> None:
            requirement.name = self.twin
            requirement.specifier = SpecifierSet(self.kept)
            if self.is_for_cpu:
                requirement.extras = set()  # they are for libraries of GPUs, such as `and-cuda`
            requirement.url = None

        return _with_lines_about(request, self.name, swap)


class SetArchitecture(Edit, frozen=True, kw_only=True):
    """An edit that replaces the architecture `before` in the spec's list of architectures to compile for."""

    component: ClassVar[str] = "arch_list"
    before: str
    architecture: str

    @property
    def change(self) -> str:
        return f"=={self.architecture}"

    def apply(self, request: Request) -> Request:
        build = request.spec.build
        if build is None:
            return request
        listed = tuple(self.architecture if one == self.before else one for one in build.arch_list)
        return replace(request, spec=replace(request.spec, build=replace(build, arch_list=listed)))


class SetArchitectures(Edit, frozen=True, kw_only=True):
    """An edit that replaces the spec's whole list of architectures to compile for."""

    component: ClassVar[str] = "arch_list"
    before: tuple[str, ...]
    architectures: tuple[str, ...]

    @property
    def change(self) -> str:
        return f"=={', '.join(self.architectures)}"

    def apply(self, request: Request) -> Request:
        build = request.spec.build
        if build is None:
            return request
        return replace(request, spec=replace(request.spec, build=replace(build, arch_list=self.architectures)))


class AddPlatform(Edit, frozen=True, kw_only=True):
    """An edit that adds a platform to the spec; `platforms` are all platforms of the spec afterwards, the added one last."""

    component: ClassVar[str] = "platform"
    platforms: tuple[str, ...]

    @property
    def change(self) -> str:
        return f"[{', '.join(self.platforms)}]"

    def apply(self, request: Request) -> Request:
        return replace(request, platform=self.platforms[-1])


class UseWsl2(Edit, frozen=True, kw_only=True):
    """An edit that runs the Linux of WSL 2 on a host with Windows, whose driver serves it; `platform` is that of this Linux."""

    component: ClassVar[str] = "virtualization"
    change: ClassVar[str] = "==wsl2"
    host: str
    platform: str

    @property
    def host_label(self) -> str:
        return self.host

    def apply(self, request: Request) -> Request:
        hosts = (
            replace(target, host=replace(target.host, platform=self.platform, os=None, virtualization="wsl2"))
            if target.label == self.host
            else target
            for target in request.hosts
        )
        return replace(request, hosts=tuple(hosts), platform=self.platform)


class SetFact(Edit, frozen=True, kw_only=True):
    """An edit that changes a fact of a host: another driver, kernel or GPU. What is installed with it changes with it.

    `today` is the value that the host states now, and `value` the nearest value that works. `sign` is `>=` if higher values
    work, too, `<=` if lower values do, otherwise `==`; `last` is the furthest value that works, "" if there is no limit or no
    other value. `products` are the names of the products whose device is `today`, `product` is the one that the host states,
    and `example` one whose device is `value`, "" for none. `shown_by` is the component that shows that `value` is installed
    already, "" if none does.
    """

    name: str
    host: str
    value: str
    today: str
    sign: str = "=="
    last: str = ""
    products: tuple[str, ...] = ()
    product: str = ""
    example: str = ""
    shown_by: str = ""

    @property
    def component(self) -> str:
        return self.name

    @property
    def change(self) -> str:
        nearest = f"{self.sign}{self.value}"
        if not self.last:
            return nearest
        return f"{nearest},<={self.last}" if self.sign == ">=" else f">={self.last},{nearest}"

    @property
    def ends(self) -> tuple[str, ...]:
        """The two ends of the range of values, each known to work; `value` alone for an open range or a single value."""
        return (self.value, self.last) if self.last else (self.value,)

    @property
    def host_label(self) -> str:
        return self.host

    def apply(self, request: Request) -> Request:
        hosts = (
            replace(target, host=self._changed(target.host)) if target.label == self.host else target
            for target in request.hosts
        )
        return replace(request, hosts=tuple(hosts))

    def _changed(self, host: Host) -> Host:
        if self.name == "gpu":
            return replace(host, gpus=tuple(self._changed_gpu(gpu) for gpu in host.gpus or ()))
        return with_change(host, self.name, self.value)

    def _changed_gpu(self, gpu: HostGpu) -> HostGpu:
        """Return a GPU with the new device and without a product name, or unchanged when its device is not to change."""
        if gpu.target != self.today and (gpu.target is not None or gpu.name not in self.products):
            return gpu
        accelerator = accelerator_of_target(self.value) or ACCELERATORS["cuda"]
        return HostGpu(count=gpu.count, **{accelerator.target_key: self.value})


class LeaveWsl1(Edit, frozen=True, kw_only=True):
    """An edit that runs a host's Linux in WSL 2, which has a Linux kernel and reaches the GPU, in place of WSL 1."""

    component: ClassVar[str] = "virtualization"
    change: ClassVar[str] = "==wsl2"
    host: str

    @property
    def host_label(self) -> str:
        return self.host

    def apply(self, request: Request) -> Request:
        hosts = (
            replace(target, host=replace(target.host, virtualization="wsl2", kernel=None))
            if target.label == self.host
            else target
            for target in request.hosts
        )
        return replace(request, hosts=tuple(hosts))


class DropHost(Edit, frozen=True, kw_only=True):
    """An edit that removes a host from the target of the request."""

    component: ClassVar[str] = "target"
    host: str

    @property
    def host_label(self) -> str:
        return self.host

    def apply(self, request: Request) -> Request:
        return replace(request, hosts=tuple(target for target in request.hosts if target.label != self.host))
