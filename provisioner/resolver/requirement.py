"""The resolver's nouns: keys, candidates, and requirements with their grounds."""

from __future__ import annotations

import re
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct
from packaging.version import Version as PackageVersion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from packaging.specifiers import SpecifierSet

    from provisioner.grounds.requirement import Ground
    from provisioner.index.model import PackageRelease
    from provisioner.matrix.model import Build, ImageFacts, Release
    from provisioner.matrix.need import Need
    from provisioner.versions import Range, Version

_pep440 = lru_cache(maxsize=4096)(PackageVersion)
_PEP440 = attrgetter("pep440")

PACKAGE = "package"
"""The scope of Python distributions; other scopes are "" (shared by all hosts) and the label of one host."""

SLOTS = ("tensorflow", "jax")
"""Frameworks whose wheels have a CUDA runtime of their own, so that two of them may be in one environment."""


class Key(NamedTuple):
    """The identifier of one choice: a component (of one host, when a host provides it) or a Python distribution.

    A distribution with extras (`uvicorn[standard]`) is a key of its own, which requires the distribution at the same version,
    as in pip. A suffix after a colon distinguishes keys of one component: devices (`gpu:9.0`), targets (`arch_list:9.0`),
    slots (`cuda:jax`).
    """

    name: str
    scope: str = ""

    @property
    def is_package(self) -> bool:
        """Whether this is a Python distribution."""
        return self.scope == PACKAGE

    @property
    def is_mutex(self) -> bool:
        """Whether this is a mutex, which only one of several candidates can hold; a distribution's name has no space."""
        return self.is_package and " " in self.name

    @property
    def distribution(self) -> str:
        """The name of a distribution without its extras."""
        return self.name.partition("[")[0]

    @property
    def component(self) -> str:
        """The name of the component, without device, target or slot: `gpu`."""
        return self.name.partition(":")[0]

    @property
    def slot(self) -> str:
        """The framework whose own CUDA runtime the key belongs to; "" for a component that the environment shares."""
        part = self.name.partition(":")[2]
        return part if part in SLOTS else ""


SHARED_FILE = "shared-file"
"""The prefix of keys that stand for a file that several distributions write (`shared-file:nccl`)."""

SEVERAL = "several"
"""The candidate of a shared file that allows several owners; only rows that merely a policy forbids have it."""

PYTORCH = Key("pytorch")
TORCH = Key("torch", PACKAGE)
"""The wheel of the chosen PyTorch build. It is a key of its own so that a build's metadata is read of an index only after the
matrix has allowed the build; requirements on `torch` are requirements on PYTORCH."""


class Test(Protocol):
    """Decides whether a candidate is allowed."""

    def allows(self, candidate: Candidate) -> bool:
        """Whether `candidate` passes."""


class Within(Struct, frozen=True):
    """The candidate's version is in a range of the matrix's kind."""

    range: Range

    def allows(self, candidate: Candidate) -> bool:
        """Whether the candidate's version is in the range; a wanted local label must be the candidate's build."""
        return self.range.allows(candidate.version)

    def __str__(self) -> str:
        return str(self.range)


class OneOf(Struct, frozen=True):
    """The candidate's version is one of a few."""

    versions: tuple[Version, ...]

    def allows(self, candidate: Candidate) -> bool:
        """Whether the candidate's version is listed; one listed with a local label is that build only."""
        version = candidate.version
        return any(version == one and (not one.local or one.local == version.local) for one in self.versions)

    def __str__(self) -> str:
        return " or ".join(str(version) for version in self.versions)


class OfBuild(Struct, frozen=True):
    """The candidate is one of some builds of its release."""

    builds: frozenset[str]

    def allows(self, candidate: Candidate) -> bool:
        """Whether the candidate's build is one of them."""
        build = build_of(candidate)
        return build is not None and build.name in self.builds

    def __str__(self) -> str:
        return " or ".join(sorted(self.builds))


class Unless(Struct, frozen=True):
    """A rule's test of the component that its guard is about, where that component is still to be chosen."""

    guard: Need
    test: Test

    def allows(self, candidate: Candidate) -> bool:
        """Whether the guard does not hold for the candidate, or the rule's test passes."""
        return not self.guard.allows(candidate.version) or self.test.allows(candidate)

    def __str__(self) -> str:
        return f"{self.test} where {self.guard}"


class SameAs(Struct, frozen=True):
    """The candidate has the version of another one: the same spelling, or the same numbers where both are plain numbers."""

    label: str
    version: Version

    def allows(self, candidate: Candidate) -> bool:
        """Whether the candidate's version is the other's; `6.8.0-45-generic` is not `6.8.0-47-generic`."""
        is_plain = all(re.fullmatch(r"[\d.]+", text) for text in (self.label, candidate.label))
        return candidate.version == self.version if is_plain else candidate.label == self.label

    def __str__(self) -> str:
        return self.label


