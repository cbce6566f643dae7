"""Finds what the firmware verifies: Secure Boot, and whether the key that signs self-built kernel modules is enrolled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.host.model import SecureBoot
from provisioner.host.parse import parse_efi_flag

if TYPE_CHECKING:
    from provisioner.host.tree import Tree

_VARIABLES = "sys/firmware/efi/efivars"
_GLOBAL = "8be4df61-93ca-11d2-aa0d-00e098032b8c"
_SHIM = "605dab50-e046-4300-abb6-3dd810dd8b23"
"""Owners of EFI variables: EFI_GLOBAL_VARIABLE of the UEFI specification, and shim's own (shim, lib/guid.c)."""

_KEYS = ("var/lib/shim-signed/mok/MOK.der", "var/lib/dkms/mok.pub")
"""The certificate DKMS signs with: Ubuntu's and Debian's. Both are DER files, which MokListRT holds byte by byte."""


def find_secure_boot(tree: Tree, *, is_container: bool) -> SecureBoot | None:
    """Read Secure Boot from the EFI variables; a machine without EFI has none, a container does not show."""
    flag = parse_efi_flag(tree.bytes(f"{_VARIABLES}/SecureBoot-{_GLOBAL}") or b"")
    if flag is None:
        # Container engines mask /sys/firmware, so only elsewhere does its absence say that the machine booted by BIOS.
        is_bios = not is_container and tree.exists("sys/firmware") and not tree.exists("sys/firmware/efi")
        return SecureBoot(enabled=False) if is_bios else None
    # `mokutil --disable-validation`: the firmware still verifies shim, but the kernel then accepts unsigned modules.
    is_ignored = parse_efi_flag(tree.bytes(f"{_VARIABLES}/MokSBStateRT-{_SHIM}") or b"") is True
    return SecureBoot(enabled=flag and not is_ignored, mok_enrolled=_is_enrolled(tree))


def _is_enrolled(tree: Tree) -> bool | None:
    """Whether the key DKMS signs with stands in shim's list; None when there is no such key or list to compare."""
    enrolled = tree.bytes(f"{_VARIABLES}/MokListRT-{_SHIM}")
    keys = [content for path in _KEYS if (content := tree.bytes(path))]
    if enrolled is None or not keys:
        return None
    return any(key in enrolled for key in keys)
