"""Compute a Kubernetes node affinity for a stack: it admits the nodes of the stack's hosts and refuses all other hosts.

An affinity starts from the requirements of the stack on a node, so that a node outside of the inventory is admitted only if the
stack runs on it; as few constraints as possible are then added to refuse the hosts of other stacks. Versions are compared as
integers, as the operators `Gt` and `Lt` do.

A `LabelSet` is hosts with the same labels: `admitted` ones are of the stack, `refused` ones are not. A box (`Box`) is a set of
constraints, at most one for each label; it holds the label sets that meet all of them, and becomes one term of the affinity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from provisioner.fleet.affinity_needs import Absent, Bounds, integer
from provisioner.fleet.affinity_terms import LAST_RESORT, Expansion, Population, fewest, point
from provisioner.fleet.labels import LabelSet, drivers_named, with_newer_driver
from provisioner.grounds.affinity import FactDifference, Inseparable, NamedLabel, UnlabelledRequirement, Unreached
from provisioner.node_labels import DRIVER, KNOWN, OLD_DRIVER, Expression, between
from provisioner.strict_model import plain_data

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.fleet.affinity_needs import Box, Constraint, Needs
    from provisioner.grounds.affinity import AffinityLimit
    from provisioner.host.model import Host
    from provisioner.node_labels import Term


_MOST_STARTS = 200
"""The number of label sets around which a box is grown even if another box holds them already.

A higher number gives more boxes to choose from, and takes more time.
"""


class Affinity(Struct, frozen=True, kw_only=True):
    """The terms of a node affinity, of which one must hold, and the limits of what labels can express.

    `unreached` are hosts of the stack that the affinity does not admit, `inseparable` hosts of other stacks that it admits.
    `unshown` are requirements of the stack that no label shows. `by_name` are labels with names (product, machine, instance
    type, kernel release) with which some term tells hosts apart, because no label with a number differs.
    """

    terms: tuple[Term, ...]
    unreached: tuple[Unreached, ...] = ()
    inseparable: tuple[Inseparable, ...] = ()
    unshown: tuple[UnlabelledRequirement, ...] = ()
    by_name: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether the affinity admits every host of the stack and none of the others."""
        return not self.unreached and not self.inseparable

    @property
    def limits(self) -> tuple[AffinityLimit, ...]:
        """Everything that the affinity cannot express exactly, in the order of the report."""
        return (*map(NamedLabel, self.by_name), *self.unreached, *self.inseparable, *self.unshown)

    @property
    def node_selector(self) -> dict[str, str]:
        """The affinity as a plain `nodeSelector`; empty if it is not a single term of equalities."""
        if len(self.terms) != 1 or any(one.operator != "In" or len(one.values) != 1 for one in self.terms[0]):
            return {}
        return {one.key: one.values[0] for one in self.terms[0]}

    def manifest(self) -> dict[str, Any]:
        """Return the value of `affinity:` in a pod's manifest.

        The result is empty if the affinity has no terms, because no host's labels show what the stack needs: in Kubernetes, a
        node affinity without terms admits no node.
        """
        if not self.terms:
            return {}
        terms = [{"matchExpressions": [one.document() for one in term]} for term in self.terms]
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def node_affinity(admitted: Sequence[LabelSet], refused: Sequence[LabelSet], needs: Needs) -> Affinity:
    """Return the affinity of a stack, which admits its hosts and refuses the others as far as labels tell them apart.

    `admitted` are the label sets of the stack's hosts, `refused` those of all other hosts. A host of `admitted` whose labels do
    not show what the stack needs is listed in `unreached`, a host of `refused` with the same labels as one of `admitted` in
    `inseparable`. A host stays admitted after an upgrade of its driver, if the stack runs with the newer driver and no refused
    host has the labels that the upgrade gives. The result does not depend on the order of the hosts.
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
    """Return the labels that the admitted hosts have after an upgrade of their drivers.

    If an affinity did not admit these labels, a node's pods would be driven away at its next driver upgrade. An upgrade is left
    out if the stack does not run with the newer driver, or if the new labels are those of a refused host.
    """
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
    """Return few boxes that together hold every admitted label set.

    None holds a refused label set, unless its labels equal those of an admitted one. `shared` are the names of the driver's
    version labels to use for all nodes, () to use the names that each node has.
    """
    inside, outside = (Population([one.labels for one in sets]) for sets in (admitted, refused))
    candidates: dict[frozenset[tuple[str, Constraint]], tuple[Box, int]] = {}
    expansions: dict[tuple[str, ...], Expansion] = {}
    covered = 0
    for index, one in enumerate(admitted):
        # A box also holds other hosts than the one it is grown around: in a large fleet most hosts are in an earlier box
        # already.
        if index >= _MOST_STARTS and covered >> index & 1:
            continue
        drivers = shared or drivers_named(one.labels)
        expansion = expansions.setdefault(drivers, Expansion(inside, outside, needs, drivers))
        for box in expansion.boxes(one.labels):
            _, held = candidates.setdefault(frozenset(box.items()), (box, inside.within(box)))
            covered |= held
    return fewest(list(candidates.values()), inside.all)


def _shared_names(sets: Sequence[LabelSet], needs: Needs) -> tuple[str, ...]:
    """Return the names of the driver's version labels, current or else former, that all nodes have; () without such names.

    A node counts only if the labels of these names show that it meets `needs`.

    Feature discovery writes the former names beside the current ones, so that the former names suit all nodes if one old node
    has only those.
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


def _unlike(one: LabelSet, other: LabelSet) -> tuple[FactDifference, ...]:
    """Return the facts in which an admitted and a refused host with the same labels differ; () without a profile of either."""
    if not one.hosts or not other.hosts:
        return ()
    ours, theirs = dict(_facts(one.hosts[0])), dict(_facts(other.hosts[0]))
    keys = dict.fromkeys((*ours, *theirs))
    return tuple(
        FactDifference(fact=key, admitted=ours.get(key), refused=theirs.get(key))
        for key in keys
        if ours.get(key) != theirs.get(key)
    )


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
    """Yield a constraint as match expressions."""
    if isinstance(constraint, Absent):
        yield Expression(key=key, operator="DoesNotExist")
    elif isinstance(constraint, Bounds):
        assert constraint.low or constraint.high is not None, "no expression says `any number`"
        yield from between(key, constraint.low, constraint.high)
    else:
        values = sorted(constraint, key=lambda text: (integer(text) or 0, text))
        yield Expression(key=key, operator="In", values=tuple(values))


def _term_rank(term: Term) -> list[tuple[str, str, list[tuple[int, str]]]]:
    return [(one.key, one.operator, [(integer(value) or 0, value) for value in one.values]) for one in term]
