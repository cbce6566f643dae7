"""The search beside uv, an independent resolver, on one index of small random wheels: every yes, every no, every version.

The wheels are real files on a loopback index, which both ask. Some versions are for newer Pythons, some have a file for one
Python alone, some only a source distribution, which both leave out. `benchmarks/compare_random.py` asks about real packages.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from packaging.requirements import Requirement

from provisioner.grounds.conflict import Statement
from provisioner.grounds.predicate import NoFile
from provisioner.index.client import PackageIndex
from provisioner.index.settings import IndexLocation, IndexSettings
from provisioner.resolver.joint import NoStackError, solve_joint
from provisioner.resolver.problem import join
from tests import small
from tests.loopback_index import LoopbackIndex
from tests.scenarios.applied import merged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.grounds.conflict import Conflict
    from provisioner.resolver.stack import Stack

pytestmark = pytest.mark.property

UV = Path(sys.executable).parent / "uv"
PYTHONS = ("3.10", "3.11", "3.12")
NAMES = ("alpha", "beta", "gamma", "delta", "epsilon")
MATRIX = small.matrix(("python",), {"python": {one: {} for one in PYTHONS}}, virtual=())
PIN = re.compile(r"^([a-z]+)==(\S+)", re.MULTILINE)
ROUNDS = 12


class Ask(NamedTuple):
    """What is asked for, with the Pythons that are permitted."""

    packages: tuple[str, ...]
    pythons: tuple[str, ...]

    def without(self, package: str) -> Ask:
        return self._replace(packages=tuple(one for one in self.packages if one != package))


def fill(index: LoopbackIndex, random: Random) -> None:
    """Put three to four versions of each project on an index, each with up to two needs."""
    for name in NAMES:
        others = [other for other in NAMES if other != name]
        for number in range(1, random.choice((4, 5))):
            needs = [bound(random, other) for other in random.sample(others, random.choice((0, 0, 1, 1, 2)))]
            if random.random() < 0.1:
                index.add_sdist(name, f"{number}.0", requires=needs)
                continue
            fields: dict[str, Any] = {"requires": needs}
            if random.random() < 0.25:
                fields["requires_python"] = random.choice((">=3.11", ">=3.12"))  # uv takes no notice of an upper bound
            elif random.random() < 0.15:
                fields["tag"] = f"cp{random.choice(PYTHONS).replace('.', '')}-none-any"
            index.add_wheel(name, f"{number}.0", **fields)


def bound(random: Random, name: str) -> str:
    return random.choice((f"{name}>={{}}.0", f"{name}<{{}}.0", f"{name}=={{}}.0", f"{name}!={{}}.0", name)).format(
        random.randrange(1, 5)
    )


def wanted(random: Random) -> Ask:
    names = random.sample(NAMES, random.choice((2, 3)))
    first = random.randrange(len(PYTHONS))
    return Ask(tuple(bound(random, name) for name in names), PYTHONS[first : random.randrange(first, len(PYTHONS)) + 1])


class Resolvers:
    """provision and uv beside an index; what uv said is kept."""

    def __init__(self, index: LoopbackIndex, folder: Path) -> None:
        self._url, self._folder = index.url, folder
        self._known: dict[tuple[tuple[str, ...], str], dict[str, str] | None] = {}

    def provision(self, ask: Ask) -> Stack | tuple[Conflict, ...]:
        python = f">={ask.pythons[0]},<={ask.pythons[-1]}" if len(ask.pythons) > 1 else ask.pythons[0]
        request = small.request({"python": python}, {}, packages=list(ask.packages))
        settings = IndexSettings(
            indexes=(IndexLocation(name="pypi", url=self._url),), cache_directory=self._folder / "cache", fresh_seconds=0
        )
        try:
            return solve_joint(join(MATRIX, request), lambda environment: PackageIndex(settings, environment))
        except NoStackError as error:
            return error.conflicts

    def uv(self, packages: Sequence[str], python: str) -> dict[str, str] | None:
        """Return the versions that uv chooses for one Python, the newest; None where it refuses."""
        key = (tuple(packages), python)
        if key not in self._known:
            listed = self._folder / "requirements.in"
            listed.write_text("".join(f"{one}\n" for one in packages), encoding="utf-8")
            command = [str(UV), "pip", "compile", "--python", sys.executable, "--python-version", f"{python}.99", "--no-header"]
            command += ["--only-binary", ":all:", "--no-config", "--no-annotate", "--quiet", str(listed)]
            settings = {"UV_DEFAULT_INDEX": self._url, "UV_CACHE_DIR": str(self._folder / "uv"), "UV_PYTHON_DOWNLOADS": "never"}
            run = subprocess.run(
                command,
                env={"PATH": os.environ["PATH"], "HOME": str(self._folder), **settings},
                capture_output=True,
                text=True,
                check=False,
            )
            assert run.returncode in {0, 1}, run.stderr
            self._known[key] = dict(PIN.findall(run.stdout)) if run.returncode == 0 else None
        return self._known[key]

    def some_uv(self, ask: Ask, *also: str) -> bool:
        """Return whether uv has an answer on any of the Pythons that are asked for."""
        return any(self.uv((*ask.packages, *also), python) is not None for python in ask.pythons)


def check_answer(resolvers: Resolvers, ask: Ask, stack: Stack) -> None:
    """Check that uv takes the pins and no more, and that nothing named can be newer beside those named before."""
    python = ".".join(stack.components["python"].split(".")[:2])
    pins = {package.name: package.version for package in stack.packages}
    assert resolvers.uv((*ask.packages, *(f"{name}=={version}" for name, version in pins.items())), python) == pins, ask
    ahead: list[str] = []
    for one in ask.packages:
        name = Requirement(one).name
        assert not resolvers.some_uv(ask, *ahead, f"{name}>{pins[name]}"), (ask, pins)
        ahead.append(f"{name}=={pins[name]}")


def check_conflict(resolvers: Resolvers, ask: Ask, conflict: Conflict) -> None:
    """Check that uv refuses the requests of a conflict on every Python, and answers without any one of them."""
    requests = {member.component for member in conflict.members if member.kind == "request"}
    rest = Ask(tuple(one for one in ask.packages if Requirement(one).name in requests), ask.pythons)
    pythons = rest if "python" in requests else rest._replace(pythons=PYTHONS)
    assert not resolvers.some_uv(pythons), (ask, requests)
    for one in rest.packages:
        assert resolvers.some_uv(pythons.without(one)), (ask, requests, one)
    # A version without a file for the Python is told from its page alone, whatever else may be in its way.
    clauses = (clause for member in conflict.members for clause in member.clauses)
    is_of_files = any(isinstance(one, Statement) and isinstance(one.predicate, NoFile) for one in clauses)
    if "python" in requests and not is_of_files:
        assert resolvers.some_uv(rest._replace(pythons=PYTHONS)), (ask, requests)


def check_first_fixes(resolvers: Resolvers, ask: Ask, conflicts: Sequence[Conflict]) -> None:
    """The patches of the first fixes of all conflicts, one after another, lead to what uv has an answer to."""
    spec: dict[str, Any] = {"packages": list(ask.packages), "requires": {}}
    if not all(conflict.fixes for conflict in conflicts):
        return
    if len(conflicts) > 1:
        for conflict in conflicts:
            kept = conflict.fixes[0].patch.get("spec", {}).get("packages", ask.packages)
            assert conflict.fixes[0].gives_up or len(kept) == len(ask.packages), conflict.fixes[0].patch
        return
    spec = merged(spec, conflicts[0].fixes[0].patch.get("spec", {}))
    python = spec["requires"].get("python", "")
    pythons = tuple(one for one in PYTHONS if one in python) or ask.pythons
    assert resolvers.some_uv(Ask(tuple(spec["packages"]), pythons)), (ask, spec)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_uv_agrees_with_what_is_answered_refused_and_mended(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    with LoopbackIndex() as index:
        fill(index, random)
        resolvers = Resolvers(index, tmp_path)
        for _ in range(3):
            ask = wanted(random)
            found = resolvers.provision(ask)
            assert isinstance(found, tuple) != resolvers.some_uv(ask), ask
            if not isinstance(found, tuple):
                check_answer(resolvers, ask, found)
                continue
            for conflict in found:
                check_conflict(resolvers, ask, conflict)
            check_first_fixes(resolvers, ask, found)
