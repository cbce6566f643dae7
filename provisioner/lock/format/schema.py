"""What a lock file may hold, for reading: keys of PEP 751 that this program uses, and every key of `[tool.provision]`.

Keys of PEP 751 that are not listed, and the tables of other tools, are left alone; an unknown key of ours is a mistake.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads the annotation at run time
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from provisioner.strict_model import StrictModel, spelled

Platform = Literal["linux/amd64", "linux/arm64", "macos/x86_64", "macos/arm64"]
# White space and control characters in a name, a version or an address would be lines of their own in what is rendered.
Name = Annotated[str, spelled(r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")]
Version = Annotated[str, spelled(r"^[A-Za-z0-9.!+_-]*$")]
Url = Annotated[str, spelled(r"^[^\x00-\x20\x7f]*$")]
WheelPath = Annotated[str, spelled(r"^wheels/[^/\\\x00-\x1f\x7f]+$")]
Sha256 = Annotated[str, spelled(r"^[0-9a-f]{64}$")]
VariableName = Annotated[str, spelled(r"^[A-Za-z_][A-Za-z0-9_]*$")]
VariableValue = Annotated[str, spelled(r"^[^\x00-\x1f\x7f]*$")]


class StandardTable(Struct, frozen=True, kw_only=True):
    """A table of PEP 751: other keys than ours are allowed."""


class OwnTable(StrictModel, frozen=True, kw_only=True):
    """A table of ours: unknown keys are mistakes."""


class HashesTable(StandardTable, frozen=True, kw_only=True):
    sha256: Sha256


class FileTable(StandardTable, frozen=True, kw_only=True):
    name: Annotated[str, spelled(r"^[^/\\\s\x00-\x1f]+$")]
    url: Url = ""
    path: WheelPath | None = None
    size: Annotated[int, Meta(ge=0)] | None = None
    upload_time: datetime | None = field(default=None, name="upload-time")
    hashes: HashesTable


class ArchiveTable(StandardTable, frozen=True, kw_only=True):
    """A file without a name of its own: an archive, or the list of wheel variants of draft PEP 825."""

    url: Url = ""
    path: WheelPath | None = None
    size: Annotated[int, Meta(ge=0)] | None = None
    upload_time: datetime | None = field(default=None, name="upload-time")
    hashes: HashesTable


class DependencyTable(StandardTable, frozen=True, kw_only=True):
    name: Name


class OwnPackageTable(OwnTable, frozen=True, kw_only=True):
    index: str = ""
    platforms: tuple[Platform, ...]
    requires: tuple[str, ...] = ()


class PackageToolTable(StandardTable, frozen=True, kw_only=True):
    provision: OwnPackageTable


class PackageTable(StandardTable, frozen=True, kw_only=True):
    name: Name
    version: Version
    marker: str = ""
    requires_python: str = field(default="", name="requires-python")
    dependencies: tuple[DependencyTable, ...] = ()
    archive: ArchiveTable | None = None
    index: str = ""
    sdist: FileTable | None = None
    wheels: tuple[FileTable, ...] = ()
    variants_json: ArchiveTable | None = field(default=None, name="variants-json")
    attestation_identities: tuple[dict[str, Any], ...] = field(default=(), name="attestation-identities")
    tool: PackageToolTable


class ImageTable(OwnTable, frozen=True, kw_only=True):
    reference: Annotated[str, spelled(r"^[^\s\x00-\x1f@]+$")]
    digest: Annotated[str, spelled(r"^(sha256:[0-9a-f]{64})?$")] = ""
    glibc: str = ""
    python: str = ""
    apt_python: str = field(default="", name="apt-python")
    require_cuda: VariableValue = field(default="", name="require-cuda")


class InstallerTable(OwnTable, frozen=True, kw_only=True):
    name: Name
    version: Version
    file: FileTable


class ReasonTable(OwnTable, frozen=True, kw_only=True):
    component: str
    kind: str
    text: str
    where: str
    type: str = ""
    subject: str = ""
    object: str = ""
    ranges: tuple[str, ...] = ()
    source: str = ""
    place: str = ""


class PinTable(OwnTable, frozen=True, kw_only=True):
    component: str
    version: str
    build: str = ""
    reasons: tuple[ReasonTable, ...] = ()


class HostReasonsTable(OwnTable, frozen=True, kw_only=True):
    fact: str
    reasons: tuple[ReasonTable, ...]


class StackTable(OwnTable, frozen=True, kw_only=True):
    platform: Platform
    accelerator: Literal["cuda", "rocm", "mps", "cpu"]
    runs: Literal["container", "host"]
    basis: Literal["", "native", "minor-version", "forward-compat"] = ""
    require_cuda: VariableValue = field(default="", name="require-cuda")
    arch_list: tuple[str, ...] = field(default=(), name="arch-list")
    unverified: tuple[str, ...] = ()
    relaxations: tuple[str, ...] = ()
    stack: dict[str, str]
    host_requirements: dict[str, str] = field(default_factory=dict, name="host-requirements")
    environment: dict[VariableName, VariableValue] = field(default_factory=dict)
    image: ImageTable | None = None
    installer: InstallerTable | None = None
    pins: tuple[PinTable, ...] = ()
    host_reasons: tuple[HostReasonsTable, ...] = field(default=(), name="host-reasons")


class ProvisionTable(OwnTable, frozen=True, kw_only=True):
    schema_version: Literal[1] = field(name="schema-version")
    name: Annotated[str, spelled(r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
    tool_version: str = field(name="tool-version")
    matrix_digest: str = field(name="matrix-digest")
    spec_digest: str = field(name="spec-digest")
    spec_file: str = field(name="spec-file")
    target: str = ""
    digest: Annotated[str, spelled(r"^sha256:[0-9a-f]{64}$")]
    asked: dict[str, str] = field(default_factory=dict)
    platforms: tuple[StackTable, ...]


class ToolTable(StandardTable, frozen=True, kw_only=True):
    provision: ProvisionTable


class LockTable(StandardTable, frozen=True, kw_only=True):
    """The whole file."""

    lock_version: str = field(name="lock-version")
    requires_python: str = field(default="", name="requires-python")
    environments: tuple[str, ...] = ()
    packages: tuple[PackageTable, ...]
    tool: ToolTable
