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
    """Yield the driver floors of the Linux table, and AMD targets by variant. The Windows table is not compared."""
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
    """Return `126` as 12.6 and `92` as 9.2: the last digit is the minor release."""
    return f"{digits[:-1]}.{digits[-1]}"


def _variant(digits: str) -> str:
    """Return `72` as 7.2, `624` as 6.2.4 and `403` as 4.0.3: a ROCm major has one digit here."""
    found = ".".join(digits)
    return found if len(digits) > 1 else f"{found}.0"
