"""Distributions that bundle a component of the stack, as `nvidia-cudnn-cu12` bundles cuDNN.

The version of the component in the stack is then the version of the distribution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import Requirement as Pep508
from packaging.utils import canonicalize_name

from provisioner.components import FRAMEWORKS
from provisioner.grounds.doubt import UnlistedBundle
from provisioner.grounds.requirement import Overrides, Subject
from provisioner.matrix.model import Build, Release
from provisioner.resolver.requirement import Candidate, Key, Matching, ReleaseCandidate, Requirement, Within, build_of
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provisioner.matrix.model import Matrix
    from provisioner.matrix.need import Need
    from provisioner.request import Request

BUNDLED = {
    "cudnn": ("nvidia-cudnn-cu11", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13"),
    "nccl": ("nvidia-nccl-cu11", "nvidia-nccl-cu12", "nvidia-nccl-cu13"),
    "tensorrt": ("tensorrt", "tensorrt-cu11", "tensorrt-cu12", "tensorrt-cu13"),
    "triton": ("triton",),
}
"""The distributions that bundle each component; if one is chosen, the component must have the distribution's version."""

CUDA = "cuda"


def bundled_version(distribution: Candidate) -> Version:
    """Return the version of the component that a distribution bundles, which is the distribution's own.

    The candidate's label is not used, because that of a direct URL contains the address, too.
    """
    return Version.parse(str(distribution.pep440))


def unlisted_release(key: Key, listed: Iterable[Candidate], distribution: Candidate) -> ReleaseCandidate | None:
    """Return a candidate for the release of a component that a distribution bundles; None when the matrix lists that release.

    `listed` are the candidates of the component, `key` is the component's key. If one of `listed` has a build with the suffix
    of the distribution's name (`cu12`), the new candidate has a build of that name with the same need of CUDA. Rules of the
    matrix on ranges of versions apply to the new candidate.
    """
    listed, number, version = tuple(listed), distribution.pep440.public, bundled_version(distribution)
    if any(one.version == version for one in listed):
        return None
    named = distribution.key.name.rpartition("-")[2]
    like = next((build for one in listed if (build := build_of(one)) is not None and build.name == named), None)
    release, build = Release(version=Version.parse(number)), None
    if like is not None:
        build = Build(name=named, requires=tuple(need for need in like.requires if need.component == CUDA))
    return ReleaseCandidate(key, Version.parse(f"{number}+{named}") if build else release.version, number, release, build)


def unlisted_bundles(matrix: Matrix, pins: Iterable[Candidate]) -> Iterator[UnlistedBundle]:
    """Yield a doubt for each chosen release that a distribution bundles and the matrix does not list."""
    for one in pins:
        component = matrix.components.get(one.key.component)
        if one.key.component not in BUNDLED or component is None or not isinstance(one, ReleaseCandidate):
            continue
        if any(release.version == one.version for release in component.releases):
            continue
        build = one.build
        names = [name for name in BUNDLED[component.name] if build is None or name.endswith(f"-{build.name}")]
        yield UnlistedBundle(bundled=component.name, carrier=Subject(names[0], one.label))


class BundleOverrides:
    """The overrides of a spec on distributions that bundle a component.

    In the matrix a framework's build has, as needs, the versions that its wheel pins. If the spec overrides such a pin, it
    overrides the need, too.
    """

    def __init__(self, matrix: Matrix, request: Request) -> None:
        self._matrix = matrix
        names = {name for some in BUNDLED.values() for name in some}
        self._found: dict[str, tuple[Pep508, Overrides]] = {}
        for index, text in enumerate(request.spec.overrides):
            override = Pep508(text)
            name = canonicalize_name(override.name)
            if name in names and override.marker is None and override.url is None:
                place = request.place(f"overrides.{index}")
                self._found[name] = (override, Overrides(index=index, distribution=name, requirement=text, place=place))

    def replacement(self, subject: Candidate, need: Need, key: Key) -> Requirement | None:
        """Return the requirement that replaces a framework build's need of a component; None when no override replaces it.

        `subject` is the candidate with the build, `key` the key of the needed component.
        """
        if not self._found or subject.key.component not in FRAMEWORKS or need.component not in BUNDLED:
            return None
        distribution = _bundling(need.component, build_of(subject))
        if distribution not in self._found:
            return None
        override, ground = self._found[distribution]
        test = Matching(override.specifier)
        component = self._matrix.components[need.component]
        is_listed = any(override.specifier.contains(str(one.version), prereleases=True) for one in component.releases)
        # A version that the matrix does not list is set to the distribution's once that is chosen.
        return Requirement(key, test if is_listed else Within(Range()), ground)


def _bundling(component: str, build: Build | None) -> str:
    """Return the distribution that bundles a component for a framework build.

    If several distributions bundle the component, it is the one for the CUDA that the build requires; "" when none is for that.
    """
    names = BUNDLED[component]
    if len(names) == 1:
        return names[0]
    cuda = next((need.range for need in (build.requires if build is not None else ()) if need.component == CUDA), None)
    major = cuda.clauses[0].version.release[0] if cuda is not None and cuda.clauses else ""
    return next((name for name in names if name.endswith(f"-cu{major}")), "")
