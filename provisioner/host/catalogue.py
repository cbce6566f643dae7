"""The names of GPU products and operating systems in a matrix, and the translation of a host profile's names to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.host.gpu_names import GpuNames

if TYPE_CHECKING:
    from collections.abc import Collection

    from provisioner.host.model import Host


class Catalogue:
    """Translates names in a host profile to those of a matrix; `systems` are the matrix's operating systems (`rhel 9`)."""

    def __init__(self, gpus: GpuNames | None = None, *, systems: Collection[str] = ()) -> None:
        self.gpus = gpus or GpuNames()
        self._systems = frozenset(systems)

    def identify(self, host: Host) -> Host:
        """Return a host with the GPU names and targets of the matrix; unknown names are left as they are.

        If the matrix has the host's own operating system, `os.like`, the system that it is derived from, is dropped.
        """
        if host.gpus:
            host = replace(host, gpus=tuple(map(self.gpus.identify, host.gpus)))
        system = host.os
        if system is None or system.like is None or not self._knows(system.id, system.version):
            return host
        return replace(host, os=replace(system, like=None))

    def _knows(self, name: str, version: str | None) -> bool:
        """Return whether the matrix has the release of a system (`ubuntu 22.04`), or its series (`rhel 9` for 9.4)."""
        parts = (version or "").split(".")
        releases = (".".join(parts[:count]) for count in range(len(parts), -1, -1))
        return any(f"{name} {release}".strip() in self._systems for release in releases)
