"""Why a requirement exists: a line of the spec, a fact of a host, or what a candidate entails.

Every ground has a `kind` (`request`, `fact` or `rule`), the `component` it is told under, a `source`, and a `group`: the line,
fact or relation that a person could change or doubt as a whole. A conflict is a minimal set of groups.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from provisioner.grounds.predicate import Predicate  # noqa: TC001 - part of a type that is matched at run time
from provisioner.grounds.source import Attempts, Question, Source
from provisioner.places import HostPlace, Place


class SpecLine(Struct, frozen=True):
    """A line of the spec: `requires.pytorch`, `packages.numpy`, `constraints.3`, `policy.forbid.end-of-life`, `image`."""

    key: str
    item: str = ""

    def __str__(self) -> str:
        return f"{self.key}.{self.item}" if self.item else self.key


class FactOf(Struct, frozen=True):
    """A fact of one host; `value` tells facts of one component apart, such as two GPUs."""

    component: str
    host: str
    value: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.component, self.value, "of", self.host)))


class Relation(Struct, frozen=True):
    """What releases of one thing need of another: `cuda needs driver`; `through` names the distribution that brings it in."""

    subject: str
    object: str
    through: str = ""

    def __str__(self) -> str:
        return f"{self.subject} needs {self.object}{f', {self.through}' if self.through else ''}"


class SameChoice(Struct, frozen=True):
    """Two names of one choice: a distribution with extras is that distribution."""

    subject: str
    object: str

    def __str__(self) -> str:
        return f"{self.subject} is {self.object}"


class Row(Struct, frozen=True):
    """A row of the matrix by its table and name: `rule cuda-12-driver-floor`; `subject` is the side that is bound."""

    table: str
    name: str
    subject: str = ""

    def __str__(self) -> str:
        return f"{self.table} {self.name}{f' of {self.subject}' if self.subject else ''}"


class Fixed(Struct, frozen=True):
    """What a caller required beyond the inputs: a question, a lock that is checked, the Python of one attempt."""

    by: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.by} {self.name}".strip()


Group = SpecLine | FactOf | Relation | SameChoice | Row | Fixed

PYTHON_ATTEMPT = Fixed("python attempt")
"""The group that fixes the Python of one attempt: how the search went, not why the answer is what it is."""


class Subject(Struct, frozen=True):
    """A release, a build or a version of a distribution, as it is called: `pytorch` `2.7.1+cu126`."""

    name: str
    label: str


class Ground(Struct, frozen=True):
    """The base of all grounds."""

    kind: ClassVar[str] = "request"

    @property
    def component(self) -> str:
        """The component or distribution it is told under."""
        raise NotImplementedError

    @property
    def group(self) -> Group:
        """The line, fact or relation it belongs to."""
        raise NotImplementedError

    @property
    def source(self) -> Source | None:
        """Where it was read; None where nothing is to be cited."""
        return getattr(self, "place", None)

    @property
    def is_request(self) -> bool:
        """Whether a person asked for it."""
        return self.kind == "request"


class RequiresComponent(Ground, frozen=True, kw_only=True):
    """A line of `requires:`. `attempt` is the version of Python that one attempt fixes, "" elsewhere."""

    name: str
    range: str
    place: Place
    attempt: str = ""

    @property
    def component(self) -> str:
        return self.name

    @property
    def group(self) -> Group:
        return SpecLine("requires", self.name)


class RequiresDistribution(Ground, frozen=True, kw_only=True):
    """A line of `packages:`, as it is spelled there; `is_unlisted`: a framework's wheel that is none of the matrix's builds."""

    name: str
    distribution: str
    requirement: str
    place: Place
    is_unlisted: bool = False

    @property
    def component(self) -> str:
        return self.name

    @property
    def group(self) -> Group:
        return SpecLine("packages", self.distribution)


class Constrains(Ground, frozen=True, kw_only=True):
    """A line of `constraints:`, by its place in the list."""

    index: int
    distribution: str
    requirement: str
    place: Place

    @property
    def component(self) -> str:
        return self.distribution

    @property
    def group(self) -> Group:
        return SpecLine("constraints", str(self.index))


class Overrides(Ground, frozen=True, kw_only=True):
    """A line of `overrides:`, by its place in the list."""

    index: int
    distribution: str
    requirement: str
    place: Place

    @property
    def component(self) -> str:
        return self.distribution

    @property
    def group(self) -> Group:
        return SpecLine("overrides", str(self.index))


class GivesHashes(Ground, frozen=True, kw_only=True):
    """Hashes that the spec gives of a distribution, and that no file for the target has."""

    distribution: str
    place: Place

    @property
    def component(self) -> str:
        return self.distribution

    @property
    def group(self) -> Group:
        return SpecLine("hashes", self.distribution)


class RequiresPython(Ground, frozen=True, kw_only=True):
    """The project's `requires-python`."""

    range: str
    place: Place

    @property
    def component(self) -> str:
        return "python"

    @property
    def group(self) -> Group:
        return SpecLine("requires-python")


