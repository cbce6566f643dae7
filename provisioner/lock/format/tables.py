"""Lock <-> the tables of its file: keys of PEP 751 that this program uses, in its order, and every key of `[tool.provision]`.

Other keys of PEP 751 and the tables of other tools are ignored; an unknown key under `[tool.provision]` is a mistake. A key
whose value is empty is not written, because TOML has no null.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from msgspec import Meta, Struct, field, to_builtins
from msgspec.structs import asdict

from provisioner.accelerators import AcceleratorName
from provisioner.lock.format.artifact import name_in
from provisioner.lock.format.model import (
    Installer,
    Lock,
    LockedFile,
    LockedPackage,
    LockedPin,
    LockedStack,
    LockedSystemPackage,
    Reason,
)
from provisioner.platforms import PlatformName
from provisioner.resolver.stack import BaseImage, ManagedPython, RuntimeImage
from provisioner.setups import HostSetup
from provisioner.spellings import Digest, EnvironmentName, ImageName, KnownDigest, Line, Sha256
from provisioner.strict_model import StrictModel, spelled, with_tuples

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CREATED_BY = "provision"
LOCK_VERSION = "1.0"
"""The version of PEP 751 that this program writes."""

_SHARED = (
    *("platform", "accelerator", "runs", "basis", "require_cuda", "arch_list", "unverified", "assumes", "accepts"),
    *("relaxations", "host_requirements", "environment", "apt", "host_setups", "pins"),
)
"""Fields of `LockedStack` that are written to the file unchanged."""

# White space and control characters in a name, a version or a URL could add lines to rendered files.
Name = Annotated[str, spelled(r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")]
Version = Annotated[str, spelled(r"^[A-Za-z0-9.!+_-]*$")]
# pip reads what follows a blank as options, and expands `${NAME}`, which would send a variable to whoever wrote the address.
Url = Annotated[str, spelled(r"^([^\x00-\x20\x7f\"<>\\^`{|}-][^\x00-\x20\x7f\"<>\\^`{|}]*)?$")]
WheelPath = Annotated[str, spelled(r"^wheels/[^./\\\s\x00-\x1f\x7f;#\"'$`{}-][^/\\\s\x00-\x1f\x7f;#\"'$`{}]*$")]
ComponentName = Annotated[str, spelled(r"^[A-Za-z0-9][A-Za-z0-9_.:-]*$")]
VariableName = Annotated[str, spelled(r"^[A-Za-z_][A-Za-z0-9_]*$")]


class StandardTable(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The base of the tables of PEP 751; unknown keys are allowed."""


class OwnTable(StrictModel, frozen=True, kw_only=True, omit_defaults=True):
    """The base of the tables under `[tool.provision]`; unknown keys are mistakes."""


class HashesTable(StandardTable, frozen=True, kw_only=True):
    sha256: Sha256


class ArchiveTable(StandardTable, frozen=True, kw_only=True):
    """A file without a name of its own: an archive, or the list of wheel variants of draft PEP 825."""

    upload_time: datetime | None = field(default=None, name="upload-time")
    url: Url = ""
    path: WheelPath | None = None
    size: Annotated[int, Meta(ge=0)] | None = None
    hashes: HashesTable


class FileTable(StandardTable, frozen=True, kw_only=True):
    name: Annotated[str, spelled(r"^[^/\\\s\x00-\x1f]+$")]
    upload_time: datetime | None = field(default=None, name="upload-time")
    url: Url = ""
    path: WheelPath | None = None
    size: Annotated[int, Meta(ge=0)] | None = None
    hashes: HashesTable


class DependencyTable(StandardTable, frozen=True, kw_only=True):
    """A reference to the entry of a dependency, with version and marker only when its name has several entries (PEP 751)."""

    name: Name
    version: str = ""
    marker: str = ""


class OwnPackageTable(OwnTable, frozen=True, kw_only=True):
    index: str = ""
    platforms: tuple[PlatformName, ...]
    requires: tuple[str, ...] = ()
    licenses: tuple[str, ...] = ()


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
    reference: ImageName
    digest: KnownDigest = ""
    glibc: str = ""
    python: str = ""
    apt_python: str = field(default="", name="apt-python")
    require_cuda: Line = field(default="", name="require-cuda")
    managed_python: ManagedPython | None = field(default=None, name="managed-python")
    runtime: RuntimeImage | None = None
    snapshot: Annotated[str, spelled(r"^([0-9]{8}T[0-9]{6}Z)?$")] = ""


