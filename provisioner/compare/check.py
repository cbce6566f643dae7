"""Check claims, the lines of published tables, against the matrix, which agrees, differs, or has no row on the claim."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from provisioner.compare.claims import MAJORS, in_series, majors_text
from provisioner.versions import Range, Version, dotted, numbers_of, without_local

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from provisioner.compare.claims import Claim
    from provisioner.matrix.model import Build, Matrix, Release
    from provisioner.matrix.need import Need

Verdict = Literal["agrees", "differs", "silent"]
_MOST_EVIDENCE = 3
_MOST_CITATIONS = 2
_PLATFORM = "linux/amd64"
"""The platform that the compared tables are about."""

_PYTHONS = tuple(f"{major}.{minor}" for major, last in ((2, 7), (3, 20)) for minor in range(last + 1))


class ClaimResult(Struct, frozen=True, kw_only=True):
    """The result of comparing a claim: `ours` is the answer of the matrix, `evidence` the `file:line`s and citations behind it.

    `verdict` is `silent` when the matrix has no row that could agree or differ; `ours` is then a message on what is missing.
    """

    verdict: Verdict
    ours: str
    evidence: tuple[str, ...] = ()

    @classmethod
    def of(cls, agrees: bool, ours: str, found: tuple[str, ...]) -> ClaimResult:  # noqa: FBT001 - the verdict is its meaning
        """Return the result, with the evidence `found`, of a claim about which the matrix has rows that agree or differ."""
        return cls(verdict="agrees" if agrees else "differs", ours=ours, evidence=found)

    @classmethod
    def silent(cls, why: str) -> ClaimResult:
        """Return the result of a claim about which the matrix has no row; `why` says what is missing."""
        return cls(verdict="silent", ours=why)


class _Span(Struct, frozen=True):
    """A closed range of releases in a published table; both ends are series: `<=12.9` contains 12.9.2. An open end is ()."""

    low: tuple[int, ...]
    high: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> _Span:
        ends = {part[:2]: numbers_of(part[2:]) for part in text.split(",") if part[:2] in {">=", "<="}}
        return cls(ends.get(">=", ()), ends.get("<=", ()))

    def contains(self, version: Version) -> bool:
        found = version.release
        return (not self.low or found >= self.low) and (not self.high or found[: len(self.high)] <= self.high)


def check_claim(matrix: Matrix, claim: Claim) -> ClaimResult:
    """Compare one claim with the matrix, using the check for the claim's question, and return the result."""
    return _CHECKS[claim.question](matrix, claim)


def _releases(matrix: Matrix, component: str) -> Sequence[Release]:
    found = matrix.components.get(component)
    return found.releases if found else ()


def _driver_floor(matrix: Matrix, claim: Claim) -> ClaimResult:
    """Compare the claimed oldest driver of a CUDA release with the oldest driver for minor-version compatibility.

    For a release without minor-version compatibility, the driver that NVIDIA lists for its toolkit is used instead.
    """
    wanted = claim.subject.removeprefix("cuda ")
    rows = [row for row in _releases(matrix, "cuda") if row.driver is not None and in_series(row.version, wanted)]
    floors = {row.version: row.driver.minor_version or row.driver.toolkit for row in rows if row.driver is not None}
    known = [floor for floor in floors.values() if floor is not None]
    if not known:
        return ClaimResult.silent(f"no driver is known for CUDA {wanted}")
    ours, theirs = min(known), Version.parse(claim.says.removeprefix(">="))
    # a bare branch (`580`) says no more than the branch
    agrees = ours == theirs or (len(theirs.release) == 1 and ours.release[0] == theirs.release[0])
    return ClaimResult.of(agrees, f">={ours}", evidence(matrix, "cuda", rows))


def _driver_kernel(matrix: Matrix, claim: Claim) -> ClaimResult:
    """Compare the claimed kernel with the newest series on which a driver release builds with Debian's patches."""
    rows = [row for row in _releases(matrix, "driver") if str(row.version) == claim.subject.removeprefix("driver ")]
    ranges = [one.kernel for row in rows for one in row.patched if one.by.startswith("Debian ")]
    if not ranges:
        return ClaimResult.silent(f"no row says on which kernels Debian builds {claim.subject}")
    theirs = Version.parse(claim.says.removeprefix("kernel "))
    series = [*(row.version for row in _releases(matrix, "kernel")), theirs]
    ours = max((one for one in series if any(kernels.allows(one) for kernels in ranges)), default=None)
    return ClaimResult.of(ours == theirs, f"kernel {ours}", evidence(matrix, "driver", rows))


