"""Which wheels a target takes, against packaging's own account of a machine: run in a process that believes to be the target.

The oracle is `packaging.tags.sys_tags()` itself, which describes the machine it runs on; there the machine, its C library and
its Python are replaced. The program uses none of the functions that look at a machine (`provisioner.index.pages.tags`).
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.tags import parse_tag
from packaging.utils import canonicalize_name

from provisioner.index.model import Environment
from provisioner.index.pages.filename import parse_filename
from provisioner.index.pages.selection import Selection
from provisioner.index.pages.tags import best_rank, tag_ranks
from tests.file_shelf import listed
from tests.strategies import Dice, case, dice, examples

pytestmark = pytest.mark.property

_ORACLE = """
import json, platform, sys, sysconfig
told = json.loads(sys.argv[1])
from packaging import _manylinux, _musllinux, tags

version = tuple(told["python"])
linux = told["platform"] is not None
sysconfig.get_platform = lambda: told["platform"] or "unused"
platform.system = lambda: "Linux" if linux else "Darwin"
platform.mac_ver = lambda: (told["macos"], ("", "", ""), told["machine"])
_manylinux._get_glibc_version = lambda: tuple(told["glibc"] or (-1, -1))
_manylinux._have_compatible_abi = lambda executable, archs: True
_musllinux._get_musl_version = lambda executable: None
tags.interpreter_name = lambda: "cp"
tags.interpreter_version = lambda *, warn=False: "".join(map(str, version))

class Version(tuple):
    major, minor = version
