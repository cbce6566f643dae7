"""Relaxations: features that an answer uses and a stricter policy would refuse, each named by a word of policies."""

from __future__ import annotations

from msgspec import Struct

from provisioner.gate.check import Refusal  # noqa: TC001 - part of types that are matched at run time
from provisioner.grounds.predicate import Ended, IsPrerelease
from provisioner.grounds.requirement import Subject  # noqa: TC001 - as above
from provisioner.grounds.source import Source  # noqa: TC001 - as above


class Relaxation(Struct, frozen=True, kw_only=True):
    """The base of all relaxations; `component` is the component or distribution that uses the feature."""

    component: str
    source: Source | None

    @property
    def name(self) -> str:
        """The word of the policy for the relaxation, such as `minor-version`."""
        raise NotImplementedError


class DriverWay(Relaxation, frozen=True, kw_only=True):
    """A CUDA release on a driver that does not support it natively: `way` is `minor-version` or `forward-compat`.

    `native` is the CUDA release that the driver supports natively, "" when the matrix lists none; `slot` is the framework that
    has this CUDA for itself, "" for the CUDA of the whole environment, and `distribution` the distribution that bundles it,
    None if none does.
    """

    way: str
    driver: str
    native: str
    cuda: str
    slot: str = ""
    distribution: Subject | None = None

    @property
    def name(self) -> str:
        return self.way


class ThroughPtx(Relaxation, frozen=True, kw_only=True):
    """A GPU that runs a build through its PTX, which the driver compiles at start."""

    device: str
    subject: Subject
    ptx: str

    @property
    def name(self) -> str:
        return "ptx-jit"


class Lifecycle(Relaxation, frozen=True, kw_only=True):
    """A chosen release that is a prerelease, or past its end of life."""

    subject: Subject
    predicate: Ended | IsPrerelease

    @property
    def name(self) -> str:
        return "end-of-life" if isinstance(self.predicate, Ended) else "prerelease"


class PatchedDriver(Relaxation, frozen=True, kw_only=True):
    """A driver that builds on the host's Linux kernel only with patches; `carriers` are the parties that publish them."""

    driver: str
    kernel: str
    carriers: tuple[str, ...]

    @property
    def name(self) -> str:
        return "patched-kernel"


class GateReplaced(Relaxation, frozen=True, kw_only=True):
    """A base image's own NVIDIA_REQUIRE_CUDA, which would refuse a host and which the stack's value replaces."""

    reference: str
    host: str
    refusals: tuple[Refusal, ...]

    @property
    def name(self) -> str:
        return "image-gate"


class FromSdist(Relaxation, frozen=True, kw_only=True):
    """A package that is built from a source distribution."""

    subject: Subject
    filename: str

    @property
    def name(self) -> str:
        return "sdist"


class MixedCuda(Relaxation, frozen=True, kw_only=True):
    """CUDA runtimes of several major releases in one environment, each with the packages that install it."""

    majors: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def name(self) -> str:
        return "mixed-cuda"


class CpuOnly(Relaxation, frozen=True, kw_only=True):
    """A package that runs on the CPU although its `gpu_twin`, another distribution of the same modules, would use a GPU.

    `gpu_twin` is "" if there is no such distribution, and other wheels of the package itself would use a GPU: those at the page
    `gpu_wheels`, or, if that is "", for other platforms or of other versions. `is_compiled` is whether it is a source
    distribution, which is compiled for the CPU unless its build is told otherwise. `needed_by` is the dependent that requires
    the package, "" for none.
    """

    subject: Subject
    gpu_twin: str
    gpu_wheels: str = ""
    is_compiled: bool = False
    needed_by: str = ""

    @property
    def name(self) -> str:
        return "cpu-only"


class FrameworkOnCpu(Relaxation, frozen=True, kw_only=True):
    """A framework that runs on the CPU although the accelerator of the target is another one.

    `install` is what would be installed for `accelerator` in place of the plain distribution that is named, such as
    `tensorflow[and-cuda]`; "" if the matrix has no build for it. `version` is the one that this would have beside all else, ""
    if it does not go with the rest, None if that is unknown.
    """

    subject: Subject
    accelerator: str
    install: str = ""
    version: str | None = None

    @property
    def name(self) -> str:
        return "cpu-only"


class SharedFiles(Relaxation, frozen=True, kw_only=True):
    """Packages that write the same file, so that the one installed last is in effect."""

    subjects: tuple[Subject, ...]
    path: str
    because: str

    @property
    def name(self) -> str:
        return "shared-files"


class BuiltHere(Relaxation, frozen=True, kw_only=True):
    """A source distribution whose requirements were found by building it on this machine."""

    filename: str

    @property
    def name(self) -> str:
        return "build"


class DirectUrl(Relaxation, frozen=True, kw_only=True):
    """A package that is installed from a direct URL in the metadata of another package, `holder`."""

    distribution: str
    url: str
    holder: Subject

    @property
    def name(self) -> str:
        return "direct-url"


class FromSource(Relaxation, frozen=True, kw_only=True):
    """A build that is compiled from source, because no binary is published."""

    subject: Subject

    @property
    def name(self) -> str:
        return "compiled-from-source"


class Overridden(Relaxation, frozen=True, kw_only=True):
    """A requirement in metadata that the spec overrides; `subject` is the package with the metadata.

    `distribution` is the required one, `has` its chosen version, "" when it is not chosen, and `override` the requirement in
    the spec.
    """

    subject: Subject
    requirement: str
    distribution: str
    has: str
    override: str

    @property
    def name(self) -> str:
        return "override"


class Avoided(Relaxation, frozen=True, kw_only=True):
    """A chosen version that the spec avoids; `avoided` is the name under `policy.avoid`, and `range` the range given for it.

    `is_stated`: the version is a fact of a host, not a choice.
    """

    subject: Subject
    avoided: str
    range: str
    is_stated: bool

    @property
    def name(self) -> str:
        return "avoided"


ORDER: tuple[str, ...] = (
    "minor-version", "forward-compat", "ptx-jit", "prerelease", "end-of-life", "patched-kernel", "image-gate", "sdist",
    "mixed-cuda", "cpu-only", "shared-files", "build", "direct-url", "compiled-from-source", "override", "avoided",
)  # fmt: skip
"""The order in which relaxations are listed, from those of the whole stack to those of single packages."""
