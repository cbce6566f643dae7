"""The types of the resolver: keys, candidates, tests and requirements.

A component is an entry of the matrix, such as PyTorch, CUDA or a driver; a distribution is a Python package of an index. A key
identifies one choice: which release of a component (shared, or of one host), or which version of a distribution. A candidate is
a possible value of a key. A requirement demands a candidate of a key that passes a test; its ground is the reason for it: a
line of the spec, a fact of a host, or a row of the matrix.
"""

from __future__ import annotations

import re
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from msgspec import Struct
from packaging.utils import canonicalize_name
from packaging.version import Version as PackageVersion

from provisioner.grounds.requirement import Entails, Subject
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from packaging.specifiers import SpecifierSet
    from packaging.utils import NormalizedName

    from provisioner.grounds.predicate import Predicate
    from provisioner.grounds.requirement import Ground, Relation, Row, SameChoice
    from provisioner.grounds.source import Source
    from provisioner.index.model import PackageRelease
    from provisioner.matrix.model import Build, ImageFacts, Release
    from provisioner.matrix.need import Need
    from provisioner.versions import Range

_pep440 = lru_cache(maxsize=4096)(PackageVersion)
_PEP440 = attrgetter("pep440")


@lru_cache(maxsize=16384)
def _project(name: str) -> NormalizedName:
    return canonicalize_name(name.partition("[")[0])


PACKAGE = "package"
"""The scope of the keys of Python distributions; see `Key`."""

SLOTS = ("tensorflow", "jax")
"""Frameworks whose wheels load CUDA libraries of their own, so that an environment with two frameworks may have two CUDA
runtimes. The libraries that one framework has for itself are its slot: the CUDA of JAX has the key `cuda:jax`."""


class Key(NamedTuple):
    """The identifier of one choice: a component (of one host, if hosts provide it) or a Python distribution.

    `scope` is `PACKAGE` for a distribution, the label of a host for a component of that host, and "" for a component that all
    hosts share. A distribution with extras (`uvicorn[standard]`) is a key of its own, which requires the distribution at the
    same version, as in pip. A suffix after a colon distinguishes keys of one component: devices (`gpu:9.0`), compilation
    targets (`arch_list:9.0`), slots (`cuda:jax`).
    """

    name: str
    scope: str = ""

    @property
    def is_package(self) -> bool:
        """Whether the key is that of a Python distribution."""
        return self.scope == PACKAGE

    @property
    def is_mutex(self) -> bool:
        """Whether the key is a mutex: versions that require different candidates of it exclude each other.

        A mutex is recognized by the space in its name, which no distribution's name has.
        """
        return self.is_package and " " in self.name

    @property
    def distribution(self) -> str:
        """The name of a distribution without its extras."""
        return self.name.partition("[")[0]

    @property
    def extras(self) -> tuple[str, ...]:
        """The extras of a distribution; () for a distribution without extras."""
        _, _, names = self.name.partition("[")
        return tuple(names.rstrip("]").split(",")) if names else ()

    @property
    def project(self) -> NormalizedName:
        """The normalized name of a distribution without its extras, the name of its project on an index."""
        return _project(self.name)

    @property
    def component(self) -> str:
        """The name of the component, without device, target or slot: `gpu`."""
        return self.name.partition(":")[0]

    @property
    def shown_name(self) -> str:
        """The name in messages: of the component, or of the distribution with its extras."""
        return self.name if self.is_package else self.component

    @property
    def slot(self) -> str:
        """The framework that has this component as a copy of its own, such as `jax` for `cuda:jax`; "" for all other keys."""
        part = self.name.partition(":")[2]
        return part if part in SLOTS else ""


NO_VERSION = Version.named("")
"""The `version` of every candidate of a distribution, a placeholder: distributions are compared by `Candidate.pep440`."""

SHARED_FILE = "shared-file"
"""The prefix of the key of a file that several distributions write (`shared-file:nccl`). Its candidates are these
distributions."""

SEVERAL = "several"
"""The label of the candidate of a shared file that lets several distributions write it. Only a file that the matrix tolerates
and a policy forbids has such a candidate."""

PYTORCH = Key("pytorch")
TORCH = Key("torch", PACKAGE)
"""The key of the wheel of the chosen PyTorch build. It differs from `PYTORCH` so that the metadata of a build is read from an
index only after the matrix has allowed the build. Requirements on the distribution `torch` are requirements on `PYTORCH`."""


class Test(Protocol):
    """The test of a requirement, which decides whether a candidate is allowed."""

    def allows(self, candidate: Candidate) -> bool:
        """Return whether `candidate` passes the test."""


class Within(Struct, frozen=True):
    """The test that a version lies in `range`, which is in the matrix's notation of ranges."""

    range: Range

    def allows(self, candidate: Candidate) -> bool:
        """Return whether the candidate's version is in the range.

        If the range names a local label, as in `==2.7.1+cu126`, the candidate must be of that build.
        """
        return self.range.allows(candidate.version)

    def __str__(self) -> str:
        return str(self.range)


