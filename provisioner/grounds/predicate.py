"""Predicates: consequences of choosing a candidate (a release, build or version of a distribution), which is their subject.

Equal predicates of several candidates are merged in a conflict. `words` turns predicates into English.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.accelerators import AcceleratorName  # noqa: TC001 - as below
from provisioner.gate.check import Refusal  # noqa: TC001 - part of types that are matched at run time
from provisioner.grounds.bound import Bound, Drivers, Kernels, Specifier, merged
from provisioner.grounds.source import Source  # noqa: TC001 - as above
from provisioner.versions import Range

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence


class Needs(Struct, frozen=True):
    """A need of the candidate for a component in one of the ranges in `bounds`.

    `because` is the reason in the matrix, "" for none.
    """

    component: str
    bounds: tuple[Bound, ...]
    because: str = ""


class NeedsOutside(Struct, frozen=True):
    """A need of the candidate for a component outside the range `excluded`, for the reason that a limit of the matrix gives."""

    component: str
    excluded: Range
    because: str


class NeedsDriver(Struct, frozen=True):
    """A need of a CUDA release for an NVIDIA driver; `bounds` say which drivers run the release.

    `is_minor_version_forbidden`: an older driver would work if the spec allowed minor-version compatibility.
    `is_compat_harmful`: an older driver would work if the image had no cuda-compat; with it, it does not, because cuda-compat
    supports other driver branches, or supports data-centre GPUs only.
    """

    bounds: tuple[Drivers, ...]
    is_minor_version_forbidden: bool = False
    is_compat_harmful: bool = False


class NeedsCudaCompat(Struct, frozen=True):
    """A need of a CUDA release for the cuda-compat of a base image, without which the host's `driver` does not run it."""

    driver: str


class NeedsNativeDriver(Struct, frozen=True):
    """A need of a build for a driver that supports the build's CUDA natively, because `gpus` run the build only through PTX.

    `cuda` is the range of that CUDA's releases.
    """

    gpus: tuple[str, ...]
    cuda: Range


class BuildsOn(Struct, frozen=True):
    """The Linux kernel versions that a driver builds on; `bounds` is empty when none is documented."""

    bounds: tuple[Kernels, ...]


class Requires(Struct, frozen=True):
    """A requirement on a distribution in the candidate's metadata, or one that the matrix states in place of the metadata.

    `name` has the spelling of the requirement; `because` is the reason of the matrix, "" for metadata. `is_final_only`: this
    requirement accepts no prerelease of the distribution, because it names none, although other requirements ask for one.
    """

    name: str
    bounds: tuple[Specifier, ...]
    because: str = ""
    is_final_only: bool = False


class RequiresFile(Struct, frozen=True, kw_only=True):
    """A requirement on a distribution from a direct URL in the candidate's metadata.

    `problem` says why that file is unavailable, "" if it is available; `instead` is the file that the spec gives at `place`, ""
    for none. `is_for_specs`: the distribution is a framework's, whose file only a spec may name.
    """

    name: str
    url: str
    problem: str = ""
    instead: str = ""
    place: Source | None = None
    is_for_specs: bool = False


class BuiltFor(Struct, frozen=True):
    """The platforms that the candidate is published for.

    `is_all`: several builds were merged into this predicate, and `platforms` are those of all of them.
    """

    platforms: tuple[str, ...]
    is_all: bool = False


class CompiledFor(Struct, frozen=True):
    """The targets for which a build was compiled, to machine code or to PTX."""

    targets: tuple[str, ...]


class OlderThanCompiler(Struct, frozen=True):
    """A wheel without measured code that is older than CUDA `cuda`, the first that compiles machine code for the GPU `gpu`.

    That CUDA was published on the day, or in the month, `released`. For the GPU such a wheel can only have PTX.
    """

    gpu: str
    cuda: str
    released: str


class LinksToRocm(Struct, frozen=True):
    """The libraries of ROCm (`sonames`) that a wheel without code for NVIDIA's GPUs links to, so that it is for AMD's alone."""

    sonames: tuple[str, ...]


class Unmeasured(Struct, frozen=True):
    """The unknown compiled targets of a build whose artefact was never read."""


