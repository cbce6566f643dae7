"""What is read inside PyTorch wheels that nobody has measured yet, where it costs a few megabytes and not the wheel.

The compiled targets of a CUDA build are the literal list that torch.cuda.get_arch_list() returns (from 1.6 on), about 10 MB
for each wheel. The C++ ABI shows in the names of c10's own functions that take a std::string, about 2 MB for each wheel.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.curate.measured import Reading, target_fields, with_readings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from provisioner.curate.derive import Sitting
    from provisioner.curate.shelf import Wheel
    from provisioner.matrix.schema import BuildEntry, ComponentFile

PROJECT = "torch"
FLAGS_SOURCE, FLAGS_FILE = "torch-arch-flags", "torch/lib/libtorch_python.so"
ABI_SOURCE, ABI_FILE = "torch-cxx11-abi", "torch/lib/libc10.so"

_LISTED = re.compile(rb"(?:(?:sm|compute)_\d+[af]? ?){2,}")
_NEW_STRING = re.compile(rb"\0_ZNK?3c10[A-Za-z0-9_]*RKNSt7__cxx1112basic_string")
_OLD_STRING = re.compile(rb"\0_ZNK?3c10[A-Za-z0-9_]*RKSs")
"""Functions of c10 that take a `const std::string&`, of either ABI. Source: Itanium C++ ABI, "Mangling"; GCC manual of
libstdc++, "Dual ABI". libstdc++'s own names prove nothing: parts of it are linked into old wheels."""


def measure(sitting: Sitting, derived: ComponentFile) -> ComponentFile:
    """Add targets and C++ ABI to the builds that lack them and whose artefact tells."""
    title = "torch wheels, the one named under `artefact`"
    flags = f"the list that torch.cuda.get_arch_list() returns, a literal in {FLAGS_FILE}"
    names = f"names of c10's own functions that take a std::string, in {ABI_FILE}"
    readings = (
        Reading(source=FLAGS_SOURCE, title=title, where=flags, project=PROJECT, fields=_targets),
        Reading(source=ABI_SOURCE, title=title, where=names, project=PROJECT, fields=_abi),
    )
    return with_readings(sitting, derived, projects=(PROJECT,), readings=readings)


def _targets(sitting: Sitting, wheel: Wheel, build: BuildEntry) -> Mapping[str, object]:
    if build.accelerator != "cuda" or build.sass is not None:
        return {}
    return target_fields(sitting.shelf.remembered(wheel, "arch-flags", _reader(sitting, wheel, FLAGS_FILE, arch_flags)))


def _abi(sitting: Sitting, wheel: Wheel, build: BuildEntry) -> Mapping[str, object]:
    if build.cxx11_abi is not None:
        return {}
    found = sitting.shelf.remembered(wheel, "cxx11-abi", _reader(sitting, wheel, ABI_FILE, string_abi))
    return {"cxx11_abi": found == ["cxx11"]} if found else {}


def _reader(sitting: Sitting, wheel: Wheel, path: str, find: Callable[[bytes], list[str]]) -> Callable[[], list[str]]:
    return lambda: find(sitting.shelf.content(wheel, path) or b"")


def arch_flags(content: bytes) -> list[str]:
    """The targets in libtorch_python.so, as PyTorch lists them; none where it holds no such list."""
    found = _LISTED.findall(content)
    return max(found, key=len).decode().split() if found else []


def string_abi(content: bytes) -> list[str]:
    """`cxx11` or `before` by the functions libc10.so has; nothing where it has both or neither."""
    is_new, is_old = _NEW_STRING.search(content) is not None, _OLD_STRING.search(content) is not None
    return [] if is_new == is_old else ["cxx11" if is_new else "before"]
