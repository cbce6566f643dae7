"""The wheels of a project in an index: their filename parts, requirements, and single members (files inside the archive).

No wheel is downloaded whole: requirements come from its `.metadata` file, members from range requests. Results are cached by
the wheel's hash, so an interrupted run continues where it stopped.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from packaging.utils import canonicalize_name

from provisioner.curate.index_reader import IndexReader
from provisioner.errors import UnavailableError
from provisioner.index.metadata.core_metadata import parse_requirement
from provisioner.index.metadata.reader import MetadataReader
from provisioner.index.pages.filename import parse_filename
from provisioner.measure.wheel import RemoteWheel

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable

    from packaging.requirements import Requirement
    from packaging.version import Version

    from provisioner.index.model import IndexFile
    from provisioner.index.settings import IndexSettings

WORKERS = 8

Item = TypeVar("Item")
Result = TypeVar("Result")


class Wheel(Struct, frozen=True, kw_only=True):
    """One wheel of an index; `text` is its version as spelled in the filename, `build` the sort key of its build number."""

    project: str
    version: Version
    text: str
    tag: str
    build: tuple[int, str]
    file: IndexFile

    @property
    def interpreters(self) -> tuple[str, ...]:
        """The interpreter tags of the wheel: (`cp312`,) or (`py2`, `py3`)."""
        return tuple(self.tag.split("-")[0].split("."))

    @property
    def abi(self) -> str:
        """The ABI tag of the wheel: `cp312`, `cp37m`, `abi3` or `none`."""
        return self.tag.split("-")[1]

    @property
    def platform_tags(self) -> tuple[str, ...]:
        """The platform tags of the wheel: (`manylinux_2_27_x86_64`,)."""
        return tuple(self.tag.split("-")[2].split("."))


class _Member(Struct, frozen=True, kw_only=True):
    """A cache entry: the text of one member of a wheel; None when the wheel lacks the member."""

    text: str | None


class WheelIndex(IndexReader):
    """Reads the wheels of a project from the first configured index that knows the project, with `workers` requests at once."""

    def __init__(
        self, settings: IndexSettings, *, workers: int = WORKERS, progress: Callable[[str], None] = lambda _: None
    ) -> None:
        super().__init__(settings, progress)
        self._workers = workers
        self._metadata = MetadataReader(settings, self._cache, self._transport)
        self._wheels: dict[str, tuple[Wheel, ...]] = {}
        self.yanked: dict[str, None] = {}
        """The yanked releases that `wheels` left out so far (`jax 0.4.32`), as the keys of an ordered set."""

    def wheels(self, project: str) -> tuple[Wheel, ...]:
        """Return the wheels of a project without pre-releases and yanked files; empty when no index knows the project.

        Of several wheels with one version and tag, only the one with the highest build number is returned, as installers choose
        it. Raises `UnavailableError` when the index cannot be read or lists a wheel without a sha256.
        """
        if project not in self._wheels:
            self._progress(f"{project}: its list of files")
            self._wheels[project] = self._usable(project)
        return self._wheels[project]

    def requires(self, wheel: Wheel) -> tuple[Requirement, ...]:
        """Return all requirements of a wheel, whatever their markers."""
        return tuple(parse_requirement(text) for text in self._metadata.metadata(wheel.file).requires)

    def member(self, wheel: Wheel, path: str) -> str | None:
        """Return the text of one small member of a wheel, from the cache if possible; None when it has no such member."""
        key = f"member:{wheel.file.sha256 or wheel.file.url}:{path}"
        stored = self._cache.load(key, _Member)
        if stored is not None:
            return stored.text
        content = self.content(wheel, path)
        text = None if content is None else content.decode("utf-8", errors="replace")
        self._cache.store(key, _Member(text=text))
        return text

    def content(self, wheel: Wheel, path: str) -> bytes | None:
        """Return the bytes of one member of a wheel, without caching them; None when it has no such member."""
        self._require_online(wheel.file, _unread(path, wheel))
        with RemoteWheel(wheel.file, self._transport) as remote:
            return remote.read(path) if path in remote.names() else None

    def streamed(self, wheel: Wheel, path: re.Pattern[str], read: Callable[[Iterable[bytes]], list[str]]) -> list[str]:
        """Return what `read` finds in the streams of the members whose paths match, joined; empty when no member matches.

        Only the pieces that `read` consumes are fetched.
        """
        self._require_online(wheel.file, _unread(path.pattern, wheel))
        with RemoteWheel(wheel.file, self._transport) as remote:
            return [one for name in remote.names() if path.fullmatch(name) for one in read(remote.stream(name))]

    def remembered(self, wheel: Wheel, what: str, measure: Callable[[], list[str]]) -> list[str]:
        """Return the cached measurement `what` of a wheel, or call `measure` and cache its result; a wheel never changes."""
        key = f"measured:{wheel.file.sha256 or wheel.file.url}:{what}"
        stored = self._cache.load(key, list[str])
        if stored is not None:
            return stored
        self._progress(f"{wheel.project}: measuring {wheel.file.filename}")
        found = measure()
        self._cache.store(key, found)
        return found

    def read_ahead(self, wheels: Iterable[Wheel], *, members: tuple[str, ...] = ()) -> None:
        """Read the requirements and members of many wheels concurrently into the cache.

        Raises the error of the first read that fails; what was read before remains cached.
        """
        self.side_by_side(lambda wheel: self._ahead(wheel, members), wheels)

    def side_by_side(self, read: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Call `read` on all items concurrently and return the results in order; raises the error of the first failure."""
        wanted = list(items)
        with ThreadPoolExecutor(self._workers, thread_name_prefix="wheel-index") as pool:
            try:
                return list(pool.map(read, wanted))
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _ahead(self, wheel: Wheel, members: tuple[str, ...]) -> None:
        self._progress(f"{wheel.project}: {wheel.file.filename}")
        self._metadata.metadata(wheel.file)
        for path in members:
            self.member(wheel, path)

    def _usable(self, project: str) -> tuple[Wheel, ...]:
        best: dict[tuple[str, str], Wheel] = {}
        for file in self._listed(project):
            name = parse_filename(file.filename, canonicalize_name(project))
            if name is None or not name.tag:
                continue
            text = file.filename.split("-")[1]
            if not file.sha256:
                reason = f"index `{file.index}` gives no sha256 of `{file.filename}`, so no fact could be tied to it"
                raise UnavailableError(reason, hints=("refresh from an index that gives hashes, as PyPI does",))
            if file.yanked is not None:
                self.yanked[f"{project} {text}"] = None
                continue
            if name.version.is_prerelease:
                continue
            wheel = Wheel(project=project, version=name.version, text=text, tag=name.tag, build=name.build, file=file)
            other = best.get((text, name.tag))
            if other is None or other.build < wheel.build:
                best[text, name.tag] = wheel
        return tuple(sorted(best.values(), key=lambda wheel: (wheel.version, wheel.file.filename)))


def _unread(path: str, wheel: Wheel) -> str:
    return f"`{path}` of `{wheel.file.filename}` is not in the cache"
