"""Read queries to a matrix: facts such as `cuda==11.3`, `sm_61` and `driver=535`, or the name of one row.

`interpret` divides facts into those of a host profile, which are stated, and those of a spec, which are required.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from provisioner.accelerators import ACCELERATORS, accelerator_of_target
from provisioner.errors import UsageError
from provisioner.host.facts import STATED, with_fact
from provisioner.host.model import Host, HostGpu
from provisioner.names import COMPONENT_OF_DISTRIBUTION, nearest
from provisioner.strict_model import plain_data
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.matrix.model import Component, Gpu, Matrix, Release

_FACT = re.compile(r"\s*([A-Za-z][A-Za-z0-9_-]*)\s*(===|==|!=|<=|>=|~=|=|<|>)\s*(.+?)\s*")
_TARGET = re.compile(r"(?:sm|compute)_(\d+)(\d)[af]?")
_GFX = re.compile(ACCELERATORS["rocm"].target)
PLAIN_FACTS = ("accelerator", "runs", *STATED)
"""Facts of a host or a spec that a query may name although the matrix has no component of that name."""


class Fact(Struct, frozen=True, kw_only=True):
    """One fact of a query, such as `driver=535`: `spelled` is that word of the command line, `text` its value or range.

    `is_exact` is True for a value (`driver=535`) and False for a range (`driver>=535`).
    """

    name: str
    text: str
    is_exact: bool
    spelled: str

    @property
    def range(self) -> Range:
        """The range of versions; raises `ValueError` for a text that is no range."""
        return Range.parse(self.text)

    @property
    def value(self) -> str:
        """The value of an exact fact, without its operator."""
        return self.text.lstrip("=").removesuffix(".*").strip()


class Query(Struct, frozen=True, kw_only=True):
    """A query to the matrix: facts, or the `name` of a row if there are no facts."""

    facts: tuple[Fact, ...] = ()
    name: str = ""


def read_query(matrix: Matrix, words: Sequence[str]) -> Query:
    """Parse the words of a command line into a query.

    Raises `UsageError` for an unknown component (with the most similar name), for two values of one component, and for facts
    mixed with other words.
    """
    facts = [_fact(matrix, word) for word in words]
    found = tuple(fact for fact in facts if fact is not None)
    if len(found) == len(words):
        _require_distinct(found)
        return Query(facts=found)
    if not found:
        return Query(name=" ".join(words))
    odd = next(word for word, fact in zip(words, facts, strict=True) if fact is None)
    raise UsageError(f"`{odd}` is not a fact", hints=("write facts as cuda==11.3, gpu=6.1, sm_61 or driver=535",))


def _require_distinct(facts: Sequence[Fact]) -> None:
    seen: dict[str, Fact] = {}
    for fact in facts:
        if fact.name in seen and fact.is_exact:
            raise UsageError(f"`{fact.spelled}` and `{seen[fact.name].spelled}` are about the same component")
        seen[fact.name] = fact


def _fact(matrix: Matrix, word: str) -> Fact | None:
    target = _TARGET.fullmatch(word)
    if target is not None:
        return Fact(name="gpu", text=f"{target[1]}.{target[2]}", is_exact=True, spelled=word)
    if _GFX.fullmatch(word):
        return Fact(name="gpu", text=word, is_exact=True, spelled=word)
    match = _FACT.fullmatch(word)
    if match is None:
        return None
    name = COMPONENT_OF_DISTRIBUTION.get(match[1], match[1])
    component = matrix.components.get(name)
    if component is None and name not in PLAIN_FACTS:
        raise _unknown(name, word, matrix)
    operator, text = match[2], match[3]
    is_exact = operator in {"=", "=="}
    if component is not None and not component.named and name != "gpu":
        _require_range(f"{'==' if is_exact else operator}{text}", word)
    return Fact(name=name, text=text if is_exact else f"{operator}{text}", is_exact=is_exact, spelled=word)


def _require_range(text: str, word: str) -> None:
    try:
        Range.parse(text)
    except ValueError as error:
        raise UsageError(f"`{word}`: {error}") from None


def _unknown(name: str, word: str, matrix: Matrix) -> UsageError:
    known = (*matrix.components, *PLAIN_FACTS)
    near = nearest(name, known)
    hint = f"did you mean `{near}`?" if near else f"components: {', '.join(matrix.components)}"
    return UsageError(f"`{name}` in `{word}` is not a component of the matrix", hints=(hint,))


def component_named(matrix: Matrix, name: str) -> Component:
    """Return a component by its name or its distribution's; raises `UsageError` with the most similar name if there is none."""
    known = COMPONENT_OF_DISTRIBUTION.get(name, name)
    if known not in matrix.components:
        near = nearest(name, (*matrix.components, *COMPONENT_OF_DISTRIBUTION))
        hint = f"did you mean `{near}`?" if near else f"components: {', '.join(matrix.components)}"
        raise UsageError(f"`{name}` is not a component of the matrix", hints=(hint,))
    return matrix.components[known]


