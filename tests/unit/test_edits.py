"""Edits of a request, carried out on the inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec import to_builtins
from msgspec.structs import asdict

from provisioner.grounds.edit import (
    AddDistributions,
    DropComponent,
    DropDistribution,
    DropHost,
    SetArchitecture,
    SetArchitectures,
    SetComponent,
    SetDistribution,
    SetFact,
    SetImage,
    SetPolicyWords,
    SetStrategy,
)
from tests import small

if TYPE_CHECKING:
    from provisioner.grounds.edit import Edit

HOST: dict[str, Any] = {
    "driver": {"version": "470.256.02", "module": "proprietary"},
    "gpus": [{"compute_capability": "7.0"}, {"name": "NVIDIA B200"}],
    "os": {"id": "ubuntu", "version": "24.04"},
}


def after(edit: Edit, **spec: Any) -> Any:  # noqa: ANN401 - any key of a spec
    return edit.apply(
        small.request({"cuda": "12.6", "python": "3.11"}, HOST, HOST, packages=["numpy>=2", "scipy[all]<1.12"], **spec)
    )


def test_a_line_of_requires_is_replaced_and_the_others_stay() -> None:
    assert after(SetComponent(name="cuda", value="11.8.0")).spec.requires == {"cuda": "==11.8.0", "python": "3.11"}


def test_a_line_of_requires_that_is_left_out_is_gone() -> None:
    assert after(DropComponent(name="cuda")).spec.requires == {"python": "3.11"}


def test_a_build_is_named_not_compared() -> None:
    edit = SetComponent(name="pytorch_build", value="cu118")
    assert after(edit).spec.requires["pytorch_build"] == "cu118"
    assert edit.change == "cu118"


def test_a_line_of_packages_keeps_its_extras() -> None:
    spec = after(SetDistribution(name="scipy", distribution="scipy", value="1.11.4")).spec
    assert spec.packages == ("numpy>=2", "scipy[all]==1.11.4")
    assert after(DropDistribution(name="scipy", distribution="scipy")).spec.packages == ("numpy>=2",)


def test_lines_are_added_to_packages() -> None:
    edit = AddDistributions(names=("nvidia-cublas-cu12", "nvidia-cudnn-cu12"))
    assert after(edit).spec.packages == ("numpy>=2", "scipy[all]<1.12", "nvidia-cublas-cu12", "nvidia-cudnn-cu12")
    assert edit.change == "nvidia-cublas-cu12, nvidia-cudnn-cu12"


def test_a_policy_is_the_whole_line() -> None:
    allowed = SetPolicyWords(key="allow", words=("minor-version", "ptx-jit"))
    assert allowed.change == "allow: [minor-version, ptx-jit]"
    assert after(allowed).spec.policy.allow == ("minor-version", "ptx-jit")
    assert after(SetPolicyWords(key="forbid", words=())).spec.policy.forbid == ()
    assert after(SetStrategy(strategy="newest")).spec.policy.strategy == "newest"


def test_the_base_image() -> None:
    assert after(SetImage(base="cuda-runtime", before="x")).spec.image.base == "cuda-runtime"


def test_one_architecture_of_those_compiled_for() -> None:
    build = {"kind": "extension", "arch_list": ["8.0", "12.0"]}
    assert after(SetArchitecture(before="12.0", architecture="9.0"), build=build).spec.build.arch_list == ("8.0", "9.0")
    edit = SetArchitectures(before=("8.0", "12.0"), architectures=("9.0",))
    assert after(edit, build=build).spec.build.arch_list == ("9.0",)


def set_fact(name: str, value: str, sign: str = "==", today: str = "", products: tuple[str, ...] = ()) -> SetFact:
    return SetFact(name=name, host="host0", sign=sign, value=value, today=today, products=products)


def test_a_fact_is_changed_on_the_host_it_is_about() -> None:
    first, second = after(set_fact("driver", "525.60.13", ">=")).hosts
    assert asdict(first.host.driver) == {"version": "525.60.13", "module": "proprietary", "kind": "nvidia"}
    assert second.host.driver.version == "470.256.02"


def test_a_host_is_left_out() -> None:
    assert [target.label for target in after(DropHost(host="host0")).hosts] == ["host1"]


@pytest.mark.parametrize(
    ("component", "value", "fact", "expected"),
    [
        ("driver_module", "open", "driver", {"version": "470.256.02", "module": "open", "kind": "nvidia"}),
        ("os", "rhel 9.4", "os", {"id": "rhel", "version": "9.4", "build": None, "like": None}),
        ("macos", "10.13.6+17G65", "os", {"id": "macos", "version": "10.13.6", "build": "17G65", "like": None}),
        ("secure_boot", "disabled", "secure_boot", {"enabled": False, "mok_enrolled": None}),
        ("secure_boot", "enforced", "secure_boot", {"enabled": True, "mok_enrolled": False}),
        ("jetson", "36.4.3", "jetson", {"l4t": "36.4.3", "jetpack": None}),
        ("loaded_modules", "free", "loaded_modules", ()),
        ("loaded_modules", "nouveau", "loaded_modules", ("nouveau",)),
        ("kernel", "6.12", "kernel", "6.12"),
        ("container_toolkit", "1.17.4", "container_toolkit", "1.17.4"),
    ],
)
def test_where_each_fact_stands(component: str, value: str, fact: str, expected: object) -> None:
    assert to_builtins(after(set_fact(component, value)).hosts[0].host)[fact] == expected


def test_of_several_gpus_the_one_that_is_meant_is_replaced() -> None:
    first = after(set_fact("gpu", "9.0", today="7.0")).hosts[0].host
    assert [gpu.compute_capability for gpu in first.gpus] == ["9.0", None]
    named = after(set_fact("gpu", "9.0", today="10.0", products=("NVIDIA B200",))).hosts[0].host
    assert [(gpu.compute_capability, gpu.name) for gpu in named.gpus] == [("7.0", None), ("9.0", None)]
    assert after(set_fact("gpu", "gfx942", today="7.0")).hosts[0].host.gpus[0].gfx == "gfx942"
