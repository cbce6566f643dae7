"""Render a lock as a software bill of materials in CycloneDX 1.6 (ECMA-424), without a time: equal locks give equal bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from provisioner.errors import escaped_in_json
from provisioner.render.bill_of_materials import identifier, license_expression, parts, top_parts
from provisioner.render.container import tag
from provisioner.render.header import origin

if TYPE_CHECKING:
    from provisioner.lock.format.model import Lock
    from provisioner.render.bill_of_materials import Part

_TYPES = {"image": "container", "component": "library", "package": "library"}


def render(lock: Lock, lock_file_name: str) -> str:
    """Return the bill of materials of a lock."""
    found = parts(lock)
    is_image = any(part.kind == "image" for part in found)
    root = {
        "type": "container" if is_image else "application",
        "bom-ref": "environment",
        "name": lock.name,
        "version": tag(lock),
    }
    tops = {"ref": "environment", "dependsOn": [part.purl for part in top_parts(found)]}
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": identifier(lock),
        "version": 1,
        "metadata": {
            "properties": [{"name": "dev.provision.origin", "value": origin(lock, lock_file_name)}],
            "lifecycles": [{"phase": "pre-build"}],
            "tools": {"components": [{"type": "application", "name": "provision", "version": lock.tool_version}]},
            "component": root,
        },
        "components": [_component(part, lock) for part in found],
        "dependencies": [tops, *({"ref": part.purl, "dependsOn": list(part.depends_on)} for part in found)],
    }
    return escaped_in_json(json.dumps(document, indent=2, ensure_ascii=False)) + "\n"


def _component(part: Part, lock: Lock) -> dict[str, Any]:
    component: dict[str, Any] = {"type": _TYPES[part.kind], "bom-ref": part.purl, "name": part.name, "version": part.version}
    if len(part.files) == 1:
        component["hashes"] = _hashes(part.files[0].sha256)
    elif part.digest:
        component["hashes"] = _hashes(part.digest.removeprefix("sha256:"))
    if part.licenses:
        component["licenses"] = _licenses(part)
    component["purl"] = part.purl
    if part.files:
        component["externalReferences"] = [
            {"type": "distribution", "url": file.url or file.path, "hashes": _hashes(file.sha256)} for file in part.files
        ]
    if set(part.platforms) != set(lock.platforms):
        component["properties"] = [{"name": "dev.provision.platform", "value": platform} for platform in part.platforms]
    return component


def _licenses(part: Part) -> list[dict[str, Any]]:
    """Return the licences that a package's metadata declares: an SPDX expression, or names."""
    expression = license_expression(part)
    if expression:
        return [{"expression": expression, "acknowledgement": "declared"}]
    return [{"license": {"name": name, "acknowledgement": "declared"}} for name in part.licenses]


def _hashes(sha256: str) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": sha256}]
