"""Lock -> the table that a lock file holds: keys of PEP 751 in its order, and ours in `[tool.provision]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.lock.format.model import Lock, LockedFile, LockedPackage, LockedPin, LockedStack, Reason

CREATED_BY = "provision"

Table = dict[str, Any]


def table_of(lock: Lock) -> Table:
    """The content of the lock file but for its digest; keys in the order of PEP 751, empty values left out."""
    provision = {
        "schema-version": 1,
        "name": lock.name,
        "tool-version": lock.tool_version,
        "matrix-digest": lock.matrix_digest,
        "spec-digest": lock.spec_digest,
        "spec-file": lock.spec_file,
        **_filled({"target": lock.target, "asked": dict(lock.asked)}),
        "platforms": [_stack_table(stack) for stack in lock.stacks],
    }
    table = {
        "lock-version": "1.0",
        "environments": list(lock.environments),
        "requires-python": lock.requires_python,
        "created-by": CREATED_BY,
    }
    return {
        **_filled(table),
        "packages": [_package_table(package, lock) for package in lock.packages],
        "tool": {"provision": provision},
    }


def _filled(table: Table) -> Table:
    """The table without its empty values, which is how TOML says that there is none."""
    return {key: value for key, value in table.items() if value not in ("", [], {}, None)}


def _package_table(package: LockedPackage, lock: Lock) -> Table:
    # An index without a name goes by its URL.
    is_named = "://" not in package.index
    own = {
        "index": package.index if is_named else "",
        "platforms": list(package.platforms),
        "requires": list(package.requires),
    }
    table = {
        "name": package.name,
        "version": package.version,
        "marker": package.marker,
        "requires-python": package.requires_python,
        "dependencies": [table for name in package.dependencies for table in _dependencies(name, package, lock)],
        "archive": _nameless_table(package.archive),
        "index": package.index_url if is_named else package.index,
        "sdist": _file_table(package.sdist) if package.sdist else None,
        "wheels": [_file_table(file) for file in package.wheels],
        "variants-json": _nameless_table(package.variants),
        "attestation-identities": [_sorted(identity) for identity in package.attestations],
        "tool": {"provision": _filled(own)},
    }
    return _filled(table)


def _dependencies(name: str, package: LockedPackage, lock: Lock) -> list[Table]:
    """The entries that a dependency means, each told from others of its name by no more than needed (PEP 751)."""
    entries = [entry for entry in lock.packages if entry.name == name]
    meant = [entry for entry in entries if set(entry.platforms) & set(package.platforms)]
    if len(entries) < 2:
        return [{"name": name}]
    versions = [entry.version for entry in entries]
    return [
        {"name": name, "version": entry.version} | ({"marker": entry.marker} if versions.count(entry.version) > 1 else {})
        for entry in meant
    ]


def _sorted(identity: Mapping[str, Any]) -> Table:
    """What an index says of a publisher, with its keys in one order at every depth."""
    return {key: _sorted(value) if isinstance(value, dict) else value for key, value in sorted(identity.items())}


def _nameless_table(file: LockedFile | None) -> Table | None:
    """A file in a place where PEP 751 has no name for it: the last part of its URL or path is one."""
    return {key: value for key, value in _file_table(file).items() if key != "name"} if file else None


def _file_table(file: LockedFile) -> Table:
    table = {
        "name": file.filename,
        "upload-time": file.upload_time,
        "url": file.url,
        "path": file.path,
        "size": file.size,
        "hashes": {"sha256": file.sha256},
    }
    return _filled(table)


def _stack_table(stack: LockedStack) -> Table:
    image, installer = stack.image, stack.installer
    table = {
        "platform": stack.platform,
        "accelerator": stack.accelerator,
        "runs": stack.runs,
        "basis": stack.basis,
        "require-cuda": stack.require_cuda,
        "arch-list": list(stack.arch_list),
        "unverified": list(stack.unverified),
        "relaxations": list(stack.relaxations),
    }
    image_table = image and {
        "reference": image.reference,
        "digest": image.digest,
        "glibc": image.glibc,
        "python": image.python,
        "apt-python": image.apt_python,
        "require-cuda": image.require_cuda,
    }
    installer_table = installer and {
        "name": installer.name,
        "version": installer.version,
        "file": _file_table(installer.file),
    }
    tables = {
        "host-requirements": dict(stack.host_requirements),
        "environment": dict(stack.environment),
        "image": _filled(image_table or {}),
        "installer": installer_table,
        "pins": [_pin_table(pin) for pin in stack.pins],
        "host-reasons": [
            {"fact": fact, "reasons": [_reason_table(reason) for reason in reasons]}
            for fact, reasons in stack.host_reasons.items()
        ],
    }
    return {**_filled(table), "stack": dict(stack.components), **_filled(tables)}


def _pin_table(pin: LockedPin) -> Table:
    reasons = [_reason_table(reason) for reason in pin.reasons]
    return {"component": pin.component, "version": pin.version, **_filled({"build": pin.build, "reasons": reasons})}


def _reason_table(reason: Reason) -> Table:
    table = {"component": reason.component, "kind": reason.kind, "text": reason.text, "where": reason.where}
    fields = {
        "type": reason.type,
        "subject": reason.subject,
        "object": reason.object,
        "ranges": list(reason.ranges),
        "source": reason.source,
        "place": reason.place,
    }
    return {**table, **_filled(fields)}
