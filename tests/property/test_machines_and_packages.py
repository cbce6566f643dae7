"""What is known of a machine only narrows an answer: real machines, each with what popular packages and frameworks ask for.

`tests/property/test_evident_facts.py` holds the laws on random systems and documented incompatibilities. Here they are held on
the product of the ordinary machines and the packages of `tests/facts/popular.yaml`, frameworks, toolkits and libraries, with
the shipped matrix: leaving a fact out turns no no into a yes that does not name the fact, and neither a yes nor what is
unverified into a no, and stating what is evident changes nothing. Of more than 7,000 pairs a few are tried, the same each
time; `PROVISION_EXAMPLES=250` tries all of them, in more than half an hour of processor time.
"""

from __future__ import annotations

import json
import random
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import Struct
from msgspec.json import decode
from msgspec.structs import replace

from provisioner.index.client import PackageIndex
from provisioner.request import Request, TargetHost
from provisioner.resolver.outcome.answer import answer
from provisioner.resolver.problem import join
from provisioner.resolver.refutation import Refutation, decided
from provisioner.spec.model import Spec
from tests.facts.test_ordinary import PROFILES, host_of, title
from tests.facts.test_popular import FACTS, settings
from tests.property.test_evident_facts import evident
from tests.shipped import shipped
from tests.strategies import times
from tests.told import assumed, unverified

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.host.model import Host
    from provisioner.index.settings import IndexSettings
    from provisioner.resolver.requirement import Candidate, Key
    from provisioner.resolver.stack import Stack

__all__ = ["settings"]  # a fixture

pytestmark = pytest.mark.property

SAMPLE = 30
"""How many pairs of a machine and what is asked of it are tried."""

ON_CUDA: tuple[Mapping[str, str], ...] = (
    {"pytorch": "*"}, {"pytorch": "==2.14.*"}, {"pytorch": "==2.7.*"}, {"pytorch": "==2.0.*"}, {"pytorch": "==1.13.*"},
    {"tensorflow": "*"}, {"tensorflow": "==2.12.*"}, {"jax": "*"}, {"cuda": "10.2.*"}, {"cuda": "11.8.*"}, {"cuda": "12.4.*"},
    {"cuda": "13.*"}, {"tensorrt": "8.*"}, {"tensorrt": "10.*"}, {"cudnn": "8.*"}, {"cudnn": "9.*"}, {"nccl": "2.*"},
    {"nvcc": "*"},
)  # fmt: skip
ON_ROCM: tuple[Mapping[str, str], ...] = (*ON_CUDA[:8], {"rocm": "5.7.*"}, {"rocm": "6.4.*"}, {"rocm": "7.*"})
"""What is asked of machines with GPUs of NVIDIA and of AMD: frameworks old and new, toolkits and libraries alone."""

NAMED_AS: Mapping[str, frozenset[str]] = {
    "gpus": frozenset({"gpu", "gpu_kind"}),
    "driver": frozenset({"driver", "amdgpu", "webdriver"}),
    "driver.module": frozenset({"driver_module"}),
    "libraries": frozenset({"libraries", "cudnn", "nccl", "cublas", "rocm"}),
}
"""The components under which an answer names a fact; any other goes by its key."""


COUNTS_AS_ABSENT = ("mig", "nvswitch")
"""Facts that count as absent where nobody states them (docs/decisions/294-mig-is-a-fact-of-the-machine.md)."""

PARTS: Mapping[str, tuple[str, ...]] = {
    "driver": ("version", "module"),
    "os": ("version",),
    "libraries": ("cudnn", "nccl", "cublas", "rocm"),
}
"""Parts of a fact that may be left out alone."""


class Pair(Struct, frozen=True):
    """A machine, and what is asked of it."""

    profile: dict[str, Any]
    host: Host
    asked: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{title(self.profile)} with {self.asked.get('packages') or self.asked['requires']}"

    def on(self, host: Host) -> Request:
        """Return the request for a host in place of the machine."""
        platform = self.host.platform or "linux/amd64"
        spec = decode(json.dumps({**self.asked, "target": {"platform": platform}}), type=Spec)
        return Request(spec=spec, hosts=(TargetHost(label="host", host=host),), platform=platform)


class Found(Struct, frozen=True):
    """An answer, and the candidates that it consists of."""

    stack: Stack
    pins: Mapping[Key, Candidate]


@cache
def sample() -> tuple[Pair, ...]:
    """Return the pairs that are tried, in random order."""
    every = list(pairs())
    return tuple(random.Random(7).sample(every, min(times(SAMPLE), len(every))))