class PackagesNeedPython(Ground, frozen=True, kw_only=True):
    """Packages need a Python, though the spec asks for none by name."""

    place: Place

    @property
    def component(self) -> str:
        return "python"

    @property
    def group(self) -> Group:
        return Relation("packages", "python")


class TargetPlatform(Ground, frozen=True, kw_only=True):
    """The platform of the target."""

    platform: str
    place: Place

    @property
    def component(self) -> str:
        return "platform"

    @property
    def group(self) -> Group:
        return SpecLine("platform")


class AsksAccelerator(Ground, frozen=True, kw_only=True):
    """The accelerator that the spec names. The contract calls it by what it decides, the build of the framework."""

    accelerator: str
    place: Place

    @property
    def component(self) -> str:
        return "pytorch_build"

    @property
    def group(self) -> Group:
        return SpecLine("accelerator")


class CallsForAccelerator(AsksAccelerator, frozen=True, kw_only=True):
    """The accelerator that the target's GPUs call for, where the spec names none; `by_others`: those of the other hosts."""

    kind: ClassVar[str] = "fact"


class AsksImage(Ground, frozen=True, kw_only=True):
    """The base image that the spec names; "" where one is chosen."""

    base: str
    place: Place

    @property
    def component(self) -> str:
        return "image"

    @property
    def group(self) -> Group:
        return SpecLine("image")


class Forbids(Ground, frozen=True, kw_only=True):
    """A word that `policy.forbid` names, or that `strategy: stable` forbids, judged on `day` where it is about dates."""

    word: str
    place: Place
    is_by_strategy: bool = False
    day: str = ""

    @property
    def component(self) -> str:
        return "policy"

    @property
    def group(self) -> Group:
        return SpecLine("policy.strategy" if self.is_by_strategy else "policy.forbid", self.word)


class BuildNeeds(Ground, frozen=True, kw_only=True):
    """What the spec compiles (`extension` or `pytorch`) needs a compiler."""

    build: str
    tool: str
    place: Place

    @property
    def component(self) -> str:
        return self.tool

    @property
    def group(self) -> Group:
        return Relation("build", self.tool)


class CompilesFor(Ground, frozen=True, kw_only=True):
    """An architecture that the spec lists to compile for."""

    architecture: str
    place: Place
    is_ptx: bool = False

    @property
    def component(self) -> str:
        return "arch_list"

    @property
    def group(self) -> Group:
        return SpecLine("arch_list", f"{self.architecture}{'+PTX' if self.is_ptx else ''}")


class CompilesForGpu(Ground, frozen=True, kw_only=True):
    """An architecture to compile for because a host has such a GPU."""

    kind: ClassVar[str] = "fact"
    architecture: str
    host: str
    place: HostPlace

    @property
    def component(self) -> str:
        return "arch_list"

    @property
    def group(self) -> Group:
        return SpecLine("arch_list", self.architecture)


class AsksWhyNot(Ground, frozen=True, kw_only=True):
    """The newer release that a person asks about."""

    name: str
    release: str

    @property
    def component(self) -> str:
        return self.name

    @property
    def group(self) -> Group:
        return Fixed("question")

    @property
    def source(self) -> Source | None:
        return Question()


class AsksFor(Ground, frozen=True, kw_only=True):
    """The release that a question to the matrix is about."""

    name: str
    release: str

    @property
    def component(self) -> str:
        return self.name

    @property
    def group(self) -> Group:
        return Fixed("asked")


class Supposes(Ground, frozen=True):
    """A choice that is tried out."""

    @property
    def component(self) -> str:
        return ""

    @property
    def group(self) -> Group:
        return Fixed("tried")


class LockHas(Ground, frozen=True, kw_only=True):
    """What a lock that is checked has of a component."""

    name: str
    label: str
    place: Place

    @property
    def component(self) -> str:
        return self.name

    @property
    def group(self) -> Group:
        return Fixed("locked", self.name)


class LockedPackagesRequire(Ground, frozen=True, kw_only=True):
    """The packages of a lock bring a framework along, as a distribution."""

    name: str
    distribution: str

    @property
    def component(self) -> str:
        return self.name

    @property
    def group(self) -> Group:
        return Fixed("locked", self.name)


class OthersGet(Ground, frozen=True, kw_only=True):
    """The release that the other hosts of a plan get, which is for one stack."""

    name: str
    label: str

    @property
    def component(self) -> str:
        return self.name

    @property
    def group(self) -> Group:
        return Fixed("one stack")


