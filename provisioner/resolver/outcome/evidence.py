"""Facts of a host that its running driver proves, and stated facts on which nothing in a stack depends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.components import ABSENT, COMPONENTS
from provisioner.grounds.choice import ShownByDriver, Unread
from provisioner.host.facts import stated
from provisioner.matrix.once import once_per_matrix
from provisioner.resolver.rules.facts import DRIVER_KINDS, binds, has_running_driver, is_settled_by_driver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.matrix.model import Matrix
    from provisioner.request import Request, TargetHost

_OTHER_READERS = frozenset({"os", "virtualization", *DRIVER_KINDS})
"""Facts that the code of the resolver depends on, even if no row of the matrix is about them."""

_UNREAD_KEYS = ("jetson.jetpack",)
"""Keys of a host profile that only inform a reader: rules depend on another key with the same fact."""


def shown_by_drivers_of(request: Request) -> Iterator[ShownByDriver]:
    """Yield, for each host with a running driver, the facts that it need not state because the driver proves them."""
    for target in request.hosts:
        driver = target.host.driver
        if driver is None or driver.version is None or not has_running_driver(target.host):
            continue
        names = (name for name in COMPONENTS if COMPONENTS[name].key and binds(name, request))
        found = tuple(name for name in names if is_settled_by_driver(name, target.host) and name not in DRIVER_KINDS)
        if found:
            yield ShownByDriver(host=target.label, driver=driver.version, facts=found)


def unread_facts(matrix: Matrix, request: Request) -> Iterator[Unread]:
    """Yield, for each host, the keys of its profile on which no requirement of a stack for the request can depend."""
    for target in request.hosts:
        keys = tuple(_unread(matrix, request, target))
        if keys:
            yield Unread(host=target.label, keys=keys)


def _unread(matrix: Matrix, request: Request, target: TargetHost) -> Iterator[str]:
    for name, row in COMPONENTS.items():
        if not row.key or not row.is_fact or stated(target.host, name) in {None, ABSENT}:
            continue
        is_read = name in _OTHER_READERS or name in _read_by_matrix(matrix) or name in request.spec.requires
        if not (is_read and binds(name, request)):
            yield row.key
    if target.host.libraries is not None and not request.loads_host_libraries:
        yield "libraries"
    for key in _UNREAD_KEYS:
        outer, _, inner = key.partition(".")
        if getattr(getattr(target.host, outer), inner, None) is not None:
            yield key


@once_per_matrix
def _read_by_matrix(matrix: Matrix) -> frozenset[str]:
    """Return the names of the components in the matrix, and of the facts on which its rules depend."""
    return frozenset(matrix.components).union(need.component for rule in matrix.rules for need in rule.on)
