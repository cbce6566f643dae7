"""`NVIDIA_REQUIRE_*` texts: alternatives (separated by spaces) of clauses that must all hold (separated by commas).

Two programs read these texts, and they differ: `nvidia-container-cli` (libnvidia-container src/cli/dsl.c and configure.c),
which checks on servers, and the CSV mode of the NVIDIA container runtime (nvidia-container-toolkit internal/requirements, read
at d34b3046), which checks on Jetson. A text that both accept is accepted here with the same meaning; a text that only one of
them accepts is an error. Only a clause about a property that neither knows is no error: it is skipped, as by the toolkit, and
reported as skipped.

- names of properties and brands are compared without regard to case, as `nvidia-container-cli` does;
- a version is one to three numbers: the toolkit reads a semantic version, `nvidia-container-cli` digits and dots;
- a brand is a string, compared with `=` or `!=` only: `nvidia-container-cli` refuses every other comparison.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.errors import ProvisionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

VERSIONED = ("cuda", "driver", "arch")
PROPERTIES = (*VERSIONED, "brand")
"""The properties that runtimes read: the driver's CUDA, the driver, and of each GPU its compute capability and brand."""

PREFIX = "NVIDIA_REQUIRE_"
_JETPACK = "NVIDIA_REQUIRE_JETPACK"
_OPERATORS = ("!=", "<=", ">=", "=", "<", ">")
_FACTOR = re.compile(r"([^<>=!]*)([<>=!]*)(.*)", re.DOTALL)
_VERSION = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,2}")
_LEGACY_VERSION = re.compile(r"v?([0-9]{1,9})(?:\.([0-9]{1,9}))?(?![0-9])")
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
"""True values of Go's strconv.ParseBool, with which the toolkit reads NVIDIA_DISABLE_REQUIRE."""

Numbers = tuple[int, ...]


class GateError(ProvisionError):
    """Raised for a requirement that cannot be parsed.

    `token` is the invalid part, `column` its position (from 1), `reason` the error message, `variable` the environment
    variable.
    """

    code = "unreadable-requirement"
    exit_code = 2

    def __init__(self, variable: str, token: str, column: int, *, reason: str) -> None:
        super().__init__(
            f"{variable}, column {column}: `{token}` {reason}",
            hints=("write for example cuda>=12.6 or brand=tesla,driver>=535,driver<536; a space means or, a comma and",),
        )
        self.variable = variable
        self.token = token
        self.column = column
        self.reason = reason


class Clause(Struct, frozen=True):
    """One comparison, such as `driver>=535`: the `name` of a property, an operator and a value.

    `column` is the position of the clause in the text, from 1. `numbers` is a version without trailing zeros, () for a brand.
    """

    name: str
    operator: str
    value: str
    column: int = 1
    numbers: Numbers = ()

    @property
    def is_known(self) -> bool:
        """Whether a runtime knows the property; a clause about an unknown property is skipped."""
        return self.name in PROPERTIES

    def holds_for(self, fact: str | Numbers) -> bool:
        """Return whether the comparison holds for a brand in lower case, or for the numbers of a version."""
        wanted = self.value.lower() if self.name == "brand" else self.numbers
        if self.operator == "=":
            return fact == wanted
        if self.operator == "!=":
            return fact != wanted
        assert isinstance(fact, tuple)
        assert isinstance(wanted, tuple)
        if self.operator == "<":
            return fact < wanted
        if self.operator == "<=":
            return fact <= wanted
        return fact > wanted if self.operator == ">" else fact >= wanted

    def __str__(self) -> str:
        return f"{self.name}{self.operator}{self.value}"


class Expression(Struct, frozen=True):
    """One requirement, the `text` of an environment variable: at least one of `terms` must be met, with all of its clauses.

    `terms` is () when nothing is required. `skipped` are the clauses about properties that no runtime knows; a term with only
    such clauses is left out of `terms`.
    """

    variable: str
    text: str
    terms: tuple[tuple[Clause, ...], ...]
    skipped: tuple[Clause, ...] = ()


