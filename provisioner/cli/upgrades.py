"""What `--upgrade-package` asks for: names, or a name and the versions it may have (`numpy`, `torch==2.7.1`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from provisioner.errors import UsageError
from provisioner.names import COMPONENT_OF_DISTRIBUTION, DISTRIBUTION_OF_COMPONENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from provisioner.request import Request

OPTION = "--upgrade-package"


class Upgrades(Struct, frozen=True, kw_only=True):
    """The names that may move, as they were written, and the ranges some of them were given."""

    names: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()

    @property
    def moving(self) -> frozenset[str]:
        """Every name that what moves has in a lock: a framework has one as a component and one as a distribution."""
        found = {*self.names, *(canonicalize_name(name) for name in self.names)}
        found.update(COMPONENT_OF_DISTRIBUTION[name] for name in tuple(found) if name in COMPONENT_OF_DISTRIBUTION)
        found.update(DISTRIBUTION_OF_COMPONENT[name] for name in tuple(found) if name in DISTRIBUTION_OF_COMPONENT)
        return frozenset(found)

    def applied(self, request: Request, earlier: Mapping[str, str]) -> Request:
        """The request with what may move named, beside what `earlier` has of it, and with the ranges that were given."""
        if not self.names:
            return request
        ranges = {f"constraints.{len(request.spec.constraints) + index}": OPTION for index in range(len(self.ranges))}
        return replace(
            request,
            spec=replace(request.spec, constraints=(*request.spec.constraints, *self.ranges)),
            places={**request.places, **ranges},
            upgraded={name: earlier.get(name, "") for name in sorted(self.moving)},
        )


def read_upgrades(texts: Iterable[str]) -> Upgrades:
    """Read the values of the option; raises `UsageError` for what is neither a name nor a name and a range."""
    names, ranges = [], []
    for text in texts:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            what = "a pattern" if {"*", "?"} & set(text) else "no requirement"
            raise UsageError(
                f"{OPTION} `{text}` is {what}; it takes names, and versions behind them",
                hints=(f"repeat the option for each package: {OPTION} numpy {OPTION} torch==2.7.1",),
            ) from None
        if requirement.marker is not None or requirement.url is not None or requirement.extras:
            raise UsageError(f"{OPTION} `{text}` says more than a name and its versions", hints=("put it into the spec",))
        names.append(requirement.name)
        if requirement.specifier:
            distribution = DISTRIBUTION_OF_COMPONENT.get(requirement.name, requirement.name)
            ranges.append(f"{distribution}{requirement.specifier}")
    return Upgrades(names=tuple(dict.fromkeys(names)), ranges=tuple(dict.fromkeys(ranges)))
