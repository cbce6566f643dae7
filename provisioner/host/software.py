"""Finds the software beside the driver that rules speak of: container toolkit, compilers, headers, system libraries."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING

from provisioner.host.graphics import LIBRARY_DIRECTORIES
from provisioner.host.model import Libraries
from provisioner.host.parse import (
    parse_dpkg_status,
    parse_elf_machine,
    parse_gcc_version,
    parse_kernel_release,
    parse_library_file_name,
    parse_package_version,
)
from provisioner.host.parse_nvidia import (
    parse_container_toolkit,
    parse_cuda_json,
    parse_cuda_text,
    parse_fabric_manager,
    parse_nvcc,
)
from provisioner.host.program import ask

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provisioner.host.tree import Tree

MISSING = "none"
"""What a profile says of a part that is known to be missing, as opposed to unknown."""

_TOOLKIT_PROGRAMS = ("nvidia-ctk", "nvidia-container-runtime", "nvidia-container-toolkit")
_PROGRAM_DIRECTORIES = ("usr/bin", "usr/local/bin", "usr/local/nvidia/toolkit")
_HEADER_BYTES = 20


class Software:
    """The installed software of one machine."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    @cached_property
    def packages(self) -> dict[str, str] | None:
        """Debian packages and their versions; None on other distributions."""
        text = self.tree.text("var/lib/dpkg/status")
        return None if text is None else parse_dpkg_status(text)

    def container_toolkit(self, *, is_container: bool) -> str | None:
        """The NVIDIA Container Toolkit's version; `none` only where every place it could be was seen to be without it."""
        version = self._package("nvidia-container-toolkit") or self._package("nvidia-container-toolkit-base")
        if version is None and self.tree.is_live:
            version = parse_container_toolkit(ask("nvidia-ctk", "--version") or "")
        # A container does not see the toolkit that serves it, nor a distribution without dpkg its packages.
        if version is not None or is_container or self.packages is None:
            return version
        names = {name for directory in _PROGRAM_DIRECTORIES for name in self.tree.names(directory) or ()}
        return None if names & set(_TOOLKIT_PROGRAMS) else MISSING

    def kernel_headers(self, kernel: str | None) -> str | None:
        """The kernel the installed headers of the running kernel are for; `none` when its modules are there without them."""
        place = f"lib/modules/{kernel}"
        if kernel is None or not self.tree.exists(place):
            return None
        if not self.tree.exists(f"{place}/build/Makefile"):
            return MISSING
        return parse_kernel_release(self.tree.text(f"{place}/build/include/config/kernel.release") or "") or kernel

    def gcc(self) -> str | None:
        """The version of the `gcc` that is run by default."""
        # /usr/bin/gcc -> gcc-12, or x86_64-linux-gnu-gcc-12; the package of that name has the full version.
        target = self.tree.link_name("usr/bin/gcc") or ""
        major = target.rpartition("gcc-")[2]
        version = self._package(f"gcc-{major}") if major.isdecimal() else None
        if version is None and self.tree.is_live:
            version = parse_gcc_version(ask("gcc", "-dumpfullversion") or "")
        return version

    def nvcc(self) -> str | None:
        """The CUDA toolkit in /usr/local/cuda, as its own file states it."""
        version = parse_cuda_json(self.tree.text("usr/local/cuda/version.json") or "")
        version = version or parse_cuda_text(self.tree.text("usr/local/cuda/version.txt") or "")
        if version is None and self.tree.is_live:
            version = parse_nvcc(ask("nvcc", "--version") or "")
        return version

    def fabric_manager(self) -> str | None:
        """The Fabric Manager that NVSwitch machines need in their driver's version."""
        packages = self.packages or {}
        named = sorted(name for name in packages if name.startswith("nvidia-fabricmanager") and "dev" not in name)
        version = self._package(named[-1]) if named else None
        if version is None and self.tree.is_live:
            version = parse_fabric_manager(ask("nv-fabricmanager", "--version") or "")
        return version

    def jetpack(self) -> str | None:
        """JetPack's release, where its metapackage is installed."""
        return self._package("nvidia-jetpack")

    def python_arch(self) -> str | None:
        """The architecture of the interpreter: this process's own, or that of the tree's python3."""
        if not self.tree.is_live:
            return parse_elf_machine(self.tree.bytes("usr/bin/python3", most=_HEADER_BYTES) or b"")
        import sys

        return parse_elf_machine(self.tree.bytes(sys.executable, most=_HEADER_BYTES) or b"")

    def libraries(self) -> Libraries | None:
        """System copies of the libraries that wheels bring themselves; None when none was found."""
        on_path = self._on_library_path()
        system = self._names((*LIBRARY_DIRECTORIES, "usr/local/cuda/lib64"))
        found = {
            key: _newest(parse_library_file_name(name, f"lib{key}") for name in on_path | system)
            for key in ("cudnn", "nccl", "cublas")
        }
        if not any(found.values()):
            return None
        shadows = any(parse_library_file_name(name, f"lib{key}") for name in on_path for key in found)
        return Libraries(**found, on_path=("LD_LIBRARY_PATH",) if shadows else ())

    def _on_library_path(self) -> set[str]:
        directories = os.environ.get("LD_LIBRARY_PATH", "").split(":") if self.tree.is_live else []
        return self._names(directory for directory in directories if directory.startswith("/"))

    def _names(self, directories: Iterable[str]) -> set[str]:
        return {name for directory in directories for name in self.tree.names(directory) or ()}

    def _package(self, name: str) -> str | None:
        return parse_package_version((self.packages or {}).get(name, ""))


def _newest(versions: Iterable[str | None]) -> str | None:
    known = {version for version in versions if version}
    return max(known, key=lambda version: tuple(int(part) for part in version.split(".")), default=None)
