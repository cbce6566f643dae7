"""What a host profile states of a component, and the profile that states another value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.json import decode

from provisioner.host.facts import STATED, stated, with_fact
from provisioner.host.model import Driver, Host
from provisioner.matrix.cache import cached_matrix


def host(**facts: Any) -> Host:  # noqa: ANN401 - any key of a profile
    return decode(json.dumps(facts), type=Host)


@pytest.mark.parametrize(
    ("component", "facts", "expected"),
    [
        ("driver", {"driver": {"version": "535.104.05"}}, "535.104.05"),
        ("driver", {"driver": {"version": "6.10.5", "kind": "amdgpu"}}, None),
        ("amdgpu", {"driver": {"version": "6.10.5", "kind": "amdgpu"}}, "6.10.5"),
        ("webdriver", {"driver": {"version": "387.10.10.10.40.105", "kind": "webdriver"}}, "387.10.10.10.40.105"),
        ("driver_module", {"driver": {"module": "open"}}, "open"),
        ("secure_boot", {"secure_boot": {"enabled": False}}, "disabled"),
        ("secure_boot", {"secure_boot": {"enabled": True, "mok_enrolled": True}}, "enrolled"),
        ("secure_boot", {"secure_boot": {"enabled": True, "mok_enrolled": False}}, "enforced"),
        ("secure_boot", {"secure_boot": {"enabled": True}}, None),
        ("loaded_modules", {"loaded_modules": ["ext4", "nouveau"]}, "nouveau"),
        ("loaded_modules", {"loaded_modules": ["vfio_pci"]}, "vfio-pci"),
        ("loaded_modules", {"loaded_modules": []}, "free"),
        ("loaded_modules", {"loaded_modules": ["nouveau", "nvidia"]}, "free"),
        ("loaded_modules", {"loaded_modules": ["vfio_pci", "nvidia"], "gpus": [{"gfx": "gfx942"}]}, "vfio-pci"),
        ("loaded_modules", {}, None),
        ("kernel_headers", {"kernel_headers": "none"}, "none"),
        ("os", {"os": {"id": "ubuntu", "version": "22.04"}}, "ubuntu 22.04"),
        ("os", {"os": {"id": "arch"}}, "arch"),
        ("os", {"os": {"id": "macos", "version": "10.13.6"}}, None),
        ("macos", {"os": {"id": "macos", "version": "10.13.6", "build": "17G65"}}, "10.13.6+17G65"),
        ("macos", {"os": {"id": "macos", "version": "10.13.6"}}, "10.13.6"),
        ("macos", {"os": {"id": "ubuntu", "version": "22.04"}}, None),
        ("jetson", {"jetson": {"l4t": "36.4.3"}}, "36.4.3"),
        ("python_arch", {"python_arch": "aarch64"}, "arm64"),
    ],
)
def test_a_fact_is_read_from_its_key(component: str, facts: dict[str, Any], expected: str | None) -> None:
    assert stated(host(**facts), component) == expected


def test_a_host_that_says_nothing_states_nothing() -> None:
    assert {name: stated(Host(), name) for name in STATED} == dict.fromkeys(STATED)
    assert stated(Host(), "pytorch") is None


FULL = host(
    platform="linux/amd64",
    os={"id": "ubuntu", "version": "22.04"},
    driver={"version": "535.104.05", "module": "open"},
    secure_boot={"enabled": True, "mok_enrolled": False},
    loaded_modules=["nouveau", "snd"],
    jetson={"l4t": "36.4.3", "jetpack": "6.2"},
)


@pytest.mark.parametrize("before", [Host(), FULL])
@pytest.mark.parametrize("name", STATED)
def test_a_fact_that_was_written_is_stated_and_one_that_was_left_out_is_not(name: str, before: Host) -> None:
    component = cached_matrix(None).components.get(name)
    values = [str(release.version) for release in component.releases][:4] if component is not None else []
    for value in values or ["1.2"]:
        assert stated(with_fact(before, name, value), name) == value
    assert stated(with_fact(before, name, None), name) is None


def test_what_stands_beside_a_fact_stays_when_it_changes() -> None:
    assert with_fact(FULL, "driver", "580.95.05").driver == Driver(version="580.95.05", module="open")
    assert with_fact(FULL, "driver_module", "proprietary").driver == Driver(version="535.104.05", module="proprietary")
    assert with_fact(FULL, "loaded_modules", "free").loaded_modules == ("snd",)
    assert with_fact(FULL, "loaded_modules", "vfio-pci").loaded_modules == ("vfio-pci", "snd")
    jetson = with_fact(FULL, "jetson", "36.5").jetson
    assert jetson is not None
    assert (jetson.l4t, jetson.jetpack) == ("36.5", "6.2")
    assert with_fact(FULL, "driver", None).driver is None


def test_what_no_profile_states_cannot_be_written() -> None:
    with pytest.raises(KeyError):
        with_fact(Host(), "pytorch", "2.7.1")
