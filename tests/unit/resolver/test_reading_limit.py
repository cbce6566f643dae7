"""The limit on what one search reads protects an index: the matrix alone is decided, however many hosts ask about it."""

from __future__ import annotations

import pytest
from msgspec import convert

from provisioner.host.model import Host
from provisioner.matrix.cache import cached_matrix
from provisioner.request import Request, TargetHost
from provisioner.resolver.joint import NoStackError, solve_system
from provisioner.resolver.problem import join
from provisioner.resolver.search import complete
from provisioner.spec.model import Spec

FACTS = {
    "platform": "linux/amd64",
    "os": {"id": "ubuntu", "version": "22.04"},
    "kernel": "5.15.0-105-generic",
    "glibc": "2.35",
    "gpus": ({"compute_capability": "7.5"},),
    "container_toolkit": "1.17.4",
}


def request(*drivers: str) -> Request:
    facts = ({**FACTS, "driver": {"version": driver, "module": "proprietary"}} for driver in drivers)
    hosts = tuple(
        TargetHost(label=f"host {number}", host=convert(stated, Host)) for number, stated in enumerate(facts, start=1)
    )
    return Request(spec=convert({"requires": {"pytorch": ">=2.8"}}, Spec), hosts=hosts, platform="linux/amd64")


def test_the_matrix_is_read_without_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(complete, "MAX_READS", 0)
    with pytest.raises(NoStackError) as caught:
        solve_system(join(cached_matrix(None), request("470.256.02")))
    assert "driver" in {member.component for member in caught.value.conflict.members}