def _signed_modules(matrix: Matrix, claim: Claim) -> ClaimResult:
    """Compare the claimed driver branches with those whose signed modules the matrix lists for a kernel series and flavour."""
    system, release, platform, flavour, series = claim.subject.split()
    listed = [
        row for row in matrix.driver_packages if row.flavours and row.os == f"{system} {release}" and platform in row.platforms
    ]
    if not listed:
        return ClaimResult.silent(f"no row says which modules {system} {release} signs on {platform}")
    rows = [row for row in listed if row.is_for_kernel(f"{series}.0-1-{flavour}")]
    ours = sorted({branch for row in rows for branch in row.branches}, key=int, reverse=True)
    found = dict.fromkeys(_cited(matrix, f"driver-package:{row.os} {row.name}", row.source) for row in rows or listed)
    return ClaimResult.of(ours == claim.says.split(), " ".join(ours) or "none", tuple(found)[:_MOST_EVIDENCE])


def _driver_major(matrix: Matrix, claim: Claim) -> ClaimResult:
    """Compare the claim that any driver for a major of the claim's subject, CUDA, runs every release of that major.

    The matrix agrees if each of its CUDA releases has minor-version compatibility.
    """
    without = [row for row in _releases(matrix, claim.subject) if row.driver is not None and row.driver.minor_version is None]
    agrees = not without
    text = "every family has minor-version compatibility" if agrees else f"not for CUDA {_series_of(without)}"
    return ClaimResult.of(agrees, text, evidence(matrix, claim.subject, without[:1]))


def _nvcc_target(matrix: Matrix, claim: Claim) -> ClaimResult:
    rows = [(row, build) for row in _releases(matrix, "nvcc") for build in row.builds if build.sass is not None]
    wanted = _Span.parse(claim.says)
    if not rows:
        return ClaimResult.silent("no compiler's targets are known")
    ours = [row for row, build in rows if claim.subject in (build.sass or ())]
    differing = [row for row, _ in rows if wanted.contains(row.version) != (row in ours)]
    text = f"CUDA {_series_of(ours)}" if ours else "no compiler of this matrix"
    return ClaimResult.of(not differing, text, evidence(matrix, "nvcc", differing))


def _ptx_isa(matrix: Matrix, claim: Claim) -> ClaimResult:
    """Compare the claimed CUDA release with the first release in the matrix that supports the PTX version.

    The result is `silent` when no release of the matrix supports the PTX version, or already the oldest one does.
    """
    wanted = numbers_of(claim.subject.removeprefix("ptx "))
    known = sorted((row for row in _releases(matrix, "cuda") if row.ptx_isa), key=lambda row: row.version)
    able = [row for row in known if numbers_of(row.ptx_isa) >= wanted]
    theirs = Version.parse(claim.says.removeprefix("cuda "))
    if not able or able[0] is known[0]:
        return ClaimResult.silent("older or newer than every release of this matrix")
    return ClaimResult.of(
        in_series(able[0].version, str(theirs)),
        f"cuda {dotted(able[0].version.release[:2])}",
        evidence(matrix, "cuda", able[:1]),
    )


def _compiler(matrix: Matrix, claim: Claim) -> ClaimResult:
    """Compare the claimed majors of a host compiler with those that the newest nvcc of the claimed CUDA series accepts."""
    wanted = claim.subject.removeprefix("cuda ")
    rows = [row for row in _releases(matrix, "nvcc") if in_series(row.version, wanted)]
    allowed = {row.version: majors for row in rows if (majors := _majors(matrix, row, claim.question)) is not None}
    if not allowed:
        return ClaimResult.silent(f"no {claim.question} limit is known for CUDA {wanted}")
    # of a series the newest release decides: an update may learn a compiler
    ours = allowed[max(allowed)]
    shown = majors_text(ours)
    agrees = shown == claim.says
    if claim.says.startswith("accepts "):
        agrees = int(claim.says.removeprefix("accepts ")) in ours
    return ClaimResult.of(agrees, shown, evidence(matrix, "nvcc", rows))


def _majors(matrix: Matrix, row: Release, compiler: str) -> set[int] | None:
    """Return the majors of a host compiler that the needs of an nvcc release and the rules on it allow; None without limits."""
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
    """Return whether a range allows some release of a compiler major."""
    return any(wanted.allows(Version.parse(f"{major}.{minor}")) for minor in (*range(12), 99))


