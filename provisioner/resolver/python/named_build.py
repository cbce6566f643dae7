"""The PyTorch build that the name of a wheel tells: `+pt25cu124`, `+cu12torch2.5cxx11abifalse`, or the folder it lies in.

Extensions that are not on the index (flash-attn, PyTorch Geometric's, mmcv) are published for one PyTorch, CUDA and C++ ABI
each, and their metadata names none of these.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from provisioner.resolver.requirement import ReleaseCandidate, build_of
from provisioner.versions import Version, dotted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from provisioner.index.model import PackageRelease
    from provisioner.matrix.model import Build
    from provisioner.resolver.requirement import Candidate

_TORCH = re.compile(r"(?:torch-?|(?<![a-z])pt)(\d)(?:\.(\d+)|(\d{1,2}))")
"""`torch2.5`, `torch-2.5.0`, `pt25`, `pt210`."""

_CUDA = re.compile(r"(?<![a-z])cu(?:da)?(\d{2})\.?(\d)?")
"""`cu124`, `cu12.4`, `cu12`: CUDA 12.4, or any CUDA 12."""

_ROCM = re.compile(r"rocm(\d)\.?(\d)")
_CPU = re.compile(r"(?<![a-z])cpu|(?<=\d)cpu")
_ABI = re.compile(r"cxx11abi(true|false)")


class NamedBuild(Struct, frozen=True):
    """A PyTorch series (`2.5`) with the runtime (`cuda 12.4`, `cuda 12`, `rocm 6.2`, `cpu`, "") and C++ ABI of its builds."""

    torch: str
    runtime: str = ""
    is_new_abi: bool | None = None

    def labels(self, builds: Iterable[Candidate]) -> frozenset[str]:
        """Return the labels of the builds that the name tells, of candidates of PyTorch; what the name leaves out may be any.

        Where no build has the CUDA release, those of its major release do: flash-attn compiles with one CUDA 12 for all of
        them, and named its wheels for it (setup.py, `get_wheel_url`: "Minor versions should be compatible").
        """
        of_series = [(one.label, build) for one in builds if (build := self._of_series(one)) is not None]
        exact = frozenset(label for label, build in of_series if _has_runtime(build, self.runtime))
        return exact or frozenset(label for label, build in of_series if _has_runtime(build, self.runtime.partition(".")[0]))

    def _of_series(self, candidate: Candidate) -> Build | None:
        """Return the build of a candidate, if it is of the series and the C++ ABI."""
        build = build_of(candidate)
        if not isinstance(candidate, ReleaseCandidate) or build is None:
            return None
        is_of_abi = None in {self.is_new_abi, build.cxx11_abi} or self.is_new_abi == build.cxx11_abi
        return build if is_of_abi and dotted(candidate.release.version.release[:2]) == self.torch else None


def _has_runtime(build: Build, runtime: str) -> bool:
    name, _, level = runtime.partition(" ")
    if name in {"", "cpu"}:
        return name in {"", build.accelerator}
    numbers = Version.parse(level).release
    needs = (need for need in build.requires if need.component == name)
    releases = (clause.version.release for need in needs for clause in need.range.clauses[:1])
    return any(release[: len(numbers)] == numbers for release in releases)


def named_build(release: PackageRelease, pages: Collection[str]) -> NamedBuild | None:
    """Return the PyTorch build that the name of a release's wheel tells; None when it names no PyTorch.

    It is read from the local version; where a wheel from one of `pages`, indexes that are pages of files, has none, from the
    folders of its address.
    """
    file = release.file
    if file is None or not file.filename.endswith(".whl"):
        return None
    if release.version.local:
        return _read(release.version.local)
    return _read(unquote(urlsplit(file.url).path).rpartition("/")[0].lower()) if file.index in pages else None


def _read(text: str) -> NamedBuild | None:
    torch = _TORCH.search(text)
    if torch is None:
        return None
    runtime = ""
    if cuda := _CUDA.search(text):
        runtime = f"cuda {cuda[1]}.{cuda[2]}" if cuda[2] else f"cuda {cuda[1]}"
    elif rocm := _ROCM.search(text):
        runtime = f"rocm {rocm[1]}.{rocm[2]}"
    elif _CPU.search(text):
        runtime = "cpu"
    abi = _ABI.search(text)
    return NamedBuild(f"{torch[1]}.{torch[2] or torch[3]}", runtime, None if abi is None else abi[1] == "true")
