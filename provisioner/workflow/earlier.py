"""The earlier lock: what it chose, and what `--upgrade` and `--upgrade-package` (`numpy`, `torch==2.7.1`) let move from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from provisioner.errors import UsageError
from provisioner.names import COMPONENT_OF_DISTRIBUTION, DISTRIBUTION_OF_COMPONENT
from provisioner.places import Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from provisioner.lock.model import Installer, Lock
    from provisioner.request import Request
    from provisioner.resolver.stack import BaseImage
    from provisioner.workflow.inputs import Inputs

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


class Earlier(Struct, frozen=True, kw_only=True):
    """An earlier lock, None where there is none, and what may move away from it; `upgrades` None: everything may."""

    lock: Lock | None = None
    upgrades: Upgrades | None = Upgrades()

    @property
    def is_refreshed(self) -> bool:
        """Whether everything may move, so that the indexes are asked anew."""
        return self.upgrades is None

    def may_move(self, name: str) -> bool:
        """Whether a component or distribution may move away from the earlier lock."""
        return self.upgrades is None or name in self.upgrades.moving

    def request(self, inputs: Inputs, platform: str) -> Request:
        """Return the request for one platform, in which the earlier lock is preferred where it need not move."""
        chosen = self._chosen(platform)
        kept = {name: value for name, value in chosen.items() if not self.may_move(name)}
        request = inputs.request(platform, preferred=kept)
        if self.upgrades is None or not self.upgrades.names:
            return request
        first = len(request.spec.constraints)
        places = {f"constraints.{first + index}": Place(OPTION) for index in range(len(self.upgrades.ranges))}
        return replace(
            request,
            spec=replace(request.spec, constraints=(*request.spec.constraints, *self.upgrades.ranges)),
            places={**request.places, **places},
            upgraded={name: chosen.get(name, "") for name in sorted(self.upgrades.moving)},
        )

    def image(self, platform: str) -> BaseImage | None:
        """Return the base image of the earlier lock, where it is to be kept."""
        lock = self._of(platform) if self.upgrades is not None else None
        return lock.on(platform).image if lock is not None else None

    def installer(self, platform: str) -> Installer | None:
        """Return the installer of the earlier lock."""
        lock = self._of(platform)
        return lock.on(platform).installer if lock is not None else None

    def _of(self, platform: str) -> Lock | None:
        return self.lock if self.lock is not None and platform in self.lock.platforms else None

    def _chosen(self, platform: str) -> Mapping[str, str]:
        """Return the version of each component and package of the earlier lock; nothing where everything may move."""
        lock = self._of(platform)
        if lock is None or self.upgrades is None:
            return {}
        own = lock.on(platform)
        chosen = {name: value for name, value in own.stack.items() if name != "pytorch_build"}
        if "pytorch" in chosen:
            chosen["pytorch"] = f"{chosen['pytorch']}+{own.stack['pytorch_build']}"
        chosen.update({package.name: package.version for package in own.packages})
        return chosen
