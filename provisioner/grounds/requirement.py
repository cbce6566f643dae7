"""Grounds of requirements: a line of the spec, a fact of a host, or a consequence of a candidate.

Every ground has a `kind` (`request`, `fact` or `rule`), the `component` under which it is listed, a `source`, and a `group`:
the line, fact or relation that the user could change or question as a whole. A conflict is a minimal set of groups.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from provisioner.grounds.predicate import Predicate  # noqa: TC001 - part of a type that is matched at run time
from provisioner.grounds.source import Question, Source
from provisioner.places import HostPlace, Place


class SpecLine(Struct, frozen=True):
    """A line of the spec: `requires.pytorch`, `packages.numpy`, `constraints.3`, `policy.forbid.end-of-life`, `image`."""

    key: str
    item: str = ""

    def __str__(self) -> str:
        return f"{self.key}.{self.item}" if self.item else self.key


class FactOf(Struct, frozen=True):
    """A fact of one host; `value` distinguishes several facts of one component, such as two GPUs."""

    component: str
    host: str
    value: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.component, self.value, "of", self.host)))


class Relation(Struct, frozen=True):
    """The needs of one component's releases on another: `cuda needs driver`; `through` is the distribution that causes them."""

    subject: str
    object: str
    through: str = ""

    def __str__(self) -> str:
        return f"{self.subject} needs {self.object}{f', {self.through}' if self.through else ''}"


FILES = "files"
"""The object of the relation between a distribution and the Pythons and platforms that it has files for."""

WHEEL = "a wheel"
"""The object of the relation between a framework and the wheels that it is installed from."""


class SameChoice(Struct, frozen=True):
    """Two names that stand for one choice: a distribution with extras, and that distribution."""

    subject: str
    object: str

    def __str__(self) -> str:
        return f"{self.subject} is {self.object}"


class Row(Struct, frozen=True):
    """A row of the matrix by its table and name: `rule cuda-12-driver-floor`; `subject` is the component it constrains."""

    table: str
    name: str
    subject: str = ""

    def __str__(self) -> str:
        return f"{self.table} {self.name}{f' of {self.subject}' if self.subject else ''}"


EXPECTATION = "expectation"
"""The table of a `Row` for what releases are expected to need, although no source states it."""


class Fixed(Struct, frozen=True):
    """A requirement that a caller adds to the inputs; `by` is its purpose, such as `question` or `python attempt`.

    `name` is the component or distribution of a lock that is being checked, "" for any other purpose.
    """

    by: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.by} {self.name}".strip()


Group = SpecLine | FactOf | Relation | SameChoice | Row | Fixed

PYTHON_ATTEMPT = Fixed("python attempt")
"""The group of the Python of one attempt, which is a step of the search and no reason for the answer."""


class Subject(Struct, frozen=True):
    """A release, a build or a version of a distribution by name and label: `pytorch` `2.7.1+cu126`; "" is every version."""

    name: str
    label: str

    def __str__(self) -> str:
        return f"{self.name} {self.label}".rstrip()


class Ground(Struct, frozen=True):
    """The base of all grounds."""

    kind: ClassVar[str] = "request"

    @property
    def component(self) -> str:
        """The component or distribution under which the ground is listed."""
        raise NotImplementedError

    @property
    def group(self) -> Group:
        """The line, fact or relation that the ground belongs to."""
        raise NotImplementedError

    @property
    def source(self) -> Source | None:
        """Where the ground was read; None when there is no source to cite."""
        return getattr(self, "place", None)

    @property
    def is_request(self) -> bool:
        """Whether the ground is a request of the user."""
        return self.kind == "request"


class NamedGround(Ground, frozen=True, kw_only=True):
    """The base of the grounds that are listed under a `name`, that of a component or of a distribution that is not one."""

    name: str

    @property
    def component(self) -> str:
        return self.name


class RequiresComponent(NamedGround, frozen=True, kw_only=True):
    """A line of `requires:`."""

    range: str
    place: Place

    @property
    def group(self) -> Group:
        return SpecLine("requires", self.name)


class RequiresDistribution(NamedGround, frozen=True, kw_only=True):
    """A line of `packages:`, as spelled there; `is_unlisted`: it is for a framework's wheel of a build not in the matrix."""

    distribution: str
    requirement: str
    place: Place
    is_unlisted: bool = False

    @property
    def group(self) -> Group:
        return SpecLine("packages", self.distribution)


class NeedsToBeUsed(NamedGround, frozen=True, kw_only=True):
    """What a distribution that a line of the spec names, `requested`, needs of a host in order to be used (`predicate`).

    Where another package brings the distribution, it may lie idle, and the need does not hold. `place` is the matrix's row.
    """

    requested: RequiresComponent | RequiresDistribution
    predicate: Predicate
    place: Place

    @property
    def group(self) -> Group:
        return self.requested.group


