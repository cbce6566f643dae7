"""What a chosen candidate entails: the second half of a sentence whose subject is a release, a build or a distribution.

Two candidates with equal predicates say the same, so a conflict tells them together. `words` spells predicates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.grounds.bound import Bound, Drivers, Kernels, Specifier, merged
from provisioner.grounds.source import Source  # noqa: TC001 - part of types that are matched at run time
from provisioner.versions import Range

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence


class Needs(Struct, frozen=True):
    """It needs a component in a range, or in one of several; `because` is the reason that a row of the matrix gives."""

    component: str
    bounds: tuple[Bound, ...]
    because: str = ""


class NeedsOutside(Struct, frozen=True):
    """It needs a component outside a range, for the reason that a limit of the matrix gives."""

    component: str
    excluded: Range
    because: str


class NeedsDriver(Struct, frozen=True):
    """A CUDA release needs an NVIDIA driver; `is_minor_version_forbidden`: an older one would do, were the spec to allow it."""

    bounds: tuple[Drivers, ...]
    is_minor_version_forbidden: bool = False


class NeedsNativeDriver(Struct, frozen=True):
    """Its code reaches some GPUs only through PTX, which a driver that knows this CUDA compiles."""

    gpus: tuple[str, ...]
    cuda: Range


class BuildsOn(Struct, frozen=True):
    """A driver builds on some kernels; on none, where nothing is documented."""

    bounds: tuple[Kernels, ...]


class Requires(Struct, frozen=True):
    """Its metadata, or the matrix in the place of it, requires a distribution; `name` is spelled as it stands there.

    `is_final_only`: others ask for a pre-release of it and this requirement names none, so that one will not do.
    """

    name: str
    bounds: tuple[Specifier, ...]
    because: str = ""
    is_final_only: bool = False


class RequiresFile(Struct, frozen=True, kw_only=True):
    """Its metadata requires a distribution from a URL.

    `problem` says why that file is not to be had, "" where it is; `instead` is the file that the spec names, and `place` the
    line that does. `is_for_specs`: the distribution is the framework's, of which only a spec may name a file.
    """

    name: str
    url: str
    problem: str = ""
    instead: str = ""
    place: Source | None = None
    is_for_specs: bool = False


class BuiltFor(Struct, frozen=True):
    """It is published for some platforms; `is_all`: every build of several that are told together is for one of them."""

    platforms: tuple[str, ...]
    is_all: bool = False


class CompiledFor(Struct, frozen=True):
    """It has machine code, or PTX, for some compiled targets."""

    targets: tuple[str, ...]


class Unmeasured(Struct, frozen=True):
    """Its compiled targets are not known: nobody has read them from the artefact."""


class CompiledForOthers(Struct, frozen=True, kw_only=True):
    """It is compiled for other GPUs than the target's; `example` is one such build with its targets."""

    missing: tuple[str, ...]
    example: str
    targets: tuple[str, ...]
    or_unmeasured: bool = False


class KnowsTarget(Struct, frozen=True):
    """An nvcc compiles for an architecture, or does not."""

    target: str
    is_known: bool


class AdmitsHosts(Struct, frozen=True):
    """A base image lets in the hosts that its NVIDIA_REQUIRE_CUDA admits; `refusals` are the clauses that a host fails."""

    reference: str
    expression: str
    refusals: tuple[str, ...] = ()


class WritesFile(Struct, frozen=True):
    """Its wheel writes a file that others write too.

    `through` is the distribution that a CUDA release brings along, `framework` the framework that needs it.
    """

    path: str
    through: str = ""
    framework: str = ""


class WrittenBySeveral(Struct, frozen=True):
    """A file would be written by several packages."""

    path: str


class CompiledAgainst(Struct, frozen=True):
    """It is compiled for the PyTorch build of its own index; `or_with_cuda`: or for one with CUDA where that is a CPU build."""

    index: str
    or_with_cuda: bool = False


class CompiledForLocal(Struct, frozen=True):
    """It is compiled for the PyTorch build that its local version names."""

    local: str


class NeedsAbi(Struct, frozen=True):
    """Its libraries call PyTorch's functions by their names in the new C++ ABI, or in the old one."""

    is_new: bool


class BundlesCuda(Struct, frozen=True):
    """It bundles a CUDA runtime of its own, of this major release, which needs something of the host."""

    major: str
    needs: Predicate
    because: str


class Bundles(Struct, frozen=True):
    """It bundles one version of a component; `needs` is what that needs of the host, None for the version alone."""

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
    """No file of it can be installed on the target; `problem` is what the index says of that.

    `component` is the part of the target that is in the way, `allowance` the word of `policy.allow` that would take a file.
    """

    problem: str
    component: str = ""
    allowance: str = ""


class NoWheel(Struct, frozen=True):
    """The wheel of a framework's build is not to be had."""

    problem: str


class Unpublished(Struct, frozen=True):
    """A build that everybody compiles from source: no binary is published, so there is none to lock."""


class IsForHolders(Struct, frozen=True):
    """A file that only metadata names is for those whose metadata names it."""


class NamesFile(Struct, frozen=True):
    """Its metadata names the file in question."""


class Ended(Struct, frozen=True):
    """It is past its end of life on the policy's day; `branch` is the driver branch that ended."""

    end: str
    branch: str = ""


class IsPrerelease(Struct, frozen=True):
    """It is an alpha, beta or release candidate; `stage` is what its publisher calls it, "" where only its number tells."""

    stage: str = ""


class IsOfBranch(Struct, frozen=True):
    """A driver is of a branch that is not designated for production; `designation` "" where no source says what it is."""

    branch: str
    designation: str = ""


class IsRecent(Struct, frozen=True):
    """It was released after the policy's day, or within the week before."""

    released: str
    day: str
    is_after: bool


class BuildsPatched(Struct, frozen=True):
    """A driver builds on a kernel only with the patches that some distributions carry."""

    kernel: str
    carriers: tuple[str, ...]


class NeedsWithin(Struct, frozen=True, kw_only=True):
    """Many releases need ranges of a component that all lie within one span; `otherwise` is what the rest of them says."""

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
    """Return what a predicate with bounds is about, equal for two whose bounds may be told as alternatives; None without."""
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
    """Return several predicates about one thing (`object_of`) as one, whose bounds are the alternatives."""
    first = predicates[0]
    if isinstance(first, BuiltFor):
        return BuiltFor(tuple(dict.fromkeys(name for one in predicates if isinstance(one, BuiltFor) for name in one.platforms)))
    if isinstance(first, Bundles):
        return replace(
            first, needs=joined([one.needs for one in predicates if isinstance(one, Bundles) and one.needs is not None])
        )
    bounded = [one for one in predicates if isinstance(one, Needs | NeedsDriver | BuildsOn | Requires | InstalledAs)]
    return replace(bounded[0], bounds=merged([bound for one in bounded for bound in one.bounds]))