class InstallerTable(OwnTable, frozen=True, kw_only=True):
    name: Name
    version: Version
    file: FileTable


class HostReasonsTable(OwnTable, frozen=True, kw_only=True):
    fact: ComponentName
    reasons: tuple[Reason, ...]


class StackTable(OwnTable, frozen=True, kw_only=True):
    platform: PlatformName
    accelerator: AcceleratorName
    runs: Literal["container", "host"]
    basis: Literal["", "native", "minor-version", "forward-compat"] = ""
    require_cuda: Line = field(default="", name="require-cuda")
    arch_list: tuple[str, ...] = field(default=(), name="arch-list")
    unverified: tuple[str, ...] = ()
    assumes: tuple[str, ...] = ()
    accepts: tuple[str, ...] = ()
    relaxations: tuple[str, ...] = ()
    stack: dict[ComponentName, str]
    host_requirements: dict[ComponentName, str] = field(default_factory=dict, name="host-requirements")
    environment: dict[VariableName, Line] = field(default_factory=dict)
    image: ImageTable | None = None
    installer: InstallerTable | None = None
    apt: tuple[LockedSystemPackage, ...] = ()
    host_setups: tuple[HostSetup, ...] = field(default=(), name="host-setups")
    pins: tuple[LockedPin, ...] = ()
    host_reasons: tuple[HostReasonsTable, ...] = field(default=(), name="host-reasons")


class ProvisionTable(OwnTable, frozen=True, kw_only=True):
    schema_version: Literal[1] = field(name="schema-version")
    name: EnvironmentName
    tool_version: str = field(name="tool-version")
    matrix_digest: str = field(name="matrix-digest")
    spec_digest: str = field(name="spec-digest")
    spec_file: str = field(name="spec-file")
    target: str = ""
    asked: dict[str, str] = field(default_factory=dict)
    platforms: tuple[StackTable, ...]
    digest: Digest


class ToolTable(StandardTable, frozen=True, kw_only=True):
    provision: ProvisionTable


class LockTable(StandardTable, frozen=True, kw_only=True):
    """The whole lock file."""

    lock_version: str = field(name="lock-version")
    environments: tuple[str, ...] = ()
    requires_python: str = field(default="", name="requires-python")
    created_by: str = field(default="", name="created-by")
    packages: tuple[PackageTable, ...]
    tool: ToolTable


def table_of(lock: Lock) -> dict[str, Any]:
    """Return the content of a lock file as plain values, with "" as its digest."""
    own = ProvisionTable(
        schema_version=1,
        name=lock.name,
        tool_version=lock.tool_version,
        matrix_digest=lock.matrix_digest,
        spec_digest=lock.spec_digest,
        spec_file=lock.spec_file,
        target=lock.target,
        asked=dict(lock.asked),
        platforms=tuple(map(_stack_table, lock.stacks)),
        digest="",
    )
    entries: dict[str, list[LockedPackage]] = {}
    for package in lock.packages:
        entries.setdefault(package.name, []).append(package)
    table = LockTable(
        lock_version=LOCK_VERSION,
        environments=lock.environments,
        requires_python=lock.requires_python,
        created_by=CREATED_BY,
        packages=tuple(_package_table(package, entries) for package in lock.packages),
        tool=ToolTable(provision=own),
    )
    content: dict[str, Any] = to_builtins(table, builtin_types=(datetime,))
    return content


def entry_of(package: LockedPackage) -> dict[str, Any]:
    """Return the content of a lock file about a package as plain values, if no package that it depends on has two entries."""
    content: dict[str, Any] = to_builtins(_package_table(package, {}), builtin_types=(datetime,))
    return content


def lock_of(table: LockTable, packages: tuple[LockedPackage, ...] | None = None) -> Lock:
    """Return the lock that a validated file describes; `packages` are those of the table if they are known already."""
    own = table.tool.provision
    return Lock(
        name=own.name,
        requires_python=table.requires_python,
        environments=table.environments,
        packages=tuple(map(package_of, table.packages)) if packages is None else packages,
        stacks=tuple(map(_stack, own.platforms)),
        tool_version=own.tool_version,
        matrix_digest=own.matrix_digest,
        spec_digest=own.spec_digest,
        spec_file=own.spec_file,
        target=own.target,
        asked=own.asked,
    )


