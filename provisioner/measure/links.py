"""Read which shared libraries the libraries of a wheel link to, without anything else that is measured in a wheel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.measure.elf import MAGIC, read_library

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.measure.wheel import RemoteWheel


LINKS_VERSION = 1
"""The version of the reading code, a part of the cache key."""


class LinkedLibrary(Struct, frozen=True, kw_only=True):
    """A shared library of a wheel by its path: its own name (`soname`), and the names of those it links to (DT_NEEDED)."""

    path: str
    soname: str = ""
    needed: tuple[str, ...] = ()

    @property
    def filename(self) -> str:
        """The name of the file."""
        return self.path.rpartition("/")[2]


class LinkedLibraries(Struct, frozen=True, kw_only=True):
    """The shared libraries of one wheel."""

    libraries: tuple[LinkedLibrary, ...]


def linked_libraries(wheel: RemoteWheel) -> Iterator[LinkedLibrary]:
    """Yield the shared libraries of a wheel; raises `UnavailableError` and `UnreadableArtefactError`."""
    for path in wheel.names():
        name = path.rpartition("/")[2]
        if name.endswith(".so") or ".so." in name:
            content = wheel.read(path)
            if content.startswith(MAGIC):
                found = read_library(content, name=path)
                yield LinkedLibrary(path=path, soname=found.soname, needed=found.needed)
