"""State the parts of an image as a bill of materials: what was measured in it, with what its lock knows of the same packages.

Source of the package URLs of a distribution: the purl specification, type deb (packageurl.org/types/deb-definition.json:
vendor as the namespace, `arch` and `distro` as qualifiers), 2026-11-23. `upstream` names the source package, by which Debian
and Ubuntu publish their advisories; it is syft's, and other scanners read it (github.com/anchore/syft, package of debian).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from msgspec.structs import replace
from packaging.utils import canonicalize_version

from provisioner.lock.format.file import lock_digest
from provisioner.render.bill_of_materials import Bill, Part, newest_file, parts
from provisioner.render.container import tag
from provisioner.validate.debian_licenses import spdx_licenses

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provisioner.lock.format.model import Lock
    from provisioner.validate.measurement import Measurement, System, SystemPackage


def bill_of_image(lock: Lock, measurement: Measurement, *, lock_file_name: str, image: str) -> Bill:
    """Return the bill of materials of an image, from what was measured in it.

    `lock` is narrowed to the platform of the image, `image` its id or digest, "" if no engine told. Listed are the packages of
    Python and of the distribution that are there, locked or not, and the lock's base image and components.
    """
    (platform,) = lock.platforms
    locked = parts(lock)
    kept = [part for part in locked if part.kind != "package"]
    python = tuple(_python(locked, measurement, platform))
    system = tuple(_system(measurement.system, platform)) if measurement.system is not None else ()
    return Bill(
        name=lock.name,
        version=tag(lock),
        origin=f"Measured by provision validate in an image of {lock_file_name}.",
        identifier=uuid5(NAMESPACE_URL, f"dev.provision.image/{image}/{lock_digest(lock)}").urn,
        created=newest_file(lock),
        tool_version=lock.tool_version,
        is_image=True,
        platforms=(platform,),
        parts=(*kept, *_among_themselves(python), *system),
        phase="post-build",
        image=image,
        unread=_unread(measurement),
    )


def _python(locked: Iterable[Part], measurement: Measurement, platform: str) -> Iterator[Part]:
    """Yield the installed packages of Python, with what the lock knows of those that it has in the same version."""
    known = {(part.name, canonicalize_version(part.version)): part for part in locked if part.kind == "package"}
    for name, version in sorted((measurement.distributions or {}).items()):
        purl = f"pkg:pypi/{quote(name, safe='')}@{quote(version, safe='')}"
        other = Part(kind="package", name=name, version=version, purl=purl, platforms=(platform,))
        yield known.get((name, canonicalize_version(version)), other)


def _among_themselves(found: tuple[Part, ...]) -> Iterator[Part]:
    """Yield parts that depend on each other alone: what is not in the image is no part of it."""
    there = {part.purl for part in found}
    for part in found:
        yield replace(part, depends_on=tuple(purl for purl in part.depends_on if purl in there))


def _system(system: System, platform: str) -> Iterator[Part]:
    for package in system.packages or ():
        yield Part(
            kind="system",
            name=package.name,
            version=package.version,
            purl=_purl(package, system),
            platforms=(platform,),
            licenses=spdx_licenses(package.licenses) or package.texts,
        )


def _purl(package: SystemPackage, system: System) -> str:
    """Return the package URL of a package of dpkg; of a distribution without a name it is that of Debian, whose dpkg is."""
    distribution = system.identifier.lower() or "debian"
    upstream = package.source
    if package.source_version:
        upstream = f"{package.source or package.name}@{package.source_version}"
    qualifiers = {
        "arch": package.architecture,
        "distro": f"{distribution}-{system.version}" if system.version else distribution,
        "upstream": upstream,
    }
    stated = "&".join(f"{key}={quote(value, safe='/:')}" for key, value in qualifiers.items() if value)
    name, version = quote(package.name.lower(), safe=""), quote(package.version, safe=":")
    return f"pkg:deb/{quote(distribution, safe='')}/{name}@{version}?{stated}"


def _unread(measurement: Measurement) -> tuple[str, ...]:
    """Return what was not listed, such as the packages of a manager whose database is not read."""
    missing = [] if measurement.distributions is not None else ["packages of Python"]
    system = measurement.system
    if system is None:
        return (*missing, "packages of the distribution")
    missing += [f"packages of {name}" for name in system.unread]
    if system.packages is None and not system.unread:
        missing.append("packages of the distribution")
    return tuple(missing)
