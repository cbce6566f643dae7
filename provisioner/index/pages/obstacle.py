"""Why none of a release's wheels installs on the target, in words, and which part of the target is in the way; pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.index.pages.filename import is_variant
from provisioner.index.pages.tags import ANY_GLIBC, expanded, glibc_of, platform_of, platform_tags, python_release, tag_ranks

if TYPE_CHECKING:
    from provisioner.index.model import Environment

_MAC = re.compile(r"macosx_(\d+)_(\d+)_\w+")


class Obstacle(Struct, frozen=True):
    """One reason in words; `component` is `python`, `glibc`, `platform`, or "" when the file itself is the reason."""

    text: str
    component: str = ""


@lru_cache(maxsize=1024)
def wheel_obstacle(tags: frozenset[str], environment: Environment) -> Obstacle:
    """Why the target takes no wheel with any of these tags; at least one is given and none of them is accepted.

    Most versions of a project have the wheels of the version before.
    """
    singles = [one.split("-") for tag in tags for one in expanded(tag)]
    labels = sorted({tag.split("-")[3] for tag in tags if is_variant(tag)})
    if labels and not singles:
        return Obstacle(f"only wheel variants ({', '.join(labels)}), which no installer chooses among yet (draft PEP 825)")
    accepted = _accepted(environment)
    here = [parts for parts in singles if parts[2] in accepted.platforms]
    release = python_release(environment)
    if here:
        interpreters = sorted({parts[0] if parts[1] in {"none", "abi3"} else parts[1] for parts in here}, key=_natural)
        wanted = f"cp{release[0]}{release[1]}"
        return Obstacle(f"no wheel for {wanted} on {environment.platform} (has {', '.join(interpreters)})", "python")
    return _platform_obstacle(singles, environment)


def _platform_obstacle(singles: list[list[str]], environment: Environment) -> Obstacle:
    accepted = _accepted(environment)
    alike = [parts for parts in singles if platform_of(parts[2]) in accepted.names]
    same = [parts[2] for parts in alike]
    usable = [parts[2] for parts in alike if "-".join(parts[:2]) in accepted.pythons] or same
    newer = min((glibc for glibc in map(glibc_of, usable) if glibc is not None), default=None)
    if newer is not None and environment.platform.startswith("linux"):
        glibc = environment.glibc or ANY_GLIBC
        return Obstacle(
            f"no wheel for glibc {glibc[0]}.{glibc[1]} on {environment.platform} (needs glibc {newer[0]}.{newer[1]})", "glibc"
        )
    targets = [(int(match[1]), int(match[2])) for match in map(_MAC.fullmatch, usable) if match]
    if targets and environment.macos is not None:
        oldest, macos = min(targets), environment.macos
        return Obstacle(f"no wheel for macOS {macos[0]}.{macos[1]} (needs macOS {oldest[0]}.{oldest[1]})", "platform")
    platforms = sorted({platform_of(parts[2]) for parts in singles})
    return Obstacle(f"no wheel for {environment.platform} (has {', '.join(platforms)})", "platform")


class _Accepted(Struct, frozen=True):
    """What the target takes, part by part of a tag; `names` are those of the platforms whose wheels are for its machine."""

    pythons: frozenset[str]
    platforms: frozenset[str]
    names: frozenset[str]


@lru_cache(maxsize=16)
def _accepted(environment: Environment) -> _Accepted:
    tags = [tag.rsplit("-", 1) for tag in tag_ranks(environment)]
    return _Accepted(
        pythons=frozenset(tag[0] for tag in tags),
        platforms=frozenset(tag[1] for tag in tags),
        names=frozenset({environment.platform, *(platform_of(tag) for tag in platform_tags(environment))}),
    )


@lru_cache(maxsize=1024)
def _natural(text: str) -> list[tuple[int, str]]:
    """An order in which cp39 stands before cp310: the digits after the major number are one number."""
    match = re.fullmatch(r"(\D+)(\d)(\d*)(.*)", text)
    return [(0, match[1]), (int(match[2]), ""), (int(match[3] or 0), match[4])] if match else [(1, text)]