def _cudnn_cuda(matrix: Matrix, claim: Claim) -> ClaimResult:
    wanted = claim.subject.removeprefix("cudnn ")
    rows = [row for row in _releases(matrix, "cudnn") if row.version == Version.parse(wanted)]
    if not rows:
        return ClaimResult.silent(f"cuDNN {wanted} is not in this matrix")
    texts = claim.says.split()
    differing = [text for text in texts if not any(_serves(row, text) for row in rows)]
    names = sorted(build.name for row in rows for build in row.builds)
    return ClaimResult.of(not differing, " ".join(names), evidence(matrix, "cudnn", rows))


def _serves(row: Release, cuda: str) -> bool:
    """Return whether the needs of a cuDNN release or its builds allow a CUDA major (`12`) or minor (`12.6`)."""
    needs = [need for build in row.builds for need in build.requires] + list(row.requires)
    tried = [Version.parse(cuda if "." in cuda else f"{cuda}.{minor}") for minor in range(10)]
    return any(need.component == "cuda" and any(need.allows(version) for version in tried) for need in needs)


def _series_of(rows: Iterable[Release]) -> str:
    found = sorted({row.version for row in rows})
    return f"{dotted(found[0].release[:2])} to {dotted(found[-1].release[:2])}" if found else ""


def _image(matrix: Matrix, claim: Claim) -> ClaimResult:
    rows = [image for image in matrix.images if image.reference == claim.subject]
    if not rows:
        return ClaimResult.silent(f"`{claim.subject}` is not in this matrix")
    image = rows[0]
    theirs = dict(part.split(" ") for part in claim.says.split(", "))
    is_cudnn = not image.cudnn or image.cudnn.split(".")[0] == theirs["cudnn"]
    cited = "; ".join(str(matrix.citations[key]) for key in image.source)
    ours = f"cuda {image.cuda}, cudnn {image.cudnn or 'not read'}"
    return ClaimResult.of(image.cuda == theirs["cuda"] and is_cudnn, ours, (cited,))


def _framework_cuda(matrix: Matrix, claim: Claim) -> ClaimResult:
    """Compare the claimed CUDA and cuDNN of a build (`cuda 11.2, cudnn 8.1`) with its needs and the rules on its release.

    The matrix agrees if these allow every version that the claim names.
    """
    component, rows = _rows(matrix, claim)
    if not rows:
        return ClaimResult.silent(f"{claim.subject} is not in this matrix")
    needs = [need for row, build in rows for need in _needs(matrix, component, row, build)]
    theirs = dict(part.split(" ") for part in claim.says.split(", "))
    relevant = {name: [need for need in needs if need.component == name] for name in theirs}
    if not any(relevant.values()):
        return ClaimResult.silent(f"what {claim.subject} needs is not known")
    agrees = all(all(_allows(need, text) for need in relevant[name]) for name, text in theirs.items())
    ours = ", ".join(
        f"{name} {' and '.join(sorted({str(need) for need in found}))}" for name, found in relevant.items() if found
    )
    return ClaimResult.of(agrees, ours, evidence(matrix, component, rows))


def _framework_python(matrix: Matrix, claim: Claim) -> ClaimResult:
    """Compare claimed Pythons of a build or release: a list must equal the Pythons in the matrix, a range must contain them."""
    component, rows = _rows(matrix, claim)
    scope = [version for version in _PYTHONS if not claim.scope or _inside(version, claim.scope)]
    pythons = {text for _, build in rows for need in _python(build) for text in scope if need.allows(Version.parse(text))}
    if not rows or not pythons:
        return ClaimResult.silent(f"the Pythons of {claim.subject} are not in this matrix")
    ordered = " ".join(sorted(pythons, key=numbers_of))
    is_range = "=" in claim.says
    agrees = all(_inside(version, claim.says) for version in pythons) if is_range else ordered == claim.says
    return ClaimResult.of(agrees, ordered, evidence(matrix, component, rows))


def _rocm_target(matrix: Matrix, claim: Claim) -> ClaimResult:
    """Compare the claimed AMD targets of a PyTorch variant (`rocm6.4`) with those of its builds in all releases of the matrix.

    The table has one list for each variant, not one for each release.
    """
    component = matrix.components["pytorch"]
    rows = [(row, build) for row in component.releases for build in row.builds if build.name == claim.subject and build.gfx]
    if not rows:
        return ClaimResult.silent(f"no targets are known for {claim.subject}")
    ours = " ".join(sorted({target for _, build in rows for target in build.gfx or ()}))
    return ClaimResult.of(ours == claim.says, ours, evidence(matrix, "pytorch", rows))


