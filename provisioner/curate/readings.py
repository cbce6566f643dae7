"""Readings, measurements inside artefacts that cost little: the GPU targets of builds, and the C++ ABI of PyTorch.

The targets of a CUDA build of PyTorch are the literal list that torch.cuda.get_arch_list() returns (from 1.6 on), about 10 MB
for each wheel; its ABI shows in the names of c10's own functions that take a std::string, about 2 MB. TensorFlow records its
targets in a file of a few kilobytes from 2.3 on. The targets of older TensorFlow, JAX's plugins and NVIDIA's libraries are
those of the fat binaries in one library each, of which about a megabyte (JAX), the first ten (NCCL, cuDNN) or 30 (TensorFlow)
are read. Those that nvcc compiles for stand in its ptxas, about 15 MB. The glibc that cuDNN and its like ask for may be named
at the end of a library, so that the libraries of a new wheel are read whole.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.curate.derive import Reading, Session, Source, needs
from provisioner.index.pages.tags import glibc_needed
from provisioner.measure.elf import VersionScanner, newest
from provisioner.measure.fatbin import RARE_BELOW, FatBinaryReader, target_key
from provisioner.measure.texts import ptxas_targets, tensorflow_build
from provisioner.versions import numbers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from provisioner.curate.wheel_index import Wheel
    from provisioner.matrix.model import Build

    Find = Callable[[Session, Wheel], list[str]]

QUIET = 8 << 20
"""The unpacked bytes without a new target after which reading a library's fat binaries stops.

Measured: in libnccl 2.26.2 and libcudnn_ops 9.28 every target is in the first container, and the last container adds none.
"""

TORCH_FLAGS_FILE = "torch/lib/libtorch_python.so"
TORCH_ABI_FILE = "torch/lib/libc10.so"
TENSORFLOW_RECORD = "tensorflow/python/platform/build_info.py"
TENSORFLOW_LIBRARY = re.compile(r"(?:[^/]+\.data/purelib/)?tensorflow(?:_core)?/python/_pywrap_tensorflow(?:_internal)?\.so")
JAX_LIBRARY = re.compile(r"jax_cuda\d+_plugin/_linalg\.so")
NCCL_LIBRARY = re.compile(r"nvidia/nccl/lib/libnccl\.so\.2")
LIBRARY = re.compile(r".*\.so(?:\.\d+)*")
PTXAS = re.compile(r"nvidia/\w+/bin/ptxas")
CUDNN_LIBRARY = re.compile(r"nvidia/cudnn/lib/libcudnn_ops(_infer)?\.so\.\d+")
"""The smallest library of cuDNN that has its own kernels in every release; its engine libraries are for fewer GPUs each."""

_LISTED = re.compile(rb"(?:(?:sm|compute)_\d+[af]? ?){2,}")
_NEW_STRING = re.compile(rb"\0_ZNK?3c10[A-Za-z0-9_]*RKNSt7__cxx1112basic_string")
_OLD_STRING = re.compile(rb"\0_ZNK?3c10[A-Za-z0-9_]*RKSs")
"""`_NEW_STRING` and `_OLD_STRING` match functions of c10 that take a `const std::string&` of the new or the old C++ ABI.

