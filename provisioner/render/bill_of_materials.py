"""State the parts of an environment, each with its package URL, as bills of materials name them, and those of a locked one.

Licences are those that the metadata of Python packages declares, as the lock keeps them; of nothing else does a lock state
any. Distribution packages of a base image are the image's: only what reads the image lists them (`validate/bill.py`). Source:
the purl specification (github.com/package-url/purl-spec, types: pypi, oci, generic), 2026-11-23.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from msgspec import Struct
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from provisioner.components import COMPONENTS, Supplier
from provisioner.lock.format.file import lock_digest
from provisioner.render.base_image import shipped_base
from provisioner.render.container import tag
from provisioner.render.header import origin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.lock.format.model import Lock, LockedFile, LockedPackage, LockedStack

_PYPI = "https://pypi.org/simple"


class Part(Struct, frozen=True, kw_only=True):
    """A part of an environment; `purl` identifies it. `kind` is `package` (of Python), `image`, `component`, or `system`.

    A part of kind `system` is a package of the image's distribution.

    `files` are the files of a package, of which an installer takes one, `platforms` those that have the part, and
    `depends_on` the package URLs of the packages that it requires. `digest` is the digest of an image, "" if unknown.
    `licenses` are one SPDX expression, or names.
    """

    kind: str
    name: str
    version: str
    purl: str
    platforms: tuple[str, ...]
    files: tuple[LockedFile, ...] = ()
    depends_on: tuple[str, ...] = ()
    digest: str = ""
    licenses: tuple[str, ...] = ()


class Bill(Struct, frozen=True, kw_only=True):
    """A bill of materials, which every format spells: the environment, what it was made from, and its parts.

    `origin` is the sentence that says so, `identifier` a URN, and `created` the time that a format demands, in UTC. `phase` is
    that of CycloneDX: `pre-build` for a lock, `post-build` for an image, whose id or digest is `image`. `unread` names what is
    in an image and not listed; None if nobody has looked.
    """

    name: str
    version: str
    origin: str
    identifier: str
    created: str
    tool_version: str
    is_image: bool
    platforms: tuple[str, ...]
    parts: tuple[Part, ...]
    phase: str = "pre-build"
    image: str = ""
    unread: tuple[str, ...] | None = None


def bill_of(lock: Lock, lock_file_name: str) -> Bill:
    """Return the bill of materials of a lock, from the lock alone."""
    found = parts(lock)
    return Bill(
        name=lock.name,
        version=tag(lock),
        origin=origin(lock, lock_file_name),
        identifier=uuid5(NAMESPACE_URL, f"dev.provision.lock/{lock_digest(lock)}").urn,
        created=newest_file(lock),
        tool_version=lock.tool_version,
        is_image=any(part.kind == "image" for part in found),
        platforms=lock.platforms,
        parts=found,
    )


def parts(lock: Lock) -> tuple[Part, ...]:
    """Return the parts of a lock, each once: base images, then components that no package is, then packages."""
    found = [*_images(lock), *_components(lock), *_packages(lock)]
    merged: dict[str, Part] = {}
    for part in found:
        before = merged.get(part.purl)
        merged[part.purl] = part if before is None else _both(before, part)
    return tuple(merged.values())


def top_parts(found: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return the parts that no other part requires."""
    required = {purl for part in found for purl in part.depends_on if purl != part.purl}
    return tuple(part for part in found if part.purl not in required)


def license_expression(*licenses: str) -> str:
    """Return licences as one SPDX expression, "" if they are several, a name, or unknown."""
    with suppress(InvalidLicenseExpression, ValueError):
        (text,) = licenses
        return canonicalize_license_expression(text)
    return ""


def newest_file(lock: Lock) -> str:
    """Return when the newest file of a lock was uploaded, as ISO 8601 in UTC: a time that equal locks share."""
    times = [file.upload_time for package in lock.packages for file in package.files if file.upload_time is not None]
    newest = max(times, default=datetime.fromtimestamp(0, UTC))
    return newest.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _both(one: Part, other: Part) -> Part:
    """Return a part that the lock states for each platform apart."""
    return Part(
        kind=one.kind,
        name=one.name,
        version=one.version,
        purl=one.purl,
        platforms=tuple(sorted({*one.platforms, *other.platforms})),
        files=tuple(sorted({*one.files, *other.files}, key=lambda file: file.filename)),
        depends_on=tuple(sorted({*one.depends_on, *other.depends_on})),
        digest=one.digest,
        licenses=tuple(dict.fromkeys((*one.licenses, *other.licenses))),
    )


def _images(lock: Lock) -> Iterator[Part]:
    for stack in lock.stacks:
        if stack.image is None or stack.runs != "container":
            continue
        base = shipped_base(lock, stack)
        repository, tag = _repository_and_tag(base.reference.partition("@")[0])
        name = repository.rpartition("/")[2]
        version = f"@{quote(base.digest, safe=':')}" if base.digest else ""
        yield Part(
            kind="image",
            name=base.reference,
            version=base.digest or tag,
            purl=f"pkg:oci/{quote(name.lower())}{version}?repository_url={quote(repository, safe='/:')}&tag={quote(tag)}",
            platforms=(stack.platform,),
            digest=base.digest,
        )


def _repository_and_tag(reference: str) -> tuple[str, str]:
    """Return the repository of an image, with its registry, and its tag, as engines complete a short reference."""
    registry, slash, path = reference.partition("/")
    if not slash or not ("." in registry or ":" in registry or registry == "localhost"):
        registry, path = "docker.io", reference if slash else f"library/{reference}"
    name, _, tag = path.partition(":")
    return f"{registry}/{name}", tag or "latest"


def _components(lock: Lock) -> Iterator[Part]:
    for stack in lock.stacks:
        packages = {package.name for package in lock.packages if stack.platform in package.platforms}
        for name, version in sorted(stack.components.items()):
            # A second CUDA has the framework that brings it in its name, as in `cuda:jax`.
            component = name.partition(":")[0]
            if component not in packages and _is_installed(component, stack):
                purl = f"pkg:generic/{quote(component, safe='')}@{quote(version, safe='')}"
                yield Part(kind="component", name=component, version=version, purl=purl, platforms=(stack.platform,))


def _is_installed(component: str, stack: LockedStack) -> bool:
    """Return whether a component is part of the environment, neither the host's nor the package of its own name."""
    row = COMPONENTS.get(component)
    if row is None:
        return component not in stack.host_requirements
    return row.supplier is Supplier.INSTALLER and not row.is_named and not row.distribution


def _packages(lock: Lock) -> Iterator[Part]:
    for package in lock.packages:
        required = (
            _purl(other)
            for other in lock.packages
            if other.name in package.dependencies and set(other.platforms) & set(package.platforms)
        )
        yield Part(
            kind="package",
            name=package.name,
            version=package.version,
            purl=_purl(package),
            platforms=package.platforms,
            files=package.files,
            depends_on=tuple(sorted(set(required) - {_purl(package)})),
            licenses=package.licenses,
        )


def _purl(package: LockedPackage) -> str:
    purl = f"pkg:pypi/{quote(package.name, safe='')}@{quote(package.version, safe='')}"
    if package.archive is not None and package.archive.url:
        return f"{purl}?download_url={quote(package.archive.url, safe='/:')}"
    if package.index_url in {"", _PYPI}:
        return purl
    return f"{purl}?repository_url={quote(package.index_url, safe='/:')}"
