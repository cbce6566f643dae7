"""Real, small, byte-for-byte reproducible wheels and source distributions for tests."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import random
import re
import tarfile
import zipfile
from typing import TYPE_CHECKING

from provisioner.index.metadata.source_distribution import require_static, source_metadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from provisioner.index.metadata.core_metadata import CoreMetadata

_DATE = (2020, 1, 1, 0, 0, 0)


def metadata_text(
    name: str, version: str, requires: Iterable[str] = (), requires_python: str | None = None, extras: Iterable[str] = ()
) -> str:
    """The core metadata of a distribution, as a build backend writes it."""
    lines = ["Metadata-Version: 2.2", f"Name: {name}", f"Version: {version}"]
    if requires_python is not None:
        lines.append(f"Requires-Python: {requires_python}")
    lines += [f"Provides-Extra: {extra}" for extra in extras]
    lines += [f"Requires-Dist: {requirement}" for requirement in requires]
    return "\n".join([*lines, "", f"{name} is a distribution built for a test.", ""])


def build_wheel(
    name: str,
    version: str,
    *,
    tag: str = "py3-none-any",
    metadata: str = "",
    build: str = "",
    padding: int = 0,
    members: Mapping[str, bytes] | None = None,
) -> tuple[str, bytes]:
    """Return the filename and content of a wheel that installs one module.

    `padding` adds that many incompressible bytes, `members` other files; in their paths `*` stands for `name-version`.
    """
    distribution = re.sub(r"[-_.]+", "_", name).lower()
    stem = f"{distribution}-{version}"
    more = {path.replace("*", stem): content for path, content in (members or {}).items()}
    members = {f"{distribution}.py": f'__version__ = "{version}"\n'.encode(), **more}
    if padding:
        members[f"{distribution}_padding.bin"] = random.Random(0).randbytes(padding)
    interpreters, abis, platforms = tag.split("-")
    tags = [f"Tag: {i}-{a}-{p}" for i in interpreters.split(".") for a in abis.split(".") for p in platforms.split(".")]
    number = [f"Build: {build}"] if build else []
    wheel = [
        "Wheel-Version: 1.0",
        "Generator: tests",
        f"Root-Is-Purelib: {str(platforms == 'any').lower()}",
        *number,
        *tags,
        "",
    ]
    members[f"{stem}.dist-info/METADATA"] = (metadata or metadata_text(name, version)).encode()
    members[f"{stem}.dist-info/WHEEL"] = "\n".join(wheel).encode()
    record = "".join(f"{path},sha256={_record_hash(content)},{len(content)}\n" for path, content in members.items())
    members[f"{stem}.dist-info/RECORD"] = f"{record}{stem}.dist-info/RECORD,,\n".encode()
    filename = f"{stem}-{build}-{tag}.whl" if build else f"{stem}-{tag}.whl"
    return filename, _zip(members)


def build_sdist(name: str, version: str, *, metadata: str, is_dynamic: bool = False, build: str = "") -> tuple[str, bytes]:
    """Return the filename and content of a source distribution with a PKG-INFO and a pyproject.toml, which needs `build`."""
    distribution = re.sub(r"[-_.]+", "_", name).lower()
    stem = f"{distribution}-{version}"
    head, _, body = metadata.partition("\n\n")
    dynamic = "\nDynamic: Requires-Dist" if is_dynamic else ""
    members = {
        "PKG-INFO": f"{head}{dynamic}\n\n{body}".encode(),
        "pyproject.toml": f"[build-system]\nrequires = {[build] if build else []}\n".encode(),
    }
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for path, content in members.items():
            entry = tarfile.TarInfo(f"{stem}/{path}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return f"{stem}.tar.gz", gzip.compress(raw.getvalue(), mtime=0)


def static_metadata(content: bytes, filename: str) -> CoreMetadata:
    """Return the static metadata of a source distribution; raises as the reader does where it has none."""
    return require_static(source_metadata(io.BytesIO(content), filename), filename)


def _zip(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in members.items():
            entry = zipfile.ZipInfo(path, _DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content)
    return stream.getvalue()


def _record_hash(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