class CompiledForOthers(Struct, frozen=True, kw_only=True):
    """Builds compiled for other GPUs than the target's (`missing`); `example` is one such build, compiled for `targets`.

    `or_unmeasured`: the compiled targets of some of the builds are unknown.
    """

    missing: tuple[str, ...]
    example: str
    targets: tuple[str, ...]
    or_unmeasured: bool = False


class KnowsTarget(Struct, frozen=True):
    """Whether an nvcc can compile for the architecture `target`."""

    target: str
    is_known: bool


class AdmitsHosts(Struct, frozen=True):
    """The NVIDIA_REQUIRE_CUDA (`expression`) of the base image `reference`, which admits only hosts that meet this expression.

    `refusals` are the reasons why the image refuses a host, () when none are known.
    """

    reference: str
    expression: str
    refusals: tuple[Refusal, ...] = ()


class WritesFile(Struct, frozen=True):
    """A file in the candidate's wheel that wheels of other distributions contain, too.

    If the candidate is a CUDA release, `through` is the distribution with the file, which the release brings, and
    `framework` the framework that has this release for itself, "" for none; both are "" for any other candidate.
    """

    path: str
    through: str = ""
    framework: str = ""


class WrittenBySeveral(Struct, frozen=True):
    """A file that several packages would write."""

    path: str


class CompiledAgainst(Struct, frozen=True):
    """The PyTorch build of an index, for which the wheel is compiled.

    `or_with_cuda`: a wheel that is compiled for a CPU build also fits one with CUDA. `accelerator` is what all builds of that
    index compute with on the target's platform, where it is not `wanted`, that of the environment; both are "" elsewhere.
    `has_no_gpu`: every host states that it has none, which is why.
    """

    index: str
    or_with_cuda: bool = False
    accelerator: str = ""
    wanted: str = ""
    has_no_gpu: bool = False


class CompiledForLocal(Struct, frozen=True):
    """The PyTorch build for which the wheel is compiled, as its local version (`local`) names it."""

    local: str


class CompiledForNamed(Struct, frozen=True):
    """The PyTorch build for which the wheel is compiled, according to its file name or URL.

    `series` is the release series of PyTorch; `release` is that of CUDA or ROCm, "" for a CPU build; `is_new_abi` is None when
    the name does not say which C++ ABI it has.
    """

    series: str
    accelerator: AcceleratorName
    release: str
    is_new_abi: bool | None


class NeedsAbi(Struct, frozen=True):
    """The C++ ABI in which the wheel's libraries call PyTorch's functions, so PyTorch must have the same."""

    is_new: bool


class BundlesCuda(Struct, frozen=True):
    """A CUDA runtime of the major release `major` that the candidate bundles.

    `needs` is the requirement of that runtime on the host, `because` the reason in the matrix, "" for none.
    """

    major: str
    needs: Predicate
    because: str


class NeedsLibraries(Struct, frozen=True):
    """Shared libraries (`sonames`) that the candidate needs; `bearers` are the distributions that contain these libraries.

    `bearers` is () when nothing else in the answer contains them. `is_inferred`: the candidate was never measured, and the
    measured versions next to it need these libraries.
    """

    sonames: tuple[str, ...]
    bearers: tuple[str, ...]
    is_inferred: bool = False


class TakesFromSystem(Struct, frozen=True, kw_only=True):
    """A shared library or a tool of the system (`name`) that the candidate needs, because of `because`.

    `is_inferred`: the candidate was never measured, and the measured version next to it needs the library.
    """

    name: str
    because: str = ""
    is_inferred: bool = False


class IsOfCuda(Struct, frozen=True):
    """The CUDA series or major version (`cuda`) that the candidate, a library, is for.

    `needs` is the requirement of that CUDA on the host.
    """

    cuda: str
    needs: Predicate


class BundlesCompiler(Struct, frozen=True):
    """The compiler of the CUDA release `cuda`, which the candidate contains and runs to compile code for the host's GPU.

    `oldest` and `newest` are the first and the last compute capability for which the compiler can compile.
    """

    cuda: str
    oldest: str
    newest: str


class Bundles(Struct, frozen=True):
    """A version of a component that the candidate bundles; `needs` is that version's requirement on the host, None for none."""

    component: str
    version: str
    needs: Predicate | None = None


class IsExtraOf(Struct, frozen=True):
    """The distribution `name` itself, if the candidate is that distribution with extras: both must have the same version."""

    name: str


