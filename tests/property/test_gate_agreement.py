"""Gate and solver agree: the NVIDIA_REQUIRE_CUDA of a stack lets in exactly the hosts on which the solver says its image runs.

For every CUDA build of the shipped matrix, under every policy that matters to it: the stack is solved without a host, and its
requirement is held against drivers, GPUs and brands, by the evaluator that tests/property/test_gate.py is about.
The other side is what the candidates of the image require of the keys of such a host, and, for a sample, a whole solve with the
image pinned. Hosts that cannot exist (a Volta under a driver that dropped Volta) are left out there: a gate cannot see them.

Every kind of build is held under every policy. Of the hosts a sample is taken, by a fixed seed of each policy: every driver
and every GPU is in it. Of the whole solves, a few. With PROVISION_EXAMPLES=5 or more it is all hosts, some 280,000 pairs.
"""

from __future__ import annotations

from functools import cache, lru_cache
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from provisioner.gate.evaluate import GateFacts, GateGpu, verdict_of
from provisioner.gate.grammar import parse, requirements_of
from provisioner.resolver.joint import NoStackError, solve_system
from provisioner.resolver.outcome.answer import answer
from provisioner.resolver.outcome.require_cuda import require_cuda
from provisioner.resolver.problem import join
from provisioner.resolver.requirement import Key, build_of
from provisioner.resolver.rules.gate import facts_of
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.resolve import decide
from tests import small
from tests.shipped import shipped
from tests.strategies import TIMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.gate.grammar import Expression
    from provisioner.matrix.model import Build, Release
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate, Requirement

pytestmark = pytest.mark.property


DRIVERS = (
    "367.57", "384.145", "396.24", "396.26", "410.48", "418.226.00", "440.33.01", "440.118.02", "450.36.06", "450.80.02",
    "455.45.01", "470.256.02", "495.46", "510.108.03", "520.61.05", "525.60.11", "525.60.13", "530.41.03", "535.104.05",
    "545.29.06", "550.54.15", "560.35.03", "565.57.01", "570.25", "570.26", "575.57.08", "580.65.05", "580.65.06", "590.48.01",
    "595.58.03", "610.43.02", "615.71.09", "620.70.06",
)  # fmt: skip
"""On both sides of every bound that the minimums of CUDA and cuDNN set, and one of every branch that matters."""

GPUS = (
    ("Tesla K80", "3.7", "tesla"), ("Tesla M60", "5.2", "tesla"), ("Tesla P100-PCIE-16GB", "6.0", "tesla"),
    ("GeForce GTX 1080", "6.1", "geforce"), ("Tesla V100-SXM2-32GB", "7.0", "tesla"), ("Tesla T4", "7.5", "tesla"),
    ("Quadro RTX 4000", "7.5", "quadrortx"), ("NVIDIA A100-SXM4-80GB", "8.0", "nvidia"), ("NVIDIA A10", "8.6", "unknown"),
    ("NVIDIA GeForce RTX 3090", "8.6", "geforce"), ("NVIDIA L4", "8.9", "nvidia"),
    ("NVIDIA GeForce RTX 4090", "8.9", "geforcertx"), ("NVIDIA H100", "9.0", "nvidia"), ("NVIDIA B200", "10.0", "nvidia"),
    ("NVIDIA B300", "10.3", "nvidia"), ("NVIDIA GeForce RTX 5090", "12.0", "geforce"),
    ("NVIDIA R200 (Rubin)", "10.7", "nvidia"),
)  # fmt: skip
"""Name, compute capability, and the brand a runtime reports. Jetsons have drivers of their own, with other numbers."""

POLICIES: Mapping[str, dict[str, Any]] = {
    "minor-version": {"policy": {"allow": ["minor-version"]}},
    "native": {"policy": {"allow": []}},
    "forward-compat": {"policy": {"allow": ["forward-compat"]}, "image": {"cuda_compat": "13.0"}},
    "everything": {"policy": {"allow": ["minor-version", "forward-compat", "ptx-jit"]}, "image": {"cuda_compat": "13.0"}},
}

Host = tuple[str, tuple[str, str, str]]
HOSTS: tuple[Host, ...] = tuple((driver, gpu) for driver in DRIVERS for gpu in GPUS)
IS_WHOLE = TIMES >= 5
SOLVES = 250 if IS_WHOLE else 30


