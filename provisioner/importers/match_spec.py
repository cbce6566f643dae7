"""Parse the match specs of conda (`pytorch::torchvision>=0.16`) into a name, PEP 440 specifiers and what else they say.

Sources: conda documentation, "Package search and install specifications" and "Package match specifications", and the draft of
CEP 29 (conda/ceps pull request 82), read 2026-11-23.
"""

from __future__ import annotations

import re

from msgspec import Struct
from packaging.specifiers import InvalidSpecifier, SpecifierSet

_LABEL = re.compile(r"^(?P<channel>.*)::(?P<rest>[^:]*)$")
_SHAPE = re.compile(r"(?P<name>[A-Za-z0-9_][A-Za-z0-9_.-]*)(?P<rest>(?:[\s=<>!~][^\[\]]*)?)(?:\[(?P<brackets>[^\[\]]*)\])?")
_PAIR = re.compile(r"""\s*(?P<key>\w+)\s*=\s*(?P<value>'[^']*'|"[^"]*"|[^,'"]*?)\s*(?:,|$)""")
_SPACED = re.compile(r"\s*(>=|<=|==|!=|~=|[<>,|])\s*")
_WITH_BUILD = re.compile(r"(?P<sign>={0,2})(?P<version>[^=<>!~,|\s]+)=(?P<build>[^=\s]+)")
_CLAUSE = re.compile(r"(?P<operator>>=|<=|==|!=|~=|=|<|>|)(?P<version>[0-9A-Za-z.*!+_-]+)")


class MatchSpec(Struct, frozen=True, kw_only=True):
    """A match spec of conda.

    `specifier` is the range of versions as PEP 440 specifiers, "" for any version, and None if PEP 440 cannot express
    `version`, which is the range as written. `channel` and `build` are "" where the match spec has none; `others` are the keys
    in its brackets that are none of these.
    """

    name: str
    channel: str = ""
    version: str = ""
    specifier: str | None = ""
    build: str = ""
    others: tuple[str, ...] = ()


def parse_match_spec(text: str) -> MatchSpec:
    """Return the match spec that a text spells; raises `ValueError` if it is none."""
    label = _LABEL.match(text.strip())
    channel, rest = (label["channel"], label["rest"]) if label else ("", text.strip())
    match = _SHAPE.fullmatch(rest.strip())
    if match is None:
        raise ValueError(f"`{text}` is not a match spec such as pytorch=2.1 or conda-forge::numpy>=1.26")
    version, build, is_exact = _version_and_build(match["rest"])
    pairs = {pair["key"]: pair["value"].strip("'\"") for pair in _PAIR.finditer(match["brackets"] or "")}
    if "version" in pairs:
        version, is_exact = pairs["version"], True
    return MatchSpec(
        name=match["name"].lower(),
        channel=channel or pairs.get("channel", ""),
        version=version,
        specifier=_specifier(version, is_exact=is_exact),
        build=build or pairs.get("build", ""),
        others=tuple(key for key in pairs if key not in {"version", "build", "channel"}),
    )


def _version_and_build(text: str) -> tuple[str, str, bool]:
    """Return the version, the build, and whether a version without an operator is that very one.

    It is with a space before it or a build behind it, and stands for its series behind a single `=`.
    """
    rest = _SPACED.sub(r"\1", text.rstrip())
    is_spaced = rest[:1].isspace()
    words = rest.split()
    if len(words) == 2:
        return words[0], words[1], True
    body = "".join(words)
    match = _WITH_BUILD.fullmatch(body)
    if match is not None:
        return match["version"], match["build"], True
    if body.startswith("=") and not body.startswith("=="):
        return body, "", False
    return body, "", is_spaced


def _specifier(version: str, *, is_exact: bool) -> str | None:
    """Return a range of conda's as PEP 440 specifiers; None if PEP 440 cannot express it."""
    clauses = []
    for part in version.split(","):
        if part in {"", "*", "=*", "==*"}:
            continue
        match = _CLAUSE.fullmatch(part)
        clause = _clause(match["operator"], match["version"], is_exact=is_exact) if match else None
        if clause is None:
            return None
        clauses.append(clause)
    return ",".join(clauses)


def _clause(operator: str, version: str, *, is_exact: bool) -> str | None:
    number, star, after = version.partition("*")
    number = number.rstrip(".")
    if after or (star and operator not in {"", "=", "==", "!=", ">=", "<"}):
        return None
    if operator in {"", "=", "=="}:
        is_series = bool(star) or operator == "=" or (operator == "" and not is_exact)
        clause = f"=={number}.*" if is_series else f"=={number}"
    else:
        clause = f"{operator}{number}.*" if star and operator == "!=" else f"{operator}{number}"
    try:
        SpecifierSet(clause)
    except InvalidSpecifier:
        return None
    return clause