def _package_table(package: LockedPackage, entries: Mapping[str, list[LockedPackage]]) -> PackageTable:
    is_named = "://" not in package.index  # an index without a name goes by its URL
    own = OwnPackageTable(
        index=package.index if is_named else "",
        platforms=cast("tuple[PlatformName, ...]", package.platforms),
        requires=package.requires,
        licenses=package.licenses,
    )
    return PackageTable(
        name=package.name,
        version=package.version,
        marker=package.marker,
        requires_python=package.requires_python,
        dependencies=tuple(
            table for name in package.dependencies for table in _dependencies(name, package, entries.get(name, ()))
        ),
        archive=_archive_table(package.archive) if package.archive else None,
        index=package.index_url if is_named else package.index,
        sdist=_file_table(package.sdist) if package.sdist else None,
        wheels=tuple(map(_file_table, package.wheels)),
        variants_json=_archive_table(package.variants) if package.variants else None,
        attestation_identities=tuple(map(_sorted, package.attestations)),
        tool=PackageToolTable(provision=own),
    )


def package_of(table: PackageTable) -> LockedPackage:
    """Return the package that a table of a validated file describes."""
    own = table.tool.provision
    return LockedPackage(
        name=table.name,
        version=table.version,
        platforms=own.platforms,
        marker=table.marker,
        requires_python=table.requires_python,
        index=own.index or table.index,
        index_url=table.index if own.index else "",
        wheels=tuple(_file(file, file.name) for file in table.wheels),
        sdist=_file(table.sdist, table.sdist.name) if table.sdist else None,
        archive=_nameless(table.archive) if table.archive else None,
        variants=_nameless(table.variants_json) if table.variants_json else None,
        attestations=tuple(map(with_tuples, table.attestation_identities)),
        requires=own.requires,
        licenses=own.licenses,
        dependencies=tuple(dict.fromkeys(dependency.name for dependency in table.dependencies)),
    )


def _dependencies(name: str, package: LockedPackage, entries: Sequence[LockedPackage]) -> list[DependencyTable]:
    """Return the references of a package to a dependency, which has these `entries` in the lock."""
    if len(entries) < 2:
        return [DependencyTable(name=name)]
    versions = [entry.version for entry in entries]
    return [
        DependencyTable(name=name, version=one.version, marker=one.marker if versions.count(one.version) > 1 else "")
        for one in entries
        if set(one.platforms) & set(package.platforms)
    ]


def _sorted(identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return an attestation identity with its keys sorted at every depth, so that equal locks give equal bytes."""
    return {key: _sorted(value) if isinstance(value, dict) else value for key, value in sorted(identity.items())}


def _archive_table(file: LockedFile) -> ArchiveTable:
    return ArchiveTable(
        upload_time=file.upload_time,
        url=file.url,
        path=file.path or None,
        size=file.size,
        hashes=HashesTable(sha256=file.sha256),
    )


def _file_table(file: LockedFile) -> FileTable:
    return FileTable(name=file.filename, **asdict(_archive_table(file)))


def _nameless(table: ArchiveTable) -> LockedFile:
    return _file(table, name_in(table.url, table.path or ""))


def _file(table: FileTable | ArchiveTable, name: str) -> LockedFile:
    return LockedFile(
        filename=name,
        sha256=table.hashes.sha256,
        url=table.url,
        path=table.path or "",
        size=table.size,
        upload_time=table.upload_time,
    )


def _stack_table(stack: LockedStack) -> StackTable:
    shared = {name: getattr(stack, name) for name in _SHARED}
    installer = stack.installer
    return StackTable(
        **shared,
        stack=dict(stack.components),
        image=ImageTable(**asdict(stack.image)) if stack.image else None,
        installer=InstallerTable(**{**asdict(installer), "file": _file_table(installer.file)}) if installer else None,
        host_reasons=tuple(HostReasonsTable(fact=fact, reasons=reasons) for fact, reasons in stack.host_reasons.items()),
    )


def _stack(table: StackTable) -> LockedStack:
    shared = {name: getattr(table, name) for name in _SHARED}
    installer = table.installer
    return LockedStack(
        **shared,
        components=table.stack,
        image=BaseImage(**asdict(table.image)) if table.image else None,
        installer=Installer(**{**asdict(installer), "file": _file(installer.file, installer.file.name)}) if installer else None,
        host_reasons={entry.fact: entry.reasons for entry in table.host_reasons},
    )