class Constrains(Ground, frozen=True, kw_only=True):
    """A line of `constraints:`, by its index in the list."""

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
    """A line of `overrides:`, by its index in the list."""

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
    """The hashes that the spec gives for a distribution, none of which a file for the target has."""

    distribution: str
    place: Place

    @property
    def component(self) -> str:
        return self.distribution

    @property
    def group(self) -> Group:
        return SpecLine("hashes", self.distribution)


class RequiresPython(Ground, frozen=True, kw_only=True):
    """The range of Pythons that the project of the spec states (`requires-python` in its pyproject.toml)."""

    component: ClassVar[str] = "python"
    group: ClassVar[Group] = SpecLine("requires-python")
    range: str
    place: Place


class PackagesNeedPython(Ground, frozen=True, kw_only=True):
    """The need of the requested packages for a Python, although the spec does not request one."""

    component: ClassVar[str] = "python"
    group: ClassVar[Group] = Relation("packages", "python")
    place: Place


class TargetPlatform(Ground, frozen=True, kw_only=True):
    """The platform of the target."""

    component: ClassVar[str] = "platform"
    group: ClassVar[Group] = SpecLine("platform")
    platform: str
    place: Place


class AsksAccelerator(Ground, frozen=True, kw_only=True):
    """The accelerator that the spec requests; `component` is `pytorch_build`, the choice that it decides."""

    component: ClassVar[str] = "pytorch_build"
    group: ClassVar[Group] = SpecLine("accelerator")
    accelerator: str
    place: Place


class CallsForAccelerator(AsksAccelerator, frozen=True, kw_only=True):
    """The accelerator of the target's GPUs, if the spec requests none."""

    kind: ClassVar[str] = "fact"


class LockIsFor(AsksAccelerator, frozen=True, kw_only=True):
    """The accelerator of a lock whose stack is compared with hosts."""

    group: ClassVar[Group] = Fixed("locked", "accelerator")


class AsksImage(Ground, frozen=True, kw_only=True):
    """The base image that the spec requests; "" when provision chooses one.

    With `has_libraries` it chooses among images with CUDA's libraries, because no image without them has an answer.
    """

    component: ClassVar[str] = "image"
    group: ClassVar[Group] = SpecLine("image")
    base: str
    place: Place
    has_libraries: bool = False


class AsksSystemPackage(Ground, frozen=True, kw_only=True):
    """A package of the base image's Linux distribution that the spec asks for."""

    component: ClassVar[str] = "image"
    name: str
    place: Place

    @property
    def group(self) -> Group:
        return SpecLine("image.apt", self.name)


class Forbids(Ground, frozen=True, kw_only=True):
    """A word of `policy.forbid`, or one that `strategy: stable` forbids (`is_by_strategy`).

    `day` is the date for which the rule is evaluated, "" if the word is not about dates.
    """

    component: ClassVar[str] = "policy"
    word: str
    place: Place
    is_by_strategy: bool = False
    day: str = ""

    @property
    def group(self) -> Group:
        return SpecLine("policy.strategy" if self.is_by_strategy else "policy.forbid", self.word)


class BuildNeeds(Ground, frozen=True, kw_only=True):
    """The need for a compiler (`tool`) for the compilation that the spec requests (`build`: `extension` or `pytorch`)."""

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

    component: ClassVar[str] = "arch_list"
    architecture: str
    place: Place
    is_ptx: bool = False

    @property
    def group(self) -> Group:
        return SpecLine("arch_list", f"{self.architecture}{'+PTX' if self.is_ptx else ''}")


class CompilesOnlyFor(Ground, frozen=True, kw_only=True):
    """All architectures that the spec lists to compile for, of which one must serve a GPU (`device`)."""

    component: ClassVar[str] = "arch_list"
    architectures: tuple[str, ...]
    device: str
    place: Place

    @property
    def group(self) -> Group:
        return SpecLine("arch_list", self.device)


class CompilesForGpu(Ground, frozen=True, kw_only=True):
    """An architecture to compile for because a host has such a GPU."""

    kind: ClassVar[str] = "fact"
    component: ClassVar[str] = "arch_list"
    architecture: str
    host: str
    place: HostPlace

    @property
    def group(self) -> Group:
        return SpecLine("arch_list", self.architecture)


class AsksWhyNot(NamedGround, frozen=True, kw_only=True):
    """The newer release of a component or distribution that the user asks about, which was not chosen."""

    release: str

    @property
    def group(self) -> Group:
        return Fixed("question", f"{self.name} {self.release}")

    @property
    def source(self) -> Source | None:
        return Question()


class AsksFor(NamedGround, frozen=True, kw_only=True):
    """The release that a question to the matrix is about."""

    group: ClassVar[Group] = Fixed("asked")
    release: str


