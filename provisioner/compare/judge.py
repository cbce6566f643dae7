"""What our matrix says to a claim: the same, something else (with the evidence), or nothing at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.compare.judge_builds import JUDGES as BUILD_JUDGES
from provisioner.compare.judgement import MAJORS, Judgement, evidence, in_series, majors_text, numbers, series
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from provisioner.compare.claims import Claim
    from provisioner.matrix.model import Matrix, Release


class _Span(Struct, frozen=True):
    """A closed range of somebody's table whose ends are series: `<=12.9` holds 12.9.2."""

    low: tuple[int, ...]
    high: tuple[int, ...]

    def holds(self, version: Version) -> bool:
        found = version.release
        return (not self.low or found >= self.low) and (not self.high or found[: len(self.high)] <= self.high)


def judge(matrix: Matrix, claim: Claim) -> Judgement:
    """Compare one claim with the matrix."""
    return _JUDGES[claim.question](matrix, claim)


def _span(text: str) -> _Span:
    ends = {part[:2]: numbers(part[2:]) for part in text.split(",") if part[:2] in {">=", "<="}}
    return _Span(ends.get(">=", ()), ends.get("<=", ()))


def _releases(matrix: Matrix, component: str) -> Sequence[Release]:
    found = matrix.components.get(component)
    return found.releases if found else ()


def _driver_floor(matrix: Matrix, claim: Claim) -> Judgement:
    """The floor of minor-version compatibility where there is one, else the driver listed beside the toolkit."""
    wanted = claim.subject.removeprefix("cuda ")
    rows = [row for row in _releases(matrix, "cuda") if row.driver is not None and in_series(row.version, wanted)]
    floors = {row.version: row.driver.minor_version or row.driver.toolkit for row in rows if row.driver is not None}
    known = [floor for floor in floors.values() if floor is not None]
    if not known:
        return Judgement.silent(f"no driver is known for CUDA {wanted}")
    ours, theirs = min(known), Version.parse(claim.says.removeprefix(">="))
    # a bare branch (`580`) says no more than the branch
    agrees = ours == theirs or (len(theirs.release) == 1 and ours.release[0] == theirs.release[0])
    return Judgement.of(agrees, f">={ours}", evidence(matrix, "cuda", rows))


def _driver_major(matrix: Matrix, claim: Claim) -> Judgement:
    """Enough for families with minor-version compatibility; elsewhere every release needs its own driver."""
    del claim
    without = [row for row in _releases(matrix, "cuda") if row.driver is not None and row.driver.minor_version is None]
    agrees = not without
    text = "every family has minor-version compatibility" if agrees else f"not for CUDA {_series_of(without)}"
    return Judgement.of(agrees, text, evidence(matrix, "cuda", without[:1]))


def _nvcc_target(matrix: Matrix, claim: Claim) -> Judgement:
    rows = [(row, build) for row in _releases(matrix, "nvcc") for build in row.builds if build.sass is not None]
    wanted = _span(claim.says)
    if not rows:
        return Judgement.silent("no compiler's targets are known")
    ours = [row for row, build in rows if claim.subject in (build.sass or ())]
    differing = [row for row, _ in rows if wanted.holds(row.version) != (row in ours)]
    text = f"CUDA {_series_of(ours)}" if ours else "no compiler of this matrix"
    return Judgement.of(not differing, text, evidence(matrix, "nvcc", differing))


def _ptx_isa(matrix: Matrix, claim: Claim) -> Judgement:
    """The first release of ours whose PTX is at least this; what is older than our first release cannot be judged."""
    wanted = numbers(claim.subject.removeprefix("ptx "))
    known = sorted((row for row in _releases(matrix, "cuda") if row.ptx_isa), key=lambda row: row.version)
    able = [row for row in known if numbers(row.ptx_isa) >= wanted]
    theirs = Version.parse(claim.says.removeprefix("cuda "))
    if not able or able[0] is known[0]:
        return Judgement.silent("older or newer than every release of this matrix")
    return Judgement.of(
        in_series(able[0].version, str(theirs)), f"cuda {series(able[0].version)}", evidence(matrix, "cuda", able[:1])
    )


def _compiler(matrix: Matrix, claim: Claim) -> Judgement:
    """The majors our compiler rows allow, for every toolkit of the series the claim is about."""
    wanted = claim.subject.removeprefix("cuda ")
    rows = [row for row in _releases(matrix, "nvcc") if in_series(row.version, wanted)]
    allowed = {row.version: majors for row in rows if (majors := _majors(matrix, row, claim.question)) is not None}
    if not allowed:
        return Judgement.silent(f"no {claim.question} limit is known for CUDA {wanted}")
    # of a series the newest release decides: an update may learn a compiler
    ours = allowed[max(allowed)]
    shown = majors_text(ours)
    agrees = shown == claim.says
    if claim.says.startswith("accepts "):
        agrees = int(claim.says.removeprefix("accepts ")) in ours
    return Judgement.of(agrees, shown, evidence(matrix, "nvcc", rows))


def _majors(matrix: Matrix, row: Release, compiler: str) -> set[int] | None:
    """The majors one compiler release accepts by its own needs and by rules about it; None when nothing bounds them."""
    needs = [
        need
        for need in (*row.requires, *(need for build in row.builds for need in build.requires))
        if need.component == compiler
    ]
    needs += [
        need
        for rule in matrix.rules
        if rule.when.component == "nvcc" and rule.when.allows(row.version) and not rule.on
        for need in rule.require
        if need.component == compiler
    ]
    if not needs:
        return None
    return {major for major in MAJORS if all(_accepts(need.range, major) for need in needs)}


def _accepts(wanted: Range, major: int) -> bool:
    """Whether some release of a major is allowed."""
    return any(wanted.allows(Version.parse(f"{major}.{minor}")) for minor in (*range(12), 99))


def _cudnn_cuda(matrix: Matrix, claim: Claim) -> Judgement:
    wanted = claim.subject.removeprefix("cudnn ")
    rows = [row for row in _releases(matrix, "cudnn") if row.version == Version.parse(wanted)]
    if not rows:
        return Judgement.silent(f"cuDNN {wanted} is not in this matrix")
    texts = claim.says.split()
    differing = [text for text in texts if not any(_serves(row, text) for row in rows)]
    names = sorted(build.name for row in rows for build in row.builds)
    return Judgement.of(not differing, " ".join(names), evidence(matrix, "cudnn", rows))


def _serves(row: Release, cuda: str) -> bool:
    """Whether some build of a cuDNN release serves a CUDA major or minor."""
    needs = [need for build in row.builds for need in build.requires] + list(row.requires)
    tried = [Version.parse(cuda if "." in cuda else f"{cuda}.{minor}") for minor in range(10)]
    return any(need.component == "cuda" and any(need.allows(version) for version in tried) for need in needs)


def _series_of(rows: Iterable[Release]) -> str:
    found = sorted({row.version for row in rows})
    return f"{series(found[0])} to {series(found[-1])}" if found else ""


_JUDGES: Mapping[str, Callable[[Matrix, Claim], Judgement]] = {
    "driver-floor": _driver_floor,
    "driver-major": _driver_major,
    "nvcc-target": _nvcc_target,
    "ptx-isa": _ptx_isa,
    "gcc": _compiler,
    "clang": _compiler,
    "cudnn-cuda": _cudnn_cuda,
    **BUILD_JUDGES,
}