sys.version_info = Version((*version, 1, "final", 0))
asked = {"Py_GIL_DISABLED": 0, "Py_DEBUG": 0, "WITH_PYMALLOC": 1, "Py_UNICODE_SIZE": 4, "py_version_nodot": ""}
before = tags._get_config_var
tags._get_config_var = lambda name, warn=False: asked.get(name, before(name, warn))
print(json.dumps([str(tag) for tag in tags.sys_tags()]))
"""

ENVIRONMENTS = (
    Environment(platform="linux/amd64", python="3.9", glibc=(2, 17)),
    Environment(platform="linux/amd64", python="3.12", glibc=(2, 36)),
    Environment(platform="linux/amd64", python="3.13", glibc=(2, 28)),
    Environment(platform="linux/arm64", python="3.11", glibc=(2, 31)),
    Environment(platform="linux/arm64", python="3.14", glibc=(2, 39)),
    Environment(platform="macos/x86_64", python="3.11", macos=(10, 15)),
    Environment(platform="macos/arm64", python="3.12", macos=(14, 0)),
    Environment(platform="macos/arm64", python="3.14", macos=(26, 0)),
)

PYTHONS = (
    "py2",
    "py3",
    "py2.py3",
    "py311",
    "py312",
    "cp38",
    "cp39",
    "cp311",
    "cp312",
    "cp313",
    "cp314",
    "cp3",
    "pp311",
    "cp39.cp312",
)
ABIS = ("none", "abi3", "cp39", "cp311", "cp312", "cp313", "cp314", "cp313t", "cp314t", "cp312d", "cp37m", "pypy311_pp73")
PLATFORMS = (
    "any",
    "linux_x86_64",
    "linux_aarch64",
    "linux_armv7l",
    "manylinux1_x86_64",
    "manylinux2010_x86_64",
    "manylinux2014_x86_64",
    "manylinux2014_aarch64",
    "manylinux_2_17_x86_64.manylinux2014_x86_64",
    "manylinux_2_17_aarch64.manylinux2014_aarch64",
    "manylinux_2_28_x86_64",
    "manylinux_2_28_aarch64",
    "manylinux_2_31_aarch64",
    "manylinux_2_36_x86_64",
    "manylinux_2_39_aarch64",
    "manylinux_2_40_x86_64",
    "manylinux_2_4_x86_64",
    "manylinux1_aarch64",
    "manylinux2014_i686",
    "musllinux_1_1_x86_64",
    "musllinux_1_2_aarch64",
    "manylinux_2_28_x86_64.musllinux_1_2_x86_64",
    "macosx_10_9_x86_64",
    "macosx_10_9_universal2",
    "macosx_10_16_x86_64",
    "macosx_11_0_arm64",
    "macosx_11_0_universal2",
    "macosx_10_9_intel",
    "macosx_14_0_arm64",
    "macosx_14_5_arm64",
    "macosx_15_0_arm64",
    "macosx_26_0_arm64",
    "macosx_10_13_x86_64.macosx_11_0_arm64",
    "win32",
    "win_amd64",
    "ios_13_0_arm64_iphoneos",
    "android_24_arm64_v8a",
    "pyodide_2024_0_wasm32",
)


@cache
def oracle(environment: Environment) -> dict[str, int]:
    """Every tag that packaging says the target takes -> its place, 0 the best."""
    system, _, machine = environment.platform.partition("/")
    names = {"amd64": "x86_64", "arm64": "aarch64"}
    told = {
        "python": [int(part) for part in environment.python.split(".")],
        "platform": f"linux-{names[machine]}" if system == "linux" else None,
        "machine": machine,
        "glibc": environment.glibc,
        "macos": ".".join(map(str, environment.macos or ())),
    }
    command = [sys.executable, "-c", _ORACLE, json.dumps(told)]
    found: list[str] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    # Only where a bare tag stands among its like is not packaging's order: see the test of it.
    runs = groupby(found, key=lambda tag: (tag.rpartition("-")[0], tag.endswith("-any")))
    found = [tag for _, run in runs for tag in sorted(run, key=lambda tag: "-linux_" in tag)]
    places: dict[str, int] = {}
    for tag in found:
        places.setdefault(tag, len(places))
    return places


def place(tag: str, environment: Environment) -> int | None:
    """The best place of a compressed tag, by packaging alone."""
    places = oracle(environment)
    return min((places[str(one)] for one in parse_tag(tag) if str(one) in places), default=None)


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda one: f"{one.platform}-{one.python}")
def test_the_tags_of_a_target_are_packagings_in_its_order(environment: Environment) -> None:
    ranks = tag_ranks(environment)
    assert sorted(ranks, key=ranks.__getitem__) == list(oracle(environment))


def test_a_wheel_for_any_linux_comes_after_those_that_say_which_glibc() -> None:
    """As in uv. packaging 26.3 puts `linux_x86_64` first (its issue 160).

    Who has such a wheel built it on the same machine, it says; but a target is another machine, and a wheel that promises no
    glibc is the last resort there.
    """
    ranks = tag_ranks(ENVIRONMENTS[1])
    platforms = [tag.rpartition("-")[2] for tag in sorted(ranks, key=ranks.__getitem__) if tag.startswith("cp312-cp312-")]
    assert platforms[0] == "manylinux_2_36_x86_64"
    assert platforms[-1] == "linux_x86_64"


@examples(3000, shares={"taken": 0.008, "refused": 0.5})
@given(dice(), st.sampled_from(ENVIRONMENTS))
def test_a_wheel_is_taken_exactly_when_packaging_takes_it(chance: Dice, environment: Environment) -> None:
    tag = f"{chance.choice(PYTHONS)}-{chance.choice(ABIS)}-{chance.choice(PLATFORMS)}"
    case("refused" if place(tag, environment) is None else "taken")
    assert (best_rank(tag, tag_ranks(environment)) is None) == (place(tag, environment) is None), tag


@examples(1500)
@given(dice(), st.sampled_from(ENVIRONMENTS))
def test_of_several_wheels_the_one_is_taken_that_packaging_ranks_best(chance: Dice, environment: Environment) -> None:
    """Among equal ones the higher build number wins: "build numbers act as a tie-breaker" of the wheel specification."""
    names = [
        f"demo-1.0-{build}{chance.choice(PYTHONS)}-{chance.choice(ABIS)}-{chance.choice(PLATFORMS)}.whl"
        for build in chance.choices(("", "", "1-", "2-", "10-", "2b-"), k=chance.randint(2, 12))
    ]
    # A wheel without a platform and ABI is what most files are; without it there would mostly be nothing to choose from.
    names.append("demo-1.0-py3-none-any.whl")
    (release,) = Selection(environment=environment).releases(canonicalize_name("demo"), [listed(name) for name in names])
    best = min(names, key=lambda name: (_rank(name, environment), *_build(name), names.index(name)))
    assert release.file is not None
    assert release.file.filename == best


def _rank(name: str, environment: Environment) -> int:
    found = place("-".join(name.removesuffix(".whl").split("-")[-3:]), environment)
    return sys.maxsize if found is None else found


def _build(name: str) -> tuple[int, str]:
    """What makes the higher build come first."""
    parsed = parse_filename(name, "demo")
    assert parsed is not None
    number, rest = parsed.build
    return -number, "" if not rest else chr(0x10FFFF - ord(rest[0]))
