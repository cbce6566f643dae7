"""A second opinion on each conflict that provision tells: uv refuses its requests, and answers when any one is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from hard_problems import PATCHES, Host, Problem, asked_at
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Ask = Callable[[Sequence[str], str, Sequence[str]], bool]
    """Whether uv has an answer for these packages and this Python, with final wheels alone of some distributions."""

    Pip = Callable[[str, str], bool]
    """Whether pip has a wheel that it would install for a requirement and a Python, whatever that requires."""

AGREED = "agrees"
OF_THE_SYSTEM = "of the system"
PIP_AGREES = "pip agrees; uv repairs metadata that the standard does not allow"
UNDISPUTED = (AGREED, PIP_AGREES, OF_THE_SYSTEM)


class Opinion(msgspec.Struct, frozen=True):
    """What uv made of one conflict: `verdict` is `agrees`, `of the system` where uv cannot be asked, or what it disputes.

    Where the files of a distribution are unusable it may be what pip says of them.
    """

    requests: tuple[str, ...]
    told: str
    verdict: str


def opinion(conflict: dict[str, Any], problem: Problem, host: Host, answers: Ask, has_wheel: Pip) -> Opinion:
    """Return uv's opinion of a conflict, in the JSON of provision.

    A conflict in which Python takes no part is told of every Python that the request permits, so uv has to refuse each. Without
    one of the requests it is enough that some Python has an answer, and where Python itself is left out, any does. Where the
    system takes part, uv cannot refuse what is told; but what it refuses without the system needs no system.

    uv is asked with PyPI alone, which has one build of each release of PyTorch. A request that takes part because it settles
    from which index that build is, as a distribution that is compiled against it does, leaves uv nothing to answer with: what
    PyTorch's own indexes have is not looked at. So without such a request uv is not asked.

    Where the reason is a policy, uv gets the same one: of a distribution whose other files `allow` would have to admit it is to
    take final wheels alone. And uv repairs requirements that are not valid, such as `numpy>=1.19.*`; whether files with them
    can be used at all is asked of pip.
    """
    asked = asked_at(problem, host)
    requests, is_of_system = _members(conflict, asked)
    settling = _settling_the_build(conflict)
    named = tuple(f"python {problem.python}" if one == "python" else one for one in requests)
    packages = [one for one in requests if one != "python"]
    wheels_only = _limited_by_policy(conflict)
    accepted = [python for python in reversed(problem.pythons) if answers(packages, python, wheels_only)]
    if is_of_system and not accepted:
        return Opinion(named, conflict["conclusion"], "uv refuses these packages without the system too")
    if accepted and not is_of_system:
        unusable = [one for one in packages if _name(one) in _unusable(conflict)]
        if unusable and not any(has_wheel(one, python) for one in unusable for python in accepted):
            return Opinion(named, conflict["conclusion"], PIP_AGREES)
        return Opinion(named, conflict["conclusion"], f"uv has an answer on Python {', '.join(accepted)}")
    needless = []
    for one in () if is_of_system else [one for one in requests if _name(one) not in settling]:
        rest = [other for other in packages if other != one]
        pythons = PATCHES if one == "python" else problem.pythons
        if not any(answers(rest, python, wheels_only) for python in reversed(list(pythons))):
            needless.append(f"uv refuses without `{one}` too")
    agreed = OF_THE_SYSTEM if is_of_system else AGREED
    return Opinion(named, conflict["conclusion"], "; ".join(needless) or agreed)


def _members(conflict: dict[str, Any], asked: dict[int, str]) -> tuple[list[str], bool]:
    """Return the requests of a conflict, and whether it rests on more than packages, Python and the platform."""
    requests: list[str] = []
    is_of_system = False
    for member in conflict["members"]:
        if member["kind"] == "request":
            for source in member["sources"]:
                line = int(source["place"].rpartition(":")[2] or 0)
                if line in asked:
                    requests.append(asked[line])
                elif member["component"] not in {"platform", "glibc"}:
                    is_of_system = True
        elif member["kind"] == "rule":
            is_of_system = is_of_system or not (_is_compiled_against(member) or _is_of_packages(member))
        elif member["component"] not in {"platform", "glibc"}:
            is_of_system = True
    return list(dict.fromkeys(requests)), is_of_system


def _settling_the_build(conflict: dict[str, Any]) -> set[str]:
    """Return the distributions of a conflict of which it is told that they are compiled against a build of PyTorch."""
    members = [member for member in conflict["members"] if member["kind"] == "rule" and _is_compiled_against(member)]
    return {clause["subject"] for member in members for clause in member["clauses"]}


def _limited_by_policy(conflict: dict[str, Any]) -> list[str]:
    """Return the distributions of a conflict of which a word of `policy.allow` would admit more files."""
    return sorted({clause["subject"] for clause in _no_file(conflict) if clause.get("allow")})


def _unusable(conflict: dict[str, Any]) -> set[str]:
    """Return the distributions of a conflict that have no file which can be used, whatever the policy allows."""
    return {clause["subject"] for clause in _no_file(conflict) if not clause.get("allow")}


def _no_file(conflict: dict[str, Any]) -> list[dict[str, Any]]:
    clauses = (clause for member in conflict["members"] if member["kind"] == "rule" for clause in member["clauses"])
    return [clause for clause in clauses if clause["type"] == "no-file"]


def _is_compiled_against(member: dict[str, Any]) -> bool:
    return all(clause["type"] == "compiled-against" for clause in member["clauses"])


def _is_of_packages(member: dict[str, Any]) -> bool:
    sources = [one["source"] for one in member["sources"]]
    return all(source == "index" or source.startswith(("metadata of ", "index ")) for source in sources)


def _name(request: str) -> str:
    """Return the normalized name of the distribution that a request names; `python` is its own."""
    return canonicalize_name(request if request == "python" else Requirement(request).name)
