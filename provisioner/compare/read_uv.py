"""Read uv's tables of accelerators, `crates/uv-torch/src/backend.rs` of astral-sh/uv, as text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.compare.claims import Claim

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "LINUX_CUDA_DRIVERS"

_DRIVER = re.compile(r"\(TorchBackend::Cu(\d+), Version::new\(\[([\d, ]+)\]\)\)")
_TARGET = re.compile(r"\(TorchBackend::Rocm(\d+), AmdGpuArchitecture::(Gfx[0-9a-f]+)\)")


def claims(text: str) -> Iterator[Claim]:
    """Yield the oldest Linux driver for each CUDA release, and the AMD targets of each ROCm variant of PyTorch (`rocm6.4`).

    uv's table of Windows drivers is skipped.
    """
    targets: dict[str, tuple[int, list[str]]] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("static "):
            table = line.split()[1].rstrip(":")
        driver, target = _DRIVER.search(line), _TARGET.search(line)
        if driver and table == MARK:
            version = ".".join(f"{int(part):02}" if place else part.strip() for place, part in enumerate(driver[2].split(",")))
            yield Claim(question="driver-floor", subject=f"cuda {_dotted(driver[1])}", says=f">={version}", line=number)
        if target:
            targets.setdefault(target[1], (number, []))[1].append(target[2].lower())
    for digits, (number, found) in targets.items():
        yield Claim(question="rocm-target", subject=f"rocm{_variant(digits)}", says=" ".join(sorted(found)), line=number)


def _dotted(digits: str) -> str:
    """Return the CUDA release in a backend's name: 12.6 for `126`, 9.2 for `92`, as the last digit is the minor release."""
    return f"{digits[:-1]}.{digits[-1]}"


def _variant(digits: str) -> str:
    """Return the ROCm release in the name of a backend: 7.2 for `72`, 6.2.4 for `624`, as its major has one digit."""
    found = ".".join(digits)
    return found if len(digits) > 1 else f"{found}.0"
