"""A minimal conflict as data: its members, its conclusion, and the fixes.

A member is a request of the spec, a fact of a host, or a group of rules; without any one of the members the others could hold
together.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - part of a type that is read at run time
from typing import Any, Literal

from msgspec import Struct, field

from provisioner.grounds.edit import Edit  # noqa: TC001 - as above
from provisioner.grounds.predicate import Predicate  # noqa: TC001 - as above
from provisioner.grounds.requirement import Ground, Group  # noqa: TC001 - as above
from provisioner.grounds.source import Source  # noqa: TC001 - as above
from provisioner.places import Place  # noqa: TC001 - as above

AT_ONCE = 3
"""The largest number of requests and facts that one fix changes; the same fact on several hosts counts once. Only when no fix
is found is a larger set tried."""

MOST_TRIED = 40
"""The number of combinations of requests and facts that are tried for the fixes of a conflict, and again for a larger set."""


class Span(Struct, frozen=True):
    """Neighbouring releases by their labels, from the first to the last; both are the same for a single release."""

    first: str
    last: str


class Subjects(Struct, frozen=True, kw_only=True):
    """The subjects of a statement: spans of releases of one component or distribution.

    `every_build_for` is the accelerator for which all builds of these releases are meant, None when the labels name builds.
    `has_others`: the spans are not complete.
    """

    spans: tuple[Span, ...]
    every_build_for: str | None = None
    has_others: bool = False


class Statement(Struct, frozen=True, kw_only=True):
    """A predicate (a consequence of a choice) that several candidates of the component or distribution `name` share.

    `subjects` are these candidates, () when the predicate names its own subject. `pythons` are the only Pythons with which they
    have it, () when it is the same with all. `is_of_other_python`: it is that they have no file for one Python, while each has
    one for another that was tried, with which the other members exclude it.
    """

    name: str
    subjects: tuple[Subjects, ...]
    predicate: Predicate
    pythons: tuple[str, ...] = ()
    is_of_other_python: bool = False

    @property
    def is_of_one(self) -> bool:
        """Whether the statement has a single subject, so that its sentence is in the singular."""
        spans = [span for one in self.subjects for span in one.spans]
        return any(one.every_build_for is not None for one in self.subjects) or (
            len({span.first for span in spans} | {span.last for span in spans}) == 1
        )


class NotOffered(Struct, frozen=True, kw_only=True):
    """A requested name that no index offers, or that no row of the matrix lists for an accelerator and platform.

    `until` is the last upload day that counts, "" when there is none. `near` is a distribution of the matrix with a similar
    name, "" when there is none.
    """

    name: str
    is_distribution: bool
    accelerator: str = ""
    platform: str = ""
    until: str = ""
    near: str = ""


class Offered(Struct, frozen=True, kw_only=True):
    """The available versions of a component or distribution, `name`, none of which meets the request.

    `more` counts the versions that are not listed. `by` is what offers them: `index`, `matrix`, or `spec` for the file that the
    spec names at `place`. `accelerator` is "" for CUDA. `until` is the last upload day that counts, "" for no limit.
    """

    name: str
    by: str
    versions: tuple[str, ...]
    more: int = 0
    accelerator: str = ""
    until: str = ""
    place: Place | None = None


class ForAnother(Struct, frozen=True, kw_only=True):
    """The requested build of a framework, which is for `accelerator`, while the stack is for another one, `wanted`."""

    name: str
    version: str
    accelerator: str
    wanted: str


class Withdrawn(Struct, frozen=True, kw_only=True):
    """The requested version, which is withdrawn, so that it is offered only to a request that names it; `problem` says why."""

    name: str
    version: str
    problem: str


class Unlisted(Struct, frozen=True, kw_only=True):
    """The requested versions, newest first, that an index has and the matrix does not list; their requirements are unknown."""

    name: str
    versions: tuple[str, ...]


class Newest(Struct, frozen=True, kw_only=True):
    """The newest version of a component that the matrix knows, for a request that only newer ones meet.

    Whether there is a newer one is unknown, because no index tells or none was asked. `released` is "" for an unknown day.
    `is_on_index`: an index has releases of the component, from which the matrix can be refreshed.
    """

    name: str
    version: str
    released: str
    is_on_index: bool


Offer = NotOffered | Offered | ForAnother | Withdrawn | Unlisted | Newest


class Member(Struct, frozen=True, kw_only=True):
    """One member of a conflict: a request, a fact, or the predicates that the candidates of a rule share.

    `clauses` form one sentence; `more` counts the subjects whose clauses are left out. `sources` has each source once. `offer`
    says which versions are available, if the member is a request that none of them meets. `assumed_glibc` is the glibc version
    that was assumed for a rule about files, None when no version was assumed; `is_assumed_of_image`: it was assumed for the
    base image, not for the host.
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
    """Return the member of a conflict that consists of one ground."""
    sources = (ground.source,) if ground.source is not None else ()
    return Member(kind=ground.kind, component=ground.component, group=ground.group, clauses=(ground,), sources=sources)


