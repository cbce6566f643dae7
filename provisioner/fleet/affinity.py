"""Which nodes of a cluster take a stack: a Kubernetes node affinity that admits its hosts and keeps out all others.

It starts from what the stack needs of a node, so that a node it was not made from is admitted only where the stack runs, and
then tells the hosts of other stacks apart by as little as does. Numbers are compared as integers, as `Gt` and `Lt` do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from provisioner.fleet.affinity_needs import Absent, Bounds, integer
from provisioner.fleet.affinity_terms import LAST_RESORT, Expansion, Population, fewest, point
from provisioner.fleet.labels import DRIVER, KNOWN, OLD_DRIVER, LabelSet, drivers_named, with_newer_driver
from provisioner.strict_model import plain_data

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.fleet.affinity_needs import Box, Constraint, Needs
    from provisioner.host.model import Host


_MOST_STARTS = 200
"""Hosts that a box is grown around whether or not another box holds them: more boxes to choose from, and more time."""


class Expression(Struct, frozen=True, kw_only=True):
    """One comparison of a label: `In`, `Exists`, `DoesNotExist`, `Gt` or `Lt`, the last two with one integer."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.operator in {"Exists", "DoesNotExist"}:
            return f"{self.key} {self.operator}"
        return f"{self.key} {self.operator} {', '.join(value or '(empty)' for value in self.values)}"

    def document(self) -> dict[str, Any]:
        """As Kubernetes writes it."""
        values = {"values": list(self.values)} if self.values else {}
        return {"key": self.key, "operator": self.operator} | values


Term = tuple[Expression, ...]
"""Expressions that must all hold."""


class Unreached(Struct, frozen=True, kw_only=True):
    """Hosts of the stack that its affinity does not admit, because their labels do not show what the stack needs."""

    names: tuple[str, ...]
    lacking: tuple[str, ...]


class Inseparable(Struct, frozen=True, kw_only=True):
    """Hosts that are not the stack's and are admitted all the same: their labels are those of hosts that are.

    `facts` are what differs between them and no label shows.
    """

    admitted: tuple[str, ...]
    refused: tuple[str, ...]
    facts: tuple[str, ...]


