"""Spell a bill of materials in SPDX 2.3 (ISO/IEC 5962), as JSON; equal bills give equal bytes.

SPDX demands a time of creation, which is that of the newest file in the lock.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

import msgspec

from provisioner.errors import escaped_in_json
from provisioner.render.bill_of_materials import license_expression, top_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.lock.format.model import LockedFile
    from provisioner.render.bill_of_materials import Bill, Part

_ROOT, _DOCUMENT = "SPDXRef-environment", "SPDXRef-DOCUMENT"
_PURPOSES = {"image": "CONTAINER", "component": "LIBRARY", "package": "LIBRARY", "system": "LIBRARY"}


def bill_text(bill: Bill) -> str:
    """Return a bill of materials as SPDX."""
    found = bill.parts
    names = {part.purl: [one["SPDXID"] for one in _packages(part)] for part in found}
    tops = [name for part in top_parts(found) for name in names[part.purl]]
    edges = [
        (one, other)
        for part in found
        for one in names[part.purl]
        for purl in part.depends_on
        for other in names[purl]
    ]  # fmt: skip
    root = {**_stated(_ROOT, bill.name, bill.version, "CONTAINER" if bill.is_image else "APPLICATION")}
    facts = [bill.origin, f"Image: {bill.image}" if bill.image else "", *(f"Not listed: {one}" for one in bill.unread or ())]
    document = {
        "SPDXID": _DOCUMENT,
        "spdxVersion": "SPDX-2.3",
        "comment": "\n".join(filter(None, facts)),
        "creationInfo": {"created": bill.created, "creators": [f"Tool: provision-{bill.tool_version}"]},
        "dataLicense": "CC0-1.0",
        "name": bill.name,
        "documentNamespace": bill.identifier,
        **_extracted(found),
        "packages": [root, *(package for part in found for package in _packages(part))],
        "relationships": [
            _relationship(_DOCUMENT, "DESCRIBES", _ROOT),
            *(_relationship(_ROOT, "DEPENDS_ON", name) for name in tops),
            *(_relationship(one, "DEPENDS_ON", other) for one, other in edges),
        ],
    }
    return escaped_in_json(msgspec.json.format(msgspec.json.encode(document), indent=2).decode()) + "\n"


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
    """Return the declared licences as an expression, in which a name that is none of SPDX is a reference."""
    found = [license_expression(one) or _license_reference(one) for one in part.licenses]
    return " AND ".join(f"({one})" if " OR " in one and len(found) > 1 else one for one in found) or "NOASSERTION"


def _license_reference(name: str) -> str:
    """Return the identifier of a name, which may have letters, digits, dots and hyphens only (SPDX 2.3, section 10.1)."""
    spelled = re.sub(r"[^A-Za-z0-9.]+", "-", name.replace("+", "-or-later")).strip("-")
    return f"LicenseRef-{spelled or hashlib.sha256(name.encode()).hexdigest()[:12]}"


def _extracted(found: tuple[Part, ...]) -> dict[str, Any]:
    """Return the table of the licences that SPDX does not list: all that is known of their text is what metadata says."""
    names = dict.fromkeys(name for part in found for name in part.licenses)
    named = {_license_reference(name): name for name in names if not license_expression(name)}
    for name in names:
        named |= {one: one for one in re.findall(r"LicenseRef-[\w.-]+", license_expression(name))}
    table = [{"licenseId": one, "name": name, "extractedText": name} for one, name in sorted(named.items())]
    return {"hasExtractedLicensingInfos": table} if table else {}


def _purl(purl: str) -> list[dict[str, str]]:
    return [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}]


def _reference(part: Part, file: LockedFile | None = None) -> str:
    """Return the name of an SPDX package inside the document: letters, digits, `.` and `-`; the hash tells files apart.

    Packages of a distribution are told apart by their package URLs: one may be there for two architectures.
    """
    digest = file.sha256 if file else hashlib.sha256(part.purl.encode()).hexdigest() if part.kind == "system" else ""
    text = f"{part.kind}-{part.name}-{part.version}{f'-{digest[:8]}' if digest else ''}"
    return f"SPDXRef-{re.sub(r'[^A-Za-z0-9.]+', '-', text)}"


def _relationship(one: str, kind: str, other: str) -> dict[str, str]:
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
