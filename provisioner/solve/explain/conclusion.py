"""What a conflict comes to, in one sentence: what is not left, and for whom."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.solve.requirement import Labelled, Within
from provisioner.solve.rules.devices import FRAMEWORKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.solve.requirement import Requirement
    from provisioner.solve.search.proof import Member
    from provisioner.solve.search.universe import Universe

QUESTION = "you ask why not "
ASKED = re.compile(r"you (?:require|ask why not) ")
MOST_NAMED = 3


def conclusion(universe: Universe, groups: Sequence[Sequence[Member]]) -> str:
    """Say what follows from the members of a conflict, given in the order in which they are told."""
    roots = [one for members in groups for parent, one in members if parent is None]
    requests = [one for one in roots if ASKED.match(one.origin.text)]
    # What else was asked for is said beside what the environment is for.
    asked = list(dict.fromkeys(_asked(one) for one in sorted(requests, key=_is_beside)))
    for_whom = _for_whom(universe, roots)
    question = next((one for one in requests if one.origin.text.startswith(QUESTION)), None)
    if question is not None:
        return f"so {_asked(question)} cannot be chosen{for_whom}"
    if asked:
        first, *others = asked
        beside = f" that goes with {_and(others)}" if others else ""
        return f"so no {first} is left{beside}{for_whom}"
    wanted = next((one for one in roots if _is_open(one)), None)
    if wanted is not None:
        return f"so no {wanted.key.component} is left{for_whom}"
    stated = [one for one in roots if one.origin.kind == "fact"]
    refused = next((what for one in roots if (what := _refused(one, stated))), "")
    if refused:
        return f"so {refused}{for_whom}"
    if stated:
        return f"so {'these facts do not go together' if len(stated) > 1 else 'this cannot be'}{for_whom}"
    return f"so nothing is left to choose{for_whom}"


def _refused(requirement: Requirement, stated: Sequence[Requirement]) -> str:
    """What a line of the spec that names no version comes to; "" where the requirement is no such line."""
    if requirement.origin.kind != "request":
        return ""
    if requirement.key.component == "accelerator":
        return f"nothing can be accelerated with {requirement.test}"
    if requirement.key.component == "image":
        return "this base image cannot be used"
    if requirement.key.component == "policy" and stated:
        return f"{' and '.join(dict.fromkeys(str(_stated(one)) for one in stated))} cannot stay under this policy"
    return ""


def _stated(requirement: Requirement) -> str:
    return requirement.origin.text.removeprefix("the host has ").partition(" (")[0]


def _asked(requirement: Requirement) -> str:
    return ASKED.sub("", requirement.origin.text, count=1).partition(" (")[0]


def _is_beside(requirement: Requirement) -> bool:
    return not requirement.key.is_package and requirement.key.component not in FRAMEWORKS


def _is_open(requirement: Requirement) -> bool:
    """Whether a requirement only says that there must be one."""
    return isinstance(requirement.test, Within) and not requirement.test.range.clauses


def _for_whom(universe: Universe, roots: Sequence[Requirement]) -> str:
    """The hosts whose facts take part, by name where there are several; else the platform, where that does."""
    hosts = universe.problem.request.hosts
    taking_part = dict.fromkeys(one.key.world for one in roots if one.key.world and not one.key.is_package)
    concerned = [target.label for target in hosts if target.label in taking_part]
    if concerned:
        is_one = sum(target.count for target in hosts) == 1
        return " for this host" if is_one else f" for {_and(concerned)}"
    platform = next((one.test for one in roots if one.key.name == "platform" and isinstance(one.test, Labelled)), None)
    return f" for {platform}" if platform is not None else ""


def _and(names: Sequence[str]) -> str:
    if len(names) > MOST_NAMED:
        return f"{', '.join(names[: MOST_NAMED - 1])} and {len(names) - MOST_NAMED + 1} more"
    return " and ".join(names) if len(names) <= 2 else f"{', '.join(names[:-1])} and {names[-1]}"
