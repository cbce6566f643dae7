"""Matrix, target and spec joined into one problem: what can be chosen, in order of preference, and what is given."""

from __future__ import annotations

from collections import ChainMap
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from packaging.requirements import Requirement as Pep508
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from provisioner.index.places.direct_reference import shown_url
from provisioner.names import COMPONENT_OF_DISTRIBUTION
from provisioner.solve.choices.bounds import ForPython, constraints_of
from provisioner.solve.choices.candidates import candidates_of
from provisioner.solve.choices.domains import Domains
from provisioner.solve.choices.frameworks import builds_of_file, components_of, slot_domains, slots_of
from provisioner.solve.choices.hosts import HostSide, UnknownGpuError, is_shared
from provisioner.solve.choices.markers import is_settled
from provisioner.solve.choices.overrides import Overrides
from provisioner.solve.requirement import (
    PACKAGE,
    Candidate,
    Key,
    Labelled,
    Matching,
    OfBuild,
    OfSystem,
    Origin,
    Requirement,
    Test,
    Within,
)
from provisioner.solve.rules.facts import is_used
from provisioner.solve.rules.guards import Guards
from provisioner.solve.rules.images import image_candidates
from provisioner.solve.rules.needs import Needs
from provisioner.solve.rules.policy import arranged
from provisioner.solve.rules.shared_files import shared_file_domains
from provisioner.solve.rules.toolchain import build_side
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from provisioner.matrix.model import Matrix
    from provisioner.request import Request

__all__ = ["Problem", "UnknownGpuError", "join", "package_key"]

LAST = 1_000_000
"""A rank behind all others."""

ACCELERATORS = ("cuda", "rocm", "mps", "cpu")
PLATFORMS = ("linux/amd64", "linux/arm64", "macos/x86_64", "macos/arm64")


class Problem(Struct, frozen=True, kw_only=True):
    """Everything the search needs.

    `domains` lists the candidates of every key that is not a package, most wanted first; `roots` is what is required from
    the start; `order` ranks keys; `packages` are the spec's own requirements on distributions, after its `overrides`, which
    stand in the place of others' as well; `constraints` bound what somebody requires; `components` are the frameworks that are
    components here rather than distributions; `unverified` names the facts that were missing; `extra` is what was required
    beyond the inputs, a question or what a lock has, which no way out of a conflict gives up.
    """

    matrix: Matrix
    request: Request
    domains: Mapping[Key, tuple[Candidate, ...]]
    roots: tuple[Requirement, ...]
    order: dict[Key, int]
    packages: tuple[tuple[Pep508, Origin], ...]
    constraints: tuple[tuple[Pep508, Origin], ...]
    overrides: Overrides
    needs: Needs
    components: frozenset[str]
    unverified: tuple[str, ...]
    extra: tuple[Requirement, ...] = ()

    def with_roots(self, *extra: Requirement) -> Problem:
        """The same problem with more required from the start."""
        return replace(self, roots=(*self.roots, *extra), extra=(*self.extra, *extra))

    def without(self, names: Collection[str]) -> Problem:
        """A part of the same problem: nobody requires some distributions, or the components that they are.

        It allows whatever the whole problem allows, so what is impossible in it is impossible in the whole.
        """
        components = {self.component_of(name) for name in names} - {""}
        return replace(
            self,
            roots=tuple(root for root in self.roots if root.key.component not in components),
            packages=tuple(asked for asked in self.packages if canonicalize_name(asked[0].name) not in names),
            overrides=self.overrides.dropping(names),
        )

    def with_candidate(self, key: Key, candidate: Candidate) -> Problem:
        """The same problem with one candidate more of a key, wanted less than all others."""
        return replace(self, domains=ChainMap({key: (*self.domains.get(key, ()), candidate)}, self.domains))  # type: ignore[arg-type]

    def is_virtual(self, name: str) -> bool:
        """Whether the host provides a component, or it is no component at all."""
        component = self.matrix.components.get(name)
        return component is None or component.virtual

    def component_of(self, distribution: str) -> str:
        """The component a distribution is in this problem, "" for an ordinary one."""
        component = COMPONENT_OF_DISTRIBUTION.get(distribution, "")
        return component if component in self.components else ""