class Conclusion(Struct, frozen=True, kw_only=True):
    """The conclusion of a conflict: a release that cannot be chosen or a component without candidates, and for which hosts.

    `question` is the release that the user asked about; `requests` are the requests that cannot be met together, the main one
    first; `name` is a component without candidates; `refused` is a line of the spec that cannot be met and names no version
    (accelerator, image, `policy.forbid`); `facts` are the facts that exclude each other. `hosts` are the labels of the hosts
    whose facts are members, and `is_one_host` means that the target has only one. `platform` is the platform of the target, ""
    when it is no member.
    """

    question: Ground | None = None
    requests: tuple[Ground, ...] = ()
    name: str = ""
    refused: Ground | None = None
    facts: tuple[Ground, ...] = ()
    hosts: tuple[str, ...] = ()
    is_one_host: bool = False
    platform: str = ""


class Fix(Struct, frozen=True, kw_only=True):
    """A set of edits with which the request has an answer; `gives` are that answer's versions, by component or distribution.

    `is_unverified`: that answer relies on unknown facts. `is_least`: no part of the edits would do. `hosts` maps the host label
    of an edit to all hosts that the edit stands for; it is empty for a target of one host. `requested` are the components that
    the spec requires: for these, the words of an edit of a host's fact must say that the host is meant and not the spec.
    `patch` is what the edits make of the spec and the hosts (see `grounds.patch`).
    """

    edits: tuple[Edit, ...]
    gives: Mapping[str, str] = field(default_factory=dict)
    is_unverified: bool = False
    is_least: bool = True
    hosts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    requested: frozenset[str] = frozenset()
    patch: Mapping[str, Any] = field(default_factory=dict)

    @property
    def gives_up(self) -> bool:
        """Whether one of the edits drops a request."""
        return any(edit.gives_up for edit in self.edits)

    @property
    def is_hardware(self) -> bool:
        """Whether one of the edits is another GPU."""
        return any(edit.component == "gpu" for edit in self.edits)

    @property
    def identities(self) -> frozenset[tuple[object, ...]]:
        """The identities of the edits: two fixes with the same identities are the same fix."""
        return frozenset(edit.identity for edit in self.edits)


class Published(Struct, frozen=True, kw_only=True):
    """A wheel of the distribution `name` outside package indexes, or a page with links to wheels, which nobody has read.

    A project publishes it at `address`, as the row of the matrix at `source` says: a wheel for one Python and build of PyTorch,
    a page with wheels for it (`find-links`), or an index of the vendor, for which `pytorch` and `python` are "". The build runs
    on the target.
    """

    name: str
    address: str
    kind: Literal["wheel", "find-links", "index"]
    pytorch: str = ""
    python: str = ""
    source: Place


class Conflict(Struct, frozen=True, kw_only=True):
    """A minimal set of requests, rules and facts that cannot all hold, with its conclusion and fixes.

    `is_beyond_help`: it is about a distribution that cannot be had at all, so that no fix was tried; `is_rest_unsolved`: nor
    was anything else that the spec asks for solved. `published` are wheels of that distribution outside package indexes, and
    `served` is its newest version that a GPU does not refuse, if the GPUs refuse all that are asked for; else "".
    `is_cut_short`: there may be more fixes, for the search for them ended after a fixed amount of work; `unreached`: or with an
    index of framework builds that is out of reach, "" where none is. `is_interrupted`: somebody ended the search for fixes.
    """

    members: tuple[Member, ...]
    conclusion: Conclusion | None = None
    fixes: tuple[Fix, ...] = ()
    is_beyond_help: bool = False
    is_rest_unsolved: bool = False
    served: str = ""
    is_cut_short: bool = False
    is_interrupted: bool = False
    unreached: str = ""
    published: tuple[Published, ...] = ()
