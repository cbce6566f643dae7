"""`provision.yaml`, as DESIGN section 3.2 lists its keys: what the user wants, validated and frozen."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import field, json, to_builtins

from provisioner.accelerators import AcceleratorName
from provisioner.platforms import DEFAULT_PLATFORM, PlatformName
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


class TargetSpec(StrictModel, frozen=True, kw_only=True):
    """Where the environment must run. An inline host is validated where host profiles are, not here."""

    platform: PlatformName | tuple[PlatformName, ...] = DEFAULT_PLATFORM
    host: str | tuple[str, ...] | dict[str, object] | None = None


class IndexSpec(StrictModel, frozen=True, kw_only=True):
    """One package index; `{variant}` in the URL stands for a framework build such as cu126.

    `packages` are the distributions, by name or glob (`nvidia-*`), that come from this index and from no other.
    """

    name: Annotated[str, spelled(r"^[a-z0-9][a-z0-9._-]*$")]
    url: str
    packages: tuple[str, ...] = ()


class ProjectSource(StrictModel, frozen=True, kw_only=True):
    """What a `pyproject.toml` requires: the dependencies of its project, and of some extras and dependency groups.

    With `project: false` the groups alone, as in `pip install --group`.
    """

    file: str
    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    project: bool = True


class Policy(StrictModel, frozen=True, kw_only=True):
    """What may be chosen, and what is preferred.

    `allow` is the whole list of relaxations; `forbid` takes words away, and holds for what a host states or a request names
    too. `sdist` takes source distributions whose metadata says itself what they require; `build` those that must be built, in
    isolation, before anybody knows. `prefer` and `avoid` map components or distributions to ranges; they order what may be
    chosen and rule nothing out.
    """

    strategy: Literal["newest", "oldest", "stable"] = "newest"
    allow: tuple[Allowance, ...] = ("minor-version",)
    forbid: tuple[Allowance, ...] = ()
    prefer: dict[str, str] = field(default_factory=dict)
    avoid: dict[str, str] = field(default_factory=dict)
    exclude_newer: str | None = field(default=None, name="exclude-newer")


class BuildSpec(StrictModel, frozen=True, kw_only=True):
    """Something is compiled: a CUDA extension, or PyTorch itself."""

    kind: Literal["extension", "pytorch"]
    arch_list: tuple[str, ...] = ()


class ImageSpec(StrictModel, frozen=True, kw_only=True):
    """The base image, and what is in it where the matrix does not know it."""

    base: str = "auto"
    cuda: str | None = None
    cuda_compat: str | None = None
    require: str | None = None


class SpecFile(StrictModel, frozen=True, kw_only=True):
    """What the file may say. `requires` maps components of the matrix to ranges; `packages` are PEP 508 requirements.

    `constraints` bound the version of a distribution that something else requires; `overrides` stand in place of whatever is
    required of a distribution, here or by the metadata of others. Both are PEP 508 requirements, or paths of requirement files.
    `packages-from` are requirement files and projects that require packages. Paths start from the folder of the file.
    `targets` stand in place of `target` where each is to have a lock of its own, in a folder of its name.
    """

    name: Annotated[str, spelled(r"^[A-Za-z0-9][A-Za-z0-9_-]*$")] = "environment"
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
    runs: Literal["container", "host"] | None = None
    outputs: tuple[str, ...] = ("dockerfile",)


class Spec(SpecFile, frozen=True, kw_only=True):
    """A spec with what the files it names say: their lines have joined `packages`, `constraints` and `overrides`.

    Two things are known from such files only. `hashes` has for a distribution the sha256 digests of which the chosen file must
    have one; `requires_python` is what projects ask of their Python.
    """

    hashes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    requires_python: tuple[str, ...] = field(default=(), name="requires-python")


_LATER = ("targets", "constraints", "overrides", "hashes", "requires-python")
"""Keys that specs did not always have: one that does not use them keeps the digest it always had."""


def canonical_text(spec: Spec) -> str:
    """What a spec says, whatever its layout: the text its digest is made of. Files it named have joined the rest."""
    data = to_builtins(spec)
    del data["packages-from"]
    for key in _LATER:
        if not data[key]:
            del data[key]
    for index in data["indexes"]:
        if not index["packages"]:
            del index["packages"]
    return json.encode(data).decode()
