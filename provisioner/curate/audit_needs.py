"""Audit of needs, a row's requirements on other components (glibc, Python, CUDA and its libraries), and of its C++ ABI.

The needs of nvcc are rules of the matrix on host compilers and glibc; they are compared with its headers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from provisioner.curate.audit_verdict import confirmed, refuted, unmeasured
from provisioner.curate.derive_tensorflow import cuda_needs
from provisioner.curate.wheel_facts import HONEST_GLIBC, required, welcome
from provisioner.index.model import Environment
from provisioner.index.pages.filename import parse_filename
from provisioner.index.pages.tags import ANY_GLIBC, best_rank, glibc_needed, platform_of, tag_ranks
from provisioner.versions import Version, dotted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from packaging.requirements import Requirement

    from provisioner.curate.audit_verdict import Finding, Row
    from provisioner.index.model import IndexFile
    from provisioner.matrix.model import Matrix
    from provisioner.matrix.need import Need
    from provisioner.measure.artefact import Measurement

PINNED_AS = {
    "cudnn": ("nvidia-cudnn-",),
    "nccl": ("nvidia-nccl-",),
    "cusparselt": ("nvidia-cusparselt-",),
    "nvshmem": ("nvidia-nvshmem-",),
    "triton": ("triton",),
    "cuda": ("cuda-toolkit",),
}
"""Component -> the names of its distributions in the requirements of wheels; a name that ends in `-` is a prefix."""

STATED_AS = {"cuda": ("cuda", "nccl_cuda"), "cudnn": ("cudnn",), "nccl": ("nccl",)}
"""Component -> the keys of `Measurement.versions` that hold the component's version, the preferred one first."""

OWN_VERSION = {"pytorch": "torch", "cudnn": "cudnn", "nccl": "nccl"}
_EXTRA = re.compile(r'extra == "([^"]+)"')
RSQRT_GLIBC = Version.parse("2.42")


def version_finding(row: Row, measurement: Measurement) -> Iterator[Finding]:
    """Yield a finding on the version recorded inside the artefact against the row's release; nothing if none is recorded."""
    read = measurement.versions.get(OWN_VERSION.get(row.component.name, ""), "")
    if read:
        stated = str(row.release.version)
        numbers = Version.parse(read).release
        is_same = Version.parse(stated).release[: len(numbers)] == numbers
        yield (confirmed if is_same else refuted)("version", stated, f"it says {read}")


def glibc_finding(row: Row, measurement: Measurement) -> Iterator[Finding]:
    """Yield a finding on the row's need of glibc against the artefact's; nothing if the row states no such need.

    The artefact needs the higher of the glibc in its platform tag and the newest symbol version that its libraries use. A tag
    older than `HONEST_GLIBC` is ignored, because such wheels were never checked.
    """
    need = _need(row, "glibc")
    if need is None:
        return
    floor = need.range.clauses[0].version.text if need.range.clauses else ""
    tag = glibc_needed(measurement.filename)
    promised = tag if tag is not None and tag >= HONEST_GLIBC else (0,)
    asked = _numbers(measurement.glibc)
    known = max(promised, asked)
    asking = next((one.path for one in measurement.libraries if measurement.glibc and one.glibc == measurement.glibc), "")
    read = f"{asking} asks for {measurement.glibc}" if asking else "its libraries ask for no version"
    read += f", its tag for {dotted(promised)}" if promised[0] else ""
    if known == _numbers(floor):
        yield confirmed("glibc", need, read, is_whole=measurement.is_whole)
    elif known > _numbers(floor) or measurement.is_whole:
        yield refuted("glibc", need, read)
    else:
        yield unmeasured("glibc", need, f"{read}, as far as read; --full reads all")


def python_findings(row: Row, files: Iterable[IndexFile], pythons: Iterable[str]) -> Iterator[Finding]:
    """Yield a finding for each platform of the build: whether `files` has wheels for exactly the Pythons that the row allows.

    Only the Pythons in `pythons` are compared. A wheel for a further Python is no error if a sibling build allows that Python.
    """
    need = _need(row, "python")
    wheels = [(file, named.tag) for file in files if (named := parse_filename(file.filename, _project(file))) is not None]
    if need is None or not wheels:
        return
    known = tuple(pythons)
    allowed = {minor for minor in known if need.allows(Version.parse(minor))}
    for platform in row.build.platforms:
        usable = {minor for minor in known if _has_wheel(wheels, minor, platform)}
        lacking = allowed - usable
        more = {minor for minor in usable - allowed if not _is_of_sibling(row, minor, platform)}
        if not lacking and not more:
            yield confirmed("python", need, f"{platform}: there are wheels for {_spoken(usable & allowed)}")
        else:
            read = [f"no wheel for {_spoken(lacking)}"] if lacking else []
            read += [f"also wheels for {_spoken(more)}"] if more else []
            yield refuted("python", need, f"{platform}: {', '.join(read)}")


