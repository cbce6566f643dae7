"""The hard problems as data: `hard_problems.yaml`, and three easy sets beside them, written down in each tool's words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from large_sets import LARGE, SERVER
from packaging.specifiers import SpecifierSet
from resolvers import NEWEST_PATCH
from ruamel.yaml import YAML

if TYPE_CHECKING:
    from collections.abc import Sequence

PATCHES = {"3.8": "3.8.20", "3.9": "3.9.25", "3.10": "3.10.22", **NEWEST_PATCH, "3.15": "3.15.2"}
"""The release that an image of each series holds, oldest series first. Source: `uv python list` of uv 0.13.9."""

FRAMEWORKS = ("torch", "tensorflow", "jax", "jaxlib")


class Host(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A machine: `os` is a release of Ubuntu."""

    os: str
    glibc: str
    kernel: str
    driver: str
    module: str
    gpu: str
    compute_capability: str
    count: int


class Problem(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One request. `beside` names the problem with an answer that a conflict is compared with, `source` where it is from."""

    name: str
    theme: str
    host: str
    python: str
    packages: tuple[str, ...]
    allow: tuple[str, ...] = ()
    beside: str = ""
    source: str = ""

    @property
    def slug(self) -> str:
        """The name as that of a file."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower())

    @property
    def pythons(self) -> list[str]:
        """The series of Python that the request permits, oldest first."""
        if self.python in PATCHES:
            return [self.python]
        return [series for series, patch in PATCHES.items() if patch in SpecifierSet(self.python)]


class Problems(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that is asked, and the machines it is asked for."""

    hosts: dict[str, Host]
    problems: tuple[Problem, ...]


EASY_HOST = Host(
    os="22.04",
    glibc="2.35",
    kernel="6.5.0-1017-aws",
    driver="580.95.05",
    module="open",
    gpu="NVIDIA H100 80GB HBM3",
    compute_capability="9.0",
    count=8,
)
EASY = tuple(
    Problem(name=name, theme="easy", host="h100-580", python="3.11", packages=packages)
    for name, packages in (
        ("vllm 0.8.5, driver 580", ("vllm==0.8.5",)),
        ("a model server's image (`SERVER`)", SERVER),
        ("a data platform (`LARGE`)", LARGE),
    )
)


def load() -> Problems:
    """Return the problems of `hard_problems.yaml` and the easy ones; a `host` or `beside` that names nothing is a mistake."""
    document = YAML(typ="safe").load(Path(__file__).with_suffix(".yaml"))
    told = msgspec.convert(document, Problems)
    found = Problems(hosts={**told.hosts, "h100-580": EASY_HOST}, problems=(*EASY, *told.problems))
    names = [problem.name for problem in found.problems]
    unknown = [one.host for one in found.problems if one.host not in found.hosts]
    unknown += [one.beside for one in found.problems if one.beside and one.beside not in names]
    if unknown or len({problem.slug for problem in found.problems}) != len(names):
        raise SystemExit(f"hard_problems.yaml: names that name nothing, or twice the same name: {unknown}")
    return found


def spec(problem: Problem, host: Host) -> str:
    """Return the request in provision's words, each package on a line of its own."""
    lines = [
        f"name: {problem.slug}",
        "target:",
        "  platform: linux/amd64",
        "  host:",
        "    platform: linux/amd64",
        f'    os: {{id: ubuntu, version: "{host.os}"}}',
        f"    kernel: {host.kernel}",
        f'    glibc: "{host.glibc}"',
        f'    driver: {{version: "{host.driver}", module: {host.module}}}',
        f'    gpus: [{{name: {host.gpu}, compute_capability: "{host.compute_capability}", count: {host.count}}}]',
        "runs: host",
        "outputs: []",
    ]
    if problem.allow:
        lines.append(f"policy: {{allow: [minor-version, {', '.join(problem.allow)}]}}")
    lines += ["requires:", f'  python: "{problem.python}"', "packages:"]
    return "".join(f"{line}\n" for line in [*lines, *(f'  - "{package}"' for package in problem.packages)])


def asked_at(problem: Problem, host: Host) -> dict[int, str]:
    """Return what the user wrote, by line of the spec: `python`, and each package requirement."""
    lines = spec(problem, host).splitlines()
    first = lines.index("packages:") + 2
    return {first - 2: "python", **{first + number: package for number, package in enumerate(problem.packages)}}


def uv_words(problem: Problem, host: Host, python: str, *, uv: str, interpreter: str) -> list[str]:
    """Return uv's command for the same target; source distributions are for it to build, where they are allowed at all."""
    target = ["--python", interpreter, "--python-version", PATCHES[python]]
    target += ["--python-platform", f"x86_64-manylinux_{host.glibc.replace('.', '_')}"]
    policy = [] if problem.allow else ["--only-binary", ":all:"]
    return [uv, "pip", "compile", *target, *policy, "--no-config", "--quiet", "--no-header", "--no-annotate"]


def bounds(pins: dict[str, str]) -> Sequence[str]:
    """Return the framework releases that provision chose, as constraints for uv; PyPI has one build of each, unlabelled."""
    return [f"{name}=={pins[name].partition('+')[0]}" for name in FRAMEWORKS if name in pins]
