"""`provision.yaml`, as DESIGN section 3.2 lists its keys: what the user wants, validated and frozen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from collections.abc import Sized

Platform = Literal["linux/amd64", "linux/arm64", "macos/x86_64", "macos/arm64"]
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
Output = Literal[
    "dockerfile", "compose", "devcontainer", "apptainer", "kubernetes", "bake", "host-script", "requirements", "sbom"
]


def _is_empty(value: Sized) -> bool:
    """What is left out of a dump, so that the digest of a spec without it is what it always was."""
    return not value


class StrictModel(BaseModel):
    """Frozen, strict, unknown keys are errors; hyphenated keys are spelled with underscores in code."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class TargetSpec(StrictModel):
    """Where the environment must run. An inline host is validated where host profiles are, not here."""

    platform: Platform | tuple[Platform, ...] = "linux/amd64"
    host: str | tuple[str, ...] | dict[str, object] | None = None


class IndexSpec(StrictModel):
    """One package index; `{variant}` in the URL stands for a framework build such as cu126.

    `packages` are the distributions, by name or glob (`nvidia-*`), that come from this index and from no other.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    url: str
    packages: Annotated[tuple[str, ...], Field(exclude_if=_is_empty)] = ()


class ProjectSource(StrictModel):
    """What a `pyproject.toml` requires: the dependencies of its project, and of some extras and dependency groups.

    With `project: false` the groups alone, as in `pip install --group`.
    """

    file: str
    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    project: bool = True


class Policy(StrictModel):
    """What may be chosen, and what is preferred.

    `allow` is the whole list of relaxations; `forbid` takes words away, and holds for what a host states or a request names
    too. `sdist` takes source distributions whose metadata says itself what they require; `build` those that must be built, in
    isolation, before anybody knows. `prefer` and `avoid` map components or distributions to ranges; they order what may be
    chosen and rule nothing out.
    """

    strategy: Literal["newest", "oldest", "stable"] = "newest"
    allow: tuple[Allowance, ...] = ("minor-version",)
    forbid: tuple[Allowance, ...] = ()
    prefer: dict[str, str] = {}
    avoid: dict[str, str] = {}
    exclude_newer: Annotated[str | None, Field(alias="exclude-newer")] = None


class BuildSpec(StrictModel):
    """Something is compiled: a CUDA extension, or PyTorch itself."""

    kind: Literal["extension", "pytorch"]
    arch_list: tuple[str, ...] = ()


class ImageSpec(StrictModel):
    """The base image, and what is in it where the matrix does not know it."""

    base: str = "auto"
    cuda: str | None = None
    cuda_compat: str | None = None
    require: str | None = None


class SpecFile(StrictModel):
    """What the file may say. `requires` maps components of the matrix to ranges; `packages` are PEP 508 requirements.

    `constraints` bound the version of a distribution that something else requires; `overrides` stand in place of whatever is
    required of a distribution, here or by the metadata of others. Both are PEP 508 requirements, or paths of requirement files.
    `packages-from` are requirement files and projects that require packages. Paths start from the folder of the file.
    `targets` stand in place of `target` where each is to have a lock of its own, in a folder of its name.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")] = "environment"
    target: TargetSpec = TargetSpec()
    targets: Annotated[
        dict[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")], TargetSpec], Field(exclude_if=_is_empty)
    ] = {}
    accelerator: Literal["cuda", "rocm", "mps", "cpu"] | None = None
    requires: dict[str, str] = {}
    packages: tuple[str, ...] = ()
    packages_from: Annotated[tuple[str | ProjectSource, ...], Field(alias="packages-from", exclude=True)] = ()
    constraints: Annotated[tuple[str, ...], Field(exclude_if=_is_empty)] = ()
    overrides: Annotated[tuple[str, ...], Field(exclude_if=_is_empty)] = ()
    indexes: tuple[IndexSpec, ...] = ()
    policy: Policy = Policy()
    build: BuildSpec | None = None
    image: ImageSpec = ImageSpec()
    runs: Literal["container", "host"] | None = None
    outputs: tuple[Output, ...] = ("dockerfile",)


class Spec(SpecFile):
    """A spec with what the files it names say: their lines have joined `packages`, `constraints` and `overrides`.

    Two things are known from such files only. `hashes` has for a distribution the sha256 digests of which the chosen file must
    have one; `requires_python` is what projects ask of their Python.
    """

    hashes: Annotated[dict[str, tuple[str, ...]], Field(exclude_if=_is_empty)] = {}
    requires_python: Annotated[tuple[str, ...], Field(alias="requires-python", exclude_if=_is_empty)] = ()
