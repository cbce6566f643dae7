"""Wheel tags: the rank of each tag that an environment accepts, and the reason why it accepts no tag of a release; pure.

The platform tags are those of the target environment. packaging's defaults describe the machine they run on, so only its
generators with explicit platforms are used.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.index.pages.filename import is_variant
from provisioner.platforms import PLATFORMS
from provisioner.versions import dotted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from provisioner.index.model import Environment

MACHINES = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}
OLDEST_GLIBC = {"x86_64": 5, "aarch64": 17}
"""Machine -> the x of the oldest glibc 2.x that has a manylinux tag. Source: PEP 600, PEP 599 (manylinux2014)."""

LEGACY = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
"""The x of glibc 2.x -> its legacy manylinux tag. Source: PEP 600, "Legacy manylinux tags"."""

ANY_GLIBC = (2, 99)
"""The glibc assumed when the target's is unknown, so that no wheel is excluded; `glibc_needed` returns what a wheel needs."""

ANY_MACOS = (99, 0)
"""The deployment target assumed when the target's is unknown, so that no wheel is excluded."""

_MANYLINUX = re.compile(r"manylinux_(\d+)_(\d+)_(\w+)|manylinux(1|2010|2014)_(\w+)")
_LEGACY_GLIBC = {"1": (2, 5), "2010": (2, 12), "2014": (2, 17)}
_MACOS = re.compile(r"macosx_(\d+)_(\d+)_\w+")


def python_release(environment: Environment) -> tuple[int, int]:
    """Return major and minor number of the target's Python."""
    major, minor, *_ = environment.python.split(".")
    return int(major), int(minor)


def platform_tags(environment: Environment) -> tuple[str, ...]:
    """Return the platform tags the target accepts, best first."""
    system, _, machine = environment.platform.partition("/")
    if system == "linux":
        return tuple(_linux_tags(MACHINES.get(machine, machine), environment.glibc or ANY_GLIBC))
    from packaging.tags import mac_platforms

    return tuple(mac_platforms(environment.macos or ANY_MACOS, machine))


def _linux_tags(machine: str, glibc: tuple[int, int]) -> Iterable[str]:
    for minor in range(glibc[1], OLDEST_GLIBC.get(machine, 17) - 1, -1):
        yield f"manylinux_2_{minor}_{machine}"
        if minor in LEGACY:
            yield f"{LEGACY[minor]}_{machine}"
    yield f"linux_{machine}"


@lru_cache(maxsize=16)
def tag_ranks(environment: Environment) -> Mapping[str, int]:
    """Return the rank, 0 the best, of every single tag (`cp312-cp312-manylinux_2_17_x86_64`) that the target accepts."""
    from packaging.tags import compatible_tags, cpython_tags

    platforms = platform_tags(environment)
    release = python_release(environment)
    interpreter = f"cp{release[0]}{release[1]}"
    # Until 3.7 the ABI's name tells how objects are allocated (PEP 3149), and every published build says `m`.
    abi = f"{interpreter}m" if release < (3, 8) else interpreter
    ranks: dict[str, int] = {}
    for tag in (*cpython_tags(release, [abi], platforms), *compatible_tags(release, interpreter, platforms)):
        ranks.setdefault(str(tag), len(ranks))
    return ranks


class TagRanks(dict[str, int | None]):
    """The ranks of wheel tags, also compressed ones, computed at the first look-up; None for a tag that is not accepted."""

    def __init__(self, environment: Environment) -> None:
        super().__init__()
        self._ranks = tag_ranks(environment)

    def __missing__(self, tag: str) -> int | None:
        rank = self[tag] = best_rank(tag, self._ranks)
        return rank


@lru_cache(maxsize=16)
def filename_ranks(environment: Environment) -> TagRanks:
    """Return the table of tag ranks of an environment, shared by all projects, whose files repeat a few hundred tags."""
    return TagRanks(environment)


@lru_cache(maxsize=65536)
def expanded(tag: str) -> tuple[str, ...]:
    """Return the single tags of a compressed tag: `py2.py3-none-any` -> `py2-none-any`, `py3-none-any`; empty if malformed."""
    parts = tag.lower().split("-")
    if len(parts) != 3:
        return ()
    interpreters, abis, platforms = (part.split(".") for part in parts)
    return tuple(f"{i}-{a}-{p}" for i in interpreters for a in abis for p in platforms)


def best_rank(tag: str, ranks: Mapping[str, int]) -> int | None:
    """Return the rank of the best single tag of a wheel tag, compressed or not; None when `ranks` has none of its tags."""
    return min((ranks[one] for one in expanded(tag) if one in ranks), default=None)


def glibc_needed(filename: str) -> tuple[int, int] | None:
    """Return the oldest glibc a manylinux wheel promises to run on; None for files that are not manylinux wheels."""
    if not filename.endswith(".whl"):
        return None
    found = [glibc_of(platform) for platform in filename.removesuffix(".whl").rpartition("-")[2].split(".")]
    return min((glibc for glibc in found if glibc is not None), default=None)


