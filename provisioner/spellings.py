"""Texts that are spelled alike in several documents: hashes, names and references, each with its pattern."""

from __future__ import annotations

import re
from typing import Annotated

from provisioner.strict_model import spelled

_SHA256 = "[0-9a-f]{64}"

Sha256 = Annotated[str, spelled(f"^{_SHA256}$")]
KnownSha256 = Annotated[str, spelled(f"^({_SHA256})?$")]
"""A hash, or "" where it is not known; so of digests."""

Digest = Annotated[str, spelled(f"^sha256:{_SHA256}$")]
KnownDigest = Annotated[str, spelled(f"^(sha256:{_SHA256})?$")]

Line = Annotated[str, spelled(r"^[^\x00-\x1f\x7f]*$")]
"""A text without control characters, which could end a line of a rendered file."""

EnvironmentName = Annotated[str, spelled("^[A-Za-z0-9][A-Za-z0-9_-]*$")]
ImageName = Annotated[str, spelled(r"^[^\s\x00-\x1f@]+$")]
"""The reference of an image without its digest."""

APT_NAME = "[a-z0-9][a-z0-9+.-]*[a-z0-9+.]"
"""The name of a package of Debian or Ubuntu as apt-get takes it, which would remove a package whose name ends in a hyphen.

Source: Debian Policy, 5.6.1.
"""

APT_VERSION = "=[0-9][A-Za-z0-9.+:~-]*"
"""A version after such a name. Source: Debian Policy, 5.6.12."""

SystemPackageName = Annotated[str, spelled(f"^{APT_NAME}({APT_VERSION})?$", "libgl1 or libgl1=1.6.0-1")]


def environment_name(text: str) -> str:
    """Return a text as the name of an environment: what such a name cannot have becomes `-`; "" where nothing is left."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-_")
