"""The dependency-confusion check: notices about projects whose files may come from the wrong index.

An unpinned project is one that no pattern under `indexes[].packages` ties to an index. Its files come from the first index that
has a page for it, and whoever may upload there could have put them there. So a project is reported when its files are not from
the default index, or when another index lists different files under its name; only the user can say which index is meant (by
pinning the project). The other indexes are requested only for projects of the solution.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.errors import UnavailableError
from provisioner.index.address import is_remote, public_url
from provisioner.index.cache import NotCachedError
from provisioner.index.notice import IndexName, NotCompared, NotFromDefault, OtherFilesElsewhere
from provisioner.index.pages.reader import local_root
from provisioner.index.pages.selection import Listing
from provisioner.index.routing import default_index, open_indexes

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Collection, Mapping, Sequence
    from concurrent.futures import Executor

    from packaging.utils import NormalizedName

    from provisioner.index.cache import Cache
    from provisioner.index.model import IndexFile
    from provisioner.index.notice import ConfusionNotice
    from provisioner.index.pages.reader import PageReader, ProjectPage
    from provisioner.index.settings import IndexLocation, IndexSettings

    HasOtherFiles = Callable[[IndexLocation, NormalizedName], bool]

COMPARED = 16
"""The most files compared between two indexes; an unrelated project of the same name shares none of the hashes."""


class PageComparison:
    """Compares a project's pages in two indexes, to tell a mirror (same files, same hashes) from another project."""

    def __init__(self, pages: PageReader, cache: Cache, parsing: threading.Lock) -> None:
        """Use `parsing` as the lock held while a page is parsed, so that only one page at a time takes memory."""
        self._pages = pages
        self._cache = cache
        self._parsing = parsing

    def has_other_files(self, index: IndexLocation, name: NormalizedName, owner: ProjectPage) -> bool:
        """Return whether `index` lists files of a project and is no mirror of `owner`, the page that the chosen file is from.

        The result is cached until one of the two pages changes. Raises `UnavailableError` when the index cannot be read.
        """
        state = self._state(index, name)
        if not state:
            return False
        key = f"same:{state}:{self._state(owner.location, name, owner)}"
        known = self._cache.load(key, bool)
        if known is None:
            page = self._pages.page(index, name)
            theirs = self._listing(page, name) if page is not None else Listing(files=())
            known = bool(theirs.files) and not is_mirror(theirs, self._listing(owner, name))
            self._cache.store(key, known)
        return known

    def _state(self, index: IndexLocation, name: NormalizedName, page: ProjectPage | None = None) -> str:
        """Return a hash that changes with a project's page in an index; "" when the index has no page for the project.

        For a local directory, the hash is of the filenames and sizes, so that no file has to be read.
        """
        if not is_remote(index.url):
            return _folder_state(index, name)
        page = page if page is not None else self._pages.page(index, name)
        return page.cached.sha256 if page is not None and page.cached is not None else ""

    def _listing(self, page: ProjectPage, name: NormalizedName) -> Listing:
        with self._parsing:
            return self._pages.listing(page, name)


def _folder_state(index: IndexLocation, name: NormalizedName) -> str:
    """Return a hash of a project's index.html in a local index or, without that file, of the names and sizes of its files.

    "" when the project has no directory there, or an empty one. Raises `UnavailableError` when the index does not exist or
    cannot be read.
    """
    directory = local_root(index) / name
    try:
        if not directory.is_dir():
            return ""
        page = directory / "index.html"
        if page.is_file():
            text = page.read_bytes()
        else:
            found = sorted(path for path in directory.iterdir() if path.is_file())
            text = "\0".join(f"{path.name} {path.stat().st_size}" for path in found).encode()
    except OSError as error:
        raise UnavailableError(f"index `{index.name}` cannot be read: `{directory}`: {error.strerror}") from None
    return hashlib.sha256(f"{directory}\0".encode() + text).hexdigest() if text else ""


def is_mirror(theirs: Listing, ours: Listing) -> bool:
    """Return whether two pages have files in common, and no common file for which they list different hashes.

    If there is no common file for which both pages list a hash, the first common file is compared; where a page lists no hash
    for this file, the content is read if the file is local. If a hash is still missing, the result is False, because equal
    sizes alone prove nothing. At most `COMPARED` files are compared.
    """
    by_name = {file.filename: file for file in ours.files}
    common = [(file, by_name[file.filename]) for file in theirs.files if file.filename in by_name][:COMPARED]
    pairs = [(theirs.finish(one), ours.finish(other)) for one, other in common]
    hashes = [(one.sha256, other.sha256) for one, other in pairs if one.sha256 and other.sha256]
    if not hashes and pairs:  # one is a folder of files: a single one is read
        hashes = [(_sha256(pairs[0][0]), _sha256(pairs[0][1]))]
    return bool(hashes) and all(one == other != "" for one, other in hashes)


