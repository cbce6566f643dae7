"""Popular packages on ordinary machines: each pair of them gets a yes where the wheel runs, and a no where it cannot.

`popular.yaml` has what NVIDIA's own tool prints of the wheels. With the compute capability of a GPU, as NVIDIA's list of
CUDA GPUs has it, and NVIDIA's rules of binary and driver compatibility that settles every pair: nothing of the matrix is asked.
A yes too many fails, and so does an answer that leaves open what the machine settles.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.json import decode
from ruamel.yaml import YAML

from provisioner.host.model import Host
from provisioner.index.client import PackageIndex
from provisioner.index.settings import IndexLocation, IndexSettings
from provisioner.request import Request, TargetHost
from provisioner.resolver.joint import NoStackError, solve_joint
from provisioner.resolver.problem import join
from provisioner.resolver.stack import Stack
from provisioner.spec.model import Spec
from provisioner.strict_model import plain_data
from provisioner.words.conflict import fix_line, refusal_lines
from tests.facts.test_ordinary import (
    NATIVE_CUDA,
    OLDEST_DRIVER,
    OLDEST_JETSON_LINUX,
    PROFILES,
    driver_of,
    host_of,
    jetson_linux_of,
    runs_machine_code,
    targets,
    title,
)
from tests.loopback_index import LoopbackIndex
from tests.scenarios.applied import merged
from tests.shipped import shipped
from tests.told import unverified

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.grounds.conflict import Conflict, Fix

FACTS: dict[str, Any] = YAML(typ="safe").load((Path(__file__).parent / "popular.yaml").read_text(encoding="utf-8"))

CAPABILITIES = {
    (3, 7): "K80",
    (5, 3): "Jetson Nano",
    (6, 2): "Jetson TX2",
    (7, 2): "Xavier(?: NX)?",
    (8, 7): "Orin(?: NX| Nano)?(?: Super)?",
    (11, 0): "Thor|T[45]000",
    (5, 2): "M40|GTX 980",
    (6, 0): "P100",
    (6, 1): "P40|P6000|TITAN Xp|GTX 10[678]0",
    (7, 0): "V100|TITAN V",
    (7, 5): "T4|TITAN RTX|RTX 20[68]0|GTX 16[56]0|Quadro RTX [68]000",
    (8, 0): "A100|A30",
    (8, 6): "A10|A10G|A40|A2000|A[456]000|RTX 30[5-9]0",
    (8, 9): "L4|L40|L40S|RTX 40[5-9]0|(?:4000|6000) Ada",
    (9, 0): "H100|H200|GH200",
    (10, 0): "B200|GB200",
    (10, 3): "B300",
    (12, 0): "RTX 50[6-9]0|RTX PRO [46][50]00 Blackwell",
    (12, 1): "GB10",
}
"""NVIDIA, CUDA GPUs (developer.nvidia.com/cuda-gpus): the compute capability of products."""


TURING, BLACKWELL = (7, 5), (10, 0)
"""NVIDIA Driver Installation Guide, Kernel Modules: the open ones drive Turing and newer, the proprietary ones nothing from
Blackwell on."""


def capability_of(name: str) -> tuple[int, int]:
    """Return the compute capability of a product, by words of its name."""
    found = [capability for capability, words in CAPABILITIES.items() if re.search(rf"(?<!\w)(?:{words})(?!\w)", name)]
    assert len(found) == 1, f"{name}: {found}"
    return found[0]


def is_of(profile: dict[str, Any], platform: str) -> bool:
    """Return whether a profile is of a machine that wheels for a platform are for: with GPUs and a driver of NVIDIA's."""
    host = host_of(profile)
    has_gpus = bool(host.gpus) and all(gpu.compute_capability and gpu.name for gpu in host.gpus or ())
    has_driver = host.jetson is not None or (host.driver is not None and host.driver.version is not None)
    return has_gpus and has_driver and (host.platform or "linux/amd64") == platform and host.mig != "undivided"


@cache
def pairs() -> list[Any]:
    """Return each package with each machine of its platform, or with one of several (`each`).

    Of the pairs `make test` tries one of every twenty-three.
    """
    machines = {platform: [one for one in PROFILES if is_of(one, platform)] for platform in ("linux/amd64", "linux/arm64")}
    found = [
        (package, profile)
        for number, package in enumerate(FACTS["packages"])
        for profile in machines[package.get("platform", "linux/amd64")][
            number % package.get("each", 1) :: package.get("each", 1)
        ]
    ]
    return [
        pytest.param(
            package,
            profile,
            place % 23 == 0,
            id=f"{package['ask']} on {title(profile)}",
            marks=[] if place % 23 == 0 else [pytest.mark.slow],
        )
        for place, (package, profile) in enumerate(found)
    ]


