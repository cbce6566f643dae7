"""Many host names in few words."""

from __future__ import annotations

import pytest

from provisioner.fleet.names import folded
from provisioner.host.inventory import InventoryHost
from provisioner.host.model import Host


def hosts(*names: str) -> list[InventoryHost]:
    return [InventoryHost(name=name, host=Host()) for name in names]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], ""),
        (["a"], "a"),
        (["a1", "a2"], "a1, a2"),
        (["a1", "a2", "a3"], "a1 … a3"),
        (["node-08", "node-09", "node-10", "node-11"], "node-08 … node-11"),
        (["node-8", "node-9", "node-10"], "node-8 … node-10"),
        (["a1", "a3", "a5"], "a1, a3, a5"),
        (["a1.x", "a2.x", "a3.x", "a4.y"], "a1.x … a3.x, a4.y"),
        (["a01", "a2", "a03"], "a01, a2, a03"),
        (["ip-10-0-1-9", "ip-10-0-1-10", "ip-10-0-1-11"], "ip-10-0-1-9 … ip-10-0-1-11"),
    ],
)
def test_runs_of_numbers_are_told_by_their_ends(names: list[str], expected: str) -> None:
    assert folded(hosts(*names)) == expected


def test_after_a_few_the_rest_is_counted_with_how_many_each_stands_for() -> None:
    listed = [InventoryHost(name=name, host=Host(), count=count) for name, count in (("a", 1), ("b", 1000), ("c", 2))]
    assert folded(listed, most=2) == "a, b (1,000), and 2 more"
    assert folded(listed, most=1) == "a, and 1,002 more"
