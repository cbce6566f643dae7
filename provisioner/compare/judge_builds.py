"""Claims about builds and images: which CUDA, which Pythons, which targets they have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.compare.judgement import Judgement, evidence, in_series, numbers
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from provisioner.compare.claims import Claim
    from provisioner.matrix.model import Build, Matrix, Release
    from provisioner.matrix.need import Need

_PLATFORM = "linux/amd64"
"""The tables compared speak of Linux on x86_64."""

_PYTHONS = tuple(f"{major}.{minor}" for major, last in ((2, 7), (3, 20)) for minor in range(last + 1))


def _image(matrix: Matrix, claim: Claim) -> Judgement:
    rows = [image for image in matrix.images if image.reference == claim.subject]
    if not rows:
        return Judgement.silent(f"`{claim.subject}` is not in this matrix")
    image = rows[0]
    theirs = dict(part.split(" ") for part in claim.says.split(", "))
    is_cudnn = not image.cudnn or image.cudnn.split(".")[0] == theirs["cudnn"]
    cited = "; ".join(str(matrix.citations[key]) for key in image.source)
    ours = f"cuda {image.cuda}, cudnn {image.cudnn or 'not read'}"
    return Judgement.of(image.cuda == theirs["cuda"] and is_cudnn, ours, (cited,))


def _framework_cuda(matrix: Matrix, claim: Claim) -> Judgement:
    """Every part of the claim (`cuda 11.2`, `cudnn 8.1`) must be allowed by the build and by the rules about it."""
    component, rows = _rows(matrix, claim)
    if not rows:
        return Judgement.silent(f"{claim.subject} is not in this matrix")
    needs = [need for row, build in rows for need in _needs(matrix, component, row, build)]
    theirs = dict(part.split(" ") for part in claim.says.split(", "))
    relevant = {name: [need for need in needs if need.component == name] for name in theirs}
    if not any(relevant.values()):
        return Judgement.silent(f"what {claim.subject} needs is not known")
    agrees = all(all(_allows(need, text) for need in relevant[name]) for name, text in theirs.items())
    ours = ", ".join(
        f"{name} {' and '.join(sorted({str(need) for need in found}))}" for name, found in relevant.items() if found
    )
    return Judgement.of(agrees, ours, evidence(matrix, component, rows))


def _framework_python(matrix: Matrix, claim: Claim) -> Judgement:
    """A list of Pythons must be ours exactly; of a range of releases, ours must lie inside the range."""
    component, rows = _rows(matrix, claim)
    scope = [version for version in _PYTHONS if not claim.scope or _inside(version, claim.scope)]
    pythons = {text for _, build in rows for need in _python(build) for text in scope if need.allows(Version.parse(text))}
    if not rows or not pythons:
        return Judgement.silent(f"the Pythons of {claim.subject} are not in this matrix")
    ordered = " ".join(sorted(pythons, key=numbers))
    is_range = "=" in claim.says
    agrees = all(_inside(version, claim.says) for version in pythons) if is_range else ordered == claim.says
    return Judgement.of(agrees, ordered, evidence(matrix, component, rows))


def _rocm_target(matrix: Matrix, claim: Claim) -> Judgement:
    """The union over all releases: the table has one list for a variant, whichever release it belongs to."""
    component = matrix.components["pytorch"]
    rows = [(row, build) for row in component.releases for build in row.builds if build.name == claim.subject and build.gfx]
    if not rows:
        return Judgement.silent(f"no targets are known for {claim.subject}")
    ours = " ".join(sorted({target for _, build in rows for target in build.gfx or ()}))
    return Judgement.of(ours == claim.says, ours, evidence(matrix, "pytorch", rows))


def _rows(matrix: Matrix, claim: Claim) -> tuple[str, list[tuple[Release, Build]]]:
    """`pytorch 2.9.1+cu130`, `tensorflow 2.9.0` or `pytorch >=2.5,<=2.8` as the builds it is about."""
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
    """Whether some release of the series is allowed."""
    tried = [Version.parse(f"{text}.{minor}") for minor in range(10)]
    exact = any(in_series(version, text) for version in need.one_of) if need.one_of else False
    return exact or any(need.allows(version) for version in [Version.parse(text), *tried]) or _touches(need, text)


def _touches(need: Need, text: str) -> bool:
    """A pin such as ==8.1.1.33 lies in the series 8.1."""
    return any(clause.operator in {"==", "==="} and in_series(clause.version, text) for clause in need.range.clauses)


def _inside(text: str, span: str) -> bool:
    """Whether a version lies in `>=a,<=b`, whose ends are series."""
    found = numbers(text.partition("+")[0].split("-")[0])
    for part in span.split(","):
        end = numbers(part[2:])
        if part.startswith(">=") and found < end:
            return False
        if part.startswith("<=") and found[: len(end)] > end:
            return False
    return True


JUDGES: Mapping[str, Callable[[Matrix, Claim], Judgement]] = {
    "image": _image,
    "pytorch-cuda": _framework_cuda,
    "pytorch-python": _framework_python,
    "tensorflow-cuda": _framework_cuda,
    "tensorflow-python": _framework_python,
    "rocm-target": _rocm_target,
}
