"""Distributions that carry a component of the stack: what is installed is theirs, so their version is the component's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import Requirement as Pep508
from packaging.utils import canonicalize_name

from provisioner.grounds.doubt import UnlistedBundle
from provisioner.grounds.requirement import Overrides, Subject
from provisioner.matrix.model import Build, Release
from provisioner.resolver.requirement import Candidate, Key, Matching, ReleaseCandidate, Requirement, Within, build_of
from provisioner.resolver.rules.devices import FRAMEWORKS
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provisioner.matrix.model import Matrix
    from provisioner.matrix.need import Need
    from provisioner.request import Request

CARRIED = {
    "cudnn": ("nvidia-cudnn-cu11", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13"),
    "nccl": ("nvidia-nccl-cu11", "nvidia-nccl-cu12", "nvidia-nccl-cu13"),
    "triton": ("triton",),
}
"""Distributions that carry a component of the stack, so that their versions must agree with it."""

CUDA = "cuda"


def carried_version(carrier: Candidate) -> Version:
    """The version a distribution carries: by its number alone, for the label of a file that is named has its address too."""
    return Version.parse(str(carrier.pep440))


def unlisted(key: Key, listed: Iterable[Candidate], carrier: Candidate) -> ReleaseCandidate | None:
    """What a distribution carries for a component's key where the matrix has no row of it, None where it has one.

    Of such a version is known which CUDA its distribution is named for, and what rules say of every version like it.
    """
    listed, number = tuple(listed), carrier.pep440.public
    if any(one.version == carried_version(carrier) for one in listed):
        return None
    named = carrier.key.name.rpartition("-")[2]
    like = next((build for one in listed if (build := build_of(one)) is not None and build.name == named), None)
    release, build = Release(version=Version.parse(number)), None
    if like is not None:
        build = Build(name=named, needs=tuple(need for need in like.needs if need.component == CUDA))
    return ReleaseCandidate(key, Version.parse(f"{number}+{named}") if build else release.version, number, release, build)


def unlisted_bundles(matrix: Matrix, pins: Iterable[Candidate]) -> Iterator[UnlistedBundle]:
    """Yield chosen versions that are a distribution's and no row of the matrix."""
    for one in pins:
        component = matrix.components.get(one.key.component)
        if one.key.component not in CARRIED or component is None or not isinstance(one, ReleaseCandidate):
            continue
        if any(release.version == one.version for release in component.releases):
            continue
        build = one.build
        names = [name for name in CARRIED[component.name] if build is None or name.endswith(f"-{build.name}")]
        yield UnlistedBundle(bundled=component.name, carrier=Subject(names[0], one.label))


class OverriddenCarriers:
    """The overrides of one spec that are about distributions which carry a component.

    A build of a framework states what its wheel pins: where the spec puts something else in the place of that, so it does here.
    """

    def __init__(self, matrix: Matrix, request: Request) -> None:
        self._matrix = matrix
        names = {name for some in CARRIED.values() for name in some}
        self._found: dict[str, tuple[Pep508, Overrides]] = {}
        for index, text in enumerate(request.spec.overrides):
            override = Pep508(text)
            name = canonicalize_name(override.name)
            if name in names and override.marker is None and override.url is None:
                place = request.place(f"overrides.{index}")
                self._found[name] = (override, Overrides(index=index, distribution=name, requirement=text, place=place))

    def instead(self, subject: Candidate, need: Need, key: Key) -> Requirement | None:
        """What stands in the place of a framework build's need of a component, None where the need stands for itself."""
        if not self._found or subject.key.component not in FRAMEWORKS or need.component not in CARRIED:
            return None
        carrier = _carrier(need.component, build_of(subject))
        if carrier not in self._found:
            return None
        override, ground = self._found[carrier]
        test = Matching(override.specifier)
        component = self._matrix.components[need.component]
        is_listed = any(override.specifier.contains(str(one.version), prereleases=True) for one in component.releases)
        # What the matrix does not list is whatever the distribution turns out to carry.
        return Requirement(key, test if is_listed else Within(Range()), ground)


def _carrier(component: str, build: Build | None) -> str:
    """The distribution that carries a component for a build: the one for its CUDA, where there is one for each."""
    names = CARRIED[component]
    if len(names) == 1:
        return names[0]
    cuda = next((need.range for need in (build.needs if build is not None else ()) if need.component == CUDA), None)
    major = cuda.clauses[0].version.release[0] if cuda is not None and cuda.clauses else ""
    return next((name for name in names if name.endswith(f"-cu{major}")), "")