def hosts_of(seed: str) -> tuple[Host, ...]:
    """All hosts, or a GPU for each driver and a driver for each GPU: another sample for each policy."""
    if IS_WHOLE:
        return HOSTS
    random = Random(f"hosts of {seed}")
    chosen = {(driver, random.choice(GPUS)) for driver in DRIVERS}
    chosen |= {(random.choice(DRIVERS), gpu) for gpu in GPUS}
    return tuple(host for host in HOSTS if host in chosen)


def builds() -> Iterator[tuple[str, str, str, str]]:
    """One (component, range, build, platform) of each kind of build: those that differ in nothing a gate is about are alike."""
    seen = set()
    for component in ("pytorch", "tensorflow", "jax"):
        for release in shipped().components[component].releases:
            for build in release.builds:
                for platform in build.platforms:
                    kind = (component, build.sass, build.ptx, _parts(release, build), platform)
                    if build.accelerator == "cuda" and platform.startswith("linux/") and kind not in seen:
                        seen.add(kind)
                        exact = f"=={release.version}+{build.name}" if component == "pytorch" else f"=={release.version}"
                        yield component, exact, build.name, platform


def _parts(release: Release, build: Build) -> tuple[str, ...]:
    needs = (*release.requires, *build.requires)
    return tuple(
        f"{one.component} {one}" for one in needs if one.component in {"cuda", "cudnn", "nccl", "tensorrt", "gpu", "driver"}
    )


@cache
def problem_of(host: Host, platform: str, policy: str, asked: str) -> Problem:
    """The problem of one host, with its keys. A build nobody measured is for those who name it: `asked`."""
    requires = {"pytorch": asked} if asked else {}
    return join(shipped(), small.request(requires, profile_of(host), platform=platform, accelerator="cuda", **POLICIES[policy]))


@lru_cache(maxsize=20_000)
def runs(candidate: Candidate, host: Host, platform: str, policy: str) -> bool:
    """Whether one part of an image asks nothing of the driver and the GPU of a host that they are not."""
    build = build_of(candidate)
    is_unmeasured = candidate.key.name == "pytorch" and build is not None and build.sass is None
    problem = problem_of(host, platform, policy, f"=={candidate.label}" if is_unmeasured else "")
    return all(passes(problem, requirement, host) for requirement in problem.needs.of(candidate))


def passes(problem: Problem, requirement: Requirement, host: Host) -> bool:
    """Whether a requirement is met by what the host is, if it is about its driver or its GPU."""
    label = {"driver": host[0], "gpu": host[1][1]}.get(requirement.key.component)
    return label is None or requirement.allows(next(one for one in problem.domains[requirement.key] if one.label == label))


def profile_of(host: Host) -> dict[str, Any]:
    driver, (name, capability, _) = host
    return {"driver": {"version": driver}, "gpus": [{"name": name, "compute_capability": capability}]}


def lets_in(expression: Expression, host: Host) -> bool:
    driver, (_, capability, brand) = host
    gpu = GateGpu(arch=capability, brands=(brand or "tegra",))
    verdict = verdict_of([expression], GateFacts(driver=driver, cuda="0", gpus=(gpu,)))
    assert verdict != "unknown"
    return verdict == "yes"


@cache
def pinned(build: tuple[str, str, str, str], policy: str) -> tuple[str, tuple[Candidate, ...]] | None:
    """The requirement of a build's stack, solved without any host, and the parts of its image."""
    component, exact, _, platform = build
    problem = join(shipped(), small.request({component: exact}, platform=platform, accelerator="cuda", **POLICIES[policy]))
    pins = decide(ProblemInstance(problem))
    if pins is None:
        return None
    return require_cuda(problem, pins), parts_of(pins)


def parts_of(pins: Mapping[Key, Candidate]) -> tuple[Candidate, ...]:
    """What is in an image, with its base: not the host's own components."""
    inside = {name for name, one in shipped().components.items() if not one.virtual or name == "image"}
    return tuple(one for one in pins.values() if one.key.component in inside)


@pytest.mark.parametrize(
    "policy", ["minor-version", *(pytest.param(one, marks=pytest.mark.slow) for one in list(POLICIES)[1:])]
)
def test_for_every_build_of_the_matrix_and_every_host(policy: str) -> None:
    pairs = stacks = admitted = 0
    hosts = hosts_of(policy)
    for build in builds():
        found = pinned(build, policy)
        if found is None:
            continue
        stacks += 1
        text, parts = found
        expression = parse(text)
        for host in hosts:
            expected = all(runs(part, host, build[3], policy) for part in parts)
            assert lets_in(expression, host) == expected, (build, policy, host, text)
            pairs += 1
            admitted += expected
    assert stacks > 80
    assert pairs == stacks * len(hosts)
    assert 0.05 < admitted / pairs < 0.95