class OfSystem(Struct, frozen=True):
    """The operating system is one of some families or releases: `rhel`, `rhel 9` and `rhel 9.4` all hold for `rhel 9.4`."""

    names: tuple[str, ...]

    def allows(self, candidate: Candidate) -> bool:
        """Whether the candidate is one of the named systems."""
        return is_of_system(candidate.label, self.names)

    def __str__(self) -> str:
        return " or ".join(self.names)


def is_of_system(system: str, names: Iterable[str]) -> bool:
    """Whether an operating system such as `rhel 9.4` is one of some families and releases."""
    return any(system == name or system.startswith((f"{name} ", f"{name}.")) for name in names)


class Matching(Struct, frozen=True, gc=False):
    """The candidate's version satisfies a PEP 440 specifier, as installers read it."""

    specifier: SpecifierSet

    def allows(self, candidate: Candidate) -> bool:
        """Whether installers would accept the candidate; prereleases were filtered where candidates are listed."""
        return self.specifier.contains(candidate.pep440, prereleases=True)

    def among(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        """Yield the candidates that `allows` accepts; several times faster than a call for each."""
        return self.specifier.filter(candidates, prereleases=True, key=_PEP440)

    def __str__(self) -> str:
        return str(self.specifier) or "any version"


class Labelled(Struct, frozen=True):
    """The candidate is one of these exact releases and builds, by label (`2.7.1+cu126`)."""

    labels: frozenset[str]

    def allows(self, candidate: Candidate) -> bool:
        """Whether the candidate's label is listed."""
        return candidate.label in self.labels

    def __str__(self) -> str:
        return " or ".join(sorted(self.labels))


class Requirement(Struct, frozen=True, eq=False, gc=False):
    """A candidate of `key` must be chosen that `test` allows, on this `ground`."""

    key: Key
    test: Test
    ground: Ground

    def allows(self, candidate: Candidate) -> bool:
        """Whether `candidate`, of the same key, satisfies this requirement."""
        return self.test.allows(candidate)

    def among(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        """Yield those of some candidates that satisfy this requirement."""
        return self.test.among(candidates) if isinstance(self.test, Matching) else filter(self.test.allows, candidates)


class Candidate(Struct, frozen=True, eq=False, gc=False):
    """A version that can be chosen for a key; a plain one is a host fact or a name.

    `label` is its text in messages (`2.7.1+cu126`). `version` orders components; distributions are ordered by `pep440`.
    """

    key: Key
    version: Version
    label: str

    @property
    def pep440(self) -> PackageVersion:
        """The version as installers compare it."""
        return _pep440(self.label)

    @property
    def is_withheld(self) -> bool:
        """Whether only requirements that name this version may have it: it is yanked (PEP 592), or a pre-release."""
        return False

    @property
    def has_no_file(self) -> bool:
        """Whether no file of this version of a distribution can be installed on the target."""
        return False

    def __repr__(self) -> str:
        return f"<{self.key.name} {self.label}>"


class ReleaseCandidate(Candidate, frozen=True, eq=False, gc=False):
    """A release of the matrix, with one of its builds where it has builds."""

    release: Release
    build: Build | None = None


class ImageCandidate(ReleaseCandidate, frozen=True, eq=False, gc=False, kw_only=True):
    """A base image."""

    image: ImageFacts


class FileCandidate(Candidate, frozen=True, eq=False, gc=False):
    """One version of a distribution, with the file that an installer would pick for the target.

    `is_direct`: a requirement names this file by URL or path (PEP 440, "Direct references"); only such requirements allow it.
    """

    release: PackageRelease
    is_direct: bool = False

    @property
    def pep440(self) -> PackageVersion:
        return self.release.version

    @property
    def is_withheld(self) -> bool:
        return self.release.file is not None and not self.release.is_usable

    @property
    def has_no_file(self) -> bool:
        return self.release.file is None


class WheelCandidate(Candidate, frozen=True, eq=False, gc=False):
    """The wheel of a PyTorch build: the candidate of `TORCH` that goes with `build`, one of `PYTORCH`."""

    build: ReleaseCandidate


class HolderCandidate(Candidate, frozen=True, eq=False, gc=False):
    """A candidate without a file, chosen together with its holder: of a mutex, or an extra of the framework's wheel."""

    holder: Candidate

    @property
    def pep440(self) -> PackageVersion:
        return self.holder.pep440


def release_of(candidate: Candidate) -> Release | None:
    """Return the matrix's release of a candidate; None for a fact, a name or a distribution."""
    return candidate.release if isinstance(candidate, ReleaseCandidate) else None


def build_of(candidate: Candidate | None) -> Build | None:
    """Return the build of a candidate; None where it has none."""
    return candidate.build if isinstance(candidate, ReleaseCandidate) else None


def with_key(candidate: Candidate, key: Key) -> Candidate:
    """Return a candidate for another key: of another host, or of another slot."""
    if isinstance(candidate, ReleaseCandidate):
        return ReleaseCandidate(key, candidate.version, candidate.label, candidate.release, candidate.build)
    return Candidate(key, candidate.version, candidate.label)
