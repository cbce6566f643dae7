"""Files that requirements name by URL or path, as candidates: each is for those who name it, and for nobody else.

What a spec names is known from the start, and is then the only candidate of its name: no index is asked. What the metadata of
other distributions names is known when that metadata is read; a search that meets such a file is begun again with it.
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
from provisioner.index.model import FileSource
from provisioner.index.places.direct_reference import DirectReferenceError, direct_reference, shown_url
from provisioner.resolver.python.distributions import NO_VERSION
from provisioner.resolver.requirement import (
    PACKAGE,
    Candidate,
    FileCandidate,
    HolderCandidate,
    Key,
    Labelled,
    Requirement,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from packaging.requirements import Requirement as Pep508

    from provisioner.grounds.requirement import Ground
    from provisioner.grounds.source import Source
    from provisioner.index.model import IndexFile, PackageRelease, PackageSource

PYPI_HOSTS = frozenset({"files.pythonhosted.org", "test-files.pythonhosted.org"})
"""Where PyPI and its test instance keep their files."""

_NOWHERE = Path("/")
"""What the addresses of metadata are relative to; those of this machine are refused."""


class NamedFileCandidate(HolderCandidate, frozen=True, eq=False, gc=False, kw_only=True):
    """The mutex of a file that only metadata names: taken by one of those who name it. `name` is the file's distribution."""

    name: str
    url: str


class MetFiles:
    """The files and pre-releases that metadata names, as far as it was read; kept from search to search.

    Of a file it is known who names it.
    """

    def __init__(self) -> None:
        self._holders: dict[tuple[str, str], dict[tuple[Key, str], Candidate]] = {}
        self.early: set[str] = set()
        """The distributions whose pre-releases metadata asks for, where no final version meets it."""
        self.has_grown = False

    def meet(self, name: str, url: str, holder: Candidate) -> None:
        """Remember who names a file; `has_grown` says that this is news."""
        holders = self._holders.setdefault((name, url), {})
        self.has_grown = self.has_grown or (holder.key, holder.label) not in holders
        holders.setdefault((holder.key, holder.label), holder)

    def meet_early(self, name: str) -> None:
        """Remember that pre-releases of a distribution are asked for."""
        self.has_grown = self.has_grown or name not in self.early
        self.early.add(name)

    def urls(self, name: str) -> tuple[str, ...]:
        """The files of one name, in an order of their own."""
        return tuple(sorted(url for known, url in self._holders if known == name))

    def holders(self, name: str, url: str) -> tuple[Candidate, ...]:
        """Who names a file."""
        return tuple(self._holders.get((name, url), {}).values())


