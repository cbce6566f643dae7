"""Direct URLs and pre-releases as candidates, including those to which only metadata refers.

A direct URL or path (PEP 440, "Direct references") is a candidate only for requirements that name it. If the spec names one, it
is known from the start and the only candidate of its distribution: no index is read. A URL in metadata is discovered when that
metadata is read; the search then restarts with the new candidate. It may be chosen only with a candidate whose metadata names
it, its holder; an artificial key, its mutex, ties the two.

PEP 440 excludes pre-releases unless a requirement names one or no final version meets it. Here both must hold, so that
`>=2.0a4` takes 2.0 once that is released. Another requirement on the same distribution that names no pre-release allows final
versions only: whether a pre-release is allowed must not depend on the order in which a search reads metadata. Requirements in
metadata that only a pre-release meets are discovered, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec.structs import replace
from packaging.utils import NormalizedName, canonicalize_name

from provisioner.errors import ProvisionError, UnavailableError
from provisioner.grounds.predicate import IsForHolders, NamesFile, RequiresFile
from provisioner.grounds.requirement import Entails, Relation, Subject
from provisioner.index.direct_reference import DirectReferenceError, direct_reference, shown_url
from provisioner.index.model import FileSource, PackedSource, PrereleaseSource
from provisioner.resolver.requirement import (
    NO_VERSION,
    PACKAGE,
    Candidate,
    FileCandidate,
    HolderCandidate,
    Key,
    Labelled,
    Requirement,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from packaging.requirements import Requirement as Pep508
    from packaging.specifiers import SpecifierSet

    from provisioner.grounds.requirement import Ground
    from provisioner.grounds.source import Source
    from provisioner.index.model import IndexFile, PackageRelease, PackageSource
    from provisioner.resolver.requirement import Candidate


PYPI_HOSTS = frozenset({"files.pythonhosted.org", "test-files.pythonhosted.org"})
"""The host names from which PyPI and its test instance serve files."""

_NOWHERE = Path("/")
"""The base folder for relative paths in metadata, which are refused."""


class DirectUrlMutex(HolderCandidate, frozen=True, eq=False, gc=False, kw_only=True):
    """A candidate of a direct URL's mutex, chosen together with one holder; `name` is the distribution at the URL."""

    name: str
    url: str


class Discoveries:
    """The direct URLs and pre-releases to which the metadata read so far refers; it outlives restarts of the search.

    Every new discovery sets `has_grown`. `prereleases` are distributions of which another search needed pre-releases.
    """

    def __init__(self, prereleases: Iterable[str] = ()) -> None:
        self._holders: dict[tuple[str, str], dict[tuple[Key, str], Candidate]] = {}
        self.prereleases = set(prereleases)
        """The distributions for which a requirement in metadata names a pre-release and no final version meets it."""
        self.has_grown = False

    def add_url(self, name: str, url: str, holder: Candidate) -> None:
        """Record that a candidate's metadata names a direct URL of a distribution."""
        holders = self._holders.setdefault((name, url), {})
        self.has_grown = self.has_grown or (holder.key, holder.label) not in holders
        holders.setdefault((holder.key, holder.label), holder)

    def add_prereleases(self, name: str) -> None:
        """Record that pre-releases of a distribution are required."""
        self.has_grown = self.has_grown or name not in self.prereleases
        self.prereleases.add(name)

    def urls(self, name: str) -> tuple[str, ...]:
        """Return the direct URLs of a distribution, sorted."""
        return tuple(sorted(url for known, url in self._holders if known == name))

    def holders(self, name: str, url: str) -> tuple[Candidate, ...]:
        """Return the candidates whose metadata names a direct URL."""
        return tuple(self._holders.get((name, url), {}).values())