def _is_of_sibling(row: Row, minor: str, platform: str) -> bool:
    """Return whether any build with the row's name on `platform` allows the Python `minor`.

    A release may have several such builds, each for other Pythons: PyTorch 2.10.0 needs a newer macOS with 3.14.
    """
    siblings = (one for one in row.release.builds if one.name == row.build.name and platform in one.platforms)
    return any(need.component == "python" and need.allows(Version.parse(minor)) for one in siblings for need in one.requires)


def _has_wheel(wheels: Iterable[tuple[IndexFile, str]], minor: str, platform: str) -> bool:
    environment = Environment(platform=platform, python=minor, glibc=ANY_GLIBC)
    ranks = tag_ranks(environment)
    return any(best_rank(tag, ranks) is not None and welcome(minor, file) for file, tag in wheels)


def pin_findings(row: Row, measurement: Measurement, matrix: Matrix) -> Iterator[Finding]:
    """Yield a finding for each need of CUDA or one of its libraries about which the wheel's metadata or files say something.

    A need is compared with an exact pin in the wheel's requirements, else with a version recorded in the wheel's files, else
    with a range in the requirements, which confirms only an equal need. The range of CUDA may be that of its runtime library.
    """
    pins = _pins(row, measurement)
    derived = {need.component: need for need in cuda_needs(pins)}
    for need in row.build.requires:
        prefixes = PINNED_AS.get(need.component, ())
        pin = next((one for name, one in pins.items() if any(_is_named(name, prefix) for prefix in prefixes)), None)
        exact = [one.version for one in pin.specifier if one.operator == "=="] if pin is not None else []
        stated = [measurement.versions[key] for key in STATED_AS.get(need.component, ()) if key in measurement.versions]
        if exact and not exact[0].endswith("*"):
            is_met = need.allows(Version.parse(exact[0]))
            yield (confirmed if is_met else refuted)(need.component, need, f"it requires {pin}")
        elif stated:
            yield _against_stated(need, stated[0], matrix)
        elif pin is not None:
            is_met = {str(one) for one in pin.specifier} == {str(one) for one in need.range.clauses}
            read = f"it requires {pin}"
            yield confirmed(need.component, need, read) if is_met else unmeasured(need.component, need, f"{read}, a range")
        elif need.component == "cuda" and (range_of_runtime := derived.get("cuda")) is not None:
            outcome = confirmed if range_of_runtime == need else refuted
            yield outcome("cuda", need, f"its requirement on the CUDA runtime says {range_of_runtime}")


def _against_stated(need: Need, stated: str, matrix: Matrix) -> Finding:
    """Compare a need with a version recorded in the artefact.

    A recorded 13.2 stands for every release of the matrix that begins with 13.2; the need is met if it allows one of them.
    """
    series = Version.parse(stated).release[:2]
    component = matrix.components.get(need.component)
    releases = [release.version for release in component.releases] if component is not None else []
    members = [version for version in releases if version.release[: len(series)] == series]
    is_met = any(need.allows(version) for version in (*members, Version.parse(stated)))
    return (confirmed if is_met else refuted)(need.component, need, f"it says {stated}")


def abi_finding(row: Row, measurement: Measurement) -> Iterator[Finding]:
    """Yield a finding on the C++ ABI that the symbols of the libraries show; nothing if the row states no ABI."""
    if row.build.cxx11_abi is not None:
        stated, read = row.build.cxx11_abi, measurement.cxx11_abi
        if read is None:
            yield unmeasured("cxx11_abi", stated, "its libraries have symbols of both or neither")
        else:
            text = f"its C++ symbols are of the {'new' if read else 'old'} ABI"
            yield (confirmed if read == stated else refuted)("cxx11_abi", stated, text)


