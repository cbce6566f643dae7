"""Requests nobody wrote: random ranges of the shipped matrix's own versions, on the example hosts and on old ones. Seeded."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.json import decode
from ruamel.yaml import YAML

from provisioner.host.model import Host
from provisioner.request import TargetHost, Request
from provisioner.spec.model import Spec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.matrix.model import Matrix

HOSTS = Path(__file__).parent.parent / "examples" / "hosts"
NAMES = ("pytorch", "python", "cuda", "cudnn", "nccl", "triton", "driver", "kernel", "tensorflow", "jax", "rocm")
DRIVERS = ("390.157", "418.226.00", "450.80.02", "470.256.02", "510.47.03", "525.60.13", "535.104.05", "550.54.14", "570.86.15")
KERNELS = ("4.18.0-553.el8_10.x86_64", "5.15.0-105-generic", "6.8.0-45-generic", "6.14.0-24-generic", "7.2.8")
BASES = ("auto", "auto", "auto", "cuda-runtime", "cuda-devel")


def requests(matrix: Matrix, *, seed: int, count: int) -> Iterator[Request]:
    """That many requests, each with one to four requests on one host, sometimes two; most of them impossible, some not."""
    draw = random.Random(seed)
    profiles = {path.stem: YAML(typ="safe").load(path.read_text(encoding="utf-8")) for path in sorted(HOSTS.glob("*.yaml"))}
    for _ in range(count):
        names = draw.sample(sorted(profiles), draw.choice((1, 1, 1, 2)))
        hosts = [_aged(dict(profiles[name]), draw) for name in names]
        platform = hosts[0].get("platform", "linux/amd64")
        hosts = [host for host in hosts if host.get("platform", "linux/amd64") == platform]
        requires = {name: _range(matrix, name, draw) for name in draw.sample(NAMES, draw.randint(1, 4))}
        spec: dict[str, Any] = {
            "target": {"platform": platform},
            "requires": requires,
            "image": {"base": draw.choice(BASES)},
            "policy": {"strategy": draw.choice(("newest", "newest", "newest", "oldest"))},
        }
        targets = tuple(
            TargetHost(label=f"host {number}", host=decode(json.dumps(facts), type=Host))
            for number, facts in enumerate(hosts, start=1)
        )
        yield Request(spec=decode(json.dumps(spec), type=Spec), hosts=targets, platform=platform)


def _aged(facts: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """The profile with another driver or kernel, or without one, now and then."""
    driver = facts.get("driver")
    if driver and driver.get("kind", "nvidia") == "nvidia" and draw.random() < 0.6:
        facts["driver"] = {**driver, "version": draw.choice(DRIVERS)}
    if draw.random() < 0.1:
        facts.pop("driver", None)
    if facts.get("platform", "linux/amd64") == "linux/amd64" and draw.random() < 0.4:
        facts["kernel"] = draw.choice(KERNELS)
    return facts


def _range(matrix: Matrix, name: str, draw: random.Random) -> str:
    versions = [str(release.version) for release in matrix.components[name].releases]
    version = draw.choice(versions)
    return draw.choice((f"=={version}", f">={version}", f"<{version}", f"<={version}"))