class OneOf(Struct, frozen=True):
    """The test that a version equals one of `versions`."""

    versions: tuple[Version, ...]

    def allows(self, candidate: Candidate) -> bool:
        """Return whether the candidate's version equals one of `versions`.

        A listed version with a local label (`2.7.1+cu126`) allows that build only, one without a label allows every build.
        """
        version = candidate.version
        return any(version == one and (not one.local or one.local == version.local) for one in self.versions)

    def __str__(self) -> str:
        return " or ".join(str(version) for version in self.versions)


class OfBuild(Struct, frozen=True):
    """The test that a candidate is a build with one of the names in `builds`, of any release."""

    builds: frozenset[str]

    def allows(self, candidate: Candidate) -> bool:
        """Return whether the candidate has a build with one of these names."""
        build = build_of(candidate)
        return build is not None and build.name in self.builds

    def __str__(self) -> str:
        return " or ".join(sorted(self.builds))


class Unless(Struct, frozen=True):
    """The test that a candidate passes `test` if `guard` holds for it; any other candidate passes, too.

    This test is for a rule whose guard is about the component that the rule restricts, while that component is still to be
    chosen.
    """

    guard: Need
    test: Test

    def allows(self, candidate: Candidate) -> bool:
        """Return whether the guard does not hold for the candidate, or the candidate passes the rule's test."""
        return not self.guard.allows(candidate.version) or self.test.allows(candidate)

    def __str__(self) -> str:
        return f"{self.test} where {self.guard}"


class SameAs(Struct, frozen=True):
    """The test that a version equals the one in `label`: compared by number if both are plain numbers, otherwise as text."""

    label: str

    def allows(self, candidate: Candidate) -> bool:
        """Return whether the candidate has the same version; `6.8.0-45-generic` differs from `6.8.0-47-generic`."""
        return comparable(candidate.label) == comparable(self.label)

    def __str__(self) -> str:
        return self.label


@lru_cache(maxsize=4096)
def comparable(label: str) -> Version | str:
    """Return what two labels of one version have in common: the version if it is a plain number, otherwise the text."""
    return Version.parse(label) if re.fullmatch(r"[\d.]+", label) else label


class OfSystem(Struct, frozen=True):
    """The test that an operating system is one of some families or releases.

    The system `rhel 9.4` passes for each of the names `rhel`, `rhel 9` and `rhel 9.4`.
    """

    names: tuple[str, ...]

    def allows(self, candidate: Candidate) -> bool:
        """Return whether the candidate belongs to one of the named families or releases."""
        return is_of_system(candidate.label, self.names)

    def __str__(self) -> str:
        return " or ".join(self.names)


def is_of_system(system: str, names: Iterable[str]) -> bool:
    """Return whether a system such as `rhel 9.4` belongs to one of some families (`rhel`) or releases (`rhel 9`)."""
    return any(system == name or system.startswith((f"{name} ", f"{name}.")) for name in names)


