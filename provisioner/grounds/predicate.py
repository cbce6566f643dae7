"""Predicates: consequences of choosing a candidate, which is the subject of each: a release, a build or a distribution.

Equal predicates of several candidates are merged in a conflict. `words` turns predicates into English.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.gate.check import Refusal  # noqa: TC001 - part of types that are matched at run time
from provisioner.grounds.bound import Bound, Drivers, Kernels, Specifier, merged
from provisioner.grounds.source import Source  # noqa: TC001 - as above
from provisioner.versions import Range

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence


class Needs(Struct, frozen=True):
    """The candidate needs a component in one of the ranges in `bounds`; `because` is the reason in the matrix, "" for none."""

    component: str
    bounds: tuple[Bound, ...]
    because: str = ""


class NeedsOutside(Struct, frozen=True):
    """The candidate needs a component outside a range, for the reason that a limit of the matrix gives."""

    component: str
    excluded: Range
    because: str


class NeedsDriver(Struct, frozen=True):
    """A CUDA release needs an NVIDIA driver.

    `is_minor_version_forbidden`: an older driver would work if the spec allowed minor-version compatibility.
    """

    bounds: tuple[Drivers, ...]
    is_minor_version_forbidden: bool = False


class NeedsNativeDriver(Struct, frozen=True):
    """The build runs on some GPUs only through PTX, so the driver must support its CUDA release, `cuda`."""

    gpus: tuple[str, ...]
    cuda: Range


class BuildsOn(Struct, frozen=True):
    """A driver builds on some Linux kernel versions; `bounds` is empty when none is documented."""

    bounds: tuple[Kernels, ...]


class Requires(Struct, frozen=True):
    """The candidate's metadata, or the matrix instead, requires a distribution; `name` has the spelling of the requirement.

    `is_final_only`: other requirements ask for a prerelease of the distribution; this one names none, so does not accept one.
    """

    name: str
    bounds: tuple[Specifier, ...]
    because: str = ""
    is_final_only: bool = False


class RequiresFile(Struct, frozen=True, kw_only=True):
    """The candidate's metadata requires a distribution from a direct URL.

    `problem` says why that file is unavailable, "" when it is available; `instead` is the file that the spec names at `place`.
    `is_for_specs`: the distribution is that of a framework, for which only a spec may name a file.
    """

    name: str
    url: str
    problem: str = ""
    instead: str = ""
    place: Source | None = None
    is_for_specs: bool = False


class BuiltFor(Struct, frozen=True):
    """The candidate is published for some platforms; `is_all`: each of several merged builds is for one of them."""

    platforms: tuple[str, ...]
    is_all: bool = False


class CompiledFor(Struct, frozen=True):
    """The build has machine code, or PTX, for some compiled targets."""

    targets: tuple[str, ...]


class Unmeasured(Struct, frozen=True):
    """The compiled targets of the build are unknown, because they were never read from its artefact."""


class CompiledForOthers(Struct, frozen=True, kw_only=True):
    """The builds are compiled for other GPUs than the target has (`missing`); `example` is one such build with its targets.

    `or_unmeasured`: the compiled targets of some of the builds are unknown.
    """

    missing: tuple[str, ...]
    example: str
    targets: tuple[str, ...]
    or_unmeasured: bool = False


class KnowsTarget(Struct, frozen=True):
    """An nvcc can compile for an architecture, or cannot."""

    target: str
    is_known: bool


class AdmitsHosts(Struct, frozen=True):
    """A base image admits hosts by its NVIDIA_REQUIRE_CUDA; `refusals` say why it refuses one."""

    reference: str
    expression: str
    refusals: tuple[Refusal, ...] = ()


class WritesFile(Struct, frozen=True):
    """The candidate's wheel contains a file that other distributions contain, too.

    `through` is the distribution with the file that a CUDA release installs, `framework` the framework that needs it.
    """

    path: str
    through: str = ""
    framework: str = ""


class WrittenBySeveral(Struct, frozen=True):
    """Several packages would write the same file."""

    path: str


class CompiledAgainst(Struct, frozen=True):
    """The wheel is compiled for the PyTorch build of its index; `or_with_cuda`: a CPU build also fits one with CUDA."""

    index: str
    or_with_cuda: bool = False


class CompiledForLocal(Struct, frozen=True):
    """The wheel is compiled for the PyTorch build that its local version names."""

    local: str


class NeedsAbi(Struct, frozen=True):
    """The wheel's libraries call PyTorch's functions by their names in the new C++ ABI, or in the old one."""

    is_new: bool


class BundlesCuda(Struct, frozen=True):
    """The candidate bundles a CUDA runtime of a major release, which has requirements on the host (`needs`)."""

    major: str
    needs: Predicate
    because: str


class BundlesCompiler(Struct, frozen=True):
    """The candidate contains the compiler of a CUDA release, with which it compiles for the GPU that it runs on.

    `newest` is the newest compute capability that the compiler knows.
    """

    cuda: str
    newest: str


class Bundles(Struct, frozen=True):
    """The candidate bundles one version of a component; `needs` are its requirements on the host, None for none."""

    component: str
    version: str
    needs: Predicate | None = None


class IsExtraOf(Struct, frozen=True):
    """A distribution with extras is that distribution, at the same version."""

    name: str


class InstalledAs(Struct, frozen=True):
    """A build of a framework is installed by a requirement such as `jax[cuda12]==0.6.0`; `name` has the extras."""

    name: str
    bounds: tuple[Specifier, ...]


class InstalledFromWheel(Struct, frozen=True):
    """A build of PyTorch is installed from its own wheel."""


class NoFile(Struct, frozen=True):
    """No file of the candidate can be installed on the target; `problem` is the index's error message.

    `component` is the part of the target that excludes the files, `allowance` the word of `policy.allow` that would admit one.
    """

    problem: str
    component: str = ""
    allowance: str = ""


class LacksExtra(Struct, frozen=True):
    """The candidate has not the extra that the spec requests, which the newer version `since` has."""

    extra: str
    since: str


class NoWheel(Struct, frozen=True):
    """The wheel of a framework's build is unavailable."""

    problem: str


