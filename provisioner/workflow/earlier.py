"""The earlier lock, and the upgrades of `--upgrade` and `--upgrade-package` (`numpy`, `torch==2.7.1`) that may change it."""

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

    from provisioner.lock.format.model import Installer, Lock
    from provisioner.request import Request
    from provisioner.resolver.stack import BaseImage
    from provisioner.workflow.inputs import Inputs

OPTION = "--upgrade-package"


class Upgrades(Struct, frozen=True, kw_only=True):
    """The names given with `--upgrade-package`, as written, and requirements such as `torch==2.7.1` for those with a range."""

    names: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()

    @property
    def moving(self) -> frozenset[str]:
        """The names that the packages to upgrade have in a lock; a framework has two, as component and as distribution."""
        found = {*self.names, *(canonicalize_name(name) for name in self.names)}
        found.update(COMPONENT_OF_DISTRIBUTION[name] for name in tuple(found) if name in COMPONENT_OF_DISTRIBUTION)
        found.update(DISTRIBUTION_OF_COMPONENT[name] for name in tuple(found) if name in DISTRIBUTION_OF_COMPONENT)
        return frozenset(found)


def read_upgrades(texts: Iterable[str]) -> Upgrades:
    """Parse the values of `--upgrade-package`; raises `UsageError` for anything but a name with or without a version range."""
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
    """An earlier lock, None if there is none, and the upgrades from it; with `upgrades` None every version may change."""

    lock: Lock | None = None
    upgrades: Upgrades | None = Upgrades()

    @property
    def is_refreshed(self) -> bool:
        """Whether every version may change, so that cached pages of the indexes are requested again."""
        return self.upgrades is None

    def may_move(self, name: str) -> bool:
        """Return whether the version of a component or distribution may differ from the earlier lock."""
        return self.upgrades is None or name in self.upgrades.moving

    def request(self, inputs: Inputs, platform: str) -> Request:
        """Return the request for one platform, which prefers the versions of the earlier lock, except of packages to upgrade.

        The version ranges of these packages become constraints.
        """
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
        """Return the base image of the earlier lock, to reuse its digest.

        None when every version may change, when there is no earlier lock for the platform, or when the lock has no image.
        """
        lock = self._of(platform) if self.upgrades is not None else None
        return lock.on(platform).stack.image if lock is not None else None

    def installer(self, platform: str) -> Installer | None:
        """Return the installer of the earlier lock for a platform; None when there is no such lock or installer."""
        lock = self._of(platform)
        return lock.on(platform).stack.installer if lock is not None else None

    def _of(self, platform: str) -> Lock | None:
        return self.lock if self.lock is not None and platform in self.lock.platforms else None

    def _chosen(self, platform: str) -> Mapping[str, str]:
        """Return the version of each component and package of the earlier lock; empty when every version may change."""
        lock = self._of(platform)
        if lock is None or self.upgrades is None:
            return {}
        own = lock.on(platform)
        chosen = {name: value for name, value in own.stack.components.items() if name != "pytorch_build"}
        if "pytorch" in chosen:
            chosen["pytorch"] = f"{chosen['pytorch']}+{own.stack.components['pytorch_build']}"
        chosen.update({package.name: package.version for package in own.packages})
        return chosen
