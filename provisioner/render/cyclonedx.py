"""Spell a bill of materials in CycloneDX 1.6 (ECMA-424), without a time: equal bills give equal bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from provisioner.errors import escaped_in_json
from provisioner.render.bill_of_materials import license_expression, top_parts

if TYPE_CHECKING:
    from provisioner.render.bill_of_materials import Bill, Part

_ROOT = "environment"
_TYPES = {"image": "container", "component": "library", "package": "library", "system": "library"}


def bill_text(bill: Bill) -> str:
    """Return a bill of materials as CycloneDX."""
    root = {
        "type": "container" if bill.is_image else "application",
        "bom-ref": _ROOT,
        "name": bill.name,
        "version": bill.version,
    }
    properties = {"origin": [bill.origin], "image": [bill.image] if bill.image else [], "unread": bill.unread or ()}
    tops = {"ref": _ROOT, "dependsOn": [part.purl for part in top_parts(bill.parts)]}
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": bill.identifier,
        "version": 1,
        "metadata": {
            "properties": [{"name": f"dev.provision.{key}", "value": one} for key, of in properties.items() for one in of],
            "lifecycles": [{"phase": bill.phase}],
            "tools": {"components": [{"type": "application", "name": "provision", "version": bill.tool_version}]},
            "component": root,
        },
        "components": [_component(part, bill.platforms) for part in bill.parts],
        "dependencies": [tops, *({"ref": part.purl, "dependsOn": list(part.depends_on)} for part in bill.parts)],
        **_compositions(bill),
    }
    return escaped_in_json(msgspec.json.format(msgspec.json.encode(document), indent=2).decode()) + "\n"


def _compositions(bill: Bill) -> dict[str, Any]:
    """Return whether all parts are known, as far as anybody has looked."""
    if bill.unread is None:
        return {}
    return {"compositions": [{"aggregate": "incomplete" if bill.unread else "complete", "assemblies": [_ROOT]}]}


def _component(part: Part, platforms: tuple[str, ...]) -> dict[str, Any]:
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
    if set(part.platforms) != set(platforms):
        component["properties"] = [{"name": "dev.provision.platform", "value": platform} for platform in part.platforms]
    return component


def _licenses(part: Part) -> list[dict[str, Any]]:
    """Return the declared licences of a part: an SPDX expression, or names, beside which the format has no expression."""
    expression = license_expression(*part.licenses)
    if expression:
        return [{"expression": expression, "acknowledgement": "declared"}]
    return [{"license": {"name": name, "acknowledgement": "declared"}} for name in part.licenses]


def _hashes(sha256: str) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": sha256}]