def _sha256(file: IndexFile) -> str:
    """Return the sha256 that the index lists for a file, or else of the local file's content; "" when neither is available."""
    if file.sha256 or not file.path:
        return file.sha256
    try:
        with Path(file.path).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""


class _Survey(Struct, frozen=True, kw_only=True):
    """The result of looking up in `index` the projects whose files are from an index requested before `index`.

    `known` are the projects of which `index` lists different files. `unknown` are the projects that could not be compared, and
    `problem` is the error message; "" when there are none, or when the run is offline.
    """

    index: IndexLocation
    known: frozenset[NormalizedName] = frozenset()
    unknown: tuple[NormalizedName, ...] = ()
    problem: str = ""


def unpinned(chosen: Mapping[NormalizedName, str], settings: IndexSettings) -> dict[NormalizedName, IndexLocation]:
    """Return the unpinned projects of `chosen` (project -> name of its index), each with its index.

    Projects whose file is from find-links or a direct reference are left out.
    """
    by_name = {one.name: one for one in open_indexes(settings)}
    return {name: by_name[index] for name, index in sorted(chosen.items()) if index in by_name}


def confusion_notices(
    chosen: Mapping[NormalizedName, IndexLocation],
    settings: IndexSettings,
    has_other_files: HasOtherFiles,
    *,
    workers: Callable[[], Executor],
    reported: Collection[str] = (),
) -> tuple[ConfusionNotice, ...]:
    """Return notices about the unpinned projects in `chosen`; empty when fewer than two indexes serve unpinned projects.

    `workers` returns the thread pool for the look-ups. A project in `reported` gets no notice that it is not from the default
    index, but still one that other indexes list different files of it, because these files may be new. If `has_other_files`
    raises `UnavailableError`, a notice names the projects that could not be compared.
    """
    order = open_indexes(settings)
    default = default_index(settings)
    if len(order) < 2 or default is None or not chosen:
        return ()
    surveys = [_survey(index, _earlier(index, chosen, order), has_other_files, workers) for index in order[1:]]
    found: list[ConfusionNotice] = []
    for index in order:
        own = [name for name, owner in chosen.items() if owner == index]
        others = {name: tuple(survey.index for survey in surveys if name in survey.known) for name in own}
        found += [
            OtherFilesElsewhere(
                packages=tuple(name for name in own if others[name] == group),
                index=index_name(index),
                others=tuple(map(index_name, group)),
            )
            for group in dict.fromkeys(others.values())
            if group
        ]
        alone = tuple(name for name in own if not others[name] and name not in reported)
        if alone and index != default:
            found.append(NotFromDefault(packages=alone, index=index_name(index), default=index_name(default)))
    unknown = (survey for survey in surveys if survey.unknown)
    found += [NotCompared(packages=one.unknown, index=index_name(one.index), problem=one.problem) for one in unknown]
    return tuple(found)


def index_name(index: IndexLocation) -> IndexName:
    """Return the name of an index and its URL without credentials."""
    return IndexName(index.name, public_url(index.url))


def _earlier(
    index: IndexLocation, chosen: Mapping[NormalizedName, IndexLocation], order: Sequence[IndexLocation]
) -> list[NormalizedName]:
    """Return the projects in `chosen` that are taken from an index that comes before `index` in `order`.

    Only these have to be compared: projects of later indexes were looked up in `index`, which had no page for them.
    """
    before = order[: order.index(index)]
    return [name for name, owner in chosen.items() if owner in before]


def _survey(
    index: IndexLocation, names: Sequence[NormalizedName], has_other_files: HasOtherFiles, workers: Callable[[], Executor]
) -> _Survey:
    if not names:
        return _Survey(index=index)

    def look_up(name: NormalizedName) -> bool | UnavailableError:
        try:
            return has_other_files(index, name)
        except UnavailableError as error:
            return error

    found = [look_up(names[0])]
    if isinstance(found[0], UnavailableError) and not isinstance(found[0], NotCachedError):
        # An index out of reach is not waited for once for each name.
        return _Survey(index=index, unknown=tuple(names), problem=found[0].message)
    if len(names) > 1:
        found += workers().map(look_up, names[1:])
    errors = {name: one for name, one in zip(names, found, strict=True) if isinstance(one, UnavailableError)}
    first = next(iter(errors.values()), None)
    problem = first.message if first is not None and not isinstance(first, NotCachedError) else ""
    return _Survey(
        index=index,
        known=frozenset(name for name, one in zip(names, found, strict=True) if one is True),
        unknown=tuple(errors),
        problem=problem,
    )
