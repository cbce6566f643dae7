"""What pages state of a file in both of their formats, taken only where it can be what it says it is; pure."""

from __future__ import annotations

import re
from urllib.parse import urljoin, urlsplit

from provisioner.index.address import public_url

_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


def sha256_in(text: str) -> str:
    """A sha256 in lower case; "" for what is none."""
    return text.lower() if _SHA256.fullmatch(text) else ""


def in_one_line(text: str) -> str:
    """What an index says in words of its own, which must not look like words of ours on lines of their own."""
    return " ".join(text.split())


def size_in(value: object) -> int | None:
    """A number of bytes; None for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else None


def provenance_url(place: str, start: str) -> str:
    """Where the attestations of a file are, without credentials; "" for none, or for what is no web address."""
    try:
        if place.startswith("https://") and "@" not in place:
            return place
        url = urljoin(start, place) if place else ""
        return public_url(url) if urlsplit(url).scheme in {"http", "https"} else ""
    except ValueError:
        return ""
