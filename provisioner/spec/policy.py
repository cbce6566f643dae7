"""Whether a spec's `policy` means something: dates, words that contradict each other, ranges, and what they are ranges of.

Reads the plain data, not the model, so that these mistakes are reported together with the model's own.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from provisioner.names import COMPONENT_OF_DISTRIBUTION, nearest
from provisioner.spec.interval import interval_of_range
from provisioner.versions import Range

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from provisioner.document import Document, KeyPath
    from provisioner.errors import Mistake
    from provisioner.spec.model import Spec

TABLES = {"prefer": "preferred", "avoid": "avoided"}

GIVEN = frozenset({"accelerator", "arch_list", "gpu", "platform"})
"""What the target or the spec states and nobody chooses."""

_DISTRIBUTION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_EXACT = frozenset({"==", ">=", "<=", "<", "~="})
"""Clauses whose interval is exactly what they allow."""

_ALIKE = 0.8
"""How much a name must be like a component's to be taken for a slip: `cupy`, a distribution, is less like `cupti`."""


def policy_mistakes(document: Document, named: Collection[str]) -> Iterator[Mistake]:
    """Every mistake in the policy that shows without a matrix; `named` are components whose values are names."""
    policy = document.data.get("policy") if isinstance(document.data, dict) else None
    if not isinstance(policy, dict):
        return
    yield from _day(document, policy.get("exclude-newer"))
    yield from _both(document, policy.get("allow"), policy.get("forbid"))
    ranges: dict[str, dict[str, tuple[KeyPath, Range]]] = {}
    for table in TABLES:
        found: dict[str, tuple[KeyPath, Range]] = {}
        yield from _table(document, table, named=named, found=found)
        ranges[table] = found
    yield from _moot(document, ranges["prefer"], ranges["avoid"])


def _day(document: Document, text: object) -> Iterator[Mistake]:
    if not isinstance(text, str):
        return
    try:
        datetime.fromisoformat(text.strip())
    except ValueError:
        advice = "a date such as 2026-09-01 or a timestamp such as 2026-09-01T12:00:00Z"
        yield document.mistake(("policy", "exclude-newer"), f"`{text}` is not {advice}")


def _both(document: Document, allow: object, forbid: object) -> Iterator[Mistake]:
    allowed = allow if isinstance(allow, tuple) else ()
    for index, word in enumerate(forbid if isinstance(forbid, tuple) else ()):
        if isinstance(word, str) and word in allowed:
            line = document.position(("policy", "allow", allowed.index(word))).line
            yield document.mistake(
                ("policy", "forbid", index), f"`{word}` is allowed on line {line} and forbidden here; keep one"
            )


def _table(
    document: Document, table: str, *, named: Collection[str], found: dict[str, tuple[KeyPath, Range]]
) -> Iterator[Mistake]:
    """Check one table, and put the ranges that can be compared into `found`, by what they are of."""
    entries = document.data["policy"].get(table)
    seen: dict[str, int] = {}
    for name, text in entries.items() if isinstance(entries, dict) else ():
        path: KeyPath = ("policy", table, name)
        subject = _subject(name)
        if subject in seen:
            yield document.mistake(path, f"`{name}` is named twice; the first is on line {seen[subject]}")
        seen.setdefault(subject, document.position(path).line)
        if name in GIVEN:
            yield document.mistake(path, f"`{name}` is given, not chosen, so that nothing can be {TABLES[table]}")
        elif isinstance(text, str) and name not in named:
            fault = _range_fault(text)
            if fault:
                yield document.mistake(path, fault)
                continue
            try:
                found[subject] = path, Range.parse(text)
            except ValueError:
                continue


def _range_fault(text: str) -> str | None:
    """What is wrong with a range of a component or, as installers read it, of a distribution."""
    try:
        wanted = Range.parse(text)
    except ValueError as error:
        try:
            SpecifierSet(text)
        except InvalidSpecifier:
            return str(error)
        return None
    if not wanted.clauses:
        return f"`{text}` is every version, which puts none before another"
    return f"`{text}` allows no version at all" if interval_of_range(wanted).is_empty else None


def _moot(
    document: Document, prefer: dict[str, tuple[KeyPath, Range]], avoid: dict[str, tuple[KeyPath, Range]]
) -> Iterator[Mistake]:
    """Preferences that can never count, because all of what they prefer is avoided."""
    for name, (path, wanted) in prefer.items():
        other, avoided = avoid.get(name, (path, None))
        if avoided is None or not all(clause.operator in _EXACT for clause in avoided.clauses):
            continue
        if interval_of_range(avoided).holds(interval_of_range(wanted)):
            line = document.position(other).line
            text = f"all of `{wanted}` is avoided on line {line}, so that nothing is preferred; keep one"
            yield document.mistake(path, text)


def unknown_names(document: Document, spec: Spec, known: Collection[str]) -> Iterator[Mistake]:
    """Names in `prefer` and `avoid` that are slips for a component; any other name is a distribution's.

    A distribution that is named under `packages` is meant, however much like a component's its name is.
    """
    packages = {canonicalize_name(re.split(r"[^\w.-]", text.strip(), maxsplit=1)[0]) for text in spec.packages}
    for table in TABLES:
        for name in getattr(spec.policy, table):
            path: KeyPath = ("policy", table, name)
            if name in known or _subject(name) in known or canonicalize_name(name) in packages:
                continue
            near = _slip(name, known)
            if near is not None:
                advice = "name a Python package of this name under `packages`, too"
                yield document.mistake(path, f"`{name}` is not a component of the matrix; did you mean `{near}`? {advice}")
            elif not _DISTRIBUTION.fullmatch(name):
                yield document.mistake(path, f"`{name}` is neither a component of the matrix nor the name of a distribution")


def _slip(name: str, known: Collection[str]) -> str | None:
    """The component a name is a slip for, if any."""
    from difflib import SequenceMatcher

    near = nearest(name.lower(), known)
    if near is None or abs(len(near) - len(name)) > 1:
        return None
    return near if SequenceMatcher(None, name.lower(), near).ratio() >= _ALIKE else None


def _subject(name: str) -> str:
    """One name for what has two."""
    canonical = canonicalize_name(name)
    return COMPONENT_OF_DISTRIBUTION.get(canonical, canonical if "_" not in name else name)
