"""Names of GPUs as labels spell them -> as their vendors do, and what they are: compute capability or gfx target."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_FORMS = re.compile(r"(?: (?:OAM|VF|HF))+$")
"""What follows a product of AMD's in libdrm's amdgpu.ids and on its board: form and virtual function, not another chip."""


class Products:
    """The GPUs somebody knows.

    `targets` maps a product, or its PCI device id (`74A1`), to its compute capability (`8.0`) or gfx target (`gfx942`).
    """

    def __init__(self, targets: Mapping[str, str]) -> None:
        self._targets = targets
        self._by_label = {product_label(name): name for name in targets}

    def find(self, label: str) -> str | None:
        """The product that GPU feature discovery calls `NVIDIA-A100-SXM4-80GB`; older drivers leave the vendor out."""
        return self._by_label.get(label) or self._by_label.get(f"NVIDIA-{label}")

    def find_amd(self, label: str) -> str | None:
        """The product that AMD's node labeller calls `AMD_Instinct_MI300X_OAM`."""
        name = label.replace("_", " ")
        return next((one for one in (name, _FORMS.sub("", name)) if one in self._targets), None)

    def target(self, name: str) -> str | None:
        """What a product is, None when nobody knows it."""
        return self._targets.get(name)


def product_label(name: str) -> str:
    """`NVIDIA A100-SXM4-80GB` -> `NVIDIA-A100-SXM4-80GB`, as internal/lm/resource.go of GPU feature discovery spells it."""
    return "-".join(re.sub(r"[^A-Za-z0-9\-_. ]", "", name).split())