def pairs() -> Iterator[Pair]:
    for profile in PROFILES:
        host = host_of(profile)
        platform = host.platform or "linux/amd64"
        if not platform.startswith("linux") or host.gpus == ():
            continue
        is_of_amd = any(gpu.gfx for gpu in host.gpus or ())
        spec = {
            "runs": profile.get("runs", "host"),
            "accelerator": "rocm" if is_of_amd else "cuda",
            "policy": {"allow": ["minor-version", "ptx-jit"]},
        }
        for asked in ON_ROCM if is_of_amd else ON_CUDA:
            yield Pair(profile, host, {**spec, "requires": asked})
        for one in FACTS["packages"]:
            if one.get("platform", "linux/amd64") == platform:
                packages = [one["ask"], *one.get("beside", [])]
                yield Pair(profile, host, {**spec, "requires": {"python": "==3.12"}, "packages": packages})


def solved(request: Request, settings: IndexSettings | None) -> Found | None:
    """Return the answer to a request, of components alone without settings, and None where there is none."""
    read = (lambda environment: PackageIndex(settings, environment)) if settings is not None else None
    found = decided(join(shipped(), request), read)
    if isinstance(found, Refutation):
        found.close()
        return None
    return Found(answer(*found), found[1])


def chosen(stack: Stack) -> Mapping[str, str]:
    """Return what is chosen but the machine's own facts."""
    components = {pin.component: f"{pin.version} {pin.build}" for pin in stack.pins if not pin.host}
    return components | {pin.name: pin.version for pin in stack.packages}


def without_each_fact(host: Host) -> Iterator[tuple[str, Host]]:
    """Yield each fact of a host, or part of one, with a host that does not state it."""
    for name in host.__struct_fields__:
        value = getattr(host, name)
        if value is None or name == "platform" or name in COUNTS_AS_ABSENT:
            continue
        yield name, replace(host, **{name: None})
        for part in PARTS.get(name, ()):
            if getattr(value, part) is not None:
                yield f"{name}.{part}", replace(host, **{name: replace(value, **{part: None})})
        for place, gpu in enumerate(value if name == "gpus" else ()):
            for less in (replace(gpu, name=None), type(gpu)()):
                if less != gpu:
                    yield f"gpus.{place}", replace(host, gpus=(*value[:place], less, *value[place + 1 :]))


def is_named(fact: str, found: Found) -> bool:
    """Return whether an answer doubts or assumes a fact, or has chosen it itself, as a driver that is to be installed."""
    names = NAMED_AS.get(fact, NAMED_AS.get(fact.partition(".")[0], frozenset({fact.partition(".")[0]})))
    told = {line.partition(":")[0] for line in (*unverified(found.stack), *assumed(found.stack))}
    return bool(told & names) or any(key.scope == "host" and key.component in names for key in found.pins)


def test_leaving_a_fact_out_turns_no_no_into_a_yes_in_silence(settings: IndexSettings) -> None:
    refused = [one for one in sample() if solved(one.on(one.host), settings) is None]
    assert refused
    broken = []
    for one in refused:
        for fact, host in without_each_fact(one.host):
            found = solved(one.on(host), settings)
            if found is not None and not is_named(fact, found):
                broken.append(f"{one.name} without {fact}: {found.stack.verdict} {dict(found.stack.components)}")
    assert broken == []


def test_stating_what_is_evident_keeps_an_answer_and_leaving_a_fact_out_makes_no_no(settings: IndexSettings) -> None:
    seed = random.Random(5)
    broken = []
    answered = 0
    for one in sample():
        found = solved(one.on(one.host), settings)
        if found is None:
            continue
        answered += 1
        before = (found.stack.verdict, chosen(found.stack))
        facts = evident(one.host)
        name = seed.choice(sorted(facts)) if facts else ""
        for stated in [facts, {name: facts[name]}] if facts else []:
            now = solved(one.on(replace(one.host, **stated)), settings)
            if now is None or (now.stack.verdict, chosen(now.stack)) != before:
                broken.append(f"{one.name} with {stated}: {now and now.stack.verdict}")
        fact, less = seed.choice(list(without_each_fact(one.host)))
        if solved(one.on(less), settings) is None:
            broken.append(f"{one.name}, which is {found.stack.verdict}, without {fact}: no")
    assert answered >= len(sample()) / 3
    assert broken == []


def test_a_jetson_that_leaves_its_jetson_linux_out_is_refused_nothing_that_it_runs() -> None:
    """Its GPU says that it is one, and not what its Jetson Linux runs. Every pair is tried, with components alone."""
    asked = [one for one in pairs() if one.host.jetson is not None and one.host.gpus and "packages" not in one.asked]
    found = [(one, solved(one.on(one.host), None), solved(one.on(replace(one.host, jetson=None)), None)) for one in asked]
    assert any(before is not None and before.stack.verdict == "unverified" for _, before, _ in found)
    assert [one.name for one, before, after in found if before is not None and after is None] == []
    silent = [one.name for one, before, after in found if before is None and after and not is_named("jetson", after)]
    assert silent == []
