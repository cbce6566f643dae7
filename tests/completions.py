"""What a fact that a host leaves out may turn out to be, and whether a chosen stack survives it.

Values are those the shipped matrix tells apart. Used by the tests of the third verdict, tests/property/test_three_valued.py.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec.json import decode

from provisioner.grounds.requirement import Supposes
from provisioner.host.model import Host
from provisioner.request import Request, TargetHost
from provisioner.resolver.problem import join
from provisioner.resolver.requirement import Labelled, Requirement
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.resolve import decide
from provisioner.spec.model import Spec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.matrix.model import Matrix
    from provisioner.resolver.requirement import Candidate, Key

Profile = dict[str, Any]
Path = tuple[str | int, ...]
"""Where a fact stands in a profile: `("driver", "module")`, `("gpus", 0, "name")`."""

FIXED: Mapping[str, tuple[object, ...]] = {
    "os": (
        {"id": "ubuntu", "version": "22.04"},
        {"id": "ubuntu", "version": "24.04"},
        {"id": "ubuntu", "version": "14.04"},
        {"id": "debian", "version": "12"},
        {"id": "rhel", "version": "7.9"},
        {"id": "rhel", "version": "9.4"},
        {"id": "sles", "version": "15.3"},
        {"id": "arch"},
    ),
    "container_toolkit": ("none", "1.0.0", "1.17.8"),
    "secure_boot": (
        {"enabled": False},
        {"enabled": True, "mok_enrolled": True},
        {"enabled": True, "mok_enrolled": False},
    ),
    "kernel_headers": ("none", "6.8.0-45-generic"),
    "kernel_gcc": ("4.8.5", "12.3.0", "16.0.0"),
    "gcc": ("4.8.5", "9.4.0", "13.2.0", "15.1.0"),
    "nvcc": ("10.2.89", "12.4.131", "13.0.48"),
    "loaded_modules": ([], ["nouveau"], ["vfio-pci"], ["nvidia"]),
    "python_arch": ("x86_64", "arm64"),
    "fabric_manager": ("none", "535.104.05", "570.124.06"),
    "userspace_driver": ("535.104.05", "570.124.06"),
    "virtualization": ("none", "vm", "container", "wsl1", "wsl2"),
    "glibc": ("2.17", "2.28", "2.31", "2.39"),
    "jetson": ({"l4t": "36.4.3"}, {"l4t": "32.7.1"}),
    "cuda_driver": ("375.0", "410.130", "418.163"),
    "sip": ("enabled", "partial", "disabled"),
    "xcode": ("8.2", "9.4", "10.1", "12.0"),
}
"""Keys of a profile, and values that rules tell apart."""

KEYS = (*FIXED, "kernel", "driver", "gpus")

PARTS: Mapping[str, tuple[str, ...]] = {"driver": ("version", "module"), "os": ("version",), "secure_boot": ("mok_enrolled",)}
"""Facts within a fact that may be left out alone."""

NAMED_AS: Mapping[str, frozenset[str]] = {
    "gpus": frozenset({"gpu", "gpu_kind"}),
    "driver": frozenset({"driver", "amdgpu", "webdriver"}),
    "driver.version": frozenset({"driver", "amdgpu", "webdriver"}),
    "driver.module": frozenset({"driver_module"}),
    "os": frozenset({"os", "macos"}),
}
"""The components under which an answer names a fact; any other goes by its key."""


def facts(profile: Profile) -> Iterator[Path]:
    """Every fact a profile states that could be left out."""
    for key in profile:
        if key in KEYS:
            yield (key,)
        if isinstance(profile[key], dict):
            yield from ((key, part) for part in PARTS.get(key, ()) if part in profile[key])
        elif key == "gpus":
            for index, gpu in enumerate(profile[key]):
                yield from (("gpus", index, part) for part in ("name", "compute_capability") if part in gpu)
                yield ("gpus", index)


def unstated(profile: Profile) -> Iterator[Path]:
    """Every fact a profile leaves out as a whole."""
    yield from ((key,) for key in KEYS if key not in profile)


def without(profile: Profile, path: Path) -> Profile:
    """A profile with one fact left out; of a GPU that is left out everything but that it is there."""
    found = copy.deepcopy(profile)
    *above, last = path
    parent: Any = found
    for step in above:
        parent = parent[step]
    if isinstance(last, int):
        parent[last] = {}
    else:
        del parent[last]
    return found


def with_value(profile: Profile, path: Path, value: object) -> Profile:
    """A profile in which a fact is stated."""
    found = copy.deepcopy(profile)
    parent: Any = found
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = value
    return found


def named_as(path: Path) -> frozenset[str]:
    """The components an answer may name a fact by."""
    keys = [part for part in path if isinstance(part, str)]
    return NAMED_AS.get(".".join(keys[:2]), NAMED_AS.get(keys[0], frozenset({keys[0]})))


def values(matrix: Matrix, path: Path, profile: Profile) -> Iterator[object]:
    """What a fact may turn out to be."""
    key = path[0]
    if key == "gpus":
        yield from _gpus(matrix, path, profile)
    elif path == ("driver", "module"):
        yield from ("open", "proprietary")
    elif path == ("secure_boot", "mok_enrolled"):
        yield from (True, False)
    elif key == "driver":
        drivers = _drivers(matrix)
        kind = profile.get("driver", {}).get("kind", "nvidia")
        yield from (one["version"] for one in drivers if one["kind"] == kind) if len(path) > 1 else drivers
    elif key == "kernel":
        kernels = matrix.components["kernel"].releases
        yield from (str(one.version) for one in kernels[:: max(1, len(kernels) // 8)])
        yield from ("5.15.153.1-microsoft-standard-WSL2", "4.4.0-19041-Microsoft")
    elif key == "python_arch" and profile.get("platform") != "macos/arm64":
        yield {"linux/arm64": "arm64"}.get(profile.get("platform", ""), "x86_64")  # only Rosetta runs the other one's programs
    elif key == "os" and len(path) > 1:
        system = profile["os"]["id"]
        known = [str(one.version).partition(" ") for one in matrix.components["os"].releases]
        yield from (version for name, _, version in known if name == system and version)
        yield from ("10.12.6", "10.13.6", "14.5") if system == "macos" else ()
    elif key == "os" and "macos" in str(profile.get("platform", "")):
        yield from ({"id": "macos", "version": "10.12.6"}, {"id": "macos", "version": "10.13.6", "build": "17G65"})
    else:
        yield from FIXED.get(str(key), ())


def _gpus(matrix: Matrix, path: Path, profile: Profile) -> Iterator[object]:
    devices = list(_devices(matrix))
    if len(path) == 1:
        if profile.get("platform") != "macos/arm64":  # every Apple chip has a GPU
            yield []
        yield from ([device] for device in devices)
    elif len(path) == 2:
        yield from devices
    elif path[2] == "compute_capability":
        yield from ()  # beside a name it is known already
    else:
        capability = profile["gpus"][path[1]].get("compute_capability")
        yield from (gpu.name for gpu in matrix.gpus if gpu.compute_capability and gpu.compute_capability == capability)


def _devices(matrix: Matrix) -> Iterator[Profile]:
    """One GPU of every kind the matrix tells apart, and every capability without a name."""
    seen = set()
    for gpu in matrix.gpus:
        kind = (gpu.compute_capability, gpu.gfx, gpu.kind)
        if kind not in seen:
            seen.add(kind)
            yield {"name": gpu.name}
    yield from ({"compute_capability": str(release.version)} for release in matrix.components["gpu"].releases)


def _drivers(matrix: Matrix) -> list[Profile]:
    found = []
    for kind, name in (("nvidia", "driver"), ("amdgpu", "amdgpu"), ("webdriver", "webdriver")):
        component = matrix.components.get(name)
        releases = component.releases if component is not None else ()
        found += [{"kind": kind, "version": str(one.version)} for one in releases[:: max(1, len(releases) // 10)]]
    return found


@dataclass(frozen=True, kw_only=True)
class Case:
    """A spec with its hosts, from a scenario or a published combination."""

    name: str
    spec: Mapping[str, Any]
    hosts: Sequence[Profile]

    def request(self, *, hosts: Sequence[Profile] | None = None, preferred: Mapping[str, str] | None = None) -> Request:
        """What is requested for, on these hosts or on others."""
        spec = decode(json.dumps(self.spec, default=str), type=Spec)
        targets = tuple(
            TargetHost(label=f"host {number}", host=decode(json.dumps(profile), type=Host))
            for number, profile in enumerate(self.hosts if hosts is None else hosts, start=1)
        )
        return Request(spec=spec, hosts=targets, platform=str(spec.target.platform), preferred=preferred or {})

    def bare(self) -> Case:
        """The same hosts, of which nothing is asked."""
        spec = {key: value for key, value in self.spec.items() if key not in {"requires", "packages", "build"}}
        return Case(name=self.name, spec=spec, hosts=self.hosts)


def survives(matrix: Matrix, request: Request, pins: Mapping[Key, Candidate]) -> bool:
    """Whether what was chosen is still a solution on these hosts: what an image holds, and what is chosen for a host."""
    problem = join(matrix, request)
    roots = []
    for key, candidate in pins.items():
        if key in problem.domains:
            roots.append(Requirement(key, Labelled(frozenset({candidate.label})), Supposes()))
        elif not key.scope:
            return False
    return decide(ProblemInstance(problem.with_roots(*roots))) is not None


def can_be(matrix: Matrix, case: Case, hosts: Sequence[Profile], pins: Mapping[Key, Candidate]) -> bool:
    """Whether there can be such hosts, where what was chosen for them is installed.

    Facts that exclude each other by themselves are no host's, nor is a fact that excludes what was chosen: a libcuda is of the
    driver that is installed. What the choice needs of the facts is another matter.
    """
    instance = ProblemInstance(join(matrix, case.bare().request(hosts=hosts)))
    if decide(instance) is None:
        return False
    facts = [root for root in instance.roots if root.ground.kind == "fact" and root.key.scope and root.key not in pins]
    known = [one for root in facts for one in instance.allowed(root)]
    wanted = [one for candidate in known for one in instance.requirements(candidate) if one.key.scope and one.key in pins]
    return all(one.allows(pins[one.key]) for one in wanted)