class InstalledAs(Struct, frozen=True):
    """The requirement by which a build of a framework is installed, such as `jax[cuda12]==0.6.0`; `name` has the extras."""

    name: str
    bounds: tuple[Specifier, ...]


class InstalledFromWheel(Struct, frozen=True):
    """The rule that a build of PyTorch is installed from its own wheel."""


class NoFile(Struct, frozen=True):
    """The lack of a file of the candidate that can be installed on the target; `problem` is the index's error message.

    `component` is the part of the target that excludes the files, `allowance` the word of `policy.allow` that would admit
    such a file; each is "" for none.
    """

    problem: str
    component: str = ""
    allowance: str = ""


class LacksExtra(Struct, frozen=True):
    """An extra that the spec requests and that the candidate lacks, while the newer version `since` has it."""

    extra: str
    since: str


class NoWheel(Struct, frozen=True):
    """The lack of the wheel of a framework's build, which is unavailable; `problem` is the error message."""

    problem: str


class Unpublished(Struct, frozen=True):
    """A build that is published as source only, so that there is no binary to lock."""


class IsForHolders(Struct, frozen=True):
    """The rule that a file from a direct URL in metadata is chosen only with a candidate whose metadata has that URL."""


class NamesFile(Struct, frozen=True):
    """A candidate whose metadata names the file in question."""


class Ended(Struct, frozen=True):
    """A candidate past its end of life on the policy's day; `branch` is the ended branch of a driver, "" for anything else."""

    end: str
    branch: str = ""


class IsPrerelease(Struct, frozen=True):
    """A candidate that is an alpha, beta or release candidate; `stage` is its publisher's term, "" when there is none."""

    stage: str = ""


class IsOfBranch(Struct, frozen=True):
    """A driver of a branch that is not designated for production; `designation` is "" when no source has one."""

    branch: str
    designation: str = ""


class IsRecent(Struct, frozen=True):
    """A candidate that was released after the policy's day (`is_after`), or within the week before."""

    released: str
    day: str
    is_after: bool


class BuildsPatched(Struct, frozen=True):
    """A driver that builds on a Linux kernel version only with patches; `carriers` are the parties that publish them."""

    kernel: str
    carriers: tuple[str, ...]


class BuiltOnHost(Struct, frozen=True, kw_only=True):
    """A need of a driver whose modules must be built on the host, for a state of Secure Boot or for kernel headers.

    `component` is which of the two, and `bounds` are the states or versions that it must have.
    For the host's `kernel` the distribution `system` has signed modules of the driver branches in `branches` only. If there
    are none, `kernels` are the kernel series for which it has some.
    """

    component: str
    bounds: tuple[Bound, ...]
    system: str
    kernel: str
    branches: tuple[str, ...]
    kernels: tuple[str, ...] = ()


class NeedsWithin(Struct, frozen=True, kw_only=True):
    """The needs of many releases for ranges of a component that all lie within one span, from `first` to `last`.

    `otherwise` is the predicate of the other releases, None when there are none.
    """

    component: str
    first: str
    last: str
    otherwise: Predicate | None = None


class NoToolkit(Struct, frozen=True):
    """The lack of the NVIDIA Container Toolkit, through which containers reach the GPU."""


Predicate = (
    Needs
    | NeedsOutside
    | NeedsDriver
    | NeedsCudaCompat
    | NeedsNativeDriver
    | BuiltOnHost
    | NeedsWithin
    | BuildsOn
    | Requires
    | RequiresFile
    | BuiltFor
    | BundlesCompiler
    | CompiledFor
    | CompiledForOthers
    | OlderThanCompiler
    | LinksToRocm
    | Unmeasured
    | KnowsTarget
    | AdmitsHosts
    | WritesFile
    | WrittenBySeveral
    | CompiledAgainst
    | CompiledForLocal
    | CompiledForNamed
    | NeedsAbi
    | BundlesCuda
    | IsOfCuda
    | Bundles
    | IsExtraOf
    | InstalledAs
    | InstalledFromWheel
    | NoFile
    | LacksExtra
    | NoWheel
    | Unpublished
    | IsForHolders
    | NeedsLibraries
    | TakesFromSystem
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
        case NeedsDriver(is_minor_version_forbidden=False, is_compat_harmful=False):
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
    """Return a predicate without its reason in the matrix, for a subject that another distribution bundles or is for."""
    return replace(predicate, because="") if isinstance(predicate, Needs) else predicate
