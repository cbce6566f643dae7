"""Requirements of distributions held in memory: the extras they are guarded by, and those that apply."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from provisioner.index.markers import Markers, marker_environment
from provisioner.index.model import Environment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from packaging.requirements import Requirement

LINUX = Environment(platform="linux/amd64", python="3.11")


def applicable(
    requirements: Iterable[Requirement], extras: tuple[str, ...], environment: Environment = LINUX
) -> tuple[Requirement, ...]:
    """The requirements that apply in an environment with one of some extras, as `PackageSource.requirements` has it."""
    markers = Markers(marker_environment(environment))
    return tuple(one for one in requirements if markers.hold(one.marker, extras))


def extras_named(requirements: Iterable[Requirement]) -> tuple[str, ...]:
    """The names that markers compare `extra` with, normalized."""
    found = (re.findall(r'extra == "([^"]+)"', str(needed.marker or "")) for needed in requirements)
    return tuple(sorted({canonicalize_name(name) for names in found for name in names}))