class DirectUrls:
    """The direct URLs of one search; `requirements` are the spec's requirements whose markers hold on the target."""

    def __init__(self, source: PackageSource, requirements: Iterable[tuple[Pep508, Ground]], discoveries: Discoveries) -> None:
        self._source = source
        self._discoveries = discoveries
        self._given: dict[str, list[str]] = {}
        self._mutexes: dict[Key, tuple[str, str]] = {}
        self._places: dict[str, Source | None] = {}
        for requirement, ground in requirements:
            if requirement.url is not None:
                self._given.setdefault(canonicalize_name(requirement.name), []).append(requirement.url)
                self._places.setdefault(canonicalize_name(requirement.name), ground.source)

    def is_given(self, name: str) -> bool:
        """Return whether the spec names a direct URL of a distribution, which is then its only candidate."""
        return name in self._given

    def given(self, name: str) -> PackageRelease | None:
        """Return the release that the spec names by URL or path; None when the spec names none.

        Raises `ProvisionError` when the file cannot be read.
        """
        urls = self._given.get(name)
        return self._release(name, urls[0]) if urls else None

    def candidates(self, key: Key) -> list[FileCandidate]:
        """Return the candidates of a distribution's key that are files at direct URLs; [] when no direct URL is known."""
        name = key.project
        found: dict[str, FileCandidate] = {}
        for url in self._given.get(name) or self._discoveries.urls(name):
            release = self._readable(name, url)
            if release is not None:
                label = _label(release, url)
                found.setdefault(label, FileCandidate(key, NO_VERSION, label, release, is_direct=True))
        return list(found.values())

    def root(self, key: Key, url: str, ground: Ground) -> Requirement:
        """Return the spec's requirement of a direct URL; raises `ProvisionError` when the file cannot be read."""
        return Requirement(key, Labelled(frozenset({_label(self._release(key.project, url), url)})), ground)

    def required(self, key: Key, needed: Pep508, *, holder: Candidate, ground: Entails) -> Requirement:
        """Return the requirement of `holder` on the direct URL that its metadata, in the requirement `needed`, names.

        If the URL is forbidden or has no usable file, the requirement allows no candidate and its ground contains the error
        message. If the spec names another URL of the distribution, the ground names that URL. Raises `UnavailableError` when
        the URL cannot be reached.
        """
        assert needed.url is not None
        name = key.project
        predicate = RequiresFile(name=name, url=shown_url(needed.url))
        try:
            if _is_of_machine(needed.url):
                raise DirectReferenceError("metadata cannot name a file of this machine")
            if not self.is_given(name):
                _refuse_host(holder, needed.url)
            direct_reference(name, needed.url, folder=_NOWHERE)
            if not self.is_given(name):
                self._discoveries.add_url(name, needed.url, holder)
            label = _label(self._release(name, needed.url), needed.url)
        except UnavailableError:
            raise
        except ProvisionError as error:
            refused = replace(ground, predicate=replace(predicate, problem=error.message))
            return Requirement(key, Labelled(frozenset()), refused)
        if self.is_given(name) and all(one.label != label for one in self.candidates(key)):
            predicate = replace(predicate, instead=shown_url(self._given[name][0]), place=self._places[name])
        return Requirement(key, Labelled(frozenset({label})), replace(ground, predicate=predicate))

    def support(self, candidate: Candidate) -> tuple[Requirement, ...]:
        """Return the requirement of a direct URL that only metadata names: a candidate with that metadata must be chosen.

        () for any other candidate.
        """
        name = candidate.key.project
        if self.is_given(name) or not isinstance(candidate, FileCandidate) or not candidate.is_direct:
            return ()
        url = next((one for one in self._discoveries.urls(name) if _label(candidate.release, one) == candidate.label), None)
        if url is None:
            return ()
        key = Key(f"limit {name} @ {url}", PACKAGE)
        self._mutexes[key] = name, url
        labels = frozenset(str(one) for one in self._discoveries.holders(name, url))
        return (Requirement(key, Labelled(labels), _named(name, candidate.subject, IsForHolders())),)

    def holders(self, key: Key) -> tuple[Candidate, ...] | None:
        """Return the candidates of a direct URL's mutex, one for each holder; None for any other key."""
        place = self._mutexes.get(key)
        if place is None:
            return None
        name, url = place
        return tuple(
            DirectUrlMutex(key, NO_VERSION, str(one), one, name=name, url=url) for one in self._discoveries.holders(name, url)
        )

    def of_holder(self, candidate: HolderCandidate) -> tuple[Requirement, ...]:
        """Return the requirement of a candidate of a direct URL's mutex on its holder; () for other mutexes."""
        if candidate.key not in self._mutexes:
            return ()
        holder = candidate.holder
        name, _ = self._mutexes[candidate.key]
        ground = _named(name, holder.subject, NamesFile())
        return (Requirement(holder.key, Labelled(frozenset({holder.label})), ground),)

    def is_built(self, file: IndexFile) -> bool:
        """Return whether the requirements of a file were found by building it on this machine."""
        return isinstance(self._source, FileSource) and self._source.is_built(file)

    def is_packed(self, file: IndexFile) -> bool:
        """Return whether the requirements of a file are those that it was packed with, and left to a build."""
        return isinstance(self._source, PackedSource) and self._source.is_packed(file)

    def _release(self, name: str, url: str) -> PackageRelease:
        if not isinstance(self._source, FileSource):
            raise DirectReferenceError(f"`{name} @ {shown_url(url)}` cannot be read from this source")
        return self._source.direct(NormalizedName(name), url)

    def _readable(self, name: str, url: str) -> PackageRelease | None:
        """Return the release at a direct URL; None when a URL in metadata has no usable distribution.

        Raises `ProvisionError` for such a URL of the spec, and `UnavailableError` when the URL cannot be reached.
        """
        try:
            return self._release(name, url)
        except UnavailableError:
            raise
        except ProvisionError:
            if self.is_given(name):
                raise
            return None