def why_not(package: dict[str, Any], host: Host) -> list[str]:
    """Return what keeps a package from running on a host; nothing of the matrix is asked."""
    cuda = tuple(map(int, package["cuda"].split(".")))
    if host.jetson is not None:
        native = host.jetson.l4t is not None and jetson_linux_of(host) >= OLDEST_JETSON_LINUX[cuda[0]]
        found = [] if native else [f"Jetson Linux {host.jetson.l4t} is too old for CUDA {cuda}"]
    else:
        driver = driver_of(host)
        native = NATIVE_CUDA[driver[0]] >= cuda
        found = [f"driver {driver} is too old for CUDA {cuda}"] if driver < OLDEST_DRIVER[cuda[0]] else []
    capabilities = [capability_of(gpu.name or "") for gpu in host.gpus or ()]
    if min(capabilities) < TURING and max(capabilities) >= BLACKWELL:
        found.append("no kernel modules drive both GPUs")
    for gpu, capability in zip(host.gpus or (), capabilities, strict=True):
        compiles = native and any(target[:2] <= capability and not target[2] for target in targets(package["ptx"]))
        if not compiles and not runs_machine_code(*capability, package["sass"]):
            found.append(f"no code for {gpu.name}")
    return found


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexSettings]:
    with LoopbackIndex() as index:
        for file in FACTS["index"]:
            index.add_wheel(**file)
        location = IndexLocation(name="pypi", url=index.url)
        yield IndexSettings(
            indexes=(location,),
            pytorch_index=index.template,
            cache_directory=tmp_path_factory.mktemp("cache"),
            fresh_seconds=3600,
        )


def solve(asked: dict[str, Any], host: Host, platform: str, settings: IndexSettings) -> Stack | tuple[Conflict, ...]:
    spec = decode(json.dumps(asked), type=Spec)
    problem = join(shipped(), Request(spec=spec, hosts=(TargetHost(label="host", host=host),), platform=platform))
    try:
        return solve_joint(problem, lambda environment: PackageIndex(settings, environment))
    except NoStackError as error:
        return error.conflicts


def patched(host: Host, fix: Fix) -> Host:
    return decode(json.dumps(merged(plain_data(host), fix.patch.get("hosts", {}).get("host", {}))), type=Host)


@pytest.mark.parametrize(("package", "profile", "tries_hint"), pairs())
def test_a_machine_runs_what_its_gpus_and_driver_run(
    package: dict[str, Any], profile: dict[str, Any], settings: IndexSettings, *, tries_hint: bool
) -> None:
    """The first hint of a refusal is applied as a program does it, by its patch, and leads to an answer."""
    host = host_of(profile)
    asked = {
        "runs": profile.get("runs", "host"),
        "accelerator": "cuda",
        "packages": [package["ask"], *package.get("beside", [])],
    }
    policy = {"allow": ["minor-version", "ptx-jit"]}  # what the machine can do, and not what a team wants it to
    asked = {**asked, "policy": policy, "requires": {"python": "==3.12"}}
    platform = package.get("platform", "linux/amd64")
    reasons = why_not(package, host)
    found = solve(asked, host, platform, settings)
    if isinstance(found, Stack):
        assert not reasons
        assert {type(doubt).__name__ for doubt in found.doubts} <= {package.get("open")}, unverified(found)
        return
    assert reasons, "\n".join(refusal_lines(found))
    for fix in (fix for conflict in found for fix in conflict.fixes):
        assert merged(asked, fix.patch.get("spec", {}))["packages"], f"nothing is left: {fix_line(fix)}"
    fixes = [conflict.fixes[0] for conflict in found if conflict.fixes]
    if tries_hint and fixes:
        again = solve(merged(asked, fixes[0].patch.get("spec", {})), patched(host, fixes[0]), platform, settings)
        if isinstance(again, Stack):
            assert fixes[0].is_unverified or not again.doubts, fix_line(fixes[0])
        else:
            assert len(again) < len(found), fix_line(fixes[0])