class NamedFiles:
    """Answers for the files of one search: `asked` are the requirements of the spec that hold on the target."""

    def __init__(self, source: PackageSource, asked: Iterable[tuple[Pep508, Ground]], met: MetFiles) -> None:
        self._source = source
        self._met = met
        self._given: dict[str, list[str]] = {}
        self._mutexes: dict[Key, tuple[str, str]] = {}
        self._places: dict[str, Source | None] = {}
        for requirement, ground in asked:
            if requirement.url is not None:
                self._given.setdefault(canonicalize_name(requirement.name), []).append(requirement.url)
                self._places.setdefault(canonicalize_name(requirement.name), ground.source)

    def is_given(self, name: str) -> bool:
        """Whether the spec names a file of a distribution, which then comes from nowhere else."""
        return name in self._given

    def given(self, name: str) -> PackageRelease | None:
        """The release that the spec names by URL or path, None for no such; raises what reading it raises."""
        urls = self._given.get(name)
        return self._release(name, urls[0]) if urls else None

    def candidates(self, key: Key) -> list[FileCandidate]:
        """The files that are known under a key's name."""
        name = _name(key)
        found: dict[str, FileCandidate] = {}
        for url in self._given.get(name) or self._met.urls(name):
            release = self._readable(name, url)
            if release is not None:
                label = _label(release, url)
                found.setdefault(label, FileCandidate(key, NO_VERSION, label, release, is_named=True))
        return list(found.values())

    def asked(self, key: Key, url: str, ground: Ground) -> Requirement:
        """Return the spec's requirement of the very file; raises what reading the file raises."""
        return Requirement(key, Labelled(frozenset({_label(self._release(_name(key), url), url)})), ground)

    def required(self, key: Key, needed: Pep508, *, holder: Candidate, ground: Entails) -> Requirement:
        """A candidate's requirement of the very file that its metadata names."""
        assert needed.url is not None
        name = _name(key)
        predicate = RequiresFile(name=name, url=shown_url(needed.url))
        try:
            if _is_of_machine(needed.url):
                raise DirectReferenceError("metadata cannot name a file of this machine")
            if not self.is_given(name):
                _refuse_elsewhere(holder, needed.url)
            direct_reference(name, needed.url, folder=_NOWHERE)
            if not self.is_given(name):
                self._met.meet(name, needed.url, holder)
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
        """What a file needs that only metadata names: somebody who names it. Nobody else may have it chosen for them."""
        name = _name(candidate.key)
        if self.is_given(name) or not isinstance(candidate, FileCandidate) or not candidate.is_named:
            return ()
        url = next((one for one in self._met.urls(name) if _label(candidate.release, one) == candidate.label), None)
        if url is None:
            return ()
        key = Key(f"limit {name} @ {url}", PACKAGE)
        self._mutexes[key] = name, url
        labels = frozenset(_holder(one) for one in self._met.holders(name, url))
        return (Requirement(key, Labelled(labels), _named(name, Subject(name, candidate.label), IsForHolders())),)

    def holders(self, key: Key) -> tuple[Candidate, ...] | None:
        """Return those who may name a file, as candidates; None for a key that is not one of `support`'s."""
        place = self._mutexes.get(key)
        if place is None:
            return None
        name, url = place
        return tuple(
            NamedFileCandidate(key, NO_VERSION, _holder(one), one, name=name, url=url) for one in self._met.holders(name, url)
        )

    def of_holder(self, candidate: HolderCandidate) -> tuple[Requirement, ...]:
        """Return that whoever takes the mutex of a file is chosen too; nothing for other mutexes."""
        if candidate.key not in self._mutexes:
            return ()
        holder = candidate.holder
        name, _ = self._mutexes[candidate.key]
        ground = _named(name, Subject(holder.key.name, holder.label), NamesFile())
        return (Requirement(holder.key, Labelled(frozenset({holder.label})), ground),)

    def is_built(self, file: IndexFile) -> bool:
        """Whether what a file requires was found by building it."""
        return isinstance(self._source, FileSource) and self._source.is_built(file)

    def _release(self, name: str, url: str) -> PackageRelease:
        if not isinstance(self._source, FileSource):
            raise DirectReferenceError(f"`{name} @ {shown_url(url)}` cannot be read from this source")
        return self._source.direct(NormalizedName(name), url)

    def _readable(self, name: str, url: str) -> PackageRelease | None:
        """A file that metadata names and that is no distribution is a reason not to choose who names it, and no more."""
        try:
            return self._release(name, url)
        except UnavailableError:
            raise
        except ProvisionError:
            if self.is_given(name):
                raise
            return None


def is_named(candidate: Candidate) -> bool:
    """Whether a candidate is a file that requirements name, and not one that an index lists."""
    return isinstance(candidate, FileCandidate) and candidate.is_named


def _named(name: str, subject: Subject, predicate: IsForHolders | NamesFile) -> Entails:
    return Entails(name=name, subject=subject, predicate=predicate, relation=Relation(name, "who names it"), cited=None)


def _label(release: PackageRelease, url: str) -> str:
    return f"{release.version} @ {_shown(url)}"


def _shown(url: str) -> str:
    """An address without its fragment: two requirements of one file may state its hash, or not."""
    return shown_url(url) if not _is_of_machine(url) else url.partition("#")[0]


def _is_of_machine(url: str) -> bool:
    return "://" not in url or url.startswith("file:")


def _refuse_elsewhere(holder: Candidate, url: str) -> None:
    """Raise `DirectReferenceError` where a file of PyPI names one that is not: PyPI takes no such metadata, so it was forged.

    Source: pip, `_internal/req/constructors.py`: "Packages installed from PyPI cannot depend on packages which are not also
    hosted on PyPI".
    """
    file = holder.release.file if isinstance(holder, FileCandidate) else None
    is_of_pypi = file is not None and urlsplit(file.url).netloc in PYPI_HOSTS
    if is_of_pypi and urlsplit(url).netloc not in PYPI_HOSTS:
        raise DirectReferenceError("a file of PyPI cannot name one that PyPI does not have; name it in the spec if you want it")


def _name(key: Key) -> str:
    return canonicalize_name(key.distribution)


def _holder(candidate: Candidate) -> str:
    return f"{candidate.key.name} {candidate.label}"