def _named(name: str, subject: Subject, predicate: IsForHolders | NamesFile) -> Entails:
    return Entails(name=name, subject=subject, predicate=predicate, relation=Relation(name, "who names it"), cited=None)


def _label(release: PackageRelease, url: str) -> str:
    return f"{release.version} @ {_shown(url)}"


def _shown(url: str) -> str:
    """Return a URL without its fragment: of two requirements on one file, only one may state the hash there."""
    return shown_url(url) if not _is_of_machine(url) else url.partition("#")[0]


def _is_of_machine(url: str) -> bool:
    return "://" not in url or url.startswith("file:")


def _refuse_host(holder: Candidate, url: str) -> None:
    """Raise `DirectReferenceError` when metadata of a file on PyPI names a URL elsewhere, which PyPI does not accept.

    Source: pip, `_internal/req/constructors.py`: "Packages installed from PyPI cannot depend on packages which are not also
    hosted on PyPI".
    """
    file = holder.release.file if isinstance(holder, FileCandidate) else None
    is_of_pypi = file is not None and urlsplit(file.url).netloc in PYPI_HOSTS
    if is_of_pypi and urlsplit(url).netloc not in PYPI_HOSTS:
        raise DirectReferenceError("a file of PyPI cannot name one that PyPI does not have; name it in the spec if you want it")


# -- pre-releases --------------------------------------------------------------------------------------------------------------

_LOWER_BOUNDS_AND_PINS = frozenset({"==", "===", ">=", "~=", ">"})
"""Operators with which a pre-release admits pre-releases; `<3.0.dev0` names one in order to exclude pre-releases."""


def names_prerelease(specifier: SpecifierSet) -> bool:
    """Return whether a lower bound or a pin of a requirement is a pre-release."""
    return any(one.prereleases and one.operator in _LOWER_BOUNDS_AND_PINS for one in specifier)


def is_met_without_prereleases(specifier: SpecifierSet, listed: Iterable[Candidate]) -> bool:
    """Return whether a final version with a file for the target that is not yanked meets a requirement."""
    offered = (one for one in listed if not one.has_no_file and not one.is_withheld)
    return any(specifier.contains(one.pep440, prereleases=True) for one in offered)


class PrereleaseVersions:
    """The pre-releases of one search, limited to distributions for which a requirement needs one."""

    def __init__(self, source: PackageSource, discoveries: Discoveries) -> None:
        self._source = source
        self._discoveries = discoveries

    def releases(self, name: NormalizedName) -> tuple[PackageRelease, ...]:
        """Return the pre-releases of a project, newest first; () unless a requirement in metadata needs one.

        Raises `UnavailableError` when the index cannot be reached.
        """
        return (
            self._source.prereleases(name)
            if name in self._discoveries.prereleases and isinstance(self._source, PrereleaseSource)
            else ()
        )

    def is_final_only(self, name: NormalizedName, specifier: SpecifierSet) -> bool:
        """Return whether a requirement allows only final versions although another one on the project needs a pre-release."""
        return name in self._discoveries.prereleases and not names_prerelease(specifier)

    def discover(self, name: NormalizedName, specifier: SpecifierSet, listed: Callable[[], Iterable[Candidate]]) -> None:
        """Record the distribution if a requirement in metadata names a pre-release and only a pre-release meets it.

        `listed` returns the distribution's candidates. Raises `UnavailableError` when the index cannot be reached.
        """
        if (
            name in self._discoveries.prereleases
            or not names_prerelease(specifier)
            or not isinstance(self._source, PrereleaseSource)
        ):
            return
        if is_met_without_prereleases(specifier, listed()):
            return
        if any(specifier.contains(one.version, prereleases=True) for one in self._source.prereleases(name)):
            self._discoveries.add_prereleases(name)
