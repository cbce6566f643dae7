"""What is written is a lock of PEP 751 to its reference implementation, which takes exactly the chosen files everywhere."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from packaging.pylock import Pylock, PylockSelectError

from provisioner.index.model import DIRECT_URL, IndexFile
from provisioner.lock.format.file import parse_lock
from provisioner.resolver.stack import PackagePin, Stack
from tests.lock_examples import lock_of
from tests.standard_lock import MACHINES, assert_selects_its_stacks, environment, read, selected, series, tags
from tests.strategies import Dice, dice, examples

NAMES = ("alpha", "beta", "gamma", "delta", "epsilon")
PYTHONS = ("3.11", "3.12", "3.13")
GOLDEN = sorted((Path(__file__).parents[1] / "golden").rglob("pylock.*.toml"))
SHIPPED = sorted((Path(__file__).parents[2] / "dockerfiles").rglob("pylock*.toml"))
COMPILED = {
    "linux/amd64": ("manylinux_2_17_x86_64.manylinux2014_x86_64", "manylinux_2_28_x86_64", "linux_x86_64"),
    "linux/arm64": ("manylinux_2_17_aarch64.manylinux2014_aarch64", "manylinux_2_28_aarch64", "linux_aarch64"),
    "macos/x86_64": ("macosx_10_9_x86_64", "macosx_10_9_universal2"),
    "macos/arm64": ("macosx_11_0_arm64", "macosx_10_9_universal2"),
}


def stacks(seed: random.Random) -> list[Stack]:
    """One stack a platform, from releases that all of them know: the best wheel for each, or an archive."""
    platforms = seed.sample(sorted(MACHINES), seed.randint(1, 4))
    pythons = seed.sample(PYTHONS, seed.randint(1, 2))
    python = {platform: seed.choice(pythons) for platform in platforms}
    shelf = {(name, version): wheels(seed, name, version) for name in NAMES for version in ("1.0", "2.0+cu1")}
    made = []
    for platform in platforms:
        packages = []
        for name in seed.sample(NAMES, seed.randint(0, len(NAMES))):
            version = seed.choice(["1.0", "1.0", "2.0+cu1"])
            file = best(shelf[name, version], platform, python[platform])
            requires = tuple(f"{other}>=1" for other in NAMES if other < name)
            packages.append(PackagePin(name=name, version=version, file=file, requires=requires))
        made.append(
            Stack(
                platform=platform,
                accelerator="cpu",
                components={"python": python[platform]},
                pins=(),
                packages=tuple(packages),
                runs="host",
            )
        )
    return made


def wheels(seed: random.Random, name: str, version: str) -> list[IndexFile]:
    """The files of one release: compiled ones for some Pythons and machines and one for all, or one that a URL names."""
    if seed.random() < 0.15:
        return [wheel(name, version, "py3-none-any", DIRECT_URL)]
    index = seed.choice(["pypi", "pypi", "mirror", "https://example.org/simple"])
    found = [wheel(name, version, "py3-none-any", index)]
    for platforms in COMPILED.values():
        for platform in platforms:
            kinds = [f"cp{p.replace('.', '')}-cp{p.replace('.', '')}" for p in PYTHONS] + ["cp311-abi3", "py3-none"]
            found += [wheel(name, version, f"{kind}-{platform}", index) for kind in kinds if seed.random() < 0.2]
    return found


def wheel(name: str, version: str, tag: str, index: str) -> IndexFile:
    filename = f"{name}-{version}-{tag}.whl"
    digest = random.Random(filename).randbytes(32).hex()
    url = f"https://example.org/{filename.replace('+', '%2B')}"
    return IndexFile(filename=filename, url=url, index=index, sha256=digest, size=7, requires_python=">=3.9,<4")


def best(files: list[IndexFile], platform: str, python: str) -> IndexFile:
    """What installers prefer: the first of the environment's tags that any file has."""
    accepted = [str(tag) for tag in tags(platform, python)]

    def rank(file: IndexFile) -> int:
        interpreters, abis, platforms = file.filename.removesuffix(".whl").split("-")[2:]
        single = [f"{i}-{a}-{p}" for i in interpreters.split(".") for a in abis.split(".") for p in platforms.split(".")]
        return min((accepted.index(tag) for tag in single if tag in accepted), default=len(accepted))

    return min(files, key=rank)


@pytest.mark.property
@examples(300)
@given(dice())
def test_on_each_platform_exactly_its_files_are_taken(chance: Dice) -> None:
    made = stacks(chance)
    assert_selects_its_stacks(lock_of(*made, installers={}), *made)


@pytest.mark.property
@examples(100)
@given(dice())
def test_where_the_lock_is_not_for_nothing_is_taken(chance: Dice) -> None:
    made = stacks(chance)
    lock = lock_of(*made, installers={})
    meant = {(stack.platform, series(stack)) for stack in made}
    for platform in MACHINES:
        for python in (*PYTHONS, "3.14"):
            if (platform, python) not in meant:
                with pytest.raises(PylockSelectError):
                    list(selected(lock, platform, python))


@pytest.mark.property
@examples(100)
@given(dice())
def test_environments_exclude_each_other(chance: Dice) -> None:
    """PEP 751: "Tools SHOULD write exclusive/non-overlapping environment markers"."""
    made = stacks(chance)
    markers = read(lock_of(*made, installers={})).environments or []
    for platform in MACHINES:
        for python in PYTHONS:
            assert sum(marker.evaluate(dict(environment(platform, python))) for marker in markers) <= 1  # type: ignore[arg-type]


@pytest.mark.parametrize("path", [*GOLDEN, *SHIPPED], ids=lambda path: path.name)
def test_every_lock_of_this_repository_is_one_to_the_reference_implementation(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    lock = parse_lock(text, file=path.name)
    pylock: Pylock = read(lock)
    assert pylock.created_by == "provision"
    for stack in lock.stacks:
        python = ".".join(stack.components["python"].split(".")[:2])
        found = [(name, version) for name, version, _ in selected(lock, stack.platform, python)]
        assert found == [(package.name, package.version) for package in lock.on(stack.platform).packages]
