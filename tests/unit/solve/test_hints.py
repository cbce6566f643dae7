"""Ways out of a conflict: each holds with everything it touches, also what nobody else requires."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.matrix.model import Rule
from provisioner.solve.joint import NoStackError, solve_system
from provisioner.solve.problem import join
from tests import small

if TYPE_CHECKING:
    from provisioner.matrix.model import Matrix
    from provisioner.solve.stack import Hint


def rule(name: str, drivers: str, gpus: str) -> Rule:
    needs = (small.need("gpu", gpus),)
    return Rule(name=name, when=small.need("driver", drivers), needs=needs, because="invented", sources=("invented",))


def test_a_driver_that_nothing_requires_is_changed_to_one_that_goes_with_the_host() -> None:
    matrix = small.matrix(
        ("python", "driver", "gpu"),
        {
            "python": {"3.12": {}},
            "driver": {"560.28.03": {}, "510.10.00": {}, "450.51.06": {}},
            "gpu": {"7.0": {}, "8.0": {}, "9.0": {}},
        },
        rules=(rule("ampere first", "<500", "<8.0"), rule("hopper first", "<520", "<8.9")),
    )
    host = {"driver": {"version": "450.51.06"}, "gpus": [{"compute_capability": "9.0"}], "container_toolkit": "1.17.4"}
    with pytest.raises(NoStackError) as caught:
        solve_system(join(matrix, small.wish({"python": "3.12"}, host)))
    assert [hint.changes for hint in caught.value.conflict.hints] == [
        (("driver", ">=560.28.03"),),
        (("gpu", "==7.0"),),
    ]


def floors() -> Matrix:
    return small.matrix(
        ("alpha", "driver", "gpu"),
        {
            "alpha": {"2.0": {"driver": ">=525"}, "1.0": {"driver": ">=450"}},
            "driver": {"535.10": {}, "525.10": {}, "470.10": {}},
        },
    )


def host(driver: str) -> dict[str, object]:
    return {"driver": {"version": driver}, "gpus": [{"compute_capability": "7.5"}], "container_toolkit": "1.17.4"}


def ways(*drivers: str, **requires: str) -> tuple[Hint, ...]:
    with pytest.raises(NoStackError) as caught:
        solve_system(join(floors(), small.wish(requires, *(host(driver) for driver in drivers))))
    return caught.value.conflict.hints


def test_where_there_are_several_hosts_the_one_to_change_is_named() -> None:
    version, driver = ways("535.10", "470.10", alpha=">=2.0")
    assert (version.text, version.hosts) == ("alpha 1.0 instead of `>=2.0` would do", ("",))
    assert driver.changes == (("driver", ">=525.10"),)
    assert driver.hosts == ("host1",)
    assert driver.text == "driver >=525.10 on host1 would do"


def test_the_same_change_on_many_hosts_is_one_thing_said_once() -> None:
    _, driver = ways(*["470.10"] * 5, alpha=">=2.0")
    assert driver.changes == (("driver", ">=525.10"),) * 5
    assert driver.hosts == ("host0", "host1", "host2", "host3", "host4")
    assert driver.text == "driver >=525.10 on host0, host1, host2, host3, host4 would do"


def test_where_no_change_is_enough_that_is_said() -> None:
    matrix = small.matrix(("pytorch",), {"pytorch": {"1.0": {"pytorch": "==2.0"}}})
    with pytest.raises(NoStackError) as caught:
        solve_system(join(matrix, small.wish({"pytorch": ">=1.0"})))
    assert caught.value.conflict.hints == ()
    assert caught.value.hints == ("no way out was found that changes 3 or fewer of the spec's requests and the hosts' facts",)
