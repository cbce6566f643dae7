"""Collect the content of a spec from several files, line by line, with what could not be carried over."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from provisioner.errors import Mistake, without_logins
from provisioner.grounds.omission import (
    Contradicts,
    Installer,
    Login,
    NoSystemPackage,
    Omission,
    PatchRelease,
    Refused,
    VersionPattern,
)
from provisioner.places import Place
from provisioner.spec.content import Content, Entry, IndexEntry, ProjectEntry
from provisioner.spec.interval import INTERVAL_OPERATORS, interval_of_range
from provisioner.spellings import APT_NAME, APT_VERSION
from provisioner.versions import Range

if TYPE_CHECKING:
    from provisioner.document import Position
    from provisioner.grounds.omission import Reason

INSTALLERS = frozenset({"conda", "mamba", "pip", "uv"})
"""Packages that install packages, which no environment needs for its own sake."""

_LONGEST = 160
"""The most characters of a text that is quoted; a longer one is shortened."""

_PYPI = "https://pypi.org/simple"
_PYTORCH_BUILDS = "https://download.pytorch.org/whl/{variant}"
_APT = re.compile(rf"(?P<name>{APT_NAME})(?::[a-z0-9]+)?(?P<version>=.*)?")
_APT_VERSION = re.compile(APT_VERSION)
_PATCH = re.compile(r"(?P<sign>[=<>!~]*)\s*(?P<series>\d+\.\d+)\.(?P<patch>\d+)(\.\*)?")
LOGIN = re.compile(r"://[^\s/]*@")


class Imported(Struct, frozen=True):
    """What was read from files: the content of a spec, and what could not be carried over, in the order of the files."""

    content: Content
    omissions: tuple[Omission, ...] = ()


class Importing:
    """Collects what readers find; `folder` is that of the spec to write, from which all paths in the result start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sources: list[str] = []
        self._name = ""
        self._accelerator: Entry | None = None
        self._requires: dict[str, Entry] = {}
        self._packages: dict[str, Entry] = {}
        self._packages_from: list[ProjectEntry] = []
        self._constraints: dict[str, Entry] = {}
        self._extra_indexes: list[IndexEntry] = []
        self._default_indexes: list[IndexEntry] = []
        self._image: dict[str, Entry] = {}
        self._apt: dict[str, Entry] = {}
        self._allow: dict[str, Entry] = {}
        self._omissions: dict[Omission, None] = {}

    def result(self) -> Imported:
        """Return everything that was collected."""
        content = Content(
            sources=tuple(dict.fromkeys(self._sources)),
            name=self._name,
            accelerator=self._accelerator,
            requires=self._requires,
            packages=tuple(self._packages.values()),
            packages_from=tuple(self._packages_from),
            constraints=tuple(self._constraints.values()),
            indexes=self._all_indexes(),
            image=self._image,
            apt=tuple(self._apt.values()),
            allow=tuple(self._allow.values()),
        )
        ranks = {file: rank for rank, file in enumerate(dict.fromkeys(one.place.file for one in self._omissions))}
        in_order = sorted(self._omissions, key=lambda one: (ranks[one.place.file], one.place.line))
        return Imported(content, tuple(in_order))

    def _all_indexes(self) -> tuple[IndexEntry, ...]:
        """Return the indexes in the order in which they are asked: extra ones, the default one, PyTorch's own; () if none.

        As in docs/requirements.md: an extra index comes before the default one, which stays. PyTorch's is listed because a
        spec that lists indexes has no others asked.
        """
        named = (*self._extra_indexes, *self._default_indexes)
        if not named:
            return ()
        listed = named if self._default_indexes else (*named, IndexEntry(name="pypi", url=_PYPI, place=named[-1].place))
        return (*listed, IndexEntry(name="pytorch", url=_PYTORCH_BUILDS, place=named[-1].place))

    def place(self, position: Position) -> Place:
        """Return the file, as seen from the folder of the spec, and line of a position."""
        return Place(self.relative(Path(position.file)), position.line)

    def relative(self, path: Path) -> str:
        """Return a path as seen from the folder of the spec."""
        return Path(os.path.relpath(path, self._folder)).as_posix()

    def source(self, path: Path) -> None:
        """Record the file that is being read."""
        self._sources.append(self.relative(path))

    def name(self, name: str) -> None:
        """Record the name of the environment; the first one counts."""
        self._name = self._name or name

    def omit(self, text: str, position: Position, reason: Reason) -> None:
        """Record something that cannot be carried over; the login in a URL is left out of its text."""
        self._omissions[Omission(_shortened(text), self.place(position), reason)] = None

    def accelerator(self, name: str, position: Position) -> None:
        """Record the accelerator (`cuda`, `cpu`); the first one counts."""
        if self._accelerator is None:
            self._accelerator = Entry(name, self.place(position))
        elif self._accelerator.value != name:
            reason = Contradicts(key="accelerator", kept=self._accelerator.value, place=self._accelerator.place)
            self.omit(name, position, reason)

    def require(self, component: str, text: str, position: Position) -> bool:
        """Record a range of a component, and return whether it holds: of ranges without a common version, the first one does.

        Of Python the series counts, for the matrix has no patch releases.
        """
        if component == "python" and (kept := _python_series(text)) != text:
            self.omit(f"python {text}", position, PatchRelease(kept))
            text = kept
        before = self._requires.get(component)
        entry = Entry(text or "*", self.place(position))
        if before is None or before.value == "*":
            self._requires[component] = entry
            return True
        if entry.value in ("*", before.value):
            return True
        if component != "pytorch_build":
            joined = _joined(before.value, entry.value)
            if joined:
                self._requires[component] = Entry(joined, before.place if joined == before.value else entry.place)
                return True
        reason = Contradicts(key=f"requires.{component}", kept=before.value, place=before.place)
        self.omit(f"{component} {entry.value}", position, reason)
        return False

    def package(self, text: str, position: Position, *, is_constraint: bool = False) -> None:
        """Record a Python requirement (PEP 508), or the reason that a spec would refuse it."""
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            why = str(error).splitlines()[0]
            self.omit(text, position, Refused(f"not a requirement such as numpy>=2: {why[:1].lower()}{why[1:]}"))
            return
        if requirement.url and LOGIN.search(requirement.url):
            self.omit(text, position, Login())
        elif canonicalize_name(requirement.name) in INSTALLERS:
            self.omit(text, position, Installer())
        else:
            kept = self._constraints if is_constraint else self._packages
            kept.setdefault(text, Entry(text, self.place(position)))

    def packages_from(self, path: Path, position: Position, *, extras: tuple[str, ...] = ()) -> None:
        """Record a requirement file or project whose requirements join those of the spec."""
        entry = ProjectEntry(file=self.relative(path), extras=extras, place=self.place(position))
        if not any((one.file, one.extras) == (entry.file, extras) for one in self._packages_from):
            self._packages_from.append(entry)

    def image(self, key: str, text: str, position: Position) -> None:
        """Record a key of `image`; the first value counts."""
        before = self._image.get(key)
        if before is None:
            self._image[key] = Entry(text, self.place(position))
        elif before.value != text:
            self.omit(text, position, Contradicts(key=f"image.{key}", kept=before.value, place=before.place))

    def apt(self, text: str, position: Position) -> None:
        """Record a package of Debian or Ubuntu, with or without its version, as apt-get takes it."""
        match = _APT.fullmatch(text)
        if match is None:
            self.omit(text, position, NoSystemPackage())
            return
        name, version = match["name"], match["version"] or ""
        if version and not _APT_VERSION.fullmatch(version):
            self.omit(text, position, VersionPattern(name))
            version = ""
        self._apt.setdefault(name, Entry(f"{name}{version}", self.place(position)))

    def allow(self, word: str, position: Position) -> None:
        """Record a word of `policy.allow`."""
        self._allow.setdefault(word, Entry(word, self.place(position)))

    def index(self, url: str, position: Position, *, is_default: bool) -> None:
        """Record an index as the default one, or as an extra one, which pip takes too."""
        if all(one.url != url for one in (*self._extra_indexes, *self._default_indexes)):
            entry = IndexEntry(name=self._index_name(url), url=url, place=self.place(position))
            (self._default_indexes if is_default else self._extra_indexes).append(entry)

    def mistake(self, mistake: Mistake) -> None:
        """Record a line that a spec refuses, with the message of the refusal."""
        reason = Refused(without_logins(mistake.text))
        place = Place(self.relative(Path(mistake.file)), mistake.line)
        self._omissions[Omission(_quoted(mistake), place, reason)] = None

    def _index_name(self, url: str) -> str:
        """Return a name for an index: its host, and a number where that is taken."""
        host = (urlsplit(url).hostname or "") if "://" in url else ""
        host = "pypi" if host in {"pypi.org", "pypi.python.org"} else host
        name = re.sub(r"[^a-z0-9._-]+", "-", host.lower()).strip("-._") or "index"
        taken = {"pytorch", *(one.name for one in (*self._extra_indexes, *self._default_indexes))}
        return next(one for one in (name, *(f"{name}-{number}" for number in range(2, 1000))) if one not in taken)