class PlanHas(Ground, frozen=True):
    """A choice that a plan has made."""

    @property
    def component(self) -> str:
        return ""

    @property
    def group(self) -> Group:
        return Fixed("the plan")


class OnePlanOneStack(Ground, frozen=True, kw_only=True):
    """The accelerator that the other hosts' GPUs call for, where a plan is for one stack."""

    accelerator: str

    @property
    def component(self) -> str:
        return "pytorch_build"

    @property
    def group(self) -> Group:
        return Fixed("one stack")


class SpecPlatforms(Ground, frozen=True, kw_only=True):
    """The platforms that a spec names, where a fleet has hosts of others."""

    platforms: tuple[str, ...]
    place: Place

    @property
    def component(self) -> str:
        return "platform"

    @property
    def group(self) -> Group:
        return SpecLine("platform")


class HostFact(Ground, frozen=True, kw_only=True):
    """What a host states of a component; `value` "none": it is known to be missing."""

    kind: ClassVar[str] = "fact"
    name: str
    value: str
    host: str
    place: HostPlace

    @property
    def component(self) -> str:
        return self.name

    @property
    def group(self) -> Group:
        return FactOf(self.name, self.host)


class HostGpu(Ground, frozen=True, kw_only=True):
    """A GPU of a host: compute capability or gfx target, and its product name where that is known.

    `foreign_to` is the accelerator that does not run on it, where the stack is for that one.
    """

    kind: ClassVar[str] = "fact"
    device: str
    product: str
    host: str
    place: HostPlace
    foreign_to: str = ""

    @property
    def component(self) -> str:
        return "gpu"

    @property
    def group(self) -> Group:
        return FactOf("gpu", self.host, self.device)


class NoGpu(Ground, frozen=True, kw_only=True):
    """A host has no GPU; `host` "" where none of the target has one."""

    kind: ClassVar[str] = "fact"
    host: str
    place: HostPlace

    @property
    def component(self) -> str:
        return "gpu"

    @property
    def group(self) -> Group:
        return FactOf("gpu", self.host, "none")


class NeedsSomeDriver(Ground, frozen=True, kw_only=True):
    """A host needs a driver and states none; `is_there`: it has one and does not state which version."""

    kind: ClassVar[str] = "fact"
    name: str
    host: str
    is_there: bool

    @property
    def component(self) -> str:
        return self.name

    @property
    def group(self) -> Group:
        return FactOf(self.name, self.host)

    @property
    def source(self) -> Source | None:
        return HostPlace(Place(self.host))


class LacksFact(Ground, frozen=True, kw_only=True):
    """A host does not state a fact that a plan needs."""

    kind: ClassVar[str] = "fact"
    name: str
    host: str

    @property
    def component(self) -> str:
        return self.name

    @property
    def group(self) -> Group:
        return FactOf(self.name, self.host)

    @property
    def source(self) -> Source | None:
        return HostPlace(Place(self.host))


class FleetCallsFor(Ground, frozen=True, kw_only=True):
    """The accelerators that the GPUs of a fleet call for."""

    kind: ClassVar[str] = "fact"
    accelerators: tuple[str, ...]
    place: Place

    @property
    def component(self) -> str:
        return "gpu"

    @property
    def group(self) -> Group:
        return SpecLine("accelerator")


class OtherDriver(Ground, frozen=True, kw_only=True):
    """The GPU driver of a host is another vendor's."""

    kind: ClassVar[str] = "fact"
    name: str
    driver: str
    place: HostPlace

    @property
    def component(self) -> str:
        return self.name

    @property
    def group(self) -> Group:
        return FactOf(self.name, "")


class TriesPython(Ground, frozen=True, kw_only=True):
    """The Python of one attempt, where the spec asks for none; `others` are the Pythons with which nothing works either.

    `is_told`: the attempt is that of a conflict, which tells the others.
    """

    kind: ClassVar[str] = "fact"
    python: str
    others: tuple[str, ...] = ()
    is_told: bool = False

    @property
    def component(self) -> str:
        return "python"

    @property
    def group(self) -> Group:
        return PYTHON_ATTEMPT

    @property
    def source(self) -> Source | None:
        return Attempts() if self.is_told else None


class Entails(Ground, frozen=True, kw_only=True):
    """What choosing a candidate entails. `subject` is None where the predicate names its own; `name` is told in its place."""

    kind: ClassVar[str] = "rule"
    name: str
    subject: Subject | None
    predicate: Predicate
    relation: Relation | SameChoice | Row
    cited: Source | None

    @property
    def component(self) -> str:
        return self.name

    @property
    def group(self) -> Group:
        return self.relation

    @property
    def source(self) -> Source | None:
        return self.cited