def compiler_findings(row: Row, measurement: Measurement, matrix: Matrix) -> Iterator[Finding]:
    """Yield a finding for each host compiler: whether the rules on nvcc refuse exactly the majors that its headers refuse.

    Yields nothing for rows of other components.
    """
    if row.component.name != "nvcc":
        return
    for compiler, refused in measurement.compilers.items():
        needs = _ruled(row, compiler, matrix)
        if not needs:
            yield unmeasured(compiler, "no rule", f"its header refuses {compiler} {refused} and newer")
            continue
        lets_last = all(need.allows(Version.parse(f"{refused - 1}.1.0")) for need in needs)
        lets_next = all(need.allows(Version.parse(f"{refused}.1.0")) for need in needs)
        stated = " and ".join(dict.fromkeys(str(need) for need in needs))
        outcome = confirmed if lets_last and not lets_next else refuted
        yield outcome(compiler, stated, f"its header refuses {compiler} {refused} and newer")


def header_findings(row: Row, measurement: Measurement, matrix: Matrix) -> Iterator[Finding]:
    """Yield a finding: whether the rules on nvcc refuse glibc 2.42 if, and only if, nvcc's headers conflict with glibc 2.42.

    That glibc declares `rsqrt` with an exception specifier, and C++ requires both declarations to have one, or neither. Yields
    nothing for rows of other components.
    """
    if row.component.name != "nvcc" or measurement.rsqrt_noexcept is None:
        return
    needs = _ruled(row, "glibc", matrix)
    refuses = any(not need.allows(RSQRT_GLIBC) for need in needs)
    stated = " and ".join(dict.fromkeys(str(need) for need in needs)) or "any version"
    read = f"its rsqrt has {'an' if measurement.rsqrt_noexcept else 'no'} exception specifier"
    yield (confirmed if refuses != measurement.rsqrt_noexcept else refuted)("glibc 2.42", stated, read)


def _ruled(row: Row, component: str, matrix: Matrix) -> tuple[Need, ...]:
    """Return the needs of `component` in the rules on the row's release that have no conditions on hosts."""
    return tuple(
        need
        for rule in matrix.rules
        if rule.when.component == row.component.name and not rule.on and rule.when.allows(row.release.version)
        for need in rule.require
        if need.component == component
    )


def _need(row: Row, component: str) -> Need | None:
    needs = (*row.build.requires, *row.release.requires)
    return next((need for need in needs if need.component == component), None)


def _pins(row: Row, measurement: Measurement) -> Mapping[str, Requirement]:
    from packaging.requirements import InvalidRequirement, Requirement

    found = []
    for text in measurement.requires:
        try:
            found.append(Requirement(text))
        except InvalidRequirement:
            continue
    python = _python_of(measurement.filename)
    installed = Requirement(row.build.install) if row.build.install else None
    extras = {"", *(installed.extras if installed is not None else ())}
    if installed is not None and canonicalize_name(installed.name) != canonicalize_name(measurement.filename.partition("-")[0]):
        # JAX asks for its plugin with an extra of the plugin's own, which requires CUDA.
        extras |= {name for one in found for name in _EXTRA.findall(str(one.marker or ""))}
    platform = next((one for one in row.build.platforms if _is_for(measurement.filename, one)), "linux/amd64")
    return {str(name): one for name, one in required(found, platform=platform, python=python, extras=extras).items()}


def _is_for(filename: str, platform: str) -> bool:
    return any(platform_of(tag) == platform for tag in filename.removesuffix(".whl").rpartition("-")[2].split("."))


def _python_of(filename: str) -> str:
    tag = filename.removesuffix(".whl").split("-")[-3]
    digits = tag.partition(".")[0].removeprefix("cp")
    return f"{digits[0]}.{digits[1:]}" if tag.startswith("cp") and len(digits) > 1 else "3.12"


def _is_named(name: str, prefix: str) -> bool:
    return name == prefix or (prefix.endswith("-") and name.startswith(prefix))


def _project(file: IndexFile) -> str:
    return canonicalize_name(file.filename.partition("-")[0])


def _numbers(text: str) -> tuple[int, ...]:
    return Version.parse(text).release if text else (0,)


def _spoken(minors: Iterable[str]) -> str:
    return ", ".join(sorted(minors, key=_numbers)) or "none"
