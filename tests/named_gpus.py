"""A small catalogue of GPUs for tests that read names: products by name, and chips by PCI device id, with their targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.host.catalogue import Catalogue
from provisioner.host.gpu_names import GpuNames
from provisioner.matrix.model import Chip, Gpu

if TYPE_CHECKING:
    from collections.abc import Mapping


def catalogue_of(targets: Mapping[str, str]) -> Catalogue:
    """Return a catalogue of the products `targets`; a key of four hexadecimal digits is the PCI device id of a chip."""
    products, chips = [], []
    for name, target in targets.items():
        capability, gfx = ("", target) if target.startswith("gfx") else (target, "")
        if len(name) == 4:
            chips.append(Chip(name=name, compute_capability=capability, gfx=gfx, pci_device_ids=(name,)))
        else:
            products.append(Gpu(name=name, compute_capability=capability, gfx=gfx, architecture=""))
    return Catalogue(GpuNames(products, chips), modules={"6.12.12": "6.4"})