def parse(text: str, variable: str = "NVIDIA_REQUIRE_CUDA") -> Expression:
    """Return the requirement that `text`, the value of an environment variable, states.

    Raises `GateError` naming the first token that cannot be parsed, and its column.
    """
    terms: list[tuple[Clause, ...]] = []
    skipped: list[Clause] = []
    column = 1
    for term in text.split(" "):
        if term and not term.strip(","):
            # The toolkit ignores it; nvidia-container-cli takes it for met or unmet, depending on the alternative before it.
            raise GateError(variable, _shortened(term), column, reason="is an alternative without a clause")
        clauses: list[Clause] = []
        for factor in term.split(","):
            if factor:
                clause = _clause(factor, column, variable)
                (clauses if clause.is_known else skipped).append(clause)
            column += len(factor) + 1
        if clauses:
            terms.append(tuple(clauses))
    return Expression(variable, text, tuple(terms), tuple(skipped))


def _clause(factor: str, column: int, variable: str) -> Clause:
    match = _FACTOR.fullmatch(factor)
    assert match is not None  # each part may be empty
    name, operator, value = match[1], match[2], match[3]

    def error(token: str, at: int, reason: str) -> GateError:
        return GateError(variable, _shortened(token), column + at, reason=reason)

    if not operator:
        raise error(factor, 0, "is not a comparison such as cuda>=12.6")
    if not name:
        raise error(factor, 0, f"names no property before {operator}: {', '.join(PROPERTIES)} are known")
    if operator not in _OPERATORS:
        raise error(operator, len(name), f"is not an operator; {' '.join(_OPERATORS)} are")
    if not value:
        raise error(factor, 0, f"has no value after {operator}")
    known = name.lower()
    at = len(name) + len(operator)
    if known == "brand" and operator not in {"=", "!="}:
        raise error(operator, len(name), "does not compare brands: only = and != do")
    if known not in VERSIONED:
        return Clause(known if known == "brand" else name, operator, value, column)
    if _VERSION.fullmatch(value) is None:
        raise error(value, at, "is not a version of one to three numbers")
    return Clause(known, operator, value, column, numbers_of(value))


def numbers_of(version: str) -> Numbers:
    """Return the leading dotted numbers of a version without trailing zeros, for comparisons; () if it has none."""
    match = re.match(r"[0-9]+(?:\.[0-9]+)*", version)
    numbers = [int(part) for part in match[0].split(".")] if match else []
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"


def requirements_of(environment: Mapping[str, str]) -> tuple[Expression, ...]:
    """Return the requirements in an image's environment, sorted by variable; a host must meet all of them.

    They are those that the container toolkit finds (internal/config/image/cuda_image.go): NVIDIA_REQUIRE_JETPACK* are ignored,
    NVIDIA_DISABLE_REQUIRE disables all, and CUDA_VERSION without NVIDIA_REQUIRE_CUDA requires the CUDA of the same major and
    minor number. Raises `GateError` for a text that cannot be parsed.
    """
    if environment.get("NVIDIA_DISABLE_REQUIRE", "") in _TRUE:
        return ()
    return tuple(parse(text, variable) for variable, text in sorted(_demanded(environment)))


def _demanded(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for variable, text in environment.items():
        if variable.startswith(PREFIX) and not variable.startswith(_JETPACK):
            yield variable, text
    version = environment.get("CUDA_VERSION", "")
    if version and not environment.get("NVIDIA_REQUIRE_CUDA", ""):
        match = _LEGACY_VERSION.match(version)
        if match is None:
            raise GateError("CUDA_VERSION", _shortened(version), 1, reason="is not a version such as 12.6.3")
        yield "CUDA_VERSION", f"cuda>={int(match[1])}.{int(match[2] or 0)}"
