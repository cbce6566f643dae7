"""Changes a hint proposes, carried out on the inputs."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import asdict

from provisioner.solve.explain.change import LEFT_OUT, Change, changed
from tests import small

HOST: dict[str, Any] = {
    "driver": {"version": "470.256.02", "module": "proprietary"},
    "gpus": [{"compute_capability": "7.0"}, {"name": "NVIDIA B200"}],
    "os": {"id": "ubuntu", "version": "24.04"},
}


def after(change: Change, **spec: Any) -> Any:  # noqa: ANN401 - any key of a spec
    request = small.request({"cuda": "12.6", "python": "3.11"}, HOST, HOST, packages=["numpy>=2", "scipy[all]<1.12"], **spec)
    return changed(request, [change])


@pytest.mark.parametrize(
    ("text", "value"), [("==12.6.3", "12.6.3"), (">=525.60.13", "525.60.13"), ("<=6.12", "6.12"), ("cu118", "cu118")]
)
def test_a_bound_is_solved_for_at_its_end(text: str, value: str) -> None:
    assert Change(component="cuda", text=text).value == value


def test_a_request_is_replaced_and_the_others_stay() -> None:
    assert after(Change(component="cuda", text="==11.8.0")).spec.requires == {"cuda": "==11.8.0", "python": "3.11"}


def test_a_request_that_is_left_out_is_gone() -> None:
    assert after(Change(component="cuda", text=LEFT_OUT)).spec.requires == {"python": "3.11"}


def test_a_build_is_named_not_compared() -> None:
    assert after(Change(component="pytorch_build", text="cu118")).spec.requires["pytorch_build"] == "cu118"


def test_a_line_of_packages_keeps_its_extras() -> None:
    spec = after(Change(component="scipy", package="scipy", text="==1.11.4")).spec
    assert spec.packages == ("numpy>=2", "scipy[all]==1.11.4")
    assert after(Change(component="scipy", package="scipy", text=LEFT_OUT)).spec.packages == ("numpy>=2",)


def test_a_policy_is_the_whole_line() -> None:
    assert after(Change(component="policy", text="allow: [minor-version, ptx-jit]")).spec.policy.allow == (
        "minor-version",
        "ptx-jit",
    )
    assert after(Change(component="policy", text="forbid: []")).spec.policy.forbid == ()
    assert after(Change(component="policy", text="strategy: newest")).spec.policy.strategy == "newest"


def test_the_base_image() -> None:
    assert after(Change(component="image", text="cuda-runtime")).spec.image.base == "cuda-runtime"


def test_one_architecture_of_those_compiled_for() -> None:
    build = {"kind": "extension", "arch_list": ["8.0", "12.0"]}
    assert after(Change(component="arch_list", text="==9.0", instead="12.0"), build=build).spec.build.arch_list == (
        "8.0",
        "9.0",
    )


def test_a_fact_is_changed_on_the_host_it_is_about() -> None:
    first, second = after(Change(component="driver", text=">=525.60.13", host="host0")).hosts
    assert asdict(first.host.driver) == {"version": "525.60.13", "module": "proprietary", "kind": "nvidia"}
    assert second.host.driver.version == "470.256.02"


@pytest.mark.parametrize(
    ("component", "text", "fact", "value"),
    [
        ("driver_module", "==open", "driver", {"version": "470.256.02", "module": "open", "kind": "nvidia"}),
        ("os", "==rhel 9.4", "os", {"id": "rhel", "version": "9.4", "build": None}),
        ("macos", "==10.13.6+17G65", "os", {"id": "macos", "version": "10.13.6", "build": "17G65"}),
        ("secure_boot", "==disabled", "secure_boot", {"enabled": False, "mok_enrolled": None}),
        ("secure_boot", "==enforced", "secure_boot", {"enabled": True, "mok_enrolled": False}),
        ("jetson", "==36.4.3", "jetson", {"l4t": "36.4.3", "jetpack": None}),
        ("loaded_modules", "==free", "loaded_modules", ()),
        ("loaded_modules", "==nouveau", "loaded_modules", ("nouveau",)),
        ("kernel", "<=6.12", "kernel", "6.12"),
        ("container_toolkit", ">=1.17.4", "container_toolkit", "1.17.4"),
    ],
)
def test_where_each_fact_stands(component: str, text: str, fact: str, value: object) -> None:
    host = after(Change(component=component, text=text, host="host0")).hosts[0].host
    assert to_builtins(host)[fact] == value


def test_of_several_gpus_the_one_that_is_meant_is_replaced() -> None:
    change = Change(component="gpu", text="==9.0", host="host0", instead="7.0")
    assert [gpu.compute_capability for gpu in after(change).hosts[0].host.gpus] == ["9.0", None]
    named = Change(component="gpu", text="==9.0", host="host0", instead="10.0", names=("NVIDIA B200",))
    assert [(gpu.compute_capability, gpu.name) for gpu in after(named).hosts[0].host.gpus] == [("7.0", None), ("9.0", None)]
    amd = Change(component="gpu", text="==gfx942", host="host0", instead="7.0")
    assert after(amd).hosts[0].host.gpus[0].gfx == "gfx942"
