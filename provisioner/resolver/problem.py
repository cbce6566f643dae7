"""Join matrix, target and spec into one problem: the candidates of every key, most preferred first, and the requirements.

A key is one thing to choose: a component (of one host, if hosts provide it) or a Python distribution. A root requirement holds
whatever is chosen; its ground is the reason for it, such as a line of the spec.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, MutableMapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from provisioner.accelerators import ACCELERATORS
from provisioner.grounds.predicate import Needs as NeedsComponent
from provisioner.grounds.requirement import (
    AsksAccelerator,
    AsksImage,
    CallsForAccelerator,
    NeedsToBeUsed,
    NoGpu,
    PackagesNeedPython,
    RequiresComponent,
    RequiresDistribution,
    RequiresPython,
    TargetPlatform,
)
from provisioner.index.direct_reference import shown_url
from provisioner.index.markers import holds_for
from provisioner.names import COMPONENT_OF_DISTRIBUTION, pep508
from provisioner.platforms import PLATFORMS
from provisioner.resolver.choices.candidates import candidates_of
from provisioner.resolver.choices.constraints import ForPython, Overrides, constraints_of
from provisioner.resolver.choices.frameworks import builds_of_file, components_of, slot_keys, slots_of
from provisioner.resolver.choices.hosts import HostRequirements, UnknownGpuError, is_shared
from provisioner.resolver.requirement import (
    PACKAGE,
    Candidate,
    ImageCandidate,
    Key,
    Labelled,
    Matching,
    OfBuild,
    OfSystem,
    OneOf,
    ReleaseCandidate,
    Requirement,
    Test,
    Within,
    build_of,
    with_key,
)
from provisioner.resolver.rules.facts import is_jetson, is_used
from provisioner.resolver.rules.guards import Guards
from provisioner.resolver.rules.images import image_candidates, images_with_libraries, own_pythons, realises_toolkit
from provisioner.resolver.rules.needs import Needs, bound_of
from provisioner.resolver.rules.policy import arranged
from provisioner.resolver.rules.shared_files import shared_file_domains
from provisioner.resolver.rules.silence import Silence
from provisioner.resolver.rules.toolchain import toolchain_requirements
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from packaging.requirements import Requirement as Pep508

    from provisioner.grounds.doubt import Doubt
    from provisioner.grounds.requirement import Constrains, Ground, Group
    from provisioner.matrix.model import Component, Matrix
    from provisioner.request import Request


__all__ = ["Problem", "UnknownGpuError", "join", "package_key"]

PYTHON = Key("python")
FIRST, LAST = -2, 1_000_000
"""The ranks of keys to be decided before all others, and after all others."""


Candidates = tuple[Candidate, ...]


class Domains(MutableMapping[Key, Candidates]):
    """The candidates of each key, most preferred first.

    They are listed on first access, because most problems use about a tenth of the matrix.
    """

    def __init__(self) -> None:
        self._known: dict[Key, Candidates | Callable[[], Candidates]] = {}

    def defer(self, key: Key, listing: Callable[[], Candidates]) -> None:
        """Add a key with a function that returns its candidates and is called once, on first access."""
        self._known[key] = listing

    def __getitem__(self, key: Key) -> Candidates:
        found = self._known[key]
        if not isinstance(found, tuple):
            found = self._known[key] = found()
        return found

    def __setitem__(self, key: Key, candidates: Candidates) -> None:
        self._known[key] = candidates

    def __delitem__(self, key: Key) -> None:
        del self._known[key]

    def __contains__(self, key: object) -> bool:
        return key in self._known

    def __iter__(self) -> Iterator[Key]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


class Problem(Struct, frozen=True, kw_only=True):
    """The input of the searches: the candidates of every key, and the requirements that an answer has to satisfy.

    `domains` lists the candidates of every key that is not a distribution, most preferred first. `roots` are the root
    requirements, which hold whatever is chosen. `order` ranks keys: those of lower rank are decided first. `packages` are the
    spec's requirements on distributions, each with its ground, after its `overrides` were applied; these also replace
    requirements in metadata. `constraints` restrict the versions of distributions that something else requires. `pythons` are
    the Pythons that the spec allows. `needs` gives the matrix's requirements of a candidate. `components` are the frameworks
    that are components in this problem, not ordinary distributions. `doubts` are the unknown facts that an answer relies on.
    `extra` are the `roots` that a caller added to those of the inputs, such as a question or the content of a lock; no fix of a
    conflict drops them.
    """

    matrix: Matrix
    request: Request
    domains: Mapping[Key, tuple[Candidate, ...]]
    roots: tuple[Requirement, ...]
    order: dict[Key, int]
    packages: tuple[tuple[Pep508, Ground], ...]
    constraints: tuple[tuple[Pep508, Constrains], ...]
    pythons: tuple[str, ...]
    overrides: Overrides
    needs: Needs
    components: frozenset[str]
    doubts: tuple[Doubt, ...]
    extra: tuple[Requirement, ...] = ()

    def with_roots(self, *extra: Requirement) -> Problem:
        """Return the problem with more root requirements, which are recorded in `extra`, too."""
        return replace(self, roots=(*self.roots, *extra), extra=(*self.extra, *extra))

    def sharing(self, other: Problem) -> Problem:
        """Return the problem with the very candidates of another one for every key that has equal candidates in both.

        Candidates are compared by identity, so what is known of those of the other problem can then be used for this one.
        """
        domains = Domains()
        for key in self.domains:
            domains.defer(key, partial(_shared, key, self.domains, other.domains))
        return replace(self, domains=domains)

    def lenient(self) -> Problem:
        """Return the problem without requirements that releases are only expected to have.

        An answer that does not meet one of them is unverified.
        """
        return replace(self, needs=self.needs.lenient())

    def dropping(self, groups: Collection[Group]) -> Problem:
        """Return the problem without the root requirements and constraints of some groups, and otherwise unchanged.

        Every answer of the whole problem is one of this problem, too.
        """
        return replace(
            self,
            roots=tuple(root for root in self.roots if root.ground.group not in groups),
            packages=tuple(pair for pair in self.packages if pair[1].group not in groups),
            constraints=tuple(pair for pair in self.constraints if pair[1].group not in groups),
        )

    def without(self, names: Collection[str]) -> Problem:
        """Return the problem without the requirements on the distributions in `names`, or on components that represent them.

        Every answer of the whole problem is one of this problem, too: if this one is impossible, so is the whole.
        """
        components = {self.component_of(name) for name in names} - {""}
        return replace(
            self,
            roots=tuple(root for root in self.roots if root.key.component not in components),
            packages=tuple(pair for pair in self.packages if canonicalize_name(pair[0].name) not in names),
            overrides=self.overrides.dropping(names),
        )

    def with_candidate(self, key: Key, candidate: Candidate) -> Problem:
        """Return the problem with one more candidate of a key, less preferred than all others."""
        return replace(self, domains=ChainMap({key: (*self.domains.get(key, ()), candidate)}, self.domains))  # type: ignore[arg-type]

    def in_image_with_libraries(self) -> Problem | None:
        """Return the problem with a base image that has CUDA's libraries; None if the spec names another base image.

        None also if the base images of this problem have them already.
        """
        key = Key("image")
        if any(isinstance(one, ImageCandidate) and one.image.cuda for one in self.domains.get(key, ())):
            return None
        images = images_with_libraries(self.matrix, self.request, key)
        known_first = sorted(images, key=lambda one: not self.needs.cuda_compat.knows(one))
        found = arranged(known_first, self.request, "image")
        if not found:
            return None
        labels = Labelled(frozenset(one.label for one in found))
        roots = tuple(
            Requirement(key, labels, replace(one.ground, has_libraries=True)) if isinstance(one.ground, AsksImage) else one
            for one in self.roots
        )
        return replace(self, domains=ChainMap({key: found}, self.domains), roots=roots)  # type: ignore[arg-type]

    def with_image(self, label: str) -> Problem:
        """Return the problem in which a base image of an answer is a candidate: this one, or `in_image_with_libraries`."""
        key = Key("image")
        other = None if any(one.label == label for one in self.domains.get(key, ())) else self.in_image_with_libraries()
        return other if other is not None and any(one.label == label for one in other.domains[key]) else self

    def is_virtual(self, name: str) -> bool:
        """Return whether a component is provided by hosts, or is not in the matrix."""
        component = self.matrix.components.get(name)
        return component is None or component.virtual

    def component_of(self, distribution: str) -> str:
        """Return the component that represents a distribution in this problem; "" for an ordinary distribution."""
        component = COMPONENT_OF_DISTRIBUTION.get(distribution, "")
        return component if component in self.components else ""


def _shared(key: Key, own: Mapping[Key, Candidates], others: Mapping[Key, Candidates]) -> Candidates:
    """Return the candidates that `others` has for a key if those of `own` are equal, otherwise those of `own`."""
    mine, theirs = own[key], others.get(key, ())
    is_same = len(mine) == len(theirs) and all(_identity(one) == _identity(two) for one, two in zip(mine, theirs, strict=True))
    return theirs if is_same else mine


def _identity(candidate: Candidate) -> tuple[object, ...]:
    """Return what makes a candidate of a component: its fields, with the rows of the matrix by their identity."""
    plain = type(candidate), candidate.key, candidate.label, candidate.version.text, candidate.version.release
    if isinstance(candidate, ReleaseCandidate):
        image = candidate.image if isinstance(candidate, ImageCandidate) else None
        return *plain, id(candidate.release), id(candidate.build), id(image)
    return plain


def join(matrix: Matrix, request: Request) -> Problem:
    """Return the problem that a request for one platform poses with the matrix.

    Raises `UnknownGpuError` when neither the profile nor the matrix gives the capability of a GPU that a profile names.
    """
    return _Joiner(matrix, request).problem()


class _Joiner:
    def __init__(self, matrix: Matrix, request: Request) -> None:
        self.matrix = matrix
        self.request = request
        self.silence = Silence(matrix, request)
        self._is_on_jetson = any(is_jetson(matrix, target.host) for target in request.hosts)
        self.domains = Domains()
        self.roots: list[Requirement] = []
        self.doubts: list[Doubt] = []
        self.components = components_of(matrix, request.spec)
        self.overrides = Overrides(request)
        self.pythons: tuple[str, ...] = ()

    def problem(self) -> Problem:
        self._shared()
        hosts = HostRequirements(self.matrix, self.request, self.silence)
        for target in self.request.hosts:
            hosts.add(target)
        self.domains.update(hosts.domains)
        self.roots.extend(hosts.roots)
        self.doubts.extend(hosts.doubts)
        self.roots.extend(
            toolchain_requirements(self.matrix, self.request, Guards(self.matrix, self.request), domains=self.domains)
        )
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
        if realises_toolkit(self.request):
            order[Key("image")] = FIRST  # the CUDA of an image, and not any newer one that no image has
        # Distributions upgraded by name are decided last, so that locked ones need not give way to them.
        order.update({Key(name, PACKAGE): LAST for name in self.request.upgraded if Key(name) not in self.domains})
        return Problem(
            matrix=self.matrix,
            request=self.request,
            domains=self.domains,
            roots=tuple(self.roots),
            order=order,
            packages=packages,
            constraints=constraints_of(self.request),
            pythons=self.pythons,
            overrides=self.overrides,
            needs=needs,
            components=self.components,
            doubts=tuple(self.doubts),
        )

    def _shared(self) -> None:
        request = self.request
        platform = TargetPlatform(platform=request.platform, place=request.place("target.platform"))
        self._named("platform", tuple(PLATFORMS), request.platform, platform)
        asks = AsksAccelerator if request.spec.accelerator is not None else CallsForAccelerator
        accelerator: Ground = asks(accelerator=request.accelerator, place=request.place("accelerator"))
        if request.has_no_gpu:
            no_gpu = NoGpu(host="", place=request.hosts[0].place("gpus"))
            self.roots.append(Requirement(Key("accelerator"), Labelled(frozenset({"cpu"})), no_gpu))
            accelerator = accelerator if request.spec.accelerator is not None else no_gpu
        self._named("accelerator", tuple(ACCELERATORS), request.accelerator, accelerator)
        for name, component in self.matrix.components.items():
            if name not in {"gpu", "image"} and is_used(name, request) and is_shared(name, component, request):
                self.domains.defer(Key(name), partial(self._offered, component))
        virtual = [name for name, component in self.matrix.components.items() if component.virtual]
        slots = slot_keys(self.domains, slots_of(self.components, request.spec), [*virtual, *_NAMES])
        for own, key in slots.items():
            self.domains.defer(own, partial(self._in_slot, key, own))
        if request.runs == "container" and "image" in self.matrix.order:
            self._image()

    def _offered(self, component: Component) -> tuple[ReleaseCandidate, ...]:
        """Return the candidates of a component, most preferred first.

        Pythons that a base image has or its Linux distribution offers come first, unless the spec or an earlier lock prefers a
        Python.
        """
        found = candidates_of(component, self.request, silence=self.silence, is_on_jetson=self._is_on_jetson)
        is_wanted = "python" in self.request.spec.policy.prefer or "python" in self.request.preferred
        images = self.domains.get(Key("image"), ()) if component.name == "python" and not is_wanted else ()
        if realises_toolkit(self.request):
            images = tuple(one for one in images if isinstance(one, ImageCandidate) and one.image.cuda)
        own = own_pythons(images)
        return tuple(sorted(found, key=lambda one: one.label not in own)) if own else found

    def _in_slot(self, key: Key, own: Key) -> tuple[Candidate, ...]:
        return tuple(with_key(one, own) for one in self.domains[key])

    def _named(self, name: str, values: tuple[str, ...], value: str, ground: Ground) -> None:
        key = Key(name)
        self.domains[key] = tuple(Candidate(key, Version.named(text), text) for text in values)
        self.roots.append(Requirement(key, Labelled(frozenset({value})), ground))

    def _image(self) -> None:
        key = Key("image")
        candidates, unknown = image_candidates(self.matrix, self.request, key)
        candidates = arranged(candidates, self.request, "image")
        self.domains[key] = candidates
        self.doubts.extend(unknown)
        base = self.request.image_base if self.request.spec.image.base != "auto" else ""
        ground = AsksImage(base=base, place=self.request.place("image.base"))
        self.roots.append(Requirement(key, Labelled(frozenset(candidate.label for candidate in candidates)), ground))

    def _requests(self, keys: dict[str, tuple[Key, ...]]) -> tuple[tuple[Pep508, Ground], ...]:
        for name, text in self.request.spec.requires.items():
            self._require(name, text, keys)
            place = self.request.place(f"requires.{name}")
            self._to_use(RequiresComponent(name=name, range=text, place=place), name, keys)
        self.pythons = self._pythons()
        packages: list[tuple[Pep508, Ground]] = []
        for index, text in enumerate(self.request.spec.packages):
            declared = pep508(text)
            distribution = canonicalize_name(declared.name)
            component = COMPONENT_OF_DISTRIBUTION.get(distribution, "")
            place = self.request.place(f"packages.{index}")
            requires = RequiresDistribution(
                name=component or distribution, distribution=distribution, requirement=text, place=place
            )
            for requirement, ground in self.overrides.applied(declared, requires):
                if component in self.components:
                    self._framework(component, requirement, ground)
                is_sure = requirement.marker is None or holds_for(requirement.marker, self.request.platform, self.pythons)
                if is_sure and isinstance(ground, RequiresDistribution):
                    self._to_use(ground, distribution, keys)
                packages.append((requirement, ground))
        for index, text in enumerate(self.request.spec.requires_python):
            place = self.request.place(f"requires-python.{index}")
            self.roots.append(Requirement(PYTHON, ForPython(SpecifierSet(text)), RequiresPython(range=text, place=place)))
        if self.request.spec.packages and "python" not in self.request.spec.requires:
            needs_python = PackagesNeedPython(place=self.request.place("packages"))
            self.roots.append(Requirement(PYTHON, Within(Range()), needs_python))
        return tuple(packages)

    def _to_use(self, requested: RequiresComponent | RequiresDistribution, name: str, keys: dict[str, tuple[Key, ...]]) -> None:
        """Add the root requirements on NVIDIA's GPUs of what a line of the spec names, if it is no use without them."""
        used = next((one.used for one in self.matrix.distributions if one.name == name), None)
        if used is None or not (self.request.accelerator == "cuda" or self.request.has_no_gpu):
            return
        place = self.matrix.place_of(f"distribution:{name}")
        for need in used.require:
            predicate = NeedsComponent(need.component, (bound_of(need),), used.because)
            ground = NeedsToBeUsed(name=name, requested=requested, predicate=predicate, place=place)
            test: Test = OneOf(need.one_of) if need.one_of else Within(need.range)
            if self.request.has_no_gpu:
                self.roots.append(Requirement(Key("accelerator"), Labelled(frozenset({"cuda"})), ground))
            self.roots.extend(Requirement(key, test, ground) for key in keys.get(need.component, ()))

    def _pythons(self) -> tuple[str, ...]:
        """Return the Pythons that satisfy `requires` and `requires-python` of the spec, most preferred first."""
        tests: list[Test] = [ForPython(SpecifierSet(text)) for text in self.request.spec.requires_python]
        tests.extend(root.test for root in self.roots if root.key == PYTHON)
        return tuple(one.label for one in self.domains.get(PYTHON, ()) if all(test.allows(one) for test in tests))

    def _framework(self, component: str, requirement: Pep508, ground: Ground) -> None:
        """Add the root requirements of a framework that the spec requires as a distribution, such as `torch`.

        None is added unless the requirement's marker holds with each Python that the spec allows.
        """
        marker = requirement.marker
        if marker is not None and not holds_for(marker, self.request.platform, self.pythons):
            return
        if requirement.url is not None:
            test = builds_of_file(requirement, self.domains[Key(component)])
            if isinstance(ground, RequiresDistribution):
                spelled = f"{requirement.name} @ {shown_url(requirement.url)}"
                ground = replace(ground, requirement=spelled, is_unlisted=not test.labels)
            self.roots.append(Requirement(Key(component), test, ground))
            return
        self.roots.append(Requirement(Key(component), Matching(requirement.specifier), ground))
        if requirement.extras and component != "pytorch":
            self.roots.append(Requirement(Key(component), self._with_extras(component, requirement), ground))

    def _require(self, name: str, text: str, keys: dict[str, tuple[Key, ...]]) -> None:
        place = self.request.place(f"requires.{name}")
        ground = RequiresComponent(name=name, range=text, place=place)
        if name == "pytorch_build":
            self.roots.append(Requirement(Key("pytorch"), OfBuild(frozenset({text})), ground))
            return
        test: Test = Within(Range())
        if name == "os":
            test = OfSystem((text,))
        elif self.matrix.components[name].named or text.startswith("gfx"):
            test = Labelled(frozenset({text}))
        else:
            test = Within(Range.parse(text))
        if name == "gpu":
            # As a list, so that what is rendered can hold other hosts to it: the lock names GPUs one by one.
            labels = {key: frozenset(one.label for one in self.domains[key] if test.allows(one)) for key in keys.get(name, ())}
            self.roots.extend(Requirement(key, Labelled(some), ground) for key, some in labels.items())
            return
        self.roots.extend(Requirement(key, test, ground) for key in keys.get(name, ()))

    def _with_extras(self, component: str, requirement: Pep508) -> Test:
        """Return the test for the builds that the extras of a requirement select, as `jax[cuda12]` selects those for CUDA 12.

        If no build is installed with these extras, only the version is tested.
        """
        builds = (build for one in self.domains[Key(component)] if (build := build_of(one)) is not None)
        installed = {(build.name, build.install) for build in builds if build.install}
        chosen = {name for name, install in installed if requirement.extras <= pep508(install).extras}
        return OfBuild(frozenset(chosen)) if chosen else Matching(requirement.specifier)


_NAMES = ("platform", "accelerator")
"""Keys that are not components of the matrix, but name the target."""


def package_key(requirement: Pep508) -> Key:
    """Return the key of the distribution that a requirement names, with the names of its extras normalized and sorted."""
    return _package_key(requirement.name, tuple(sorted(canonicalize_name(extra) for extra in requirement.extras)))


@lru_cache(maxsize=65536)  # one key for all who require a distribution: a run may read a hundred thousand requirements
def _package_key(name: str, extras: tuple[str, ...]) -> Key:
    normalized = canonicalize_name(name)
    return Key(f"{normalized}[{','.join(extras)}]" if extras else normalized, PACKAGE)