def _python_series(text: str) -> str:
    """Return a range of Python without patch releases; it allows each series of which the range allows a release."""
    clauses = []
    for part in text.split(","):
        match = _PATCH.fullmatch(part.strip())
        if match is None:
            clauses.append(part.strip())
        elif match["sign"] in {"", "==", "===", "~="}:
            clauses.append(f"{match['series']}.*")
        elif match["sign"] in {">", ">="}:
            clauses.append(f">={match['series']}")
        elif match["sign"] in {"<", "<="}:
            clauses.append(f"<{match['series']}" if (match["sign"], match["patch"]) == ("<", "0") else f"<={match['series']}")
    return ",".join(clauses)


def _joined(first: str, second: str) -> str:
    """Return the range of what two ranges both allow; "" if that is nothing. One that says all of the other stays alone."""
    ranges = (Range.parse(first), Range.parse(second))
    one, other = map(interval_of_range, ranges)
    if one.intersect(other).is_empty:
        return ""
    # An interval is exactly its range only for these operators.
    if all(clause.operator in INTERVAL_OPERATORS for found in ranges for clause in found.clauses):
        if other.contains(one):
            return first
        if one.contains(other):
            return second
    return f"{first},{second}"


def _quoted(mistake: Mistake) -> str:
    """Return the line that a mistake is about, as the file has it, without logins; "" if it cannot be read again."""
    lines = _lines(mistake.file)
    return _shortened(lines[mistake.line - 1]) if 0 < mistake.line <= len(lines) else ""


def _shortened(text: str) -> str:
    """Return a text on one line, without logins and without its end where it is long."""
    text = " ".join(without_logins(text).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


@lru_cache(maxsize=4)
def _lines(file: str) -> tuple[str, ...]:
    """Return the lines of a file for quotation; () if it cannot be read."""
    try:
        return tuple(Path(file).read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError):
        return ()
