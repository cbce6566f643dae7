"""Versions in the spelling of their vendors, and ranges over them.

`packaging.version.Version` cannot represent versions of the system half of a stack: it rewrites `550.144.03` to `550.144.3`,
parses the kernel `5.15.0-105` as a post-release and rejects `5.15.0-105-generic`. A `Version` here preserves the spelling and
compares by its leading dotted integers, which is how NVIDIA, the kernel, CUDA, cuDNN and PyTorch number final releases. Python
packages use `packaging`; this module is for components of the matrix.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

_RELEASE = re.compile(r"v?(\d+(?:\.\d+)*)(.*)", re.DOTALL)
_STRANGE = re.compile(r"[^\w.:~!+-]", re.ASCII)
"""A character that is in no version of a component, kernel or distribution: a comma, a space, a bracket."""

_NUMBERS = re.compile(r"v?\d+(?:\.\d+)*")
_SLIP = re.compile(r"\.*(?:$|(?=[-+~]))|\.\.+|\.?(?:[OolIS]+|(?!(?:[abcfpr]\d)|x86)[A-Za-z])(?![A-Za-z])")
"""What follows the numbers of a version where one of them was mistyped: a dot too many, a letter like a digit, a lone letter.

Vendors write words (`post1`, `rc2`, `el9`), a letter with a number (`b3`, `f01`), and whatever comes after a dash, `+` or `~`.
"""
_LIKE_DIGITS = str.maketrans("OolIS", "00115")

_CLAUSE = re.compile(r"\s*(===|==|!=|<=|>=|~=|<|>)?\s*([^\s,<>=!~^]+)\s*")
_LONGEST = 200
_POST = re.compile(r"[.-]?post(\d+)")


def dotted(numbers: Iterable[int]) -> str:
    """Return numbers as a version text: (12, 6) as `12.6`."""
    return ".".join(map(str, numbers))


_NUMBERED_KERNEL = re.compile(r"\d+\.\d+\.\d+-[1-9]\d*-(?P<flavour>[a-z][a-z0-9-]*)")
_BUILD_OF_KERNEL = re.compile(r"(\d+\.\d+\.\d+)-([1-9]\d*(?:\.\d+)*)(?!\w)")


def numbers_of(text: str) -> tuple[int, ...]:
    """Return the numbers of a version text: `12.6` as (12, 6); raises `ValueError` for a text with anything else."""
    return tuple(map(int, text.split(".")))


def series(text: str) -> str:
    """Return the first two numbers of a version text: `3.12` for `3.12.7`."""
    return ".".join(text.split(".")[:2])


def kernel_flavour(kernel: str) -> str:
    """Return the flavour of a distribution's kernel as `uname -r` prints it: `generic` for `6.8.0-60-generic`; "" for none.

    A kernel that no distribution numbered, such as the mainline build `6.8.0-060800-generic`, has none.
    """
    found = _NUMBERED_KERNEL.fullmatch(kernel)
    return found["flavour"] if found else ""


def without_local(text: str) -> str:
    """Return a version text without its local label (`+cu126`)."""
    return text.partition("+")[0]


class Version(Struct, frozen=True, eq=False, array_like=True, gc=False):
    """One published version of a component.

    `text` is its spelling, `release` the leading integers that order it, `post` the number of a post-release (0 for none), and
    `local` its local label (`cu126`), "" for none.
    """

    text: str
    release: tuple[int, ...]
    post: int = 0
    local: str = ""
    _key: tuple[tuple[int, ...], int, str] = ((), 0, "")

    @classmethod
    def parse(cls, text: str) -> Version:
        """Parse a version; raises `ValueError` with the text when it does not start with a dotted number."""
        return _parse_version(text)

    @classmethod
    def named(cls, text: str) -> Version:
        """Return the "version" of a component whose values are names, such as `driver_module` or `image`."""
        return cls(text, (), 0, "", ((), 0, text))

    @property
    def public(self) -> str:
        """The spelling without the local label (`+cu126`)."""
        return without_local(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._key == other._key

    def __ne__(self, other: object) -> bool:
        return not self == other  # msgspec's `__ne__` would compare all fields, including the spelling

    def __lt__(self, other: Version) -> bool:
        return self._key < other._key

    def __le__(self, other: Version) -> bool:
        return self._key <= other._key

    def __gt__(self, other: Version) -> bool:
        return self._key > other._key

    def __ge__(self, other: Version) -> bool:
        return self._key >= other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        return self.text


@lru_cache(maxsize=65536)
def _parse_version(text: str) -> Version:
    if len(text) > _LONGEST:
        raise ValueError(f"`{text[:20]}…` is not a version: it is {len(text)} characters long")
    strange = _STRANGE.search(text.strip())
    if strange is not None:
        raise ValueError(f"`{text}` is not a version: no version has `{strange[0]}` in it")
    public, _, local = text.strip().partition("+")
    match = _RELEASE.fullmatch(public)
    if match is None:
        raise ValueError(f"`{text}` is not a version: it must start with a number such as 12.6")
    release = tuple(int(part) for part in match[1].split("."))
    post = _POST.fullmatch(match[2])
    number = int(post[1]) if post else 0
    trimmed = release
    while trimmed and trimmed[-1] == 0:
        trimmed = trimmed[:-1]
    return Version(text.strip(), release, number, local, (trimmed, number, ""))


def version_as_written(text: str) -> Version:
    """Parse a version that a person wrote; raises `ValueError` as `Version.parse` does, and for one that was mistyped.

    `58O.95` starts with a number, but no vendor publishes such a version; read as 58, it would be another question's answer.
    """
    version = Version.parse(text)
    slip = _slip(version.text)
    if slip:
        raise ValueError(f"`{text}` is not a version: {slip}")
    return version


def range_as_written(text: str) -> Range:
    """Parse a range that a person wrote; raises `ValueError` as `Range.parse` does, and for a version that was mistyped."""
    found = Range.parse(text)
    for clause in found.clauses:
        slip = _slip(clause.version.text)
        if slip:
            raise ValueError(f"`{text}` is not a range: {slip}")
    return found


def _slip(text: str) -> str:
    """Return where a version was mistyped, with what may be meant; "" where nothing shows that it was."""
    numbers = _NUMBERS.match(text)
    rest = text[numbers.end() :] if numbers is not None else ""
    slip = _SLIP.match(rest) if rest else None
    if slip is None or not slip[0]:
        return ""
    public = re.split(r"[-+~]", text, maxsplit=1)[0]
    meant = re.sub(r"\.+", ".", public.translate(_LIKE_DIGITS)).rstrip(".xX")
    meant = f"{meant}{text.removeprefix(public)}" if _NUMBERS.fullmatch(meant) else ""
    where = f"after {numbers[0]} comes `{slip[0]}`" if numbers is not None else ""
    return f"{where}; did you mean `{meant}`?" if meant else f"{where}, which is no number"


def kernel_build(kernel: str) -> Version:
    """Return the version of a kernel as `uname -r` prints it, with the number that its distribution gives it.

    `5.15.0-1070-aws` is 5.15.0.1070. A kernel that no distribution numbered, such as `6.6.15` or the mainline build
    `6.8.0-060800-generic`, has its version only.
    """
    found = _BUILD_OF_KERNEL.match(kernel)
    return Version.parse(f"{found[1]}.{found[2]}" if found else kernel)


class Clause(Struct, frozen=True, eq=False, array_like=True, gc=False):
    """One comparison of a range, such as `>=525.60.13` or `==12.*`.

    `is_prefix`: only as many numbers are compared as `version` has. `is_starred`: the clause is printed with `.*`.

    Two clauses are equal when they have the same spelling, because equal versions make different clauses: 13 equals 13.0, but
    `==13.*` allows versions that `==13.0.*` does not.
    """

    operator: str
    version: Version
    is_prefix: bool = False
    is_starred: bool = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Clause) and self._spelling == other._spelling

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._spelling)

    @property
    def _spelling(self) -> tuple[str, str, bool]:
        return self.operator, self.version.text, self.is_prefix

    def allows(self, version: Version) -> bool:
        """Return whether `version` satisfies this comparison."""
        wanted = self.version
        if self.operator == ">=":  # the most frequent ones first
            return version >= wanted
        if self.operator == "<":
            return version < wanted
        if self.operator == "==":
            return self._matches(version)
        if self.operator == "!=":
            return not self._matches(version)
        if self.operator == "~=":
            return version >= wanted and version.release[: len(wanted.release) - 1] == wanted.release[:-1]
        if self.operator == "===":
            return version.text == wanted.text
        return version <= wanted if self.operator == "<=" else version > wanted

    def edges(self, length: int) -> tuple[Version, Version]:
        """Return the two versions at which alone the answer changes, among versions of up to `length` numbers.

        They are the version that is compared with, and the first after all those that count as equal to it.
        """
        release = self.version.release
        if self.operator == "~=":
            compared = release[:-1]
        else:
            compared = release if self.is_prefix else (*release, *(0,) * (length - len(release)))
        return self.version, Version.parse(dotted((*compared[:-1], compared[-1] + 1)))

    def _matches(self, version: Version) -> bool:
        wanted = self.version
        if wanted.local and version.local != wanted.local:
            return False
        if self.is_prefix:
            length = len(wanted.release)
            padded = version.release + (0,) * (length - len(version.release))
            return padded[:length] == wanted.release
        return version == wanted

    def __str__(self) -> str:
        star = ".*" if self.is_starred else ""
        return f"{self.operator}{self.version}{star}"


class Range(Struct, frozen=True, array_like=True, gc=False):
    """A set of versions: those that every clause allows. A range without clauses allows every version."""

    clauses: tuple[Clause, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Range:
        """Parse `>=550,<580`, `==12.*`, `12.*`, `~=2.6` or a bare `3.11`, which means its whole series.

        `==12.8` means the 12.8 series too (12.8.1 is in it): every component of the matrix publishes three or more numbers
        where users write two, and with PEP 440's meaning such a clause would match nothing. A version with as many numbers as
        the vendor publishes matches exactly that one. Raises `ValueError` with the invalid clause.
        """
        return _parse_range(text)

    def allows(self, version: Version) -> bool:
        """Return whether every clause allows `version`."""
        for clause in self.clauses:  # noqa: SIM110 - called so often that a generator would cost as much as the comparison
            if not clause.allows(version):
                return False
        return True

    def intersect(self, other: Range) -> Range:
        """Return the range of the versions that both ranges allow."""
        return Range(tuple(dict.fromkeys(self.clauses + other.clauses)))

    def __str__(self) -> str:
        return ",".join(str(clause) for clause in self.clauses) or "any version"


def ranges_of(text: str) -> tuple[Range, ...]:
    """Return the ranges in a requirement on a host, of which a version must be in one.

    Such a requirement is a range (`>=6.8,<6.12`), in which single versions may stand for a clause: `6.8 or 6.11,!=6.11.2`.
    Raises `ValueError` with the invalid clause.
    """
    found: tuple[Range, ...] = (Range(),)
    for part in text.split(","):
        single = part.split(" or ")
        ways = [Range.parse(part)] if len(single) == 1 else [Range.parse(f"=={one.strip()}") for one in single]
        found = tuple(one.intersect(way) for one in found for way in ways)
    return found


@lru_cache(maxsize=16384)
def _parse_range(text: str) -> Range:
    stripped = text.strip()
    if stripped in {"", "*"}:
        return Range()
    clauses = []
    for part in stripped.split(","):
        match = _CLAUSE.fullmatch(part)
        if match is None:
            raise ValueError(f"`{part.strip()}` is not a range: write for example >=2.6, ==12.* or >=550,<580")
        clauses.append(_clause(match[1] or "", match[2], part.strip()))
    return Range(tuple(clauses))


def _clause(operator: str, text: str, part: str) -> Clause:
    is_star = text.endswith(".*")
    if is_star and operator not in {"", "==", "!="}:
        raise ValueError(f"`{part}` is not a range: .* goes only with == or !=")
    version = Version.parse(text.removesuffix(".*"))
    if operator == "~=" and len(version.release) < 2:
        raise ValueError(f"`{part}` is not a range: ~= needs at least two numbers")
    is_prefix = is_star or operator in {"", "==", "!="}
    return Clause(operator or "==", version, is_prefix, is_star or (not operator and is_prefix))
