"""Ordinary machines get the verdict that their owners know: yes where they run the stack, no where they cannot.

Each file under `ordinary` holds one kind of machine, as `sources` and `profiles`. A profile is what its source shows of the
machine: the facts of a `host`, a `node` of Kubernetes (with another `beside` it in the list), or the `instance` type of a cloud
with a `driver`. `asks` is what the spec requires, and `verdict` is `yes`, or `no` with the components of the contradiction as
`between`. No profile may end unverified: nothing that a running machine settles is unknown.

A yes is held against an oracle of its own: NVIDIA's rules of binary and driver compatibility, by the rows of the chosen build.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.json import decode
from msgspec.structs import replace
from ruamel.yaml import YAML

from provisioner.host.instance_types import instance_type
from provisioner.host.kubernetes import NodeReader
from provisioner.host.model import Driver, Host
from provisioner.host.profile import load_profile, profile_names
from provisioner.request import Request, TargetHost
from provisioner.resolver.joint import NoStackError, solve_system
from provisioner.resolver.problem import join
from provisioner.spec.model import Spec
from provisioner.words.conflict import conflict_lines
from provisioner.workflow.inputs import catalogue_of
from tests.facts.sample import a_third_at_once
from tests.shipped import shipped
from tests.told import unverified

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provisioner.host.catalogue import Catalogue
    from provisioner.host.model import HostGpu
    from provisioner.matrix.model import Build
    from provisioner.resolver.stack import Stack

HERE = Path(__file__).parent / "ordinary"
LEAST = 200
"""How many profiles there are at least."""

OLDEST_DRIVER = {11: (450, 80, 2), 12: (525, 60, 13), 13: (580, 65, 6)}
"""CUDA Compatibility guide, minor-version compatibility: the oldest driver of each major release of CUDA, on Linux."""

NATIVE_CUDA = {
    470: (11, 4), 525: (12, 0), 535: (12, 2), 537: (12, 2), 550: (12, 4), 570: (12, 8), 572: (12, 8), 575: (12, 9),
    580: (13, 0), 590: (13, 1),
}  # fmt: skip
"""CUDA Toolkit release notes: the newest CUDA whose PTX a driver branch compiles; 537 and 572 are the numbers on Windows."""

OLDEST_JETSON_LINUX = {10: (32, 4), 11: (34,), 12: (36,), 13: (38,)}
"""CUDA for Tegra application note: the Jetson Linux from which on a board runs each major release of CUDA, without an upgrade
package."""

TEGRA = ((5, 3), (6, 2), (7, 2), (8, 7))
"""Jetsons: machine code for GPUs on cards is not for them."""

FRAMEWORKS = ("pytorch", "tensorflow", "jax")


def read() -> list[dict[str, Any]]:
    """Return all profiles, each with its kind and its source."""
    profiles = []
    for path in sorted(HERE.glob("*.yaml")):
        content = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
        assert {one["source"] for one in content["profiles"]} == content["sources"].keys(), path
        profiles += [{**one, "kind": path.stem, "source": content["sources"][one["source"]]} for one in content["profiles"]]
    return profiles


PROFILES = read()


def title(profile: dict[str, Any]) -> str:
    return f"{profile['kind']}: {profile['name']}"


@cache
def catalogue() -> Catalogue:
    return catalogue_of(shipped())


def host_of(profile: dict[str, Any]) -> Host:
    """Return the facts of a profile as the command line reads them."""
    if "node" in profile:
        reader = NodeReader(catalogue())
        nodes = [profile["node"], *([profile["beside"]] if "beside" in profile else [])]
        (_, first), *_ = reader.read({"kind": "List", "items": [item(node, number) for number, node in enumerate(nodes)]})
        assert reader.mistakes == []
        return first.host
    if "instance" not in profile:
        return catalogue().identify(decode(json.dumps(profile["host"]), type=Host))
    listed = instance_type(profile["instance"])
    assert listed is not None
    host = listed.host
    if "driver" in profile:
        host = replace(host, driver=replace(host.driver or Driver(), version=profile["driver"]))
    return catalogue().identify(host)


def item(node: dict[str, Any], number: int) -> dict[str, Any]:
    """Return a node as `kubectl get nodes -o json` prints it."""
    return {
        "metadata": {"name": f"node-{number}", "labels": node["labels"]},
        "status": {"capacity": node["capacity"], "nodeInfo": node["nodeInfo"]},
    }


def solve(profile: dict[str, Any], host: Host) -> Stack:
    platform = host.platform or "linux/amd64"
    asked = {key: profile[key] for key in ("runs", "accelerator") if key in profile}
    spec = decode(json.dumps({"requires": profile["asks"], "target": {"platform": platform}, **asked}), type=Spec)
    return solve_system(join(shipped(), Request(spec=spec, hosts=(TargetHost(label="host", host=host),), platform=platform)))


@pytest.mark.parametrize("profile", a_third_at_once([one for one in PROFILES if one["verdict"] == "yes"]), ids=title)
def test_a_machine_that_runs_the_stack_gets_a_yes_that_holds(profile: dict[str, Any]) -> None:
    host = host_of(profile)
    try:
        stack = solve(profile, host)
    except NoStackError as error:
        pytest.fail("\n".join(conflict_lines(error.conflict)))
    assert unverified(stack) == ()
    for framework in profile["asks"]:
        if framework in FRAMEWORKS:
            assert why_not(host, stack, framework) == []


@pytest.mark.parametrize("profile", a_third_at_once([one for one in PROFILES if one["verdict"] == "no"]), ids=title)
def test_a_machine_that_cannot_run_the_stack_gets_a_no(profile: dict[str, Any]) -> None:
    with pytest.raises(NoStackError) as caught:
        solve(profile, host_of(profile))
    members = caught.value.conflict.members
    shown = "\n".join(conflict_lines(caught.value.conflict))
    assert sorted({member.component for member in members}) == sorted(profile["between"]), shown


@pytest.mark.parametrize("name", a_third_at_once(profile_names()))
def test_a_shipped_profile_gets_a_yes_without_an_edit(name: str) -> None:
    stack = solve({"asks": {"pytorch": "*"}}, catalogue().identify(load_profile(name).host))
    assert unverified(stack) == ()


def test_there_are_enough_profiles_and_no_two_are_the_same() -> None:
    told = {"kind", "name", "source", "verdict", "between"}
    machines = {json.dumps({key: one[key] for key in one if key not in told}, sort_keys=True) for one in PROFILES}
    assert len(machines) == len(PROFILES) >= LEAST
    assert len({title(one) for one in PROFILES}) == len(PROFILES)
    assert {one["verdict"] for one in PROFILES} == {"yes", "no"}


def why_not(host: Host, stack: Stack, framework: str) -> list[str]:
    """Return what keeps a chosen framework from running on a host; nothing of the resolver is asked."""
    found = []
    for build in chosen_builds(stack, framework):
        found += [
            f"{build.name} has no code for {gpu.name}" for gpu in host.gpus or () if not is_served(gpu, build, host, stack)
        ]
        if build.accelerator == "cuda" and host.jetson is not None:
            if jetson_linux_of(host) < OLDEST_JETSON_LINUX[cuda_of(stack)[0]]:
                found.append(f"Jetson Linux {jetson_linux_of(host)} is too old for CUDA {cuda_of(stack)}")
        elif build.accelerator == "cuda" and driver_of(host) < OLDEST_DRIVER[cuda_of(stack)[0]]:
            found.append(f"driver {driver_of(host)} is too old for CUDA {cuda_of(stack)}")
    return found


def chosen_builds(stack: Stack, framework: str) -> list[Build]:
    """Return the rows of the chosen build of a framework: several where wheels for other Pythons are rows of their own."""
    (pin,) = (pin for pin in stack.pins if pin.component == framework)
    found = [
        build
        for release in shipped().components[framework].releases
        if str(release.version) == str(pin.version)
        for build in release.builds
        if build.name == pin.build and stack.platform in build.platforms
    ]
    assert found, f"{framework} {pin.version} {pin.build} is not built for {stack.platform}"
    return found


def driver_of(host: Host) -> tuple[int, ...]:
    assert host.driver is not None
    assert host.driver.version is not None
    return tuple(map(int, host.driver.version.split(".")))


def jetson_linux_of(host: Host) -> tuple[int, ...]:
    assert host.jetson is not None
    assert host.jetson.l4t is not None
    return tuple(map(int, host.jetson.l4t.split(".")))


def cuda_of(stack: Stack) -> tuple[int, ...]:
    return tuple(map(int, stack.components["cuda"].split(".")))


def is_served(gpu: HostGpu, build: Build, host: Host, stack: Stack) -> bool:
    """Return whether a build has code that a GPU runs, or that the driver compiles for it."""
    if build.accelerator == "rocm":
        return gpu.gfx in (build.gfx or ())
    if build.accelerator != "cuda" or gpu.compute_capability is None:
        return False
    major, minor = map(int, gpu.compute_capability.split("."))
    if runs_machine_code(major, minor, build.sass or ()):
        return True
    is_new_enough = NATIVE_CUDA[driver_of(host)[0]] >= cuda_of(stack)[:2]
    return is_new_enough and any(one[:2] <= (major, minor) and not one[2] for one in targets(build.ptx or ()))


def runs_machine_code(major: int, minor: int, sass: Iterable[str]) -> bool:
    """Return whether machine code serves a GPU: that of its major version and no newer minor one.

    CUDA C++ Programming Guide, Binary Compatibility; code for `sm_90a` serves nothing but 9.0, and a Tegra (7.2, 8.7) runs
    nothing but its own.
    """
    return any(
        (of_major, of_minor) == (major, minor)
        or (of_major == major and of_minor < minor and exact != "a" and (major, minor) not in TEGRA)
        for of_major, of_minor, exact in targets(sass)
    )


def targets(names: Iterable[str]) -> list[tuple[int, int, str]]:
    """Return `sm_90a` and `compute_90a` as (9, 0, "a")."""
    found = [re.fullmatch(r"(?:sm|compute)_(\d+)(\d)([af]?)", name) for name in names]
    return [(int(match[1]), int(match[2]), match[3]) for match in found if match]
