"""Render a lock as a software bill of materials in SPDX 2.3 (ISO/IEC 5962), as JSON; equal locks give equal bytes.

SPDX demands a time of creation, which is that of the newest file in the lock.
"""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from provisioner.errors import escaped_in_json
from provisioner.render.bill_of_materials import identifier, license_expression, parts, top_parts
from provisioner.render.container import tag
from provisioner.render.header import origin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.lock.format.model import Lock, LockedFile
    from provisioner.render.bill_of_materials import Part

_ROOT, _DOCUMENT = "SPDXRef-environment", "SPDXRef-DOCUMENT"
_PURPOSES = {"image": "CONTAINER", "component": "LIBRARY", "package": "LIBRARY"}


def render(lock: Lock, lock_file_name: str) -> str:
    """Return the bill of materials of a lock."""
    found = parts(lock)
    names = {part.purl: [one["SPDXID"] for one in _packages(part)] for part in found}
    tops = [name for part in top_parts(found) for name in names[part.purl]]
    edges = [
        (one, other)
        for part in found
        for one in names[part.purl]
        for purl in part.depends_on
        for other in names[purl]
    ]  # fmt: skip
    root = {**_stated(_ROOT, lock.name, tag(lock), "CONTAINER" if found[:1] and found[0].kind == "image" else "APPLICATION")}
    document = {
        "SPDXID": _DOCUMENT,
        "spdxVersion": "SPDX-2.3",
        "comment": origin(lock, lock_file_name),
        "creationInfo": {"created": _created(lock), "creators": [f"Tool: provision-{lock.tool_version}"]},
        "dataLicense": "CC0-1.0",
        "name": lock.name,
        "documentNamespace": identifier(lock),
        **_extracted(found),
        "packages": [root, *(package for part in found for package in _packages(part))],
        "relationships": [
            _relationship(_DOCUMENT, "DESCRIBES", _ROOT),
            *(_relationship(_ROOT, "DEPENDS_ON", name) for name in tops),
            *(_relationship(one, "DEPENDS_ON", other) for one, other in edges),
        ],
    }
    return escaped_in_json(json.dumps(document, indent=2, ensure_ascii=False)) + "\n"


def _packages(part: Part) -> Iterator[dict[str, Any]]:
    """Yield the SPDX packages of a part: one for each of its files, as an SPDX package has one checksum."""
    purpose = _PURPOSES[part.kind]
    for file in part.files:
        purl = part.purl
        if len(part.files) > 1:
            purl += f"{'&' if '?' in purl else '?'}file_name={file.filename}"
        checksums = [{"algorithm": "SHA256", "checksumValue": file.sha256}]
        yield {
            **_stated(_reference(part, file), part.name, part.version, purpose, url=file.url, declared=_declared(part)),
            "packageFileName": file.filename,
            "checksums": checksums,
            "externalRefs": _purl(purl),
        }
    if not part.files:
        yield {
            **_stated(_reference(part), part.name, part.version, purpose, declared=_declared(part)),
            "externalRefs": _purl(part.purl),
        }


def _stated(
    name: str, title: str, version: str, purpose: str, *, url: str = "", declared: str = "NOASSERTION"
) -> dict[str, Any]:
    return {
        "SPDXID": name,
        "name": title,
        "versionInfo": version,
        "primaryPackagePurpose": purpose,
        "downloadLocation": url or "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": declared,
        "copyrightText": "NOASSERTION",
    }


def _declared(part: Part) -> str:
    """Return the declared licences as an expression, in which a name that is no identifier of SPDX is a reference."""
    references = " AND ".join(map(_license_reference, part.licenses))
    return license_expression(part) or references or "NOASSERTION"


def _license_reference(name: str) -> str:
    """Return the identifier of a name, which may have letters, digits, dots and hyphens only (SPDX 2.3, section 10.1)."""
    spelled = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-")
    return f"LicenseRef-{spelled or hashlib.sha256(name.encode()).hexdigest()[:12]}"


def _extracted(found: tuple[Part, ...]) -> dict[str, Any]:
    """Return the table of the licences that SPDX does not list: all that is known of their text is what metadata says."""
    named = {_license_reference(name): name for part in found if not license_expression(part) for name in part.licenses}
    for part in found:
        named |= {one: one for one in re.findall(r"LicenseRef-[\w.-]+", license_expression(part))}
    table = [{"licenseId": one, "name": name, "extractedText": name} for one, name in sorted(named.items())]
    return {"hasExtractedLicensingInfos": table} if table else {}


def _purl(purl: str) -> list[dict[str, str]]:
    return [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}]


def _reference(part: Part, file: LockedFile | None = None) -> str:
    """Return the name of an SPDX package inside the document: letters, digits, `.` and `-`; the hash tells files apart."""
    text = f"{part.kind}-{part.name}-{part.version}{f'-{file.sha256[:8]}' if file else ''}"
    return f"SPDXRef-{re.sub(r'[^A-Za-z0-9.]+', '-', text)}"


def _relationship(one: str, kind: str, other: str) -> dict[str, str]:
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}


def _created(lock: Lock) -> str:
    times = [file.upload_time for package in lock.packages for file in package.files if file.upload_time is not None]
    newest = max(times, default=datetime.fromtimestamp(0, UTC))
    return newest.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
