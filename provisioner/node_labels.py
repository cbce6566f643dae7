"""The labels of Kubernetes nodes that show what a stack can run on, and the match expressions of a node affinity.

Read in NVIDIA/k8s-device-plugin v0.20.0 (GPU feature discovery: docs/gpu-feature-discovery/README.md, internal/lm/nvml.go,
resource.go), kubernetes-sigs/node-feature-discovery (docs/usage/features.md, source/kernel/version.go, source/system/system.go)
and ROCm/k8s-device-plugin (cmd/k8s-node-labeller/main.go), 2026-11-21. Left out are labels that change without the machine
changing (`nvidia.com/gfd.timestamp`), labels that name one machine (`kubernetes.io/hostname`), and the family of a GPU:
`blackwell` is two incompatible generations, and a GPU newer than feature discovery is `undefined`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from provisioner.accelerators import ACCELERATORS
from provisioner.components import DRIVERS

if TYPE_CHECKING:
    from collections.abc import Iterator

LABELLED = frozenset({*DRIVERS, "gpu", "kernel", "platform"})
"""The requirements on a host that labels show, where a label of the accelerator's software has the GPU's target."""

ARCHITECTURE = "kubernetes.io/arch"
SYSTEM = "kubernetes.io/os"
INSTANCE = "node.kubernetes.io/instance-type"

COMPUTE = ("nvidia.com/gpu.compute.major", "nvidia.com/gpu.compute.minor")
PRODUCT = "nvidia.com/gpu.product"
MACHINE = "nvidia.com/gpu.machine"
DRIVER = (
    "nvidia.com/cuda.driver-version.major",
    "nvidia.com/cuda.driver-version.minor",
    "nvidia.com/cuda.driver-version.revision",
)
OLD_DRIVER = ("nvidia.com/cuda.driver.major", "nvidia.com/cuda.driver.minor", "nvidia.com/cuda.driver.rev")
"""The former names of the driver's version labels, which feature discovery still writes beside the current ones."""

_NFD = "feature.node.kubernetes.io"
KERNEL = tuple(f"{_NFD}/kernel-version.{part}" for part in ("major", "minor", "revision"))
KERNEL_FULL = f"{_NFD}/kernel-version.full"
OS_ID = f"{_NFD}/system-os_release.ID"
OS_VERSION = f"{_NFD}/system-os_release.VERSION_ID"

AMD_DEVICE, AMD_PRODUCT = ACCELERATORS["rocm"].product_labels
AMD_DRIVER = ACCELERATORS["rocm"].driver_label

KNOWN = (
    ARCHITECTURE, SYSTEM, *COMPUTE, *DRIVER, *OLD_DRIVER, *KERNEL, OS_ID, OS_VERSION, AMD_DEVICE, AMD_PRODUCT, AMD_DRIVER,
    KERNEL_FULL, PRODUCT, MACHINE, INSTANCE,
)  # fmt: skip
"""Every label that an affinity may use, in the order of its expressions."""


class Expression(Struct, frozen=True, kw_only=True):
    """A match expression of a node affinity: `key` is the label, `operator` is `In`, `Exists`, `DoesNotExist`, `Gt` or `Lt`.

    `Gt` and `Lt` have exactly one value, an integer.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.operator in {"Exists", "DoesNotExist"}:
            return f"{self.key} {self.operator}"
        return f"{self.key} {self.operator} {', '.join(value or '(empty)' for value in self.values)}"

    def document(self) -> dict[str, Any]:
        """Return the expression as an item of `matchExpressions` in a manifest."""
        values = {"values": list(self.values)} if self.values else {}
        return {"key": self.key, "operator": self.operator} | values


Term = tuple[Expression, ...]
"""A term of a node affinity: match expressions that must all hold for a node."""


def between(key: str, low: int | None, high: int | None) -> Iterator[Expression]:
    """Yield the expressions that an integer label is between two numbers, both included; None is unbounded.

    `Gt` and `Lt` exclude the number they name. No label is negative, so a lower bound of 0 needs no expression. A single number
    is written as `Gt` and `Lt`, because `In` compares text and would tell the revisions `2` and `02` apart.
    """
    if low:
        yield Expression(key=key, operator="Gt", values=(str(low - 1),))
    if high is not None:
        yield Expression(key=key, operator="Lt", values=(str(high + 1),))
