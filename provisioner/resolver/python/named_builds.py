"""The PyTorch build for which a wheel was compiled, read from the wheel's local version or URL.

Projects with CUDA extensions publish wheels outside package indexes, one for each build of PyTorch, and spell the build by one
of these conventions:

- `flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE`: the CUDA with which it was compiled, of which only the major release matters, the
  series of PyTorch and the C++ ABI. Source: `get_wheel_url` in setup.py of Dao-AILab/flash-attention, state-spaces/mamba and
  Dao-AILab/causal-conv1d ("Minor versions should be compatible").
- `torch_scatter-2.1.2+pt25cu124`: the series of PyTorch and its build. Source: the wheels on https://data.pyg.org/whl.
- `natten-0.21.6+torch2110cu130`: the release of PyTorch, 2.11.0, and its build. Source: docs/install.md of SHI-Labs/NATTEN.
- `…/mmcv/dist/cu121/torch2.1.0/mmcv-2.1.0-…`: the build and the series of PyTorch. Source:
  https://download.openmmlab.com/mmcv/dist/index.html.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.grounds.predicate import CompiledForNamed
from provisioner.grounds.requirement import Relation
from provisioner.resolver.requirement import PYTORCH, Labelled, Requirement, build_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provisioner.accelerators import AcceleratorName
    from provisioner.index.model import PackageRelease
    from provisioner.matrix.model import Build
    from provisioner.resolver.requirement import Candidate

_OF_LOCAL = (
    re.compile(r"(?P<major>cu\d+|cpu)\.?torch(?P<torch>\d+\.\d+)(\.\d+)*(cxx11abi(?P<abi>true|false))?"),
    re.compile(r"pt(?P<torch>\d\d+)(?P<build>cu\d+|cpu|rocm[\d.]+)"),
    re.compile(r"torch(?P<torch>\d\d+)\d(?P<build>cu\d+|cpu)"),
)
_CUDA = re.compile(r"cu\d+")
_CUDA_OF_ADDRESS = re.compile(r"[/-](?P<build>cu\d+)/")
_OF_ADDRESS = re.compile(r"/(?P<build>cu\d+|cpu)/torch(?P<torch>\d+\.\d+)(\.\d+)*/")


class NamedBuild(Struct, frozen=True):
    """The build of PyTorch for which a wheel was compiled: the series of PyTorch (`2.8`) and the variant of the build.

    `variant` is the name of the build (`cu124`, `cpu`); with `is_major` only its accelerator and major CUDA release count.
    `is_new_abi` tells whether the wheel has the new C++ ABI of libstdc++, None if neither name nor URL shows it.
    """

    series: str
    variant: str
    is_major: bool = False
    is_new_abi: bool | None = None

    def admits(self, candidate: Candidate) -> bool:
        """Return whether a candidate is a build of PyTorch of this series, variant and C++ ABI."""
        build = build_of(candidate)
        if build is None or candidate.version.release[:2] != tuple(int(number) for number in self.series.split(".")):
            return False
        if self.is_new_abi is not None and build.cxx11_abi not in {None, self.is_new_abi}:
            return False
        return self.variant == build.name if not self.is_major else self._cuda == _cuda_of(build)

    @property
    def _cuda(self) -> str:
        """The major CUDA release of the variant: `12` of `cu12` and `cu122`, `9` of `cu92`; "" for the CPU."""
        digits = self.variant.removeprefix("cu")
        return "" if self.variant == "cpu" else digits[:1] if digits.startswith(("8", "9")) else digits[:2]

    @property
    def accelerator(self) -> AcceleratorName:
        """The accelerator of the build's variant: `cpu`, `rocm` or `cuda`."""
        return "cpu" if self.variant == "cpu" else "rocm" if self.variant.startswith("rocm") else "cuda"

    @property
    def release(self) -> str:
        """The variant's CUDA or ROCm release: `12.4` of `cu124`, `12` with `is_major`, `6.2` of `rocm6.2`; "" for the CPU."""
        if self.accelerator == "cpu":
            return ""
        if self.accelerator == "rocm":
            return self.variant.removeprefix("rocm")
        return self._cuda if self.is_major else f"{self._cuda}.{self.variant.removeprefix(f'cu{self._cuda}')}"


def _cuda_of(build: Build) -> str:
    needs = (need for need in build.requires if need.component == "cuda" and need.range.clauses)
    found = next((str(need.range.clauses[0].version.release[0]) for need in needs), "")
    return found if build.accelerator == "cuda" else "" if build.accelerator == "cpu" else build.accelerator


def named_build(release: PackageRelease) -> NamedBuild | None:
    """Return the build of PyTorch that the local version or the URL of a release's wheel names; None when neither does."""
    file = release.file
    if file is None or not ("+" in release.version_text or "/torch" in file.url) or not file.filename.endswith(".whl"):
        return None
    local = release.version.local or ""
    matches: Iterable[re.Match[str] | None] = (pattern.fullmatch(local) for pattern in _OF_LOCAL)
    found = next((match for match in matches if match is not None), None) or (None if local else _OF_ADDRESS.search(file.url))
    if found is None:
        return None
    parts = found.groupdict()
    series = parts["torch"] if "." in parts["torch"] else f"{parts['torch'][0]}.{parts['torch'][1:]}"
    abi = parts.get("abi")
    return NamedBuild(
        series=series,
        variant=parts.get("major") or parts.get("build") or "",
        is_major=bool(parts.get("major")),
        is_new_abi=None if abi is None else abi == "true",
    )


def named_cuda(release: PackageRelease) -> str:
    """Return the CUDA for which a release's wheel was compiled, as its name or URL spells it (`cu12`, `cu128`); "" for none.

    A wheel that names no PyTorch may name its CUDA: `detectron2-0.6+cu113-….whl`,
    `…/releases/download/v0.3.35-cu124/llama_cpp_python-0.3.35-….whl`.
    """
    named = named_build(release)
    if named is not None:
        return named.variant if named.accelerator == "cuda" else ""
    local, file = release.version.local or "", release.file
    if _CUDA.fullmatch(local):
        return local
    found = _CUDA_OF_ADDRESS.search(file.url) if file is not None and file.filename.endswith(".whl") else None
    return found["build"] if found is not None else ""


def named_build_requirement(candidate: Candidate, named: NamedBuild, builds: Iterable[Candidate]) -> Requirement:
    """Return the requirement of a wheel on the build of PyTorch: one of `builds` that `named` admits.

    `candidate` is the wheel's version, `named` the build that its local version or URL names.
    """
    labels = frozenset(one.label for one in builds if named.admits(one))
    predicate = CompiledForNamed(named.series, named.accelerator, named.release, named.is_new_abi)
    ground = candidate.entails(predicate, Relation(candidate.key.name, "pytorch_build"))
    return Requirement(PYTORCH, Labelled(labels), ground)
