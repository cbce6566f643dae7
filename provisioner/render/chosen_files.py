"""The file of a locked package for each platform, and the requirement that names it by URL or path."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from provisioner.lock.format.artifact import fits
from provisioner.platforms import package_marker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.lock.format.model import LockedFile, LockedPackage

HOW_TO_INSTALL = "Install with: pip install --require-hashes --no-deps --requirement requirements.txt"


def lines_by_file(package: LockedPackage, platforms: tuple[str, ...]) -> Iterator[str]:
    """Yield one requirement per file of a package, by URL or path, with a marker if the file is not for all `platforms`."""
    for file, fitting in chosen_files(package).items():
        address = quote(file.url, safe=":/?&=%~+,;@!$()*")
        requirement = f"./{file.path}" if file.path else f"{package.name} @ {address}"
        yield f"{requirement}{condition(fitting, platforms)} \\\n    --hash=sha256:{file.sha256}"


def lines_by_version(package: LockedPackage, platforms: tuple[str, ...]) -> Iterator[str]:
    """Yield the requirement that names the version of a package and the hashes of its files, for any index or folder."""
    chosen = chosen_files(package)
    fitting = tuple(platform for platform in platforms if any(platform in found for found in chosen.values()))
    hashes = sorted({file.sha256 for file in chosen})
    requirement = f"{package.name}=={package.version}{condition(fitting, platforms)}"
    yield " \\\n    ".join([requirement, *(f"--hash=sha256:{sha256}" for sha256 in hashes)])


def condition(fitting: tuple[str, ...], platforms: tuple[str, ...]) -> str:
    """Return the marker that selects the `fitting` ones of `platforms`, as a requirement ends with it; "" for all of them."""
    marker = package_marker(fitting, platforms)
    return f" ; {marker}" if marker else ""


def is_source(package: LockedPackage, platforms: tuple[str, ...]) -> bool:
    """Return whether a package is built from its source distribution on one of the platforms."""
    chosen = chosen_files(package)
    return any(not file.filename.endswith(".whl") for file, fitting in chosen.items() if set(fitting) & set(platforms))


def chosen_files(package: LockedPackage) -> dict[LockedFile, tuple[str, ...]]:
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
