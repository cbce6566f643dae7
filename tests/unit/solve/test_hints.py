"""Ways out of a conflict: each holds with everything it touches, also what nobody else requires."""

from __future__ import annotations

import pytest

from provisioner.matrix.model import Rule
from provisioner.solve.joint import NoStackError, solve_system
from provisioner.solve.problem import join
from tests import small


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