def join(matrix: Matrix, request: Request) -> Problem:
    """Join the inputs of one platform; raises `UnknownGpuError` for a GPU nobody knows."""
    return _Joiner(matrix, request).problem()


class _Joiner:
    def __init__(self, matrix: Matrix, request: Request) -> None:
        self.matrix = matrix
        self.request = request
        self.domains = Domains()
        self.roots: list[Requirement] = []
        self.unverified: list[str] = []
        self.components = components_of(matrix, request.spec)
        self.overrides = Overrides(request)

    def problem(self) -> Problem:
        self._shared()
        hosts = HostSide(self.matrix, self.request)
        for target in self.request.hosts:
            hosts.add(target)
        self.domains.update(hosts.domains)
        self.roots.extend(hosts.roots)
        self.unverified.extend(hosts.unverified)
        self.roots.extend(build_side(self.matrix, self.request, Guards(self.matrix, self.request), domains=self.domains))
        keys: dict[str, tuple[Key, ...]] = {}
        for key in self.domains:
            keys[key.component] = (*keys.get(key.component, ()), key)
        packages = self._requests(keys)
        needs = Needs(self.matrix, self.request, keys)
        self.domains.update(needs.policy.domains)
        for key, listing in shared_file_domains(self.matrix, self.request):
            self.domains.defer(key, listing)
        self.roots.extend(needs.policy.roots)
        rank = {name: index for index, name in enumerate(self.matrix.order)}
        order = {key: rank.get(key.component, -1) for key in self.domains}
        # What is upgraded by name is decided after everything that is locked, which then need not give way to it.
        order.update({Key(name, PACKAGE): LAST for name in self.request.upgraded if Key(name) not in self.domains})
        return Problem(
            matrix=self.matrix,
            request=self.request,
            domains=self.domains,
            roots=tuple(self.roots),
            order=order,
            packages=packages,
            constraints=constraints_of(self.request),
            overrides=self.overrides,
            needs=needs,
            components=self.components,
            unverified=tuple(self.unverified),
        )

    def _shared(self) -> None:
        request = self.request
        self._named("platform", PLATFORMS, request.platform, ("request", "target.platform", f"the target is {request.platform}"))
        text = f"you ask for accelerator {request.accelerator}"
        kind = "request"
        if request.spec.accelerator is None:
            kind, text = "fact", f"the target's GPUs call for {request.accelerator}"
        self._named("accelerator", ACCELERATORS, request.accelerator, (kind, "accelerator", text))
        if request.has_no_gpu:
            place = request.hosts[0].place("gpus")
            origin = Origin("fact", "gpu", "no gpu", "the target has no GPU", place)
            self.roots.append(Requirement(Key("accelerator"), Labelled(frozenset({"cpu"}), "cpu"), origin))
        for name, component in self.matrix.components.items():
            if name not in {"gpu", "image"} and is_used(name, request) and is_shared(name, component, request):
                self.domains.defer(Key(name), partial(candidates_of, component, request))
        virtual = [name for name, component in self.matrix.components.items() if component.virtual]
        self.domains.update(slot_domains(self.domains, slots_of(self.components, request.spec), [*virtual, *_NAMES]))
        if request.runs == "container" and "image" in self.matrix.order:
            self._image()

    def _named(self, name: str, values: tuple[str, ...], value: str, why: tuple[str, str, str]) -> None:
        key = Key(name)
        self.domains[key] = tuple(Candidate(key, Version.named(text), text) for text in values)
        kind, place, text = why
        component = "pytorch_build" if name == "accelerator" else name
        origin = Origin(kind, component, name, text, self.request.place(place))
        self.roots.append(Requirement(key, Labelled(frozenset({value}), value), origin))

    def _image(self) -> None:
        key = Key("image")
        candidates, unknown = image_candidates(self.matrix, self.request, key)
        candidates = arranged(candidates, self.request, "image")
        self.domains[key] = candidates
        self.unverified.extend(unknown)
        base = self.request.image_base
        text = f"the base image is {base}" if self.request.spec.image.base != "auto" else "a base image is chosen"
        origin = Origin("request", "image", "image", text, self.request.place("image.base"))
        labels = frozenset(candidate.label for candidate in candidates)
        self.roots.append(Requirement(key, Labelled(labels, base), origin))

    def _requests(self, keys: dict[str, tuple[Key, ...]]) -> tuple[tuple[Pep508, Origin], ...]:
        for name, text in self.request.spec.requires.items():
            self._require(name, text, keys)
        packages = []
        for index, text in enumerate(self.request.spec.packages):
            stated = Pep508(text)
            distribution = canonicalize_name(stated.name)
            component = COMPONENT_OF_DISTRIBUTION.get(distribution, "")
            place = self.request.place(f"packages.{index}")
            shown = component or distribution
            origin = Origin("request", shown, f"packages.{distribution}", f"you require {text}", place)
            for requirement, reason in self.overrides.instead(stated, origin):
                if component in self.components:
                    self._framework(component, requirement, reason)
                packages.append((requirement, reason))
        for index, text in enumerate(self.request.spec.requires_python):
            place = self.request.place(f"requires-python.{index}")
            origin = Origin("request", "python", "requires-python", f"the project requires python {text}", place)
            self.roots.append(Requirement(Key("python"), ForPython(SpecifierSet(text)), origin))
        if self.request.spec.packages and "python" not in self.request.spec.requires:
            origin = Origin("request", "python", "packages need python", "packages need a Python", self.request.place("packages"))
            self.roots.append(Requirement(Key("python"), Within(Range()), origin))
        return tuple(packages)

    def _framework(self, component: str, requirement: Pep508, origin: Origin) -> None:
        """A distribution that is a component is required as one; where its marker needs a Python, once one is chosen."""
        if requirement.marker is not None and not is_settled(requirement.marker, self.request.platform):
            return
        if requirement.url is not None:
            test = builds_of_file(requirement, self.domains[Key(component)])
            unknown = "" if test.labels else ", a build the matrix does not list"
            text = f"you require {requirement.name} @ {shown_url(requirement.url)}{unknown}"
            self.roots.append(Requirement(Key(component), test, origin._replace(text=text)))
            return
        self.roots.append(Requirement(Key(component), Matching(requirement.specifier), origin))
        if requirement.extras and component != "pytorch":
            self.roots.append(Requirement(Key(component), self._with_extras(component, requirement), origin))

    def _require(self, name: str, text: str, keys: dict[str, tuple[Key, ...]]) -> None:
        place = self.request.place(f"requires.{name}")
        origin = Origin("request", name, f"requires.{name}", f"you require {name} {text}", place)
        if name == "pytorch_build":
            labels = frozenset(c.label for c in self.domains[Key("pytorch")] if c.subject[1].name == text)
            self.roots.append(Requirement(Key("pytorch"), Labelled(labels, text), origin))
            return
        test: Test = Within(Range())
        if name == "os":
            test = OfSystem((text,))
        elif self.matrix.components[name].named or text.startswith("gfx"):
            test = Labelled(frozenset({text}), text)
        else:
            test = Within(Range.parse(text))
        self.roots.extend(Requirement(key, test, origin) for key in keys.get(name, ()))

    def _with_extras(self, component: str, requirement: Pep508) -> Test:
        """`jax[cuda12]` asks for the builds that are installed with this extra, where the matrix has any."""
        builds = {candidate.subject[1] for candidate in self.domains[Key(component)] if candidate.subject[1] is not None}
        chosen = {build.name for build in builds if build.install and requirement.extras <= Pep508(build.install).extras}
        return OfBuild(frozenset(chosen)) if chosen else Matching(requirement.specifier)


_NAMES = ("platform", "accelerator")
"""Keys that are no components of a matrix."""


def package_key(requirement: Pep508) -> Key:
    """The key of a requirement on a distribution, extras included, in their normalized spelling."""
    name = canonicalize_name(requirement.name)
    extras = ",".join(sorted(canonicalize_name(extra) for extra in requirement.extras))
    return Key(f"{name}[{extras}]" if extras else name, PACKAGE)
