"""The types of an examination: the machine that is examined, the question, and the layers of the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from provisioner.grounds.doubt import Doubt
    from provisioner.grounds.fault import Fault, Part, Remedy
    from provisioner.host.condition import Condition
    from provisioner.host.environment import PythonEnvironment
    from provisioner.host.remark import Remark
    from provisioner.layers import LayerName
    from provisioner.lock.format.model import Lock
    from provisioner.matrix.model import Matrix
    from provisioner.request import Request, TargetHost
    from provisioner.spec.model import Spec

LayerVerdict = Literal["yes", "no", "unverified", "assumed", "not-needed"]
"""The verdict on a layer: one of the three, or `assumed` for a fact that fails at once and by name where it is wrong, or
`not-needed` for a layer that nothing asks for; these two are no part of the answer."""


class Patient(Struct, frozen=True, kw_only=True):
    """The machine that is examined: its facts, the file with its profile if they are recorded, and what was seen beside them.

    `condition` is None for a recorded profile, and `environment` where none is active; `is_seen` is whether the machine, or a
    saved tree of its files, was read, so that a driver which it does not show is not loaded.
    """

    target: TargetHost
    remarks: tuple[Remark, ...] = ()
    condition: Condition | None = None
    environment: PythonEnvironment | None = None
    file: str = ""

    @property
    def is_seen(self) -> bool:
        """Whether the machine itself, or a saved tree of its files, was read, and no recorded profile."""
        return self.condition is not None


class Question(Struct, frozen=True, kw_only=True):
    """What shall run on the machine: a lock of one platform, a spec, or, if both are None, what is installed.

    `lock_file` is the name of the lock; `spec` is the spec of the lock, if its file `spec_file` is there. With `is_strict`
    nothing is assumed.
    """

    lock: Lock | None = None
    lock_file: str = ""
    spec: Spec | None = None
    spec_file: str = ""
    is_strict: bool = False


class Case(Struct, frozen=True, kw_only=True, eq=False):
    """A machine and a question about it, with the matrix, and the request that they are put to the resolver as."""

    matrix: Matrix
    patient: Patient
    question: Question
    request: Request


class Layer(Struct, frozen=True, kw_only=True):
    """One layer: what was found, what is wanted, the verdict with its faults, and remedies, the nearest first.

    `follows` is the layer below that must be mended first, "" for none: what is wrong here may then be gone.
    """

    name: LayerName
    found: tuple[Part, ...] = ()
    wanted: tuple[Part, ...] = ()
    verdict: LayerVerdict = "not-needed"
    faults: tuple[Fault, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    follows: str = ""

    @property
    def is_broken(self) -> bool:
        """Whether the layer has a fault of its own that says no, and not only one below it."""
        return any(fault.verdict == "no" for fault in self.faults)


class Examination(Struct, frozen=True, kw_only=True):
    """The layers of a machine, from the hardware up; `accelerator` is what is computed on.

    `remarks` are those of the inspection that are no fault of any layer, because they are about what is left out.
    """

    layers: tuple[Layer, ...]
    accelerator: str
    runs: str
    assumes: tuple[Doubt, ...] = ()
    remarks: tuple[Remark, ...] = ()

    @property
    def verdict(self) -> Literal["yes", "no", "unverified"]:
        """The worst verdict of the layers; `unverified` if no layer was judged, because then nothing was asked."""
        found = {layer.verdict for layer in self.layers}
        if "no" in found:
            return "no"
        return "yes" if "yes" in found and "unverified" not in found else "unverified"

    @property
    def has_judged(self) -> bool:
        """Whether anything was asked of any layer."""
        return any(layer.verdict in {"yes", "no", "unverified"} for layer in self.layers)

    @property
    def first(self) -> Layer | None:
        """The layer to mend first: the lowest that has a fault of its own; None if no layer says no."""
        return next((one for one in self.layers if one.is_broken), None)
