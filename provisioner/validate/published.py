"""Tell files that are as their wheel was published from files that were changed: some wheels have a RECORD that is wrong."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING
from zipfile import BadZipFile, ZipFile

from msgspec import Struct
from packaging.utils import canonicalize_name

from provisioner.errors import ProvisionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from provisioner.lock.format.model import Lock, LockedFile
    from provisioner.validate.measurement import Content, Files

    ReadWheel = Callable[[LockedFile], Path]
    """Returns the path of a file that a lock names, with the hash that it names; raises `ProvisionError`."""

_MOST = 4
"""The most wheels that are read. Where files of more packages differ, no publisher is at fault, and wheels are large."""


_SITE = re.compile(r"/(?:site|dist)-packages/")


class Published(Struct, frozen=True, kw_only=True):
    """The paths of the files that are as the locked wheel has them, and why wheels were not read, "" if all were."""

    paths: frozenset[str] = frozenset()
    unread: str = ""


def as_published(lock: Lock, files: Files, read_wheel: ReadWheel) -> Published:
    """Return which of the changed files are those of the locked wheels themselves; `lock` is narrowed to one platform."""
    wheels = {
        canonicalize_name(package.name): file
        for package in lock.packages
        for file in package.files
        if file.filename.endswith(".whl")
    }
    wanted: dict[str, dict[str, Content]] = {}
    for path, content in files.contents.items():
        for package in content.packages:
            wanted.setdefault(package, {})[path] = content
    if len(wanted) > _MOST:
        return Published(unread=f"{len(wanted)} packages have such files")
    found: set[str] = set()
    unread = []
    for package, contents in sorted(wanted.items()):
        wheel = wheels.get(canonicalize_name(package.partition("-")[0]))
        if wheel is None:
            unread.append(f"{package} is of no wheel of the lock")
            continue
        try:
            found |= set(_same(contents, read_wheel(wheel), package))
        except (ProvisionError, BadZipFile, OSError) as error:
            unread.append(error.message if isinstance(error, ProvisionError) else f"`{wheel.filename}`: {error}")
    return Published(paths=frozenset(found), unread="; ".join(unread))


def _same(contents: dict[str, Content], wheel: Path, package: str) -> Iterator[str]:
    """Yield the paths whose content is that of the wheel.

    A path is below the environment, that in the wheel below the folder of packages, or below one of the folders of
    `NAME-VERSION.data` ("The .data directory", binary distribution format).
    """
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
        for path, content in sorted(contents.items()):
            in_site = _SITE.split(path, maxsplit=1)[-1]
            data = f"{package}.data"
            members = {in_site, f"{data}/purelib/{in_site}", f"{data}/platlib/{in_site}", f"{data}/data/{path}"} & names
            if any(hashlib.sha256(archive.read(member)).hexdigest() == content.sha256 for member in members):
                yield path
