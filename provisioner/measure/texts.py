"""Read versions, GPU targets and refused host compilers in small members of wheels: version files, build records, headers."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from provisioner.measure.fatbin import target_key

if TYPE_CHECKING:
    from collections.abc import Mapping

_ASSIGNED = re.compile(r"^(\w+)(?:\s*:[^=\n]+)?\s*=\s*['\"]([^'\"\n]+)['\"]", re.MULTILINE)
_DEFINED = re.compile(r"^#define\s+(CUDNN_MAJOR|CUDNN_MINOR|CUDNN_PATCHLEVEL)\s+(\d+)\s*$", re.MULTILINE)
_NCCL = re.compile(rb"NCCL version (\d+\.\d+\.\d+)\+cuda(\d+\.\d+)")
_ARCH_FLAGS = re.compile(rb"((?:sm|compute)_\d+[af]?(?: (?:sm|compute)_\d+[af]?)*)\0")
_PTXAS = re.compile(rb"(lto|compute)_(\d+[af]?)\0")
_RECORD = re.compile(
    r"build_info\s*=\s*(?:collections\.)?(?:OrderedDict|dict)?\(?(\{.*?\}|\[.*?\])\)?\s*$", re.DOTALL | re.MULTILINE
)
_GCC = re.compile(r"^#if\s+__GNUC__\s*>\s*(\d+)\s*$\s*^#error\b[^\n]*GNU", re.MULTILINE)
_CLANG = re.compile(
    r"^#if\s+defined\(__clang__\)[^\n]*$\s*^#if\s+\(__clang_major__\s*>=\s*(\d+)\)[^\n]*$\s*^#error\b", re.MULTILINE
)
_RSQRT = re.compile(r"rsqrt\s*\(\s*double[^;]*?\)\s*([^;]*);")

TORCH_KEYS = {"__version__": "torch", "cuda": "cuda", "hip": "hip"}


def torch_versions(text: str) -> Mapping[str, str]:
    """Return the versions in torch/version.py: `torch`, and `cuda` or `hip` if the build has one."""
    found = dict(_ASSIGNED.findall(text))
    # Old files say `cuda = '9.0.176'`; the third number is the toolkit's build.
    return {name: found[key] for key, name in TORCH_KEYS.items() if key in found}


def cudnn_version(header: str) -> str:
    """Return the version in cudnn_version.h, "" if it defines none."""
    found = dict(_DEFINED.findall(header))
    parts = [found.get(f"CUDNN_{part}", "") for part in ("MAJOR", "MINOR", "PATCHLEVEL")]
    return ".".join(parts) if all(parts) else ""


def nccl_versions(content: bytes) -> Mapping[str, str]:
    """Return the version (`nccl`) that libnccl prints when it starts, and the CUDA release it was compiled with (`nccl_cuda`).

    Empty if `content` has no such text.
    """
    found = _NCCL.search(content)
    return {"nccl": found[1].decode(), "nccl_cuda": found[2].decode()} if found else {}


def arch_flags(content: bytes) -> tuple[str, ...]:
    """Return the targets that PyTorch was compiled for, as torch.cuda.get_arch_list() returns them; () before PyTorch 1.6."""
    # The list may stand inside a longer text (2.8.0), and single names occur elsewhere: the longest match is the list.
    lists = [tuple(match[1].decode().split(" ")) for match in _ARCH_FLAGS.finditer(content)]
    return max(lists, key=len) if lists else ()


def ptxas_targets(content: bytes) -> tuple[str, ...]:
    """Return the targets that a ptxas compiles for, machine code first (`sm_90a`, `compute_90a`); () when it names none.

    They are those of which it names both `compute_` and `lto_`: it names more `sm_`, GPUs that it no longer compiles for.
    Measured: these are the targets in `ptxas --help` of all 36 versions from 11.7.99 to 13.5.37.
    """
    found: dict[bytes, set[bytes]] = {b"compute": set(), b"lto": set()}
    for kind, number in _PTXAS.findall(content):
        found[kind].add(number)
    numbers = [number.decode() for number in found[b"compute"] & found[b"lto"]]
    return tuple(sorted((f"{kind}_{number}" for kind in ("sm", "compute") for number in numbers), key=_machine_code_first))


def _machine_code_first(target: str) -> tuple[bool, tuple[str, int, str]]:
    return target.startswith("compute_"), target_key(target)


def tensorflow_build(text: str) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Return the versions of CUDA and cuDNN in TensorFlow's build_info.py, and the targets that TensorFlow was compiled for.

    `text` is the content of tensorflow/python/platform/build_info.py. The versions have the keys `cuda` and `cudnn`.

    Source: tensorflow configure.py, "compute_xy" includes both virtual and binary GPU code, "sm_xy" only the binary code.
    """
    found = _RECORD.search(text)
    try:
        record = dict(ast.literal_eval(found[1])) if found else {}
    except (ValueError, SyntaxError, TypeError):
        record = {}
    targets = record.get("cuda_compute_capabilities", ())
    versions = {name: str(record[key]) for name, key in (("cuda", "cuda_version"), ("cudnn", "cudnn_version")) if key in record}
    named = [str(target) for target in targets] if isinstance(targets, list | tuple) else []
    machine = [name.replace("compute_", "sm_") for name in named]
    return versions, tuple(dict.fromkeys([*machine, *(name for name in named if name.startswith("compute_"))]))


def refused_compilers(header: str) -> dict[str, int]:
    """Return the first major versions of gcc and of clang that crt/host_config.h refuses, without compilers that it ignores.

    The conditions above its #error lines are read, not the messages: from CUDA 12.2 on the message about clang lags behind.
    """
    gcc, clang = _GCC.search(header), _CLANG.search(header)
    return {**({"gcc": int(gcc[1]) + 1} if gcc else {}), **({"clang": int(clang[1])} if clang else {})}


def declares_rsqrt_noexcept(header: str) -> bool | None:
    """Return whether crt/math_functions.h declares `rsqrt(double)` with an exception specifier, as glibc 2.42 does.

    Without the specifier, every program that includes this header and that of glibc 2.42 fails to compile. None if the header
    does not declare `rsqrt(double)`.
    """
    found = _RSQRT.search(header)
    return None if found is None else bool(found[1].strip())
