"""Lists, bounds and sources as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.components import COMPONENTS
from provisioner.grounds.bound import Bound, Drivers, Kernels, Names, SameVersion, Specifier, Versions
from provisioner.grounds.source import Documents, Hazard, Index, MatrixRow, Metadata, Question, Source
from provisioner.places import HostPlace, Place

if TYPE_CHECKING:
    from collections.abc import Sequence


def listed(names: Sequence[str], conjunction: str = "and") -> str:
    """Return names as `a`, `a and b`, or `a, b and c`; "" for no names."""
    return f"{', '.join(names[:-1])} {conjunction} {names[-1]}" if len(names) > 1 else "".join(names)


_MOST_SHOWN = 3


def undated(packages: Sequence[str]) -> str:
    """Return that the day of the build decides the releases of a distribution's packages, with the first of their names."""
    more = [f"{len(packages) - _MOST_SHOWN} more"] if len(packages) > _MOST_SHOWN else []
    shown = listed([*packages[:_MOST_SHOWN], *more])
    them = "it is" if len(packages) == 1 else "they are"
    dates = "it" if len(packages) == 1 else "them"
    return f"apt-get installs {shown} as {them} on the day of the build; `image: {{snapshot: DAY}}` dates {dates}"


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: `1 package`, `3,000 packages`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def value_words(component: str, value: str) -> str:
    """Return a component with a value as a noun: `driver 535.104.05`, `Fabric Manager 535.104.05`, `the open kernel module`."""
    row = COMPONENTS.get(component)
    phrase = row.phrases.get(value, row.phrases.get("", "")) if row is not None else ""
    return phrase.format(value=value) if phrase else f"{component_words(component)} {value}"


def gpu_words(device: str) -> str:
    """Return a GPU by its compute capability or gfx target as a noun: `a GPU of compute capability 9.0`, `a GPU of gfx942`."""
    return f"a GPU of {'' if device.startswith('gfx') else 'compute capability '}{device}"


def component_words(component: str) -> str:
    """Return the name of a component, or its title where the name has several words, such as `fabric_manager`."""
    row = COMPONENTS.get(component)
    return row.label if row is not None and "_" in component else component


def needed_words(component: str, bounds: Sequence[Bound]) -> str:
    """Return a component with the alternatives of several bounds as a noun: `cuda ==12.4.* or ==12.6.*`."""
    row = COMPONENTS.get(component)
    if row is None or not row.phrases:
        return f"{component_words(component)} {bounds_words(bounds)}"
    values = dict.fromkeys(word for one in bounds for word in bound_words(one))
    return listed([value_words(component, value) for value in values], "or")


def bound_words(bound: Bound) -> tuple[str, ...]:
    """Return the alternatives of a bound, each as notation."""
    match bound:
        case Versions(versions=versions):
            return tuple(str(version) for version in versions)
        case Names(names=names):
            return names
        case SameVersion():
            return ("of the same version",)
        case Specifier(text=text):
            return (text or "any version",)
        case Drivers():
            return tuple(_driver_words(bound))
        case Kernels(documented=documented, patched=patched):
            ways = [str(documented)] if documented is not None else []
            return tuple(dict.fromkeys([*ways, *(f"{kernels} with the patches of {by}" for kernels, by in patched)]))
    return (str(bound),)


def _driver_words(bound: Drivers) -> list[str]:
    if bound.minor_version:
        ways = [f">={bound.minor_version} (minor-version compatibility)"]
    elif bound.native:
        ways = [f">={bound.native} (native CUDA {bound.cuda})"]
    else:
        ways = [f"of a branch that knows CUDA {bound.cuda}"]
    return [*ways, *([f"{'/'.join(bound.forward)} (forward compatibility)"] if bound.forward else [])]


def bounds_words(bounds: Sequence[Bound]) -> str:
    """Return the alternatives of several bounds as a list: `==12.4.*, ==12.6.* or ==12.8.*`."""
    return listed(list(dict.fromkeys(word for one in bounds for word in bound_words(one))), "or")


def source_words(source: Source | None) -> str:
    """Return the source of a ground as text; "" for None."""
    match source:
        case None:
            return ""
        case Place():
            return str(source)
        case HostPlace(place=place, others=others):
            return f"{place} and {others} more" if others else str(place)
        case Documents(citations=citations):
            return "; ".join(citations)
        case MatrixRow(table=table, name=name, place=place):
            return f"{table} {name}, {source_words(place)}"
        case Hazard(place=place, because=because):
            return f"{place}: {because}"
        case Metadata(name=name, version=version):
            return f"metadata of {name} {version}"
        case Index(name=name):
            return f"index {name}" if name else "the package index"
        case Question():
            return "your question"


def sources_words(sources: Sequence[Source]) -> str:
    """Return the first of several sources and the number of the others; "" for no sources."""
    if not sources:
        return ""
    return source_words(sources[0]) if len(sources) == 1 else f"{source_words(sources[0])} and {len(sources) - 1} more"