Source: Itanium C++ ABI, "Mangling"; GCC manual of libstdc++, "Dual ABI". Names of libstdc++ itself prove nothing: parts of
libstdc++ are linked into old wheels.
"""


def arch_flags(content: bytes) -> list[str]:
    """Return the targets listed in libtorch_python.so; empty when it has no such list."""
    found = _LISTED.findall(content)
    return max(found, key=len).decode().split() if found else []


def string_abi(content: bytes) -> list[str]:
    """Return [`cxx11`] or [`before`], the C++ ABI of the functions in libc10.so; empty when they show both ABIs or neither."""
    is_new, is_old = _NEW_STRING.search(content) is not None, _OLD_STRING.search(content) is not None
    return [] if is_new == is_old else ["cxx11" if is_new else "before"]


def fat_targets(pieces: Iterable[bytes]) -> list[str]:
    """Return the targets of a library's fat binaries, except rare ones (`RARE_BELOW`).

    Reading stops after `QUIET` bytes without a new target.
    """
    reader = FatBinaryReader()
    known, last_new = 0, 0
    for piece in pieces:
        reader.feed(piece)
        if len(reader.targets) > known:
            known, last_new = len(reader.targets), reader.position
        if known and reader.position - last_new >= QUIET:
            break
    most = max(reader.targets.values(), default=0)
    return sorted((name for name, count in reader.targets.items() if count >= RARE_BELOW * most), key=target_key)


def target_fields(targets: Iterable[str]) -> dict[str, object]:
    """Return targets as the fields `sass` and `ptx` of a build; empty without targets, because then nothing was measured."""
    known = tuple(targets)
    if not known:
        return {}
    return {
        name: tuple(one for one in known if one.startswith(prefix)) for name, prefix in (("sass", "sm_"), ("ptx", "compute_"))
    }


def _targets(what: str, find: Find) -> Callable[[Session, Wheel, Build], Mapping[str, object]]:
    """Return a function for `Reading.fields` that sets the targets found by `find`, cached as `what`; none for CPU builds."""

    def fields(session: Session, wheel: Wheel, build: Build) -> Mapping[str, object]:
        if build.sass is not None or build.accelerator == "cpu":
            return {}
        return target_fields(session.index.remembered(wheel, what, lambda: find(session, wheel)))

    return fields


def _of_library(path: re.Pattern[str]) -> Find:
    return lambda session, wheel: session.index.streamed(wheel, path, fat_targets)


def _assembled(session: Session, wheel: Wheel) -> list[str]:
    return session.index.streamed(wheel, PTXAS, lambda pieces: list(ptxas_targets(b"".join(pieces))))


def _recorded(session: Session, wheel: Wheel) -> list[str]:
    _, targets = tensorflow_build(session.index.member(wheel, TENSORFLOW_RECORD) or "")
    return list(targets)


def _abi(session: Session, wheel: Wheel, build: Build) -> Mapping[str, object]:
    if build.cxx11_abi is not None:
        return {}
    found = session.index.remembered(
        wheel, "cxx11-abi", lambda: string_abi(session.index.content(wheel, TORCH_ABI_FILE) or b"")
    )
    return {"cxx11_abi": found == ["cxx11"]} if found else {}


def glibc_asked_for(pieces: Iterable[bytes]) -> list[str]:
    """Return the newest glibc version that a library names, as a list; empty when it names none."""
    scanner = VersionScanner()
    for piece in pieces:
        scanner.feed(piece)
    return [scanner.glibc] if scanner.glibc else []


def _symbols(session: Session, wheel: Wheel, build: Build) -> Mapping[str, object]:
    """Return the needs of a build with the glibc that its libraries ask for; empty if its tag promises as much.

    A build that the old file has is not read: its need of glibc was audited, or is for an audit to find.
    """
    if any((one.artefact, one.sha256) == (build.artefact, build.sha256) for one in session.old.builds):
        return {}
    asked = newest(session.index.remembered(wheel, "glibc", lambda: session.index.streamed(wheel, LIBRARY, glibc_asked_for)))
    if not asked or numbers_of(asked) <= (glibc_needed(build.artefact) or ()):
        return {}
    others = (need for need in build.requires if need.component != "glibc")
    return {"requires": (*others, *needs(glibc=f">={asked}"))}


def _source(title: str, where: str, project: str) -> Source:
    return Source(title=f"{title} wheels, the one named under `artefact`", where=where, project=project)


TORCH_TARGETS = Reading(
    key="torch-arch-flags",
    source=_source("torch", f"the list that torch.cuda.get_arch_list() returns, a literal in {TORCH_FLAGS_FILE}", "torch"),
    fields=_targets("arch-flags", lambda session, wheel: arch_flags(session.index.content(wheel, TORCH_FLAGS_FILE) or b"")),
)
TORCH_ABI = Reading(
    key="torch-cxx11-abi",
    source=_source("torch", f"names of c10's own functions that take a std::string, in {TORCH_ABI_FILE}", "torch"),
    fields=_abi,
)
TENSORFLOW_TARGETS = Reading(
    key="tensorflow-build-targets",
    source=_source(
        "tensorflow",
        f"cuda_compute_capabilities in {TENSORFLOW_RECORD}; compute_XY there stands for machine code and PTX of XY",
        "tensorflow",
    ),
    fields=_targets("build-info", _recorded),
)
TENSORFLOW_KERNELS = Reading(
    key="tensorflow-fat-binaries",
    source=_source(
        "tensorflow and tensorflow-gpu",
        "of wheels that record no targets: fat-binary records of tensorflow/python/_pywrap_tensorflow_internal.so"
        " (tensorflow_core/python in 1.15 to 2.1, _pywrap_tensorflow.so in 1.0), read until 8 MiB of it brought no new target",
        "tensorflow-gpu",
    ),
    fields=_targets("fat-binaries", _of_library(TENSORFLOW_LIBRARY)),
)
JAX_TARGETS = Reading(
    key="jax-fat-binaries",
    source=_source(
        "jax-cuda plugin",
        "fat-binary records of _linalg.so, kernels of JAX's own; what XLA compiles at run time has no targets before",
        "jax-cuda13-plugin",
    ),
    fields=_targets("fat-binaries", _of_library(JAX_LIBRARY)),
)
NCCL_TARGETS = Reading(
    key="nccl-fat-binaries",
    source=_source(
        "nvidia-nccl",
        "fat-binary records of libnccl.so.2, read until 8 MiB of it brought no new target",
        "nvidia-nccl-cu13",
    ),
    fields=_targets("fat-binaries", _of_library(NCCL_LIBRARY)),
)
CUDNN_TARGETS = Reading(
    key="cudnn-fat-binaries",
    source=_source(
        "nvidia-cudnn",
        "fat-binary records of libcudnn_ops (libcudnn_ops_infer of cuDNN 8), read until 8 MiB of it brought no new target",
        "nvidia-cudnn-cu13",
    ),
    fields=_targets("fat-binaries", _of_library(CUDNN_LIBRARY)),
)
PTXAS_TARGETS = Reading(
    key="nvcc-ptxas",
    source=_source("nvidia-cuda-nvcc", "the targets of which bin/ptxas names both compute_ and lto_", "nvidia-cuda-nvcc"),
    fields=_targets("ptxas-targets", _assembled),
)


def glibc_of(component: str, project: str) -> Reading:
    """Return the reading of the glibc that the wheels of an NVIDIA library ask for, whose tags may promise an older one.

    Measured: so do those of cuSPARSELt 0.6.3 to 0.10.0 and of cuDNN 9.0 to 9.5; those of the toolkit's libraries, which carry
    both names of a tag (`manylinux2014_x86_64.manylinux_2_17_x86_64`), do not.
    """
    return Reading(
        key=f"{component}-glibc",
        source=_source(
            project, "symbol versions of glibc that their libraries name, where these are newer than their tag", project
        ),
        fields=_symbols,
    )
