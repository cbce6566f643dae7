"""PyTorch for ROCm on AMD's GPUs: each pair of a wheel and a GPU is judged as the scripts that compile it and AMD's tables say.

`rocm_wheels.yaml` has both. A GPU with code that AMD supports is a yes, one with code that AMD does not list is unverified, and
one without code is a no, or unverified where a variable lets it pass for another GPU. Nothing of the matrix is asked.

ONNX Runtime's wheel for MIGraphX has no code for a GPU and no ROCm: it compiles when it runs, with the ROCm of the host. So
AMD's tables of that ROCm alone decide.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.json import decode
from ruamel.yaml import YAML

from provisioner.host.model import Host
from provisioner.index.client import PackageIndex
from provisioner.index.settings import IndexLocation, IndexSettings
from provisioner.request import Request, TargetHost
from provisioner.resolver.joint import NoStackError, solve_joint, solve_system
from provisioner.resolver.problem import join
from provisioner.spec.model import Spec
from tests.facts.sample import a_third_at_once
from tests.loopback_index import LoopbackIndex
from tests.shipped import shipped

FACTS: dict[str, Any] = YAML(typ="safe").load((Path(__file__).parent / "rocm_wheels.yaml").read_text(encoding="utf-8"))

GPUS = (
    "gfx803", "gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1010", "gfx1012", "gfx1030", "gfx1031", "gfx1032",
    "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1200", "gfx1201",
)  # fmt: skip
"""From Polaris and Vega to RDNA 4, and from MI25 to MI355X."""

PASSES = {"gfx1031", "gfx1032", "gfx1101", "gfx1102", "gfx1103"}
"""LLVM, AMDGPU target: what has the instruction set of gfx1030 or gfx1100, so that HSA_OVERRIDE_GFX_VERSION may do."""


def verdict(wheel: dict[str, Any], gpu: str) -> str:
    spec = decode(json.dumps({"requires": {"pytorch": f"=={wheel['torch']}+rocm{wheel['rocm']}"}}), type=Spec)
    facts = {
        "os": {"id": "ubuntu", "version": "22.04"},
        "driver": {"kind": "amdgpu", "version": wheel["driver"]},
        "gpus": [{"gfx": gpu}],
    }
    hosts = (TargetHost(label="host", host=decode(json.dumps(facts), type=Host)),)
    try:
        return solve_system(join(shipped(), Request(spec=spec, hosts=hosts, platform="linux/amd64")), finds_all=False).verdict
    except NoStackError:
        return "no"


def expected(wheel: dict[str, Any], gpu: str) -> str:
    if gpu in wheel["gfx"].split():
        series = ".".join(wheel["rocm"].split(".")[:2])
        return "yes" if gpu in FACTS["supported"][series]["gfx"].split() else "unverified"
    return "unverified" if gpu in PASSES else "no"


def test_every_source_is_used() -> None:
    assert {one["source"] for one in (*FACTS["wheels"], *FACTS["supported"].values())} == FACTS["sources"].keys()


@pytest.mark.parametrize("wheel", a_third_at_once(FACTS["wheels"]), ids=lambda one: f"{one['torch']}+rocm{one['rocm']}")
def test_a_wheel_is_judged_as_it_was_compiled_and_as_amd_supports_it(wheel: dict[str, Any]) -> None:
    assert {gpu: verdict(wheel, gpu) for gpu in GPUS} == {gpu: expected(wheel, gpu) for gpu in GPUS}


DRIVER_OF = {"7.0": "30.10", "7.1": "30.20"}
"""AMD, ROCm release notes: the driver that comes with a ROCm."""


@pytest.mark.parametrize("rocm", DRIVER_OF)
def test_a_wheel_that_compiles_with_the_rocm_of_the_host_is_judged_as_amd_supports_it(rocm: str, tmp_path: Path) -> None:
    asked = {"runs": "host", "accelerator": "rocm", "requires": {"python": "==3.12"}, "packages": ["onnxruntime-migraphx"]}
    spec = decode(json.dumps(asked), type=Spec)
    found = {}
    with LoopbackIndex() as index:
        index.add_wheel("onnxruntime-migraphx", "1.27.1", tag="cp312-cp312-manylinux_2_28_x86_64")
        settings = IndexSettings(
            indexes=(IndexLocation(name="pypi", url=index.url),), cache_directory=tmp_path, fresh_seconds=3600
        )
        for gpu in GPUS:
            facts = {
                "os": {"id": "ubuntu", "version": "22.04"},
                "driver": {"kind": "amdgpu", "version": DRIVER_OF[rocm]},
                "gpus": [{"gfx": gpu}],
                "libraries": {"rocm": rocm},
            }
            hosts = (TargetHost(label="host", host=decode(json.dumps(facts), type=Host)),)
            problem = join(shipped(), Request(spec=spec, hosts=hosts, platform="linux/amd64"))
            found[gpu] = solve_joint(problem, lambda environment: PackageIndex(settings, environment)).verdict
    supported = FACTS["supported"][rocm]["gfx"].split()
    assert found == {gpu: "yes" if gpu in supported else "unverified" for gpu in GPUS}