@pytest.mark.parametrize("policy", POLICIES)
def test_for_several_frameworks_in_one_image(policy: str) -> None:
    """Each brings a CUDA of its own, and the driver and the GPU must do for all."""
    requests = (
        {"pytorch": "", "jax": ""},
        {"pytorch": ">=2.0", "tensorflow": ""},
        {"tensorflow": "", "jax": "", "pytorch": "==2.6.*"},
    )
    for requires in requests:
        problem = join(shipped(), small.request(requires, accelerator="cuda", **POLICIES[policy]))
        pins = decide(ProblemInstance(problem))
        assert pins is not None
        expression = parse(require_cuda(problem, pins))
        parts = parts_of(pins)
        assert {one.key.component for one in parts} >= set(requires)
        for host in hosts_of(policy):
            expected = all(runs(part, host, "linux/amd64", policy) for part in parts)
            assert lets_in(expression, host) == expected, (requires, policy, host, expression.text)


@pytest.mark.parametrize("base", ["nvidia/cuda:12.6.3-runtime-ubuntu24.04", "nvidia/cuda:13.0.2-runtime-ubuntu24.04"])
def test_with_the_gate_of_a_named_base_both_requirements_together_say_what_the_solver_says(base: str) -> None:
    """What a GPU is called, a host states; which brand that is may be open, and then neither side refuses."""
    image: dict[str, Any] = {"image": {"base": base}}
    problem = join(shipped(), small.request({"pytorch": "==2.9.1"}, accelerator="cuda", **image))
    instance = ProblemInstance(problem)
    pins = decide(instance)
    assert pins is not None
    stack = answer(instance, pins)
    expressions = requirements_of({"NVIDIA_REQUIRE_CUDA": stack.require_cuda, **stack.environment})
    assert [one.variable for one in expressions] == ["NVIDIA_REQUIRE_BASE", "NVIDIA_REQUIRE_CUDA"]
    seen = {True: 0, False: 0}
    hosts = hosts_of(base)
    for host in hosts:
        request = small.request({}, profile_of(host), accelerator="cuda", **image)
        own = join(shipped(), request)
        wanted = [one for part in parts_of(pins) for one in own.needs.of(part)]
        expected = all(passes(own, one, host) for one in wanted)
        facts = facts_of(shipped(), own.needs.guards, request.hosts[0].host, driver=host[0])
        verdict = verdict_of(expressions, facts)
        if verdict == "unknown" and not expected:
            # Of the brand that the name leaves open the gate can tell what the solver knows: this GPU is broken by cuda-compat.
            verdict = "yes" if all(lets_in(one, host) for one in expressions) else "no"
        assert (verdict != "no") == expected, (host, stack.require_cuda)
        seen[expected] += 1
    assert min(seen.values()) > len(hosts) // 20, seen


def test_whole_solves_with_the_image_pinned_agree() -> None:
    random = Random(20261121)
    every = [(build, policy) for build in builds() for policy in POLICIES]
    seen = {True: 0, False: 0}
    while sum(seen.values()) < SOLVES:
        build, policy = random.choice(every)
        host = random.choice(HOSTS)
        found = pinned(build, policy)
        if found is None or not is_solvable({}, host, build[3], policy):
            continue
        text, parts = found
        exact = {build[0]: build[1], "python": next(f"=={one.label}.*" for one in parts if one.key.component == "python")}
        exact |= {one.key.component: f"=={one.label}" for one in parts if one.key.component in {"cuda", "cudnn", "nccl"}}
        expected = is_solvable(exact, host, build[3], policy)
        assert lets_in(parse(text), host) == expected, (build, policy, host, text)
        seen[expected] += 1
    assert min(seen.values()) > SOLVES // 5, seen


@cache
def _solvable(requires: tuple[tuple[str, str], ...], host: Host, platform: str, policy: str) -> bool:
    driver, (name, capability, _) = host
    profile = {"driver": {"version": driver}, "gpus": [{"name": name, "compute_capability": capability}]}
    try:
        solve_system(
            join(shipped(), small.request(dict(requires), profile, platform=platform, accelerator="cuda", **POLICIES[policy]))
        )
    except NoStackError:
        return False
    return True


def is_solvable(requires: Mapping[str, str], host: Host, platform: str, policy: str) -> bool:
    return _solvable(tuple(sorted(requires.items())), host, platform, policy)
