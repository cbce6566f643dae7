"""Overrides: what the spec puts in the place of whatever is required of a distribution.

As with uv, an override replaces requirements and brings nothing in by itself; several overrides of one distribution, for
different environments, all stand in the place of each requirement. A requirement whose own marker does not hold is not
replaced, for nothing is required there. What the matrix knows of a distribution is no requirement of anybody's and stays.
Source: uv documentation, "Dependency overrides", read 2026-11-21.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import Requirement as Pep508
from packaging.utils import canonicalize_name

from provisioner.grounds.requirement import Overrides as Override
from provisioner.grounds.requirement import Supposes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provisioner.grounds.requirement import Ground
    from provisioner.request import Request

Asked = tuple[Pep508, "Ground"]
"""A requirement and why it is there."""

NOBODY = Supposes()
"""Whose requirement it is that was dropped; no conflict tells it, for it holds nowhere."""


class Overrides:
    """The overrides of one spec, by distribution."""

    def __init__(self, request: Request, dropped: Iterable[str] = ()) -> None:
        """`dropped` are distributions of which nothing is required, whatever the spec puts in their place."""
        self._request = request
        self._found: dict[str, list[Asked]] = {}
        for index, text in enumerate(request.spec.overrides):
            override = Pep508(text)
            name = canonicalize_name(override.name)
            place = request.place(f"overrides.{index}")
            ground = Override(index=index, distribution=name, requirement=text, place=place)
            self._found.setdefault(name, []).append((override, ground))
        self._found.update({name: [(Pep508(f"{name}; python_version < '0'"), NOBODY)] for name in dropped})

    @property
    def grounds(self) -> tuple[Ground, ...]:
        """Every override of the spec."""
        return tuple(ground for some in self._found.values() for _, ground in some)

    def __bool__(self) -> bool:
        return bool(self._found)

    def dropping(self, names: Iterable[str]) -> Overrides:
        """The same overrides, and beside them that nothing is required of some distributions."""
        return Overrides(self._request, names)

    def of(self, name: str) -> list[Asked]:
        """What stands in the place of requirements of a distribution; nothing where they stand for themselves."""
        return self._found.get(name, [])

    def instead(self, requirement: Pep508, ground: Ground) -> list[Asked]:
        """A requirement of the spec's own as it is after the overrides, under its marker and theirs."""
        overrides = self.of(canonicalize_name(requirement.name))
        if not overrides:
            return [(requirement, ground)]
        return [(_under(requirement, override), by) for override, by in overrides]


def _under(requirement: Pep508, override: Pep508) -> Pep508:
    """An override where the marker of what it replaces holds as well."""
    markers = [f"({one.marker})" for one in (requirement, override) if one.marker is not None]
    found = Pep508(str(override).partition(";")[0].strip())
    return Pep508(f"{found}; {' and '.join(markers)}") if markers else found
