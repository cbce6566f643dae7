"""Relaxations: what an answer uses and a stricter policy would refuse, each under the word that policies have for it."""

from __future__ import annotations

from msgspec import Struct

from provisioner.grounds.predicate import Ended, IsPrerelease
from provisioner.grounds.requirement import Subject  # noqa: TC001 - as above
from provisioner.grounds.source import Source  # noqa: TC001 - as above


class Relaxation(Struct, frozen=True, kw_only=True):
    """The base of all relaxations; `component` is what it is about."""

    component: str
    source: Source | None

    @property
    def name(self) -> str:
        """The word of the policy, such as `minor-version`."""
        raise NotImplementedError


class DriverWay(Relaxation, frozen=True, kw_only=True):
    """A CUDA release runs on a driver that does not know it: `way` is `minor-version` or `forward-compat`.

    `native` is the CUDA that the driver knows, "" where the matrix does not say; `slot` the framework whose CUDA it is;
    `distribution` the one that bundles it.
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
    """A GPU runs a build through its PTX, which the driver compiles at start."""

    device: str
    subject: Subject
    ptx: str

    @property
    def name(self) -> str:
        return "ptx-jit"


class Lifecycle(Relaxation, frozen=True, kw_only=True):
    """A release is a prerelease, or past its end of life."""

    subject: Subject
    predicate: Ended | IsPrerelease

    @property
    def name(self) -> str:
        return "end-of-life" if isinstance(self.predicate, Ended) else "prerelease"


class PatchedDriver(Relaxation, frozen=True, kw_only=True):
    """A driver builds on a kernel only with the patches that some distributions carry."""

    driver: str
    kernel: str
    carriers: tuple[str, ...]

    @property
    def name(self) -> str:
        return "patched-kernel"


class GateReplaced(Relaxation, frozen=True, kw_only=True):
    """A base image alone would refuse a host; the NVIDIA_REQUIRE_CUDA of the stack replaces its own."""

    reference: str
    host: str
    refusals: tuple[str, ...]

    @property
    def name(self) -> str:
        return "image-gate"


class FromSdist(Relaxation, frozen=True, kw_only=True):
    """A package is built from a source distribution."""

    subject: Subject
    filename: str

    @property
    def name(self) -> str:
        return "sdist"


class MixedCuda(Relaxation, frozen=True, kw_only=True):
    """CUDA runtimes of several majors in one environment, each with what brings it."""

    majors: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def name(self) -> str:
        return "mixed-cuda"


class CpuOnly(Relaxation, frozen=True, kw_only=True):
    """A package runs on the CPU, and another distribution of the same modules uses a GPU; `needed_by` brings it in."""

    subject: Subject
    gpu_twin: str
    needed_by: str = ""

    @property
    def name(self) -> str:
        return "cpu-only"


class SharedFiles(Relaxation, frozen=True, kw_only=True):
    """Packages write the same file, and the one installed last is in effect."""

    subjects: tuple[Subject, ...]
    path: str
    because: str

    @property
    def name(self) -> str:
        return "shared-files"


class BuiltHere(Relaxation, frozen=True, kw_only=True):
    """What a source distribution requires was found by building it on this machine."""

    filename: str

    @property
    def name(self) -> str:
        return "build"


class DirectUrl(Relaxation, frozen=True, kw_only=True):
    """A package comes from a URL that the metadata of another one names."""

    distribution: str
    url: str
    holder: Subject

    @property
    def name(self) -> str:
        return "direct-url"


class FromSource(Relaxation, frozen=True, kw_only=True):
    """A build is compiled from source: no binary is published."""

    subject: Subject

    @property
    def name(self) -> str:
        return "compiled-from-source"


class Overridden(Relaxation, frozen=True, kw_only=True):
    """A requirement of metadata is not met, as the spec overrides it; `has` is the version that was chosen."""

    subject: Subject
    requirement: str
    distribution: str
    has: str
    override: str

    @property
    def name(self) -> str:
        return "override"


class Avoided(Relaxation, frozen=True, kw_only=True):
    """A choice that the spec avoids; `is_stated`: a host has it, and nothing was chosen."""

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
"""The order in which they are told, from what the whole stack rests on to single packages."""
