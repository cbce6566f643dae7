"""Render a lock as a requirements file for pip and uv: every file by URL and hash, so that no index is used."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from provisioner.lock.format.artifact import fits
from provisioner.platforms import package_marker
from provisioner.render.header import header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.lock.format.model import Lock, LockedFile, LockedPackage


def render(lock: Lock, lock_file_name: str) -> str:
    """Return the requirements file of a lock; the paths of local wheels are relative to the working directory of pip."""
    how = "Install with: pip install --require-hashes --no-deps --requirement requirements.txt"
    lines = [line for package in lock.packages for line in _lines(package, lock)]
    return "\n".join([str(header(lock, lock_file_name, how)), *lines]) + "\n"


def _lines(package: LockedPackage, lock: Lock) -> Iterator[str]:
    """Yield one requirement per file of a package, with a marker if the file is not for all platforms of the lock."""
    for file, platforms in _choices(package).items():
        marker = package_marker(platforms, lock.platforms)
        address = quote(file.url, safe=":/?&=%~+,;@!$()*")
        requirement = f"./{file.path}" if file.path else f"{package.name} @ {address}"
        condition = f" ; {marker}" if marker else ""
        yield f"{requirement}{condition} \\\n    --hash=sha256:{file.sha256}"


def _choices(package: LockedPackage) -> dict[LockedFile, tuple[str, ...]]:
    """Return the files of a package with the platforms to use each on.

    A wheel for the machine is preferred, then a wheel for any machine, then the source distribution.
    """
    chosen: dict[LockedFile, tuple[str, ...]] = {}
    for platform in package.platforms:
        fitting = [file for file in package.files if fits(file.filename, platform)]
        if fitting:
            best = min(
                fitting, key=lambda file: (not file.filename.endswith(".whl"), "-any.whl" in file.filename, file.filename)
            )
            chosen[best] = (*chosen.get(best, ()), platform)
    return chosen
