"""Matrix, target and spec joined into one problem: what can be chosen, in order of preference, and what is given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from packaging.requirements import Requirement as Pep508
from packaging.utils import canonicalize_name

from provisioner.errors import ProvisionError, UsageError
from provisioner.names import COMPONENT_OF_DISTRIBUTION, nearest
from provisioner.solve.images import image_candidates
from provisioner.solve.needs import Needs
from provisioner.solve.requirement import PACKAGE, Candidate, Key, Labelled, Matching, Origin, Requirement, Within
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.matrix.model import Component, Matrix
    from provisioner.solve.target import TargetHost, Wish

PER_HOST = ("driver", "driver_module", "kernel")
ACCELERATORS = ("cuda", "rocm", "mps", "cpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Everything the search needs.

    `domains` lists the candidates of every key that is not a package, most wanted first; `roots` is what is required from
    the start; `order` ranks keys; `packages` are the spec's own requirements on distributions; `unverified` names the
    facts that were missing.
    """

    matrix: Matrix
    wish: Wish
    domains: dict[Key, tuple[Candidate, ...]]
    roots: tuple[Requirement, ...]
    order: dict[Key, int]
    packages: tuple[tuple[Pep508, Origin], ...]
    needs: Needs
    unverified: tuple[str, ...]

    def with_roots(self, *extra: Requirement) -> Problem:
        """The same problem with more required from the start."""
        return replace(self, roots=(*self.roots, *extra))

    def without_group(self, group: str) -> Problem:
        """The same problem without what one request or fact requires."""
        return replace(self, roots=tuple(one for one in self.roots if one.origin.group != group))


class UnknownGpuError(ProvisionError):
    """A profile names a GPU nobody has heard of, and does not say what it can do."""

    code = "unknown-gpu"
    exit_code = 2


def join(matrix: Matrix, wish: Wish) -> Problem:
    """Join the inputs of one platform.

    Raises `UsageError` for a policy this version cannot honour, `UnknownGpuError` for a GPU nobody knows.
    """
    if wish.spec.policy.strategy == "stable":
        raise UsageError(
            f"policy.strategy `stable` ({wish.place('policy.strategy')}) is not available yet",
            hints=("use newest or oldest, and narrow `requires:` where a branch must be supported",),
        )
    return _Joiner(matrix, wish).problem()


