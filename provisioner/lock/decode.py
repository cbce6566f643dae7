"""The validated tables of a lock file -> the lock they describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from provisioner.lock.artifact import name_in
from provisioner.lock.model import Installer, Lock, LockedFile, LockedPackage, LockedPin, LockedStack, Reason
from provisioner.resolver.stack import BaseImage

if TYPE_CHECKING:
    from provisioner.lock.schema import (
        ArchiveTable,
        FileTable,
        InstallerTable,
        LockTable,
        PackageTable,
        ReasonTable,
        StackTable,
    )


def lock_of(table: LockTable) -> Lock:
    """The lock that a validated file describes."""
    own = table.tool.provision
    return Lock(
        name=own.name,
        requires_python=table.requires_python,
        environments=table.environments,
        packages=tuple(_package(package) for package in table.packages),
        stacks=tuple(_stack(stack) for stack in own.platforms),
        tool_version=own.tool_version,
        matrix_digest=own.matrix_digest,
        spec_digest=own.spec_digest,
        spec_file=own.spec_file,
        target=own.target,
        asked=own.asked,
    )


def _package(table: PackageTable) -> LockedPackage:
    own = table.tool.provision
    return LockedPackage(
        name=table.name,
        version=table.version,
        platforms=own.platforms,
        marker=table.marker,
        requires_python=table.requires_python,
        index=own.index or table.index,
        index_url=table.index if own.index else "",
        wheels=tuple(_file(file) for file in table.wheels),
        sdist=_file(table.sdist) if table.sdist else None,
        archive=_nameless(table.archive) if table.archive else None,
        variants=_nameless(table.variants_json) if table.variants_json else None,
        attestations=tuple(_frozen(identity) for identity in table.attestation_identities),
        requires=own.requires,
        dependencies=tuple(dict.fromkeys(dependency.name for dependency in table.dependencies)),
    )


def _frozen(value: Any) -> Any:  # noqa: ANN401 - an identity holds what its index says
    if isinstance(value, dict):
        return {key: _frozen(below) for key, below in value.items()}
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def _file(table: FileTable) -> LockedFile:
    return LockedFile(
        filename=table.name,
        sha256=table.hashes.sha256,
        url=table.url,
        path=table.path or "",
        size=table.size,
        upload_time=table.upload_time,
    )


def _nameless(table: ArchiveTable) -> LockedFile:
    return LockedFile(
        filename=name_in(table.url, table.path or ""),
        sha256=table.hashes.sha256,
        url=table.url,
        path=table.path or "",
        size=table.size,
        upload_time=table.upload_time,
    )


def _stack(table: StackTable) -> LockedStack:
    pins = tuple(
        LockedPin(
            component=pin.component,
            version=pin.version,
            build=pin.build,
            reasons=_reasons(pin.reasons),
        )
        for pin in table.pins
    )
    return LockedStack(
        platform=table.platform,
        accelerator=table.accelerator,
        components=table.stack,
        runs=table.runs,
        basis=table.basis,
        host_requirements=table.host_requirements,
        require_cuda=table.require_cuda,
        arch_list=table.arch_list,
        environment=table.environment,
        unverified=table.unverified,
        image=BaseImage(**asdict(table.image)) if table.image else None,
        installer=_installer(table.installer) if table.installer else None,
        relaxations=table.relaxations,
        pins=pins,
        host_reasons={entry.fact: _reasons(entry.reasons) for entry in table.host_reasons},
    )


def _reasons(tables: tuple[ReasonTable, ...]) -> tuple[Reason, ...]:
    return tuple(Reason(**asdict(table)) for table in tables)


def _installer(table: InstallerTable) -> Installer:
    return Installer(name=table.name, version=table.version, file=_file(table.file))