class Matching(Struct, frozen=True, gc=False):
    """The test that a version satisfies a PEP 440 specifier, as installers evaluate it."""

    specifier: SpecifierSet

    def allows(self, candidate: Candidate) -> bool:
        """Return whether the candidate's version satisfies the specifier.

        Pre-releases pass, too: which of them may be chosen is decided when candidates are listed.
        """
        return self.specifier.contains(candidate.pep440, prereleases=True)

    def among(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        """Yield the candidates that `allows` accepts.

        One call for many candidates is several times faster than a call of `allows` for each.
        """
        return self.specifier.filter(candidates, prereleases=True, key=_PEP440)

    def __str__(self) -> str:
        return str(self.specifier) or "any version"


class Labelled(Struct, frozen=True):
    """The test that a candidate is one of some exact releases and builds, by label (`2.7.1+cu126`)."""

    labels: frozenset[str]

    def allows(self, candidate: Candidate) -> bool:
        """Return whether the candidate's label is one of `labels`."""
        return candidate.label in self.labels

    def __str__(self) -> str:
        return " or ".join(sorted(self.labels))


class Requirement(Struct, frozen=True, eq=False, gc=False):
    """The demand that the candidate chosen for `key` passes `test`; `ground` is the reason for it.

    Root requirements always hold; the requirements of a candidate hold only if that candidate is chosen.
    """

    key: Key
    test: Test
    ground: Ground

    def allows(self, candidate: Candidate) -> bool:
        """Return whether a candidate of the same key satisfies this requirement."""
        return self.test.allows(candidate)

    def among(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        """Yield the candidates, all of the same key, that satisfy this requirement."""
        return self.test.among(candidates) if isinstance(self.test, Matching) else filter(self.test.allows, candidates)


class Candidate(Struct, frozen=True, eq=False, gc=False):
    """A possible value of a key; this base class is used for facts of hosts and for names, such as that of a platform.

    `label` is the candidate's text in messages (`2.7.1+cu126`). `version` orders the candidates of a component; those of a
    distribution are ordered by `pep440`.
    """

    key: Key
    version: Version
    label: str

    @property
    def pep440(self) -> PackageVersion:
        """The version as installers compare it."""
        return _pep440(self.label)

    @property
    def age(self) -> Any:  # noqa: ANN401 - a version of PEP 440 or of the matrix; either orders the candidates of one key
        """The version by which the candidates of one key are ordered."""
        return self.pep440 if self.key.is_package else self.version

    @property
    def is_withheld(self) -> bool:
        """Whether only a requirement that names this version may choose it, because it is yanked (PEP 592) or a pre-release."""
        return False

    @property
    def has_no_file(self) -> bool:
        """Whether this is a version of a distribution without any file that can be installed on the target."""
        return False

    @property
    def is_source(self) -> bool:
        """Whether the file of this version of a distribution is a source distribution."""
        return False

    @property
    def is_for_another_python(self) -> bool:
        """Whether this version of a distribution has files, for other Pythons alone."""
        return False

    @property
    def subject(self) -> Subject:
        """The name and label by which a ground refers to this candidate."""
        return Subject(self.key.shown_name, self.label)

    def entails(self, predicate: Predicate, relation: Relation | SameChoice | Row, cited: Source | None = None) -> Entails:
        """Return the ground of a requirement of this candidate.

        `predicate` is what the candidate requires, `relation` the group of the ground, `cited` its source, None for none.
        """
        subject = self.subject
        return Entails(name=subject.name, subject=subject, predicate=predicate, relation=relation, cited=cited)

    def __str__(self) -> str:
        return f"{self.key.name} {self.label}"

    def __repr__(self) -> str:
        return f"<{self}>"


class ReleaseCandidate(Candidate, frozen=True, eq=False, gc=False):
    """A release of the matrix, together with one of its builds if the release has builds."""

    release: Release
    build: Build | None = None


class NewerCandidate(Candidate, frozen=True, eq=False, gc=False):
    """A version that a host states and that is newer than every release of the matrix.

    Its `version` is that of the newest release, so it has to meet the same requirements. What is known of that release only,
    such as its end of life, is not reported for this version.
    """


class ImageCandidate(ReleaseCandidate, frozen=True, eq=False, gc=False, kw_only=True):
    """A base image of a container; `image` are the contents of the image that the matrix lists."""

    image: ImageFacts


class FileCandidate(Candidate, frozen=True, eq=False, gc=False):
    """One version of a distribution, with the file that an installer would pick for the target.

    `is_direct` is True if a requirement names this file by URL or path (PEP 440, "Direct references"); only requirements that
    do so can choose it.
    """

    release: PackageRelease
    is_direct: bool = False

    @property
    def pep440(self) -> PackageVersion:
        return self.release.version

    @property
    def is_withheld(self) -> bool:
        return self.release.has_file and bool(self.release.why_not)

    @property
    def has_no_file(self) -> bool:
        return not self.release.has_file

    @property
    def is_source(self) -> bool:
        return self.release.has_file and not self.release.is_wheel

    @property
    def is_for_another_python(self) -> bool:
        return self.release.blocked_by == "python"


class WheelCandidate(Candidate, frozen=True, eq=False, gc=False):
    """The wheel of a PyTorch build, a candidate of the key `TORCH`; `build` is the same build as a candidate of `PYTORCH`."""

    build: ReleaseCandidate


class HolderCandidate(Candidate, frozen=True, eq=False, gc=False):
    """A candidate without a file of its own that is chosen only together with another candidate, its `holder`.

    It is a candidate of a mutex, or of an extra of PyTorch's wheel.
    """

    holder: Candidate

    @property
    def pep440(self) -> PackageVersion:
        return self.holder.pep440


def release_of(candidate: Candidate) -> Release | None:
    """Return the release of the matrix that a candidate is; None for a fact of a host, a name or a distribution."""
    return candidate.release if isinstance(candidate, ReleaseCandidate) else None


def build_of(candidate: Candidate | None) -> Build | None:
    """Return the build of the matrix that a candidate is; None for None, a release without builds, a fact or a distribution."""
    return candidate.build if isinstance(candidate, ReleaseCandidate) else None


def with_key(candidate: Candidate, key: Key) -> Candidate:
    """Return a copy of a candidate for another key of the same component: that of another host or another slot."""
    if isinstance(candidate, ReleaseCandidate):
        return ReleaseCandidate(key, candidate.version, candidate.label, candidate.release, candidate.build)
    if isinstance(candidate, NewerCandidate):
        return NewerCandidate(key, candidate.version, candidate.label)
    return Candidate(key, candidate.version, candidate.label)