def glibc_of(platform: str) -> tuple[int, int] | None:
    """Return the glibc of one manylinux platform tag; None for any other tag."""
    match = _MANYLINUX.fullmatch(platform)
    if match is None:
        return None
    return (int(match[1]), int(match[2])) if match[1] else _LEGACY_GLIBC[match[4]]


@lru_cache(maxsize=4096)
def platform_of(tag: str) -> str:
    """Return the platform of a platform tag: `linux/amd64`, `macos/arm64`, `windows`, `any`; an unknown tag unchanged."""
    machine = next((name for name in ("x86_64", "aarch64", "arm64", "universal2") if tag.endswith(name)), "")
    named = {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
    if tag.startswith(("manylinux", "linux_")):
        return f"linux/{named or tag.rpartition('_')[2]}"
    if tag.startswith("musllinux"):
        return f"musl linux/{named or tag.rpartition('_')[2]}"
    if tag.startswith("macosx"):
        return f"macos/{machine or tag.rpartition('_')[2]}"
    return "windows" if tag.startswith("win") else tag


class _Accepted(Struct, frozen=True):
    """The parts of the tags that a target accepts.

    `pythons` are interpreter and ABI (`cp312-cp312`), `platforms` the platform tags, `names` the results of `platform_of` for
    these.
    """

    pythons: frozenset[str]
    platforms: frozenset[str]
    names: frozenset[str]


@lru_cache(maxsize=16)
def _accepted(environment: Environment) -> _Accepted:
    tags = [tag.rpartition("-") for tag in tag_ranks(environment)]
    return _Accepted(
        pythons=frozenset(python for python, _, _ in tags),
        platforms=frozenset(platform for _, _, platform in tags),
        names=frozenset({environment.platform, *(platform_of(tag) for tag in platform_tags(environment))}),
    )


class Incompatibility(Struct, frozen=True):
    """The reason, as text, why no file of a release can be installed on the target.

    `component` is the property of the target that would have to change: `python`, `glibc`, `platform`, or "" when the cause is
    the file itself. `allowance` is the value of `policy.allow` that would make a file acceptable, "" when no value would.
    """

    text: str
    component: str = ""
    allowance: str = ""


@lru_cache(maxsize=1024)
def wheel_incompatibility(tags: frozenset[str], environment: Environment) -> Incompatibility:
    """Return the reason why the target accepts no wheel with any of `tags`, which must not be empty or contain an accepted tag.

    The result is cached, because most versions of a project have wheels with the same tags as the version before.
    """
    singles = [single.split("-") for tag in tags for single in expanded(tag)]
    labels = sorted({tag.split("-")[3] for tag in tags if is_variant(tag)})
    if labels and not singles:
        return Incompatibility(
            f"only wheel variants ({', '.join(labels)}), which no installer chooses among yet (draft PEP 825)"
        )
    platforms = _accepted(environment).platforms
    here = [parts for parts in singles if parts[2] in platforms]
    if here:
        interpreters = sorted({parts[0] if parts[1] in {"none", "abi3"} else parts[1] for parts in here}, key=_natural)
        major, minor = python_release(environment)
        return Incompatibility(
            f"no wheel for cp{major}{minor} on {environment.platform} (has {', '.join(interpreters)})", "python"
        )
    return _platform_incompatibility(singles, environment)


def _platform_incompatibility(singles: list[list[str]], environment: Environment) -> Incompatibility:
    """Return the reason why no platform tag fits: a glibc or macOS that is too old, or wheels for other platforms only.

    `singles` are the parts (interpreter, ABI, platform) of each single tag.
    """
    accepted = _accepted(environment)
    alike = [parts for parts in singles if platform_of(parts[2]) in accepted.names]
    usable = [parts[2] for parts in alike if "-".join(parts[:2]) in accepted.pythons] or [parts[2] for parts in alike]
    newer = min((glibc for glibc in map(glibc_of, usable) if glibc is not None), default=None)
    if newer is not None and environment.platform.startswith("linux"):
        glibc = environment.glibc or ANY_GLIBC
        return Incompatibility(
            f"no wheel for glibc {dotted(glibc)} on {environment.platform} (needs glibc {dotted(newer)})", "glibc"
        )
    targets = [(int(match[1]), int(match[2])) for match in map(_MACOS.fullmatch, usable) if match]
    if targets and environment.macos is not None:
        oldest, macos = min(targets), environment.macos
        return Incompatibility(f"no wheel for macOS {dotted(macos)} (needs macOS {dotted(oldest)})", "platform")
    platforms = sorted({platform_of(parts[2]) for parts in singles})
    is_target = any(re.fullmatch(row.wheel_tags, parts[2]) for row in PLATFORMS.values() for parts in singles)
    text = f"no wheel for {environment.platform} (has {', '.join(platforms)})"
    return Incompatibility(text, "platform" if is_target else "")


@lru_cache(maxsize=1024)
def _natural(text: str) -> list[tuple[int, str]]:
    """Return a sort key that orders cp39 before cp310: the digits after the first are compared as one number."""
    match = re.fullmatch(r"(\D+)(\d)(\d*)(.*)", text)
    return [(0, match[1]), (int(match[2]), ""), (int(match[3] or 0), match[4])] if match else [(1, text)]