class Unpublished(Struct, frozen=True):
    """The build is published as source only, so there is no binary to lock."""


class IsForHolders(Struct, frozen=True):
    """A file that only metadata names may be used only with a candidate whose metadata names it."""


class NamesFile(Struct, frozen=True):
    """The candidate's metadata names the file in question."""


class Ended(Struct, frozen=True):
    """The candidate is past its end of life on the policy's day; `branch` is the driver branch that ended, "" for others."""

    end: str
    branch: str = ""


class IsPrerelease(Struct, frozen=True):
    """The candidate is an alpha, beta or release candidate; `stage` is its publisher's term, "" when there is none."""

    stage: str = ""


class IsOfBranch(Struct, frozen=True):
    """A driver is of a branch that is not designated for production; `designation` is "" when no source has one."""

    branch: str
    designation: str = ""


class IsRecent(Struct, frozen=True):
    """The candidate was released after the policy's day (`is_after`), or within the week before."""

    released: str
    day: str
    is_after: bool


class BuildsPatched(Struct, frozen=True):
    """A driver builds on a kernel only with the patches that some distributions carry."""

    kernel: str
    carriers: tuple[str, ...]


class NeedsWithin(Struct, frozen=True, kw_only=True):
    """Many releases need ranges of a component that lie within one span; `otherwise` is the predicate of the others."""

    component: str
    first: str
    last: str
    otherwise: Predicate | None = None


class NoToolkit(Struct, frozen=True):
    """Containers reach the GPU through the NVIDIA Container Toolkit, and none is installed."""


Predicate = (
    Needs
    | NeedsOutside
    | NeedsDriver
    | NeedsNativeDriver
    | NeedsWithin
    | BuildsOn
    | Requires
    | RequiresFile
    | BuiltFor
    | BundlesCompiler
    | CompiledFor
    | CompiledForOthers
    | Unmeasured
    | KnowsTarget
    | AdmitsHosts
    | WritesFile
    | WrittenBySeveral
    | CompiledAgainst
    | CompiledForLocal
    | NeedsAbi
    | BundlesCuda
    | Bundles
    | IsExtraOf
    | InstalledAs
    | InstalledFromWheel
    | NoFile
    | LacksExtra
    | NoWheel
    | Unpublished
    | IsForHolders
    | NamesFile
    | Ended
    | IsPrerelease
    | IsOfBranch
    | IsRecent
    | BuildsPatched
    | NoToolkit
)


def object_of(predicate: Predicate) -> Hashable:
    """Return a key that is equal for predicates whose bounds may be joined as alternatives; None for any other predicate."""
    match predicate:
        case Needs(component=component, because="", bounds=bounds) if bounds != (Range(),):
            return Needs, component
        case NeedsDriver(is_minor_version_forbidden=False):
            return (NeedsDriver,)
        case BuildsOn(bounds=bounds) if bounds:
            return (BuildsOn,)
        case Requires(name=name, because="", is_final_only=False, bounds=bounds) if bounds != (Specifier(""),):
            return Requires, name
        case BuiltFor(is_all=False):
            return (BuiltFor,)
        case InstalledAs(name=name):
            return InstalledAs, name
        case Bundles(component=component, version=version, needs=needs) if needs is not None and object_of(needs) is not None:
            return Bundles, component, version, object_of(needs)
    return None


def joined(predicates: Sequence[Predicate]) -> Predicate:
    """Return several predicates with the same key (`object_of`) as one, whose bounds are the alternatives."""
    first = predicates[0]
    if isinstance(first, BuiltFor):
        return BuiltFor(tuple(dict.fromkeys(name for one in predicates if isinstance(one, BuiltFor) for name in one.platforms)))
    if isinstance(first, Bundles):
        return replace(
            first, needs=joined([one.needs for one in predicates if isinstance(one, Bundles) and one.needs is not None])
        )
    bounded = [one for one in predicates if isinstance(one, Needs | NeedsDriver | BuildsOn | Requires | InstalledAs)]
    return replace(bounded[0], bounds=merged([bound for one in bounded for bound in one.bounds]))


def without_reason(predicate: Predicate) -> Predicate:
    """Return a predicate without its reason, for the row of a distribution that bundles its subject states its own."""
    return replace(predicate, because="") if isinstance(predicate, Needs) else predicate
