"""The keys of `provision.yaml` with their types and defaults, which docs/spec.md describes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field, json, to_builtins

from provisioner.accelerators import AcceleratorName
from provisioner.outputs import OUTPUTS, OutputFile
from provisioner.platforms import DEFAULT_PLATFORM, PlatformName
from provisioner.spellings import EnvironmentName, SystemPackageName
from provisioner.strict_model import StrictModel, spelled

Allowance = Literal[
    "minor-version",
    "forward-compat",
    "ptx-jit",
    "prerelease",
    "sdist",
    "build",
    "end-of-life",
    "patched-kernel",
    "image-gate",
    "shared-files",
]


Place = Literal["container", "host"]
"""Where an environment runs."""


HOST_KEYS = (
    "container_toolkit",
    "cuda_driver",
    "driver",
    "fabric_manager",
    "gcc",
    "glibc",
    "gpus",
    "jetson",
    "kernel",
    "kernel_gcc",
    "kernel_headers",
    "libraries",
    "loaded_modules",
    "mig",
    "nvcc",
    "nvswitch",
    "os",
    "platform",
    "python_arch",
    "secure_boot",
    "sip",
    "userspace_driver",
    "virtualization",
    "xcode",
)
"""The keys of a host profile, to advise whoever writes one elsewhere in a spec."""


class TargetSpec(StrictModel, frozen=True, kw_only=True):
    """The platforms and hosts of the environment. A host that is written in the spec itself is validated by `host.profile`."""

    example: ClassVar[str] = "{platform: linux/amd64}"

    platform: PlatformName | tuple[PlatformName, ...] = DEFAULT_PLATFORM
    host: str | tuple[str, ...] | Annotated[dict[str, object], Meta(extra={"keys": HOST_KEYS})] | None = None


class IndexSpec(StrictModel, frozen=True, kw_only=True):
    """One package index; `{variant}` in the URL stands for a framework build such as cu126.

    `packages` are the distributions, by name or glob (`nvidia-*`), that come from this index and from no other. An index of
    kind `find-links` is one page, or folder, that lists files of any project.
    """

    example: ClassVar[str] = "{name: company, url: https://pypi.example.com/simple}"

    name: Annotated[str, spelled(r"^[a-z0-9][a-z0-9._-]*$")]
    url: str
    packages: tuple[str, ...] = ()
    kind: Literal["index", "find-links"] = "index"


class ProjectSource(StrictModel, frozen=True, kw_only=True):
    """A `pyproject.toml` whose dependencies join `packages`, with those of some extras and dependency groups.

    With `project: false` only the extras and groups join, as in `pip install --group`.
    """

    example: ClassVar[str] = "{file: pyproject.toml}"

    file: str
    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    project: bool = True


_DEFAULT: tuple[Allowance, ...] = ("minor-version",)

_OF_FILES: frozenset[Allowance] = frozenset({"sdist", "build", "prerelease"})
"""The relaxations about which files of a distribution may be read and taken."""


class Policy(StrictModel, frozen=True, kw_only=True):
    """The policy: which candidates the resolver may choose, and which it prefers.

    `allow` lists the relaxations that may be used (`permitted` has all of them); `forbid` excludes relaxations, even those that
    a host or a request names. `sdist` allows source distributions with static metadata; `build` also those that must be built,
    in isolation, to learn their requirements. `prefer` and `avoid` map components or distributions to ranges; they order
    candidates and exclude none. With `strict` no unknown fact counts as an assumption; `accept` names the components whose
    unknown facts are accepted.
    """

    example: ClassVar[str] = "{allow: [minor-version]}"

    strategy: Literal["newest", "oldest", "stable"] = "newest"
    allow: tuple[Allowance, ...] = _DEFAULT
    forbid: tuple[Allowance, ...] = ()
    prefer: dict[str, str] = field(default_factory=dict)
    avoid: dict[str, str] = field(default_factory=dict)
    exclude_newer: str | None = field(default=None, name="exclude-newer")
    strict: bool = False
    accept: tuple[str, ...] = ()

    @property
    def permitted(self) -> frozenset[Allowance]:
        """The relaxations that may be used: those of `allow` that are not in `forbid`.

        A list of words about files alone says nothing about drivers: what is permitted of these by default stays so.
        """
        default = _DEFAULT if self.allow and _OF_FILES.issuperset(self.allow) else ()
        return frozenset((*self.allow, *default)).difference(self.forbid)


class BuildSpec(StrictModel, frozen=True, kw_only=True):
    """The kind of code that is compiled in the environment: a CUDA extension, or PyTorch itself."""

    example: ClassVar[str] = "{kind: extension}"

    kind: Literal["extension", "pytorch"]
    arch_list: tuple[str, ...] = ()


class OutputSpec(StrictModel, frozen=True, kw_only=True):
    """An output with the path of its file, relative to the lock; the format alone has the usual name of its file."""

    example: ClassVar[str] = "{format: dockerfile}"

    format: str
    path: str | None = None


ANY_CUDA = "any"
"""The `cuda_compat` of a supposed image that has the cuda-compat of whichever CUDA release is chosen; no file states it."""


class ImageSpec(StrictModel, frozen=True, kw_only=True):
    """The base image, and what is in it besides.

    For an image that the matrix does not list: its Linux `distribution` (`debian:12`), C library, `python`, CUDA, cuda-compat
    and `NVIDIA_REQUIRE_*`. `apt` are packages of its distribution to install. `snapshot` is the day or time from which the
    distribution's packages are, None for that of the build. With `compiler: none` none is installed for what compiles at run
    time.
    """

    example: ClassVar[str] = "{base: python:3.12-slim-bookworm}"

    base: str = "auto"
    distribution: Annotated[str, spelled(r"^(debian|ubuntu):[0-9]+(\.[0-9]+)?$", "debian:12 or ubuntu:24.04")] | None = None
    glibc: str | None = None
    python: str | None = None
    apt: tuple[SystemPackageName, ...] = ()
    snapshot: str | None = None
    compiler: Literal["auto", "none"] = "auto"
    cuda: str | None = None
    cuda_compat: str | None = None
    require: str | None = None

    @property
    def snapshot_time(self) -> str:
        """The `snapshot` as archives write it, `20260901T000000Z`: a day is its beginning in UTC; "" for None."""
        if self.snapshot is None:
            return ""
        moment = datetime.fromisoformat(self.snapshot.strip())
        return f"{moment.astimezone(UTC) if moment.tzinfo is not None else moment:%Y%m%dT%H%M%SZ}"


class SpecFile(StrictModel, frozen=True, kw_only=True):
    """The keys of `provision.yaml`, as written there.

    `requires` maps components of the matrix to ranges; `packages` are PEP 508 requirements. `constraints` bound the version of
    a distribution that something else requires; `overrides` replace every requirement on a distribution, in the spec or in the
    metadata of other distributions. Both are PEP 508 requirements, or paths of requirement files. `packages-from` are
    requirement files and projects that require packages. Paths start from the folder of the file. `targets` replaces `target`
    in a spec for several targets; each has a lock of its own, in a folder named after it.
    """

    name: EnvironmentName = "environment"
    target: TargetSpec = TargetSpec()
    targets: dict[Annotated[str, spelled(r"^[a-z0-9][a-z0-9_-]*$")], TargetSpec] = field(default_factory=dict)
    accelerator: AcceleratorName | None = None
    requires: dict[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    packages_from: tuple[str | ProjectSource, ...] = field(default=(), name="packages-from")
    constraints: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    indexes: tuple[IndexSpec, ...] = ()
    policy: Policy = Policy()
    build: BuildSpec | None = None
    image: ImageSpec = ImageSpec()
    runs: Place | tuple[Place, ...] | None = None
    outputs: tuple[str | OutputSpec, ...] = ("dockerfile",)


class Spec(SpecFile, frozen=True, kw_only=True):
    """A spec whose `packages`, `constraints` and `overrides` include the lines of the files that it names.

    Only such files give `hashes`, the sha256 digests of a distribution of which the chosen file must have one, and
    `requires_python`, the Python ranges of projects.
    """

    hashes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    requires_python: tuple[str, ...] = field(default=(), name="requires-python")

    @property
    def runs_in(self) -> str:
        """The one place where the environment runs, as the spec states it; "" if it states none, or several."""
        return self.runs if isinstance(self.runs, str) else ""

    @property
    def files(self) -> tuple[OutputFile, ...]:
        """The files to render, in the order of `outputs`."""
        found = (one if isinstance(one, OutputSpec) else OutputSpec(format=one) for one in self.outputs)
        return tuple(OutputFile(one.format, one.path or OUTPUTS[one.format].file_name) for one in found)

    @property
    def lists_indexes(self) -> bool:
        """Whether the spec lists the indexes to request; `find-links` pages do not count, because they add to any indexes."""
        return any(one.kind == "index" for one in self.indexes)


_LATER = ("targets", "constraints", "overrides", "hashes", "requires-python")
"""Keys that were added to the spec later; an empty one is left out of the digest, so that older specs have the same digest."""

_LATER_IN_IMAGE = ("distribution", "glibc", "python", "apt", "snapshot", "compiler")
"""Keys that were added to the image later; one with its default is left out of the digest, too."""

_LATER_IN_POLICY = ("strict", "accept")
"""Keys that were added to the policy later; an empty one is left out of the digest, too."""


def canonical_text(spec: Spec) -> str:
    """Return the content of a spec, independent of its layout, as the text that its digest is computed from."""
    data = to_builtins(spec)
    del data["packages-from"]
    for key in _LATER:
        if not data[key]:
            del data[key]
    for key in _LATER_IN_POLICY:
        if not data["policy"][key]:
            del data["policy"][key]
    default = to_builtins(ImageSpec())
    for key in _LATER_IN_IMAGE:
        if data["image"][key] == default[key]:
            del data["image"][key]
    for index in data["indexes"]:
        if not index["packages"]:
            del index["packages"]
        if index["kind"] == "index":
            del index["kind"]
    return json.encode(data).decode()
