"""What an answer says in words, and grounds to say it with: for tests that read an answer as a person does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.grounds.predicate import Needs
from provisioner.grounds.requirement import Entails, HostFact, Relation, RequiresComponent, Subject
from provisioner.places import HostPlace, Place
from provisioner.versions import Range
from provisioner.words.conflict import conclusion_words
from provisioner.words.doubt import assumption_words, doubt_words

if TYPE_CHECKING:
    from provisioner.grounds.conflict import Conflict, Fix
    from provisioner.grounds.source import Source
    from provisioner.resolver.stack import Stack


def unverified(stack: Stack) -> tuple[str, ...]:
    """Return what could not be verified, a line each."""
    return tuple(doubt_words(one) for one in stack.doubts)


def assumed(stack: Stack) -> tuple[str, ...]:
    """Return what is assumed, a line each."""
    return tuple(assumption_words(one) for one in stack.assumes)


def conclusion(conflict: Conflict) -> str:
    """Return what follows from the members of a conflict."""
    assert conflict.conclusion is not None
    return conclusion_words(conflict.conclusion)


def changes(fix: Fix) -> tuple[tuple[str, str], ...]:
    """Return what a fix changes, and to what, once for each host that an edit stands for."""
    return tuple((edit.component, edit.change) for edit in fix.edits for _ in fix.hosts.get(edit.host_label, ("",)))


def hosts(fix: Fix) -> tuple[str, ...]:
    """Return the host that each change of a fix is about, "" for a change of the spec."""
    return tuple(host for edit in fix.edits for host in fix.hosts.get(edit.host_label, ("",)))


def needs(subject: str, needed: str, bound: str, *, source: Source | None = None, about: str = "") -> Entails:
    """Return the rule that a release, as `cuda 12.6.3`, needs a component in a range; `about` is what it is told of."""
    name, _, label = subject.partition(" ")
    return Entails(
        name=about or name,
        subject=Subject(name, label),
        predicate=Needs(needed, (Range.parse(bound),)),
        relation=Relation(name, needed),
        cited=source,
    )


def asks(name: str, bound: str, place: str = "provision.yaml:7") -> RequiresComponent:
    """Return a line of `requires:`."""
    return RequiresComponent(name=name, range=bound, place=Place.parse(place))


def states(name: str, value: str, place: str = "hosts/a100.yaml:5") -> HostFact:
    """Return a fact of a host."""
    return HostFact(name=name, value=value, host="host0", place=HostPlace(Place.parse(place)))
