"""A minimal conflict as data: its members with what their subjects have in common, what follows, and the fixes."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - part of a type that is read at run time

from msgspec import Struct, field

from provisioner.grounds.edit import Edit  # noqa: TC001 - as above
from provisioner.grounds.predicate import Predicate  # noqa: TC001 - as above
from provisioner.grounds.requirement import Ground, Group  # noqa: TC001 - as above
from provisioner.grounds.source import Source  # noqa: TC001 - as above
from provisioner.places import Place  # noqa: TC001 - as above


class Span(Struct, frozen=True):
    """Neighbouring releases by their labels, from the first to the last; one alone is both."""

    first: str
    last: str


class Subjects(Struct, frozen=True, kw_only=True):
    """What a statement is about: spans of releases of one name.

    `every_build_for` is the accelerator of which every build of the releases is meant, "" where the labels name builds.
    `has_others`: there are more spans than are told.
    """

    spans: tuple[Span, ...]
    every_build_for: str | None = None
    has_others: bool = False


class Statement(Struct, frozen=True, kw_only=True):
    """What some candidates entail alike; no subjects where the predicate names its own."""

    name: str
    subjects: tuple[Subjects, ...]
    predicate: Predicate

    @property
    def is_of_one(self) -> bool:
        """Whether it is about one subject, in the singular."""
        spans = [span for one in self.subjects for span in one.spans]
        return any(one.every_build_for is not None for one in self.subjects) or (
            len({span.first for span in spans} | {span.last for span in spans}) == 1
        )


class NotOffered(Struct, frozen=True, kw_only=True):
    """Nothing is offered of a name: by any index, or by the matrix for an accelerator and platform; `until` is the last day."""

    name: str
    is_distribution: bool
    accelerator: str = ""
    platform: str = ""
    until: str = ""


class Offered(Struct, frozen=True, kw_only=True):
    """What is offered of a name instead of what was asked for; `more` counts the versions that are not told.

    `by` is `index`, `matrix`, or `spec` for the file that the spec names at `place`; `accelerator` is told where it is not
    CUDA.
    """

    by: str
    versions: tuple[str, ...]
    more: int = 0
    accelerator: str = ""
    until: str = ""
    place: Place | None = None


class Withdrawn(Struct, frozen=True, kw_only=True):
    """The version that was asked for is offered to nobody who does not name it, and why."""

    name: str
    version: str
    problem: str


Offer = NotOffered | Offered | Withdrawn


class Member(Struct, frozen=True, kw_only=True):
    """One member of a conflict: a request, a fact, or what the candidates of a rule have in common.

    `clauses` are told together; `more` counts the subjects whose clauses are not told. `sources` has every place once.
    `offer` says what there is where a request asks for something that is not. `assumed_glibc` is the glibc that a rule about
    files rests on and nobody stated.
    """

    kind: str
    component: str
    group: Group
    clauses: tuple[Ground | Statement, ...]
    sources: tuple[Source, ...]
    more: int = 0
    offer: Offer | None = None
    assumed_glibc: tuple[int, int] | None = None
    is_assumed_of_image: bool = False


def member_of(ground: Ground) -> Member:
    """Return a member that is one ground."""
    sources = (ground.source,) if ground.source is not None else ()
    return Member(kind=ground.kind, component=ground.component, group=ground.group, clauses=(ground,), sources=sources)


class Conclusion(Struct, frozen=True, kw_only=True):
    """What follows from the members: what cannot be chosen, or is not left, beside what else was asked, and for whom.

    `question` is the release that was asked about; `asked` the requests, what the environment is for first; `name` a component
    of which nothing is left; `refused` a line of the spec that names no version; `facts` those that do not go together.
    `hosts` are the hosts whose facts take part, by label where there are several; `platform` where it takes part.
    """

    question: Ground | None = None
    asked: tuple[Ground, ...] = ()
    name: str = ""
    refused: Ground | None = None
    facts: tuple[Ground, ...] = ()
    hosts: tuple[str, ...] = ()
    is_one_host: bool = False
    platform: str = ""


class Fix(Struct, frozen=True, kw_only=True):
    """One complete change that was solved again and works, and what it gives.

    `hosts` are the labels to tell, where the target has several hosts, by the label of an edit: the hosts that it stands for.
    `asked` are the components that the spec names as well: of these it is the host that changes.
    """

    edits: tuple[Edit, ...]
    gives: Mapping[str, str] = field(default_factory=dict)
    hosts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    asked: frozenset[str] = frozenset()

    @property
    def gives_up(self) -> bool:
        """Whether a part of what was asked for is given up."""
        return any(edit.gives_up for edit in self.edits)

    @property
    def identities(self) -> frozenset[tuple[object, ...]]:
        """The identities of its edits: a fix with the same ones is the same fix."""
        return frozenset(edit.identity for edit in self.edits)


class Conflict(Struct, frozen=True, kw_only=True):
    """A minimal set of requests, rules and facts that cannot hold together, in order, what follows, and the ways out."""

    members: tuple[Member, ...]
    conclusion: Conclusion | None = None
    fixes: tuple[Fix, ...] = ()
