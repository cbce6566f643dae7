"""What the GPUs of the target refuse of a distribution that has no file, so that a file would not help.

A distribution without wheels is told by what files it has. Rows of the matrix may say that some of its versions stop on the
GPUs of the target, in whatever file they come: that is what keeps those out, and permission to build them is no way out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from provisioner.grounds.conflict import Conflict
from provisioner.grounds.requirement import FILES, Relation
from provisioner.resolver.explain.conflict import KINDS, conclusion_of, member_of_group, ordered_groups
from provisioner.resolver.search.proof import Member as Required

if TYPE_CHECKING:
    from provisioner.grounds.requirement import Group
    from provisioner.resolver.attempts import Failure
    from provisioner.resolver.requirement import Candidate, Requirement
    from provisioner.resolver.search.instance import ProblemInstance


class _Refused(NamedTuple):
    need: Requirement
    fact: Requirement


def refused_by_gpus(failure: Failure, request: Requirement) -> Conflict | None:
    """Return the conflict about a distribution of which no version has a usable file, with what the GPUs refuse told by that.

    Other versions that `request` and the lines beside it ask for are told by their files. None if no GPU of the target refuses
    a version.
    """
    instance = failure.instance
    lines = [root for root in instance.roots if root.key == request.key]
    found: dict[Group, dict[Required, None]] = {}

    def add(parent: Candidate | None, requirement: Requirement) -> None:
        found.setdefault(requirement.ground.group, {})[Required(parent, requirement)] = None

    for line in lines:
        add(None, line)
    facts = set()
    listed = instance.candidates(request.key)
    refusals = {one: _refused(instance, one) for one in listed if all(line.allows(one) for line in lines)}
    for candidate, refused in refusals.items():
        if refused is None:
            add(candidate, instance.requirements(candidate)[-1])  # that it has no file
            continue
        add(candidate, refused.need)
        facts.add(refused.fact)
    for fact in (root for root in instance.roots if root in facts):
        add(None, fact)
    if not facts:
        return None
    by_group = {group: tuple(members) for group, members in found.items()}
    files = Relation(request.key.project, FILES)
    ordered = ordered_groups(instance, by_group)
    # What the system keeps out is told before what the index lacks.
    ordered.sort(key=lambda group: (KINDS.index(by_group[group][0].requirement.ground.kind), group == files))
    members = tuple(member_of_group(instance, by_group, group) for group in ordered)
    conclusion = conclusion_of(instance, [by_group[group] for group in ordered])
    is_lost = all(refusals.values())
    served = next((one.label for one in listed if is_lost and not one.is_withheld and not _refused(instance, one)), "")
    return Conflict(members=members, conclusion=conclusion, served=served)


def _refused(instance: ProblemInstance, candidate: Candidate) -> _Refused | None:
    """Return what a version needs of a GPU, whatever its file is, with the fact that does not meet it; None if all do."""
    needs = instance.finder.on_gpus(candidate) if instance.finder is not None else ()
    for need in needs:
        for fact in (root for root in instance.roots if root.key == need.key and root.ground.kind == "fact"):
            if not instance.allowed(fact) & instance.allowed(need):
                return _Refused(need, fact)
    return None