class _Joiner:
    def __init__(self, matrix: Matrix, wish: Wish) -> None:
        self.matrix = matrix
        self.wish = wish
        self.domains: dict[Key, tuple[Candidate, ...]] = {}
        self.roots: list[Requirement] = []
        self.unverified: list[str] = []
        self.is_gpu_stack = wish.accelerator != "cpu"

    def problem(self) -> Problem:
        self._shared()
        for target in self.wish.hosts:
            self._host(target)
        keys: dict[str, tuple[Key, ...]] = {}
        for key in self.domains:
            keys[key.component] = (*keys.get(key.component, ()), key)
        packages = self._requests(keys)
        rank = {name: index for index, name in enumerate(self.matrix.order)}
        order = {key: rank.get(key.component, -1) for key in self.domains}
        return Problem(
            matrix=self.matrix,
            wish=self.wish,
            domains=self.domains,
            roots=tuple(self.roots),
            order=order,
            packages=packages,
            needs=Needs(self.matrix, self.wish, keys),
            unverified=tuple(self.unverified),
        )

    def _shared(self) -> None:
        wish = self.wish
        platforms = ("linux/amd64", "linux/arm64", "macos/x86_64", "macos/arm64")
        self._named("platform", platforms, wish.platform, ("request", "target.platform", f"the target is {wish.platform}"))
        text = f"you ask for accelerator {wish.accelerator}"
        kind = "request"
        if wish.spec.accelerator is None:
            kind, text = "fact", f"the target's GPUs call for {wish.accelerator}"
        self._named("accelerator", ACCELERATORS, wish.accelerator, (kind, "accelerator", text))
        if wish.has_no_gpu:
            place = wish.hosts[0].place("gpus")
            origin = Origin("fact", "gpu", "no gpu", "the target has no GPU", place)
            self.roots.append(Requirement(Key("accelerator"), Labelled(frozenset({"cpu"}), "cpu"), origin))
        for name, component in self.matrix.components.items():
            if name in PER_HOST or name in {"gpu", "image"} or (name == "glibc" and wish.runs == "host"):
                continue
            self.domains[Key(name)] = self._candidates(component)
        if wish.runs == "container" and "image" in self.matrix.order:
            self._image()

    def _named(self, name: str, values: tuple[str, ...], value: str, why: tuple[str, str, str]) -> None:
        key = Key(name)
        self.domains[key] = tuple(Candidate(key, Version.named(text), text) for text in values)
        kind, place, text = why
        component = "pytorch_build" if name == "accelerator" else name
        origin = Origin(kind, component, name, text, self.wish.place(place))
        self.roots.append(Requirement(key, Labelled(frozenset({value}), value), origin))

    def _image(self) -> None:
        key = Key("image")
        candidates, unknown = image_candidates(self.matrix, self.wish, key)
        self.domains[key] = candidates
        self.unverified.extend(unknown)
        base = self.wish.spec.image.base
        text = f"the base image is {base}" if base != "auto" else "a base image is chosen"
        origin = Origin("request", "image", "image", text, self.wish.place("image.base"))
        labels = frozenset(candidate.label for candidate in candidates)
        self.roots.append(Requirement(key, Labelled(labels, base), origin))

    def _candidates(self, component: Component, key: Key | None = None) -> tuple[Candidate, ...]:
        key = key or Key(component.name)
        cut = self.wish.spec.policy.exclude_newer
        found = []
        for release in component.releases:
            if cut is not None and release.released[:10] > cut[:10]:
                continue
            if not release.builds:
                found.append(Candidate(key, release.version, str(release.version), (release, None)))
            for build in release.builds:
                if build.accelerator not in {"", self.wish.accelerator}:
                    continue  # another accelerator is another wish: it is neither chosen nor held against this one
                version = Version.parse(f"{release.version}+{build.name}")
                label = f"{release.version}+{build.name}" if component.name == "pytorch" else str(release.version)
                found.append(Candidate(key, version, label, (release, build)))
        if not component.is_named:
            is_oldest = self.wish.spec.policy.strategy == "oldest" and not component.is_virtual
            found.sort(key=_preference, reverse=True)
            if is_oldest:
                found.sort(key=lambda candidate: candidate.version)
        locked = self.wish.preferred.get(component.name)
        found.sort(key=lambda candidate: candidate.label != locked)
        return tuple(found)

    def _host(self, target: TargetHost) -> None:
        host, label = target.host, target.label
        for name in PER_HOST:
            if name in self.matrix.components:
                key = Key(name, label)
                self.domains[key] = self._candidates(self.matrix.components[name], key)
        if self.wish.runs == "host":
            self._fact(target, "glibc", host.glibc)
            if host.glibc is None and self.wish.platform.startswith("linux"):
                self.unverified.append(f"glibc: {label} does not state it")
        if not self.is_gpu_stack:
            return
        stated = host.driver.version if host.driver else None
        self._fact(target, "driver", stated)
        if stated is None and "driver" in self.matrix.components:
            origin = Origin("fact", "driver", f"a driver on {label}", f"{label} needs a driver, and states none", label)
            self.roots.append(Requirement(Key("driver", label), Within(Range()), origin))
        if host.driver and host.driver.module:
            self._fact(target, "driver_module", host.driver.module)
        self._fact(target, "kernel", host.kernel)
        self._gpus(target)
        if self.wish.runs == "container" and host.container_toolkit is None:
            self.unverified.append(f"container_toolkit: {label} does not state it")

    def _fact(self, target: TargetHost, name: str, value: str | None) -> None:
        """What the host states is fixed; what it leaves open keeps its whole domain and is chosen."""
        component = self.matrix.components.get(name)
        if component is None:
            return
        key = Key(name, target.label)
        candidates = self.domains.get(key) or self._candidates(component, key)
        if value is not None:
            version = Version.named(value) if component.is_named else Version.parse(value)
            if not any(candidate.label == value for candidate in candidates):
                place = next((i for i, other in enumerate(candidates) if other.version <= version), len(candidates))
                candidates = (*candidates[:place], Candidate(key, version, value), *candidates[place:])
            origin = Origin("fact", name, f"{name} of {target.label}", f"the host has {name} {value}", target.place(name))
            self.roots.append(Requirement(key, Labelled(frozenset({value}), value), origin))
        self.domains[key] = candidates

    def _gpus(self, target: TargetHost) -> None:
        if target.host.gpus is None:
            self.unverified.append(f"gpu: {target.label} does not state its GPUs, so no compiled target was compared")
            return
        known = {gpu.name: gpu.compute_capability for gpu in self.matrix.gpus}
        for index, gpu in enumerate(target.host.gpus):
            found = gpu.compute_capability or gpu.gfx or known.get(gpu.name or "")
            if found is None:
                self._unknown_gpu(target, gpu.name, index, known)
                continue
            key = Key(f"gpu:{found}", target.label)
            if key in self.domains:
                continue
            labels = dict.fromkeys(str(release.version) for release in self.matrix.components["gpu"].releases)
            labels.setdefault(found)
            self.domains[key] = tuple(Candidate(key, _capability(text), text) for text in labels)
            name = f" ({gpu.name})" if gpu.name else ""
            text = f"the host has gpu {found}{name}"
            origin = Origin("fact", "gpu", f"gpu {found} of {target.label}", text, target.place(f"gpus.{index}"))
            self.roots.append(Requirement(key, Labelled(frozenset({found}), found), origin))

    def _unknown_gpu(self, target: TargetHost, name: str | None, index: int, known: Mapping[str, str]) -> None:
        """A GPU without a name is a missing fact; a name nobody knows is more likely a slip, and would never be compared."""
        place = target.place(f"gpus.{index}")
        if name is None:
            self.unverified.append(f"gpu: a GPU of {target.label} states neither name nor compute_capability")
            return
        near = nearest(name, known)
        raise UnknownGpuError(
            f"`{name}` ({place}) is not a GPU the matrix knows, and its compute_capability is not stated",
            hints=(*((f"did you mean `{near}`?",) if near else ()), 'state its compute_capability, such as "9.0"'),
        )

    def _requests(self, keys: dict[str, tuple[Key, ...]]) -> tuple[tuple[Pep508, Origin], ...]:
        spec = self.wish.spec
        for name, text in spec.requires.items():
            place = self.wish.place(f"requires.{name}")
            origin = Origin("request", name, f"requires.{name}", f"you require {name} {text}", place)
            if name == "pytorch_build":
                labels = frozenset(c.label for c in self.domains[Key("pytorch")] if c.subject[1].name == text)
                self.roots.append(Requirement(Key("pytorch"), Labelled(labels, text), origin))
                continue
            component = self.matrix.components[name]
            for key in keys.get(name, ()):
                test = Labelled(frozenset({text}), text) if component.is_named else Within(Range.parse(text))
                self.roots.append(Requirement(key, test, origin))
        packages = []
        for index, text in enumerate(spec.packages):
            requirement = Pep508(text)
            name = canonicalize_name(requirement.name)
            place = self.wish.place(f"packages.{index}")
            origin = Origin(
                "request", COMPONENT_OF_DISTRIBUTION.get(name, name), f"packages.{name}", f"you require {text}", place
            )
            if name in COMPONENT_OF_DISTRIBUTION:
                key = Key(COMPONENT_OF_DISTRIBUTION[name])
                self.roots.append(Requirement(key, Matching(requirement.specifier), origin))
            packages.append((requirement, origin))
        if spec.packages and "python" not in spec.requires:
            origin = Origin("request", "python", "packages need python", "packages need a Python", self.wish.place("packages"))
            self.roots.append(Requirement(Key("python"), Within(Range()), origin))
        return tuple(packages)


def package_key(requirement: Pep508) -> Key:
    """The key of a requirement on a distribution, extras included, in their normalized spelling."""
    name = canonicalize_name(requirement.name)
    extras = ",".join(sorted(canonicalize_name(extra) for extra in requirement.extras))
    return Key(f"{name}[{extras}]" if extras else name, PACKAGE)


def _preference(candidate: Candidate) -> tuple[Version, bool, Version]:
    """Newest release first; of its builds the index default first (one index, what everybody tests), then newer CUDA."""
    release, build = candidate.subject
    digits = "".join(filter(str.isdigit, build.name)) if build is not None else ""
    return release.version, build is not None and build.is_default, Version.parse(digits or "0")


def _capability(text: str) -> Version:
    return Version.named(text) if text.startswith("gfx") else Version.parse(text)
