"""What a lock file may hold, for reading: keys of PEP 751 that this program uses, and every key of `[tool.provision]`.

Keys of PEP 751 that are not listed, and the tables of other tools, are left alone; an unknown key of ours is a mistake.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - pydantic reads the annotation at run time
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Platform = Literal["linux/amd64", "linux/arm64", "macos/x86_64", "macos/arm64"]
# White space and control characters in a name, a version or an address would be lines of their own in what is rendered.
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")]
Version = Annotated[str, Field(pattern=r"^[A-Za-z0-9.!+_-]*$")]
Url = Annotated[str, Field(pattern=r"^[^\x00-\x20\x7f]*$")]
WheelPath = Annotated[str, Field(pattern=r"^wheels/[^/\\\x00-\x1f\x7f]+$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
VariableValue = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]*$")]


class StandardTable(BaseModel):
    """A table of PEP 751: other keys than ours are allowed."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, defer_build=True)


class OwnTable(BaseModel):
    """A table of ours: unknown keys are mistakes."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class HashesTable(StandardTable):
    sha256: Sha256


class FileTable(StandardTable):
    name: Annotated[str, Field(pattern=r"^[^/\\\s]+$")]
    url: Url = ""
    path: WheelPath | None = None
    size: Annotated[int, Field(ge=0)] | None = None
    upload_time: Annotated[datetime | None, Field(alias="upload-time")] = None
    hashes: HashesTable


class ArchiveTable(StandardTable):
    """A file without a name of its own: an archive, or the list of wheel variants of draft PEP 825."""

    url: Url = ""
    path: WheelPath | None = None
    size: Annotated[int, Field(ge=0)] | None = None
    upload_time: Annotated[datetime | None, Field(alias="upload-time")] = None
    hashes: HashesTable


class DependencyTable(StandardTable):
    name: Name


class OwnPackageTable(OwnTable):
    index: str = ""
    platforms: tuple[Platform, ...]
    requires: tuple[str, ...] = ()


class PackageToolTable(StandardTable):
    provision: OwnPackageTable


class PackageTable(StandardTable):
    name: Name
    version: Version
    marker: str = ""
    requires_python: Annotated[str, Field(alias="requires-python")] = ""
    dependencies: tuple[DependencyTable, ...] = ()
    archive: ArchiveTable | None = None
    index: str = ""
    sdist: FileTable | None = None
    wheels: tuple[FileTable, ...] = ()
    variants_json: Annotated[ArchiveTable | None, Field(alias="variants-json")] = None
    attestation_identities: Annotated[tuple[dict[str, Any], ...], Field(alias="attestation-identities")] = ()
    tool: PackageToolTable


class ImageTable(OwnTable):
    reference: Annotated[str, Field(pattern=r"^[^\s@]+$")]
    digest: Annotated[str, Field(pattern=r"^(sha256:[0-9a-f]{64})?$")] = ""
    glibc: str = ""
    python: str = ""
    apt_python: Annotated[str, Field(alias="apt-python")] = ""
    require_cuda: Annotated[VariableValue, Field(alias="require-cuda")] = ""


class InstallerTable(OwnTable):
    name: Name
    version: Version
    file: FileTable


class ReasonTable(OwnTable):
    component: str
    kind: str
    text: str
    where: str


class PinTable(OwnTable):
    component: str
    version: str
    build: str = ""
    reasons: tuple[ReasonTable, ...] = ()


class HostReasonsTable(OwnTable):
    fact: str
    reasons: tuple[ReasonTable, ...]


class StackTable(OwnTable):
    platform: Platform
    accelerator: Literal["cuda", "rocm", "mps", "cpu"]
    runs: Literal["container", "host"]
    basis: Literal["", "native", "minor-version", "forward-compat"] = ""
    require_cuda: Annotated[VariableValue, Field(alias="require-cuda")] = ""
    arch_list: Annotated[tuple[str, ...], Field(alias="arch-list")] = ()
    unverified: tuple[str, ...] = ()
    relaxations: tuple[str, ...] = ()
    stack: dict[str, str]
    host_requirements: Annotated[dict[str, str], Field(alias="host-requirements")] = {}
    environment: dict[VariableName, VariableValue] = {}
    image: ImageTable | None = None
    installer: InstallerTable | None = None
    pins: tuple[PinTable, ...] = ()
    host_reasons: Annotated[tuple[HostReasonsTable, ...], Field(alias="host-reasons")] = ()


class ProvisionTable(OwnTable):
    schema_version: Annotated[Literal[1], Field(alias="schema-version")]
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
    tool_version: Annotated[str, Field(alias="tool-version")]
    matrix_digest: Annotated[str, Field(alias="matrix-digest")]
    spec_digest: Annotated[str, Field(alias="spec-digest")]
    spec_file: Annotated[str, Field(alias="spec-file")]
    target: str = ""
    digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
    asked: dict[str, str] = {}
    platforms: tuple[StackTable, ...]


class ToolTable(StandardTable):
    provision: ProvisionTable


class LockTable(StandardTable):
    """The whole file."""

    lock_version: Annotated[str, Field(alias="lock-version")]
    requires_python: Annotated[str, Field(alias="requires-python")] = ""
    environments: tuple[str, ...] = ()
    packages: tuple[PackageTable, ...]
    tool: ToolTable