class Affinity(Struct, frozen=True, kw_only=True):
    """Terms of which one must hold, and what they cannot tell.

    `by_name` says that some term tells hosts apart by a name (product, machine, instance type), since no number differs.
    `unshown` are requirements of the stack that no label shows.
    """

    terms: tuple[Term, ...]
    unreached: tuple[Unreached, ...] = ()
    inseparable: tuple[Inseparable, ...] = ()
    unshown: tuple[str, ...] = ()
    by_name: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether it admits every host of the stack and none of the others."""
        return not self.unreached and not self.inseparable

    @property
    def node_selector(self) -> dict[str, str]:
        """The same as a plain `nodeSelector`, where equalities suffice; empty where they do not."""
        if len(self.terms) != 1 or any(one.operator != "In" or len(one.values) != 1 for one in self.terms[0]):
            return {}
        return {one.key: one.values[0] for one in self.terms[0]}

    def manifest(self) -> dict[str, Any]:
        """What stands under `affinity:` in a pod; empty when no label shows any of the hosts, for no term admits nothing."""
        if not self.terms:
            return {}
        terms = [{"matchExpressions": [one.document() for one in term]} for term in self.terms]
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def node_affinity(admitted: Sequence[LabelSet], refused: Sequence[LabelSet], needs: Needs) -> Affinity:
    """The affinity of a stack: it admits every `admitted` host whose labels show what the stack needs, and no `refused` one.

    A host whose driver is upgraded stays admitted, as long as the stack runs there and no refused host is labelled like it.
    What labels cannot do is said: hosts whose labels lack something, and refused hosts labelled like admitted ones. Same input,
    same answer, in whatever order the hosts come.
    """
    refused = sorted(refused, key=_rank)
    reached: list[LabelSet] = []
    unreached: list[Unreached] = []
    for one in sorted(admitted, key=_rank):
        if needs.covers(point(one.labels, drivers_named(one.labels))):
            reached.append(one)
        else:
            unreached.append(Unreached(names=one.names, lacking=needs.lacking(one.labels)))
    shared = _shared_names(reached, needs)
    boxes = _boxes([*reached, *_upgraded(reached, refused, needs, shared)], refused, needs, shared)
    return Affinity(
        terms=tuple(sorted((_term(box) for box in boxes), key=_term_rank)),
        unreached=tuple(unreached),
        inseparable=tuple(_inseparable(reached, refused, shared)),
        unshown=needs.unshown,
        by_name=tuple(key for key in LAST_RESORT if any(key in box for box in boxes)),
    )


def _upgraded(
    admitted: Sequence[LabelSet], refused: Sequence[LabelSet], needs: Needs, shared: tuple[str, ...]
) -> list[LabelSet]:
    """The admitted hosts with newer drivers: without them, the next upgrade of a node would drive its pods away."""
    outside = Population([one.labels for one in refused])
    known = {frozenset(one.labels.items()) for one in admitted}
    found: list[LabelSet] = []
    for one in admitted:
        for labels in with_newer_driver(one.labels):
            box, identity = point(labels, shared or drivers_named(labels)), frozenset(labels.items())
            if identity not in known and needs.covers(box) and not outside.within(box):
                found.append(LabelSet(labels=labels, names=one.names, hosts=()))
            known.add(identity)
    return sorted(found, key=_rank)


def _boxes(admitted: Sequence[LabelSet], refused: Sequence[LabelSet], needs: Needs, shared: tuple[str, ...]) -> list[Box]:
    """Few boxes of labels that hold every admitted host, and no refused one that labels can tell from them."""
    inside, outside = (Population([one.labels for one in sets]) for sets in (admitted, refused))
    candidates: dict[frozenset[tuple[str, Constraint]], tuple[Box, int]] = {}
    expansions: dict[tuple[str, ...], Expansion] = {}
    covered = 0
    for index, one in enumerate(admitted):
        # Each box takes in what it can: in a large fleet most hosts are in some other host's box already.
        if index >= _MOST_STARTS and covered >> index & 1:
            continue
        drivers = shared or drivers_named(one.labels)
        expansion = expansions.setdefault(drivers, Expansion(inside, outside, needs, drivers))
        for box in expansion.boxes(one.labels):
            _, held = candidates.setdefault(frozenset(box.items()), (box, inside.within(box)))
            covered |= held
    return fewest(list(candidates.values()), inside.all)


def _shared_names(sets: Sequence[LabelSet], needs: Needs) -> tuple[str, ...]:
    """Names of the driver's labels that show what is needed of every node, those of today first; none where nodes differ.

    Feature discovery writes the first names beside today's, so that one old node does not split the terms of all others.
    """
    for names in (DRIVER, OLD_DRIVER):
        if all(names[0] in one.labels and needs.covers(point(one.labels, names)) for one in sets):
            return names
    return ()


def _inseparable(admitted: Sequence[LabelSet], refused: Sequence[LabelSet], shared: tuple[str, ...]) -> Iterator[Inseparable]:
    outside = Population([one.labels for one in refused])
    for one in admitted:
        alike = outside.within(point(one.labels, shared or drivers_named(one.labels)))
        for index, other in enumerate(refused):
            if alike >> index & 1:
                yield Inseparable(admitted=one.names, refused=other.names, facts=_unlike(one, other))


def _rank(one: LabelSet) -> tuple[list[tuple[int, str]], tuple[str, ...]]:
    texts = [one.labels.get(key, "") for key in KNOWN]
    return [(integer(text) or 0, text) for text in texts], one.names


def _unlike(one: LabelSet, other: LabelSet) -> tuple[str, ...]:
    """The facts in which two hosts with the same labels differ, as `container_toolkit 1.17.4 / not stated`."""
    if not one.hosts or not other.hosts:
        return ()
    ours, theirs = dict(_facts(one.hosts[0])), dict(_facts(other.hosts[0]))
    keys = dict.fromkeys((*ours, *theirs))
    unlike = [key for key in keys if ours.get(key) != theirs.get(key)]
    return tuple(f"{key} {ours.get(key, 'not stated')} / {theirs.get(key, 'not stated')}" for key in unlike)


def _facts(host: Host) -> Iterator[tuple[str, str]]:
    for key, value in plain_data(host).items():
        if isinstance(value, dict):
            yield from ((f"{key}.{part}", str(item)) for part, item in value.items())
        elif isinstance(value, list):
            yield key, "; ".join(_flat(item) for item in value) or "none"
        else:
            yield key, str(value)


def _flat(item: object) -> str:
    return " ".join(str(part) for part in item.values()) if isinstance(item, dict) else str(item)


def _term(box: Box) -> Term:
    return tuple(expression for key in KNOWN if key in box for expression in _expressions(key, box[key]))


def _expressions(key: str, constraint: Constraint) -> Iterator[Expression]:
    """A constraint in the operators there are: `Gt` and `Lt` leave out the number they name, and no label is negative.

    A single number is one between two others, for `In` compares text: to it the revisions `2` and `02` differ.
    """
    if isinstance(constraint, Absent):
        yield Expression(key=key, operator="DoesNotExist")
    elif isinstance(constraint, Bounds):
        assert constraint.low or constraint.high is not None, "no expression says `any number`"
        if constraint.low:
            yield Expression(key=key, operator="Gt", values=(str(constraint.low - 1),))
        if constraint.high is not None:
            yield Expression(key=key, operator="Lt", values=(str(constraint.high + 1),))
    else:
        values = sorted(constraint, key=lambda text: (integer(text) or 0, text))
        yield Expression(key=key, operator="In", values=tuple(values))


def _term_rank(term: Term) -> list[tuple[str, str, list[tuple[int, str]]]]:
    return [(one.key, one.operator, [(integer(value) or 0, value) for value in one.values]) for one in term]