def _rows(matrix: Matrix, claim: Claim) -> tuple[str, list[tuple[Release, Build]]]:
    """Return the component that a claim is about, and pairs of a release and a build that the claim is about.

    The subject of a claim is `pytorch 2.9.1+cu130` or `pytorch >=2.5,<=2.8`, for example. If it names no build, the pairs are
    those of the default builds; if there are none, of the CUDA builds; if there are none either, of all builds.
    """
    component, _, text = claim.subject.partition(" ")
    found = matrix.components.get(component)
    version, _, name = text.partition("+")
    rows = [
        (row, build)
        for row in (found.releases if found else ())
        if (_inside(str(row.version), version) if "=" in version else row.version == Version.parse(version))
        for build in row.builds
        if (not build.platforms or _PLATFORM in build.platforms) and (not name or build.name == name)
    ]
    if not name:
        # a claim without a build is about what the default index gives
        rows = [pair for pair in rows if pair[1].default] or [pair for pair in rows if pair[1].accelerator == "cuda"] or rows
    return component, rows


def _needs(matrix: Matrix, component: str, row: Release, build: Build) -> Iterable[Need]:
    if build.accelerator == "cpu":
        return
    yield from row.requires
    yield from build.requires
    for rule in matrix.rules:
        if rule.when.component == component and rule.when.allows(row.version) and not rule.on:
            yield from rule.require


def _python(build: Build) -> list[Need]:
    return [need for need in build.requires if need.component == "python"]


def _allows(need: Need, text: str) -> bool:
    """Return whether a need allows some release of the series `text`."""
    tried = [Version.parse(f"{text}.{minor}") for minor in range(10)]
    pins = [clause.version for clause in need.range.clauses if clause.operator in {"==", "==="}]  # ==8.1.1.33 is one of 8.1
    is_pinned = any(in_series(version, text) for version in (*(need.one_of or ()), *pins))
    return is_pinned or any(need.allows(version) for version in [Version.parse(text), *tried])


def _inside(text: str, span: str) -> bool:
    """Return whether a version lies in the range `span` (`>=a,<=b`), whose ends are series."""
    found = numbers_of(without_local(text).split("-")[0])
    for part in span.split(","):
        end = numbers_of(part[2:])
        if part.startswith(">=") and found < end:
            return False
        if part.startswith("<=") and found[: len(end)] > end:
            return False
    return True


def evidence(matrix: Matrix, component: str, rows: Iterable[Release | tuple[Release, Build]]) -> tuple[str, ...]:
    """Return the first three distinct texts `file:line: citation` for `rows`, releases of `component` or builds of these."""
    found: dict[str, None] = {}
    for row in rows:
        release, build = row if isinstance(row, tuple) else (row, None)
        sources = build.source if build else release.source or tuple(key for one in release.builds for key in one.source)
        key = f"{component}=={release.version}"
        is_placed = build is not None and f"{key}+{build.name}" in matrix.positions
        found.setdefault(_cited(matrix, f"{key}+{build.name}" if build is not None and is_placed else key, sources))
        if len(found) == _MOST_EVIDENCE:
            break
    return tuple(found)


def _cited(matrix: Matrix, key: str, sources: Iterable[str]) -> str:
    """Return the line of a row of the matrix, where it is known, and the documents that the row cites."""
    titles = dict.fromkeys(str(matrix.citations[one]) for one in sources if one in matrix.citations)
    cited = "; ".join([*titles][:_MOST_CITATIONS]) + (" and more" if len(titles) > _MOST_CITATIONS else "")
    place = matrix.positions.get(key)
    return f"{place}: {cited}" if place else cited


_CHECKS: Mapping[str, Callable[[Matrix, Claim], ClaimResult]] = {
    "driver-floor": _driver_floor,
    "driver-kernel": _driver_kernel,
    "driver-major": _driver_major,
    "nvcc-target": _nvcc_target,
    "ptx-isa": _ptx_isa,
    "gcc": _compiler,
    "clang": _compiler,
    "cudnn-cuda": _cudnn_cuda,
    "image": _image,
    "pytorch-cuda": _framework_cuda,
    "pytorch-python": _framework_python,
    "tensorflow-cuda": _framework_cuda,
    "tensorflow-python": _framework_python,
    "rocm-target": _rocm_target,
    "signed-modules": _signed_modules,
}