class Supposes(Ground, frozen=True):
    """A choice that the solver makes on trial."""

    component: ClassVar[str] = ""
    group: ClassVar[Group] = Fixed("tried")


class LockHas(NamedGround, frozen=True, kw_only=True):
    """The release or build of a component in a lock that is being checked."""

    label: str
    place: Place

    @property
    def group(self) -> Group:
        return Fixed("locked", self.name)


class LockedPackagesRequire(NamedGround, frozen=True, kw_only=True):
    """A framework that the packages of a lock include, as `distribution`."""

    distribution: str

    @property
    def group(self) -> Group:
        return Fixed("locked", self.name)


class OthersGet(NamedGround, frozen=True, kw_only=True):
    """The release that the other hosts of a plan get, which this host must get as well: the plan is for one stack."""

    group: ClassVar[Group] = Fixed("one stack")
    label: str


class PlanHas(Ground, frozen=True):
    """A choice in a plan that was solved before."""

    component: ClassVar[str] = ""
    group: ClassVar[Group] = Fixed("the plan")


class OnePlanOneStack(Ground, frozen=True, kw_only=True):
    """The accelerator of the other hosts' GPUs, which this host must share: the plan is for one stack."""

    component: ClassVar[str] = "pytorch_build"
    group: ClassVar[Group] = Fixed("one stack")
    accelerator: str


class SpecPlatforms(Ground, frozen=True, kw_only=True):
    """The platforms that a spec lists, if a fleet has hosts of other platforms."""

    component: ClassVar[str] = "platform"
    group: ClassVar[Group] = SpecLine("platform")
    platforms: tuple[str, ...]
    place: Place


class HostFact(NamedGround, frozen=True, kw_only=True):
    """A fact that a host states about a component; the `value` "none" means that the host lacks the component."""

    kind: ClassVar[str] = "fact"
    value: str
    host: str
    place: HostPlace

    @property
    def group(self) -> Group:
        return FactOf(self.name, self.host)


class HostGpu(Ground, frozen=True, kw_only=True):
    """A GPU of a host: its compute capability or gfx target (`device`), and its product name, "" when unknown.

    `foreign_to` is the accelerator of the stack, if that does not run on the GPU.
    """

    kind: ClassVar[str] = "fact"
    component: ClassVar[str] = "gpu"
    device: str
    product: str
    host: str
    place: HostPlace
    foreign_to: str = ""

    @property
    def group(self) -> Group:
        return FactOf("gpu", self.host, self.device)


class NoGpu(Ground, frozen=True, kw_only=True):
    """A host without a GPU; `host` is "" when no host of the target has one."""

    kind: ClassVar[str] = "fact"
    component: ClassVar[str] = "gpu"
    host: str
    place: HostPlace

    @property
    def group(self) -> Group:
        return FactOf("gpu", self.host, "none")


class NeedsSomeDriver(NamedGround, frozen=True, kw_only=True):
    """A host that needs a driver and states none; `is_there`: it has a driver, but does not state the version."""

    kind: ClassVar[str] = "fact"
    host: str
    is_there: bool

    @property
    def group(self) -> Group:
        return FactOf(self.name, self.host)

    @property
    def source(self) -> Source | None:
        return HostPlace(Place(self.host))


class LacksFact(NamedGround, frozen=True, kw_only=True):
    """A fact that a plan needs and a host does not state."""

    kind: ClassVar[str] = "fact"
    host: str

    @property
    def group(self) -> Group:
        return FactOf(self.name, self.host)

    @property
    def source(self) -> Source | None:
        return HostPlace(Place(self.host))


class OtherDriver(NamedGround, frozen=True, kw_only=True):
    """A GPU driver of a host that is not for the stack's accelerator but for GPUs of another vendor."""

    kind: ClassVar[str] = "fact"
    driver: str
    place: HostPlace

    @property
    def group(self) -> Group:
        return FactOf(self.name, "")


class FixesPython(Ground, frozen=True, kw_only=True):
    """The Python of one attempt, which its environment has: no reason for an answer, and no member of a conflict."""

    kind: ClassVar[str] = "fact"
    component: ClassVar[str] = "python"
    group: ClassVar[Group] = PYTHON_ATTEMPT
    python: str

    @property
    def source(self) -> Source | None:
        return None


class Entails(NamedGround, frozen=True, kw_only=True):
    """A consequence of choosing a candidate, `subject`, which is None if the predicate names its own subject.

    `name` is the component or distribution under which the ground is listed.
    """

    kind: ClassVar[str] = "rule"
    subject: Subject | None
    predicate: Predicate
    relation: Relation | SameChoice | Row
    cited: Source | None

    @property
    def group(self) -> Group:
        return self.relation

    @property
    def source(self) -> Source | None:
        return self.cited
