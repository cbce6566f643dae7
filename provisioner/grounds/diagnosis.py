"""What a diagnosis says beside the rows of the matrix: facts, and remedies that were computed for the machine of a log."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from provisioner.grounds.conflict import Conflict  # noqa: TC001 - part of types that are matched at run time
from provisioner.grounds.step import Action  # noqa: TC001 - as above


class KnownFact(Struct, frozen=True, kw_only=True):
    """A fact about the machine or the stack of a log, and who says so: the `log` at a line, the `host` profile or the `lock`.

    `text` is how the log writes it, "" when that is the value. `by` is the fact that it was derived from, "" for none.
    """

    name: str
    value: str
    said_by: Literal["log", "host", "lock"] = "log"
    line: int = 0
    text: str = ""
    by: str = ""


class Disagreement(Struct, frozen=True, kw_only=True):
    """A fact that the log and the host profile state differently; the log counts, because it was written when it failed."""

    name: str
    in_log: str
    in_profile: str
    line: int


class Run(Struct, frozen=True, kw_only=True):
    """A command to run, as the row of the failure has it; `note` says what it is for, "" when that is clear."""

    command: str
    note: str = ""


class Advice(Struct, frozen=True):
    """An instruction in the words of the failure's row."""

    text: str


class DriverRuns(Struct, frozen=True, kw_only=True):
    """The newest CUDA that a driver branch runs natively."""

    branch: str
    cuda: str


class CudaNeeds(Struct, frozen=True, kw_only=True):
    """The drivers that a CUDA release needs: the oldest with minor-version compatibility, and the first branch that knows it.

    "" for what the matrix does not say.
    """

    cuda: str
    minor_version: str
    native_branch: str


class BuildsFor(Struct, frozen=True, kw_only=True):
    """The builds of a framework with machine code for a GPU: the newest and the oldest; "" where there is none."""

    gpu: str
    framework: str
    newest: str
    oldest: str


class DriversFor(Struct, frozen=True, kw_only=True):
    """The driver releases that build on a kernel: the newest of the branch of `driver`, "" for none, and of other branches."""

    kernel: str
    driver: str
    same_branch: str
    others: tuple[str, ...]


class KernelOutOfRange(Struct, frozen=True, kw_only=True):
    """The proof that a driver does not build on a kernel: the kernels of `range` are those that it is known to build on."""

    driver: str
    kernel: str
    range: str


class BroughtBy(Struct, frozen=True, kw_only=True):
    """What contains a shared library: distributions on the package index, and packages of Linux distributions.

    `packages` are pairs of a package and the systems that have it, such as `libgl1` and `debian:12`.
    """

    library: str
    distributions: tuple[str, ...] = ()
    packages: tuple[tuple[str, tuple[str, ...]], ...] = ()


class RunsHere(Struct, frozen=True, kw_only=True):
    """The newest stack that the solver finds for the machine of the log.

    `host` are the facts that it was asked with. `doubts` is the number of its points that are unverified. `requirement` and
    `index` install its framework: a requirement, and the variant of the framework's own index, "" for the package index.
    """

    host: tuple[tuple[str, str], ...]
    components: tuple[tuple[str, str], ...]
    basis: str
    verdict: str
    doubts: int
    requirement: str = ""
    index: str = ""


class NothingRuns(Struct, frozen=True, kw_only=True):
    """The proof that no stack runs on the machine of the log, with the changes that would help."""

    host: tuple[tuple[str, str], ...]
    conflict: Conflict


class ChangeHost(Struct, frozen=True, kw_only=True):
    """One step of the plan from the machine of the log to a lock or a spec, which `wanted` names."""

    action: Action
    wanted: str
    is_reboot: bool


class NothingToChange(Struct, frozen=True):
    """The finding that the machine of the log, as far as it is known, can run a lock or a spec as it is."""

    wanted: str


class CannotFollow(Struct, frozen=True, kw_only=True):
    """The proof that no change of the machine lets it run a lock or a spec."""

    wanted: str
    conflict: Conflict


class FactWanted(Struct, frozen=True):
    """A fact that would let the solver answer, and that neither the log nor a profile states."""

    names: tuple[str, ...]


Remedy = (
    Run
    | Advice
    | DriverRuns
    | CudaNeeds
    | BuildsFor
    | KernelOutOfRange
    | DriversFor
    | BroughtBy
    | RunsHere
    | NothingRuns
    | ChangeHost
    | NothingToChange
    | CannotFollow
    | FactWanted
)
"""One line of a remedy."""
