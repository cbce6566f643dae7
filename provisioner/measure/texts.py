"""Versions and targets that small members of wheels state: version files, build records, headers, strings in libraries."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_ASSIGNED = re.compile(r"^(\w+)(?:\s*:[^=\n]+)?\s*=\s*['\"]([^'\"\n]+)['\"]", re.MULTILINE)
_DEFINED = re.compile(r"^#define\s+(CUDNN_MAJOR|CUDNN_MINOR|CUDNN_PATCHLEVEL)\s+(\d+)\s*$", re.MULTILINE)
_NCCL = re.compile(rb"NCCL version (\d+\.\d+\.\d+)\+cuda(\d+\.\d+)")
_ARCH_FLAGS = re.compile(rb"((?:sm|compute)_\d+[af]?(?: (?:sm|compute)_\d+[af]?)*)\0")
_RECORD = re.compile(
    r"build_info\s*=\s*(?:collections\.)?(?:OrderedDict|dict)?\(?(\{.*?\}|\[.*?\])\)?\s*$", re.DOTALL | re.MULTILINE
)

TORCH_KEYS = {"__version__": "torch", "cuda": "cuda", "hip": "hip"}


def torch_versions(text: str) -> Mapping[str, str]:
    """What torch/version.py states: `torch`, and `cuda` or `hip` where the build has one."""
    found = dict(_ASSIGNED.findall(text))
    # Old files say `cuda = '9.0.176'`; the third number is the toolkit's build.
    return {name: found[key] for key, name in TORCH_KEYS.items() if key in found}


def cudnn_version(header: str) -> str:
    """The version in cudnn_version.h, "" where it states none."""
    found = dict(_DEFINED.findall(header))
    parts = [found.get(f"CUDNN_{part}", "") for part in ("MAJOR", "MINOR", "PATCHLEVEL")]
    return ".".join(parts) if all(parts) else ""


def nccl_versions(content: bytes) -> Mapping[str, str]:
    """The version libnccl announces when it starts, and the CUDA it was compiled with; nothing where it has no such text."""
    found = _NCCL.search(content)
    return {"nccl": found[1].decode(), "nccl_cuda": found[2].decode()} if found else {}


def arch_flags(content: bytes) -> tuple[str, ...]:
    """The targets PyTorch was told to compile for, as torch.cuda.get_arch_list() returns them; none before 1.6."""
    # A list need not begin a text of its own (2.8.0), and lone names occur, too: the list is the longest.
    lists = [tuple(match[1].decode().split(" ")) for match in _ARCH_FLAGS.finditer(content)]
    return max(lists, key=len) if lists else ()


def tensorflow_build(text: str) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """What tensorflow/python/platform/build_info.py records: `cuda` and `cudnn`, and the targets compiled for.

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
