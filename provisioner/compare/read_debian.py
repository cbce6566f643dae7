"""Read the kernels on which Debian's packages of NVIDIA's kernel modules are tested, from the output of `apt-cache show`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.compare.claims import Claim

if TYPE_CHECKING:
    from collections.abc import Iterator

STANZA = re.compile(r"(?:^.+\n?)+", re.MULTILINE)
"""What `apt-cache show` prints of one package: the lines up to an empty one."""

_PACKAGE = re.compile(r"^Package: nvidia\S*-kernel-dkms$", re.MULTILINE)
_VERSION = re.compile(r"^Version: (?:\d+:)?([\d.]+)-", re.MULTILINE)
_TESTED = re.compile(r"kernel modules? has been tested up to Linux (\d+\.\d+)")


def is_debian(text: str) -> bool:
    """Return whether a text describes Debian packages, one of which builds NVIDIA's kernel modules."""
    return _PACKAGE.search(text) is not None


def claims(text: str) -> Iterator[Claim]:
    """Yield a claim for each driver release: the newest kernel series on which Debian's patched driver is tested."""
    for found in STANZA.finditer(text):
        stanza = found[0]
        version, tested = _VERSION.search(stanza), _TESTED.search(re.sub(r"\s+", " ", stanza))
        if _PACKAGE.search(stanza) and version is not None and tested is not None:
            line = text.count("\n", 0, found.start()) + 1
            yield Claim(question="driver-kernel", subject=f"driver {version[1]}", says=f"kernel {tested[1]}", line=line)
