"""Audit of GPU targets: compares the fat binaries and offload bundles of a wheel with `sass`, `ptx` and `gfx` of its row.

An entry is one piece of GPU code in a library, compiled for one target (`sm_90`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.curate.audit_verdict import confirmed, refuted, unmeasured
from provisioner.curate.readings import CUDNN_LIBRARY
from provisioner.measure.artefact import all_targets
from provisioner.measure.fatbin import RARE_BELOW, target_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provisioner.curate.audit_verdict import Finding, Row
    from provisioner.measure.artefact import Library, Measurement

OWN_KERNELS = {
    "pytorch": re.compile(
        r"torch/lib/(libtorch_cuda|libtorch_cuda_cu|libtorch_cuda_cpp|libcaffe2_gpu|libtorch|libtorch_hip)\.so"
    ),
    "cudnn": CUDNN_LIBRARY,
}
"""Component -> a pattern of the libraries whose targets its rows list; the wheels' other libraries have other targets."""


def target_findings(row: Row, measurement: Measurement) -> Iterator[Finding]:
    """Yield a finding for each of the fields `sass`, `ptx` and `gfx` that is set in the row."""
    libraries = _libraries(row, measurement)
    for field, stated in (("sass", row.build.sass), ("ptx", row.build.ptx)):
        if stated is not None:
            prefix = "sm_" if field == "sass" else "compute_"
            flags = [name for name in measurement.arch_flags if name.startswith(prefix)]
            found = all_targets(libraries, field)
            if measurement.arch_flags:
                yield _against_flags(field, stated, flags, found=found, libraries=libraries)
            else:
                yield _against_entries(field, stated, found, libraries=libraries)
    if row.build.gfx is not None:
        if any(library.packed_bundles for library in libraries):
            yield unmeasured("gfx", _listed(row.build.gfx), "its bundles are packed with zstd, and none could be read")
        else:
            yield _against_entries("gfx", row.build.gfx, all_targets(libraries, "gfx"), libraries=libraries)


def assembled_findings(row: Row, measurement: Measurement) -> Iterator[Finding]:
    """Yield a finding for `sass` and `ptx` of a compiler's row: whether its ptxas compiles for exactly these targets."""
    for field, prefix in (("sass", "sm_"), ("ptx", "compute_")):
        stated = getattr(row.build, field)
        read = [name for name in measurement.assembled if name.startswith(prefix)]
        if stated is not None and not read:
            yield unmeasured(field, _listed(stated), "its ptxas names no targets")
        elif stated is not None:
            outcome = confirmed if set(stated) == set(read) else refuted
            yield outcome(field, _listed(stated), f"its ptxas compiles for {_listed(read)}")


def _libraries(row: Row, measurement: Measurement) -> tuple[Library, ...]:
    own = OWN_KERNELS.get(row.component.name)
    return tuple(library for library in measurement.libraries if own is None or own.fullmatch(library.path))


def _against_flags(
    field: str, stated: Iterable[str], flags: Iterable[str], *, found: Mapping[str, int], libraries: Iterable[Library]
) -> Finding:
    """Compare the targets in a row with `flags`, the architecture flags recorded in the wheel, and with its entries.

    `found` is the number of entries for each target in `libraries`.
    """
    wanted, asked = set(stated), set(flags)
    if wanted != asked:
        return refuted(field, _listed(wanted), f"the build was asked for {_listed(asked)}")
    is_whole = all(library.is_whole for library in libraries)
    lacking = {name for name in wanted if _entries(name, found) == 0}
    if lacking and is_whole and any(library.sass or library.ptx for library in libraries):
        return refuted(field, _listed(wanted), f"asked for, but no entry holds code for {_listed(lacking)}")
    seen = f"; entries: {_counted(found)}" if found else "; no entry was read"
    return confirmed(field, _listed(wanted), f"the targets the build was asked for{seen}", is_whole=is_whole)


def _against_entries(field: str, stated: Iterable[str], found: Mapping[str, int], *, libraries: Iterable[Library]) -> Finding:
    wanted, listed = set(stated), tuple(libraries)
    if not listed:
        return unmeasured(field, _listed(wanted), "it has no library of this component")
    is_whole = all(library.is_whole for library in listed)
    lacking = {name for name in wanted if _entries(name, found) == 0}
    if lacking:
        if is_whole:
            return refuted(field, _listed(wanted), f"no entry for {_listed(lacking)}; entries: {_counted(found)}")
        return unmeasured(field, _listed(wanted), f"no entry for {_listed(lacking)} as far as read; --full reads all")
    most = max(found.values(), default=0)
    plain = {name.rstrip("af") for name in wanted}
    missed = {name for name, count in found.items() if count >= RARE_BELOW * most and name.rstrip("af") not in plain}
    if missed:
        return refuted(field, _listed(wanted), f"also {_listed(missed)}; entries: {_counted(found)}")
    return confirmed(field, _listed(wanted), f"entries: {_counted(found)}", is_whole=is_whole)


def _entries(name: str, found: Mapping[str, int]) -> int:
    """Return the number of entries for a target; if `sm_90` has none, the number for its variants `sm_90a` and `sm_90f`."""
    plain = name.rstrip("af")
    return found.get(name, 0) or (sum(found.get(plain + suffix, 0) for suffix in "af") if name == plain else 0)


def _counted(found: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in found.items()) or "none"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names, key=target_key)) or "none"
