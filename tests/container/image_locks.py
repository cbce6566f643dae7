"""Wheelhouses and the locks over them: everything an image needs lies in one folder, with its hash."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import tarfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from provisioner.document import write_text
from provisioner.lock.format.file import write_lock
from provisioner.lock.format.model import Installer, Lock, LockedFile, LockedPackage, LockedStack
from provisioner.render.container import tag
from provisioner.resolver.stack import BaseImage
from tests.built_files import build_wheel

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.metadata import Distribution

LOCK_NAME = "pylock.trial.toml"

_BACKEND = b"""\
import pathlib, zipfile
def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = "compiled-3.0-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w") as wheel:
        wheel.writestr("compiled.py", "built = 'from source'\\n")
        wheel.writestr("compiled-3.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: compiled\\nVersion: 3.0\\n")
        wheel.writestr("compiled-3.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("compiled-3.0.dist-info/RECORD", "")
    return name
"""


def kept_image(lock: Lock) -> str:
    """Return the name of the image that a validation of a lock builds and keeps."""
    return f"provision-validate/{lock.name}:{tag(lock)}"


def pack_wheel(distribution: Distribution, folder: Path) -> Path:
    """Pack an installed distribution into the wheel it came from: binary distribution format, "The .data directory"."""
    name, version = distribution.metadata["Name"], distribution.version
    stem = f"{name}-{version}"
    tag = next(line for line in (distribution.read_text("WHEEL") or "").splitlines() if line.startswith("Tag: "))[5:]
    members: dict[str, bytes] = {}
    for file in distribution.files or ():
        content = Path(str(file.locate())).read_bytes()
        if file.parts[0] == "..":
            members[f"{stem}.data/scripts/{file.name}"] = content
        elif "__pycache__" not in file.parts and file.name not in {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}:
            members[file.as_posix()] = content
    members[f"{stem}.dist-info/RECORD"] = _record(members, f"{stem}.dist-info/RECORD")
    path = folder / f"{stem}-{tag}.whl"
    path.write_bytes(_zipped(members))
    return path


def source_distribution() -> bytes:
    """Return the content of `compiled-3.0.tar.gz`, which brings the backend that builds it along."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        system = b'[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        for path, content in (("pyproject.toml", system), ("backend.py", _BACKEND), ("PKG-INFO", b"Name: compiled\n")):
            entry = tarfile.TarInfo(f"compiled-3.0/{path}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(raw.getvalue(), mtime=0)


def _record(members: Mapping[str, bytes], own: str) -> bytes:
    hashes = {name: base64.urlsafe_b64encode(hashlib.sha256(content).digest()) for name, content in members.items()}
    lines = [f"{name},sha256={hashes[name].rstrip(b'=').decode()},{len(members[name])}\n" for name in members]
    return "".join([*lines, f"{own},,\n"]).encode()


def _zipped(members: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            archive.writestr(entry, content)
    return stream.getvalue()


@dataclass(kw_only=True)
class Wheelhouse:
    """A folder with `wheels/` in it and a lock over them."""

    folder: Path
    base_image: str
    installer: Path
    packages: list[LockedPackage] = field(default_factory=list)

    @property
    def wheels(self) -> Path:
        return self.folder / "wheels"

    @property
    def lock_path(self) -> Path:
        return self.folder / LOCK_NAME

    def add(
        self, name: str, version: str, *, sha256: str = "", url: str = "", members: Mapping[str, bytes] | None = None
    ) -> LockedPackage:
        """Build a wheel and lock it; `sha256` overrides its hash, `url` says where it is served instead of lying here."""
        filename, content = build_wheel(name, version, members=members)
        if not url:
            (self.wheels / filename).write_bytes(content)
        return self.add_file(name, version, filename, sha256=sha256 or hashlib.sha256(content).hexdigest(), url=url)

    def add_file(self, name: str, version: str, filename: str, *, sha256: str, url: str = "") -> LockedPackage:
        """Lock a wheel that lies in `wheels/` or is served somewhere."""
        file = LockedFile(filename=filename, sha256=sha256, url=url, path="" if url else f"wheels/{filename}")
        package = LockedPackage(name=name, version=version, platforms=("linux/amd64",), wheels=(file,))
        self.packages.append(package)
        return package

    def lock(
        self,
        *,
        accelerator: str = "cpu",
        digest: str = "",
        base: str = "",
        components: Mapping[str, str] | None = None,
        require_cuda: str = "",
    ) -> Lock:
        """Write the lock of everything added so far, and return it."""
        content = self.installer.read_bytes()
        installer = LockedFile(
            filename=self.installer.name, sha256=hashlib.sha256(content).hexdigest(), path=f"wheels/{self.installer.name}"
        )
        stack = LockedStack(
            platform="linux/amd64",
            accelerator=accelerator,
            require_cuda=require_cuda,
            components={"python": "3.11", **(components or {})},
            image=BaseImage(reference=base or self.base_image, digest=digest, python="3.11"),
            installer=Installer(name="uv", version=self.installer.name.split("-")[1], file=installer),
        )
        lock = Lock(
            name="trial",
            requires_python="==3.11.*",
            environments=(),
            packages=tuple(sorted(self.packages, key=lambda package: package.name)),
            stacks=(stack,),
            tool_version="1.0",
            matrix_digest=f"sha256:{'1' * 64}",
            spec_digest=f"sha256:{'2' * 64}",
        )
        write_text(self.lock_path, write_lock(lock))
        return lock
