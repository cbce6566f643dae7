"""`provision.yaml`, as DESIGN section 3.2 lists its keys: what the user wants, validated and frozen."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Platform = Literal["linux/amd64", "linux/arm64", "macos/x86_64", "macos/arm64"]
Allowance = Literal[
    "minor-version", "forward-compat", "ptx-jit", "prerelease", "sdist", "end-of-life", "patched-kernel", "image-gate"
]
Output = Literal[
    "dockerfile", "compose", "devcontainer", "apptainer", "kubernetes", "bake", "host-script", "requirements", "sbom"
]


class StrictModel(BaseModel):
    """Frozen, strict, unknown keys are errors; hyphenated keys are spelled with underscores in code."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class TargetSpec(StrictModel):
    """Where the environment must run. An inline host is validated where host profiles are, not here."""

    platform: Platform | tuple[Platform, ...] = "linux/amd64"
    host: str | tuple[str, ...] | dict[str, object] | None = None


class IndexSpec(StrictModel):
    """One package index; `{variant}` in the URL stands for a framework build such as cu126."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    url: str


class Policy(StrictModel):
    """What may be chosen, and what is preferred.

    `allow` is the whole list of relaxations; `forbid` takes words away, and holds for what a host states or a request names
    too. `prefer` and `avoid` map components or distributions to ranges; they order what may be chosen and rule nothing out.
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


class Spec(StrictModel):
    """The whole file. `requires` maps components of the matrix to ranges; `packages` are PEP 508 requirements."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")] = "environment"
    target: TargetSpec = TargetSpec()
    accelerator: Literal["cuda", "rocm", "mps", "cpu"] | None = None
    requires: dict[str, str] = {}
    packages: tuple[str, ...] = ()
    indexes: tuple[IndexSpec, ...] = ()
    policy: Policy = Policy()
    build: BuildSpec | None = None
    image: ImageSpec = ImageSpec()
    runs: Literal["container", "host"] | None = None
    outputs: tuple[Output, ...] = ("dockerfile",)