def matching(component: Component, fact: Fact) -> tuple[Release, ...]:
    """Return the releases of a component that a fact matches, newest first; for `2.7.1+cu126`, each with that build only.

    A release that has builds, but not that one, is left out.
    """
    if component.named:
        return tuple(release for release in component.releases if release.version.text.startswith(fact.value))
    public, _, build = fact.text.partition("+") if fact.is_exact else (fact.text, "", "")
    wanted = Range.parse(public)
    found = [_of_build(release, build) for release in component.releases if wanted.allows(release.version)]
    named = [release for release in found if release.builds or not build]
    return tuple(sorted(named, key=lambda release: release.version, reverse=True))


def _of_build(release: Release, build: str) -> Release:
    return replace(release, builds=tuple(one for one in release.builds if one.name == build)) if build else release


def product(matrix: Matrix, text: str) -> Gpu | None:
    """Return a GPU product by its name, or by a part of it that only products of one compute capability have.

    None for a target (`8.6`, `gfx942`). Raises `UsageError` for an ambiguous or unknown name.
    """
    exact = {gpu.name.casefold(): gpu for gpu in matrix.gpus}
    wanted = text.casefold()
    for spelling in (wanted, f"nvidia {wanted}", f"nvidia geforce {wanted}", f"amd {wanted}"):
        if spelling in exact:
            return exact[spelling]
    if is_target(text):
        return None
    words = re.escape(wanted.removeprefix("nvidia "))  # NVIDIA T4 is listed as Tesla T4, and is no T400
    parts = [gpu for gpu in matrix.gpus if re.search(rf"(?<!\w){words}(?!\w)", gpu.name.casefold())]
    targets = {gpu.target for gpu in parts}
    if len(targets) == 1:
        return parts[0]
    if targets:
        shown = ", ".join(gpu.name for gpu in parts[:6])
        raise UsageError(f"`{text}` is the name of several GPUs: {shown}", hints=("write the whole name",))
    near = nearest(wanted, exact) or nearest(f"nvidia {wanted}", exact)
    hint = f"did you mean `{exact[near].name}`?" if near else "give its compute capability, such as gpu=8.6, or its gfx target"
    raise UsageError(f"`{text}` is not a GPU the matrix knows", hints=(hint,))


def is_target(text: str) -> bool:
    """Return whether a text is a compute capability (`8.6`) or a gfx target."""
    return accelerator_of_target(text) is not None


def newest_of_series(component: Component, text: str) -> str:
    """Return the newest release of a series such as `535`; a release, or a series without releases, is returned as it is."""
    if component.named or any(str(release.version) == text for release in component.releases):
        return text
    found = [release.version for release in component.releases if Range.parse(text).allows(release.version)]
    if not found or len(Version.parse(text).release) >= len(max(found).release):
        return text
    return str(max(found))


class InterpretedFacts(Struct):
    """The facts of a query, divided into a host, which is not validated yet, and requirements and settings of a spec.

    `facts` are the names and interpreted values of all of them, such as the newest release of a series for the series.
    """

    host: Host = field(default_factory=Host)
    requires: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    facts: list[tuple[str, str]] = field(default_factory=list)

    def profile_text(self) -> str:
        """Return the host as a profile in YAML; JSON is YAML too."""
        return json.dumps(plain_data(self.host))


def interpret(matrix: Matrix, facts: Sequence[Fact]) -> InterpretedFacts:
    """Divide facts into those of a host and of a spec; raises `UsageError` for a fact that no host can state."""
    found = InterpretedFacts()
    for fact in facts:
        found.facts.append((fact.name, _add_fact(matrix, fact, found)))
    return found


def _add_fact(matrix: Matrix, fact: Fact, found: InterpretedFacts) -> str:
    """Add a fact to the host, requirements or settings of `found`; return its interpreted value."""
    name = fact.name
    component = matrix.components.get(name)
    if name in {"accelerator", "runs"}:
        found.settings[name] = fact.value
        return fact.value
    if component is not None and not (component.virtual and fact.is_exact):
        found.requires[name] = f"=={fact.value}" if fact.is_exact and not component.named else fact.text
        return found.requires[name]
    if name == "gpu":
        return _add_gpu(matrix, fact.value, found)
    if name not in STATED:
        raise UsageError(
            f"`{fact.spelled}` cannot be stated of a host", hints=(f"`provision matrix list {name}` shows what there is",)
        )
    value = fact.value if component is None else newest_of_series(component, fact.value)
    found.host = with_fact(found.host, name, value)
    if name == "macos":
        # The matrix has GPUs of Intel Macs only; a query about another Mac names its platform behind `macos`.
        found.host = replace(found.host, platform="macos/x86_64")
    return value


def _add_gpu(matrix: Matrix, value: str, found: InterpretedFacts) -> str:
    known = product(matrix, value)
    target = known.target if known is not None else value
    name = known.name if known is not None else None
    found.host = replace(found.host, gpus=(HostGpu.of_target(target, name=name),))
    return f"{name} ({target})" if name else target
