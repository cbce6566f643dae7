"""What `check` calls a contradiction of a lock changes who gets what from it, as the reference implementation judges.

`packaging.pylock` selects for every machine and Python from the lock as it was solved and from one with a field of the standard
exchanged, its digest made again. Where the two selections differ there must be words, and where they do not there must be none.
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import pytest
import tomli_w
from hypothesis import given
from packaging.pylock import Pylock, PylockSelectError
from packaging.tags import compatible_tags, cpython_tags

from provisioner.lock.check.coherence import coherence_findings
from provisioner.lock.format.file import digest_of, parse_lock, verify_digest, write_lock
from provisioner.words.finding import finding_words
from tests.lock_examples import lock_of
from tests.property.test_lock_standard import stacks
from tests.standard_lock import MACHINES, environment, tags
from tests.strategies import Dice, case, dice, examples

if TYPE_CHECKING:
    import random

    from packaging.markers import Environment
    from packaging.tags import Tag

PYTHONS = tuple(f"3.{minor}" for minor in range(9, 16))
MARKERS = (
    *(f'sys_platform == "{system}"' for system in ("linux", "darwin", "win32")),
    *(f'platform_machine == "{machine}"' for machine in ("x86_64", "aarch64", "arm64")),
    *('sys_platform != "win32"', 'sys_platform == "linux" and platform_machine == "x86_64"', 'os_name == "posix"'),
    *('python_version >= "3.12"', 'python_version == "3.11"', "'more' in extras", "'dev' in dependency_groups"),
)
SPECIFIERS = ("", ">=3.9", ">=3.11", ">=3.12", "==3.11.*", "==3.12.*", "<3.13", "!=3.12.*")


def selection(table: dict[str, Any]) -> dict[tuple[str, str], object]:
    """What everybody gets: the files for each machine and Python, to be turned away, or to be let in and get an error."""
    pylock = Pylock.from_dict(table)
    found: dict[tuple[str, str], object] = {}
    for machine in (*MACHINES, "windows"):
        for python in PYTHONS:
            own, accepted = of_machine(machine, python)
            try:
                chosen = pylock.select(environment=own, tags=accepted)
                found[machine, python] = sorted((one.name, file.url) for one, file in chosen)  # type: ignore[union-attr]
            except PylockSelectError as error:
                found[machine, python] = "an error" if "packages[" in str(error) else "turned away"
    return found


def of_machine(machine: str, python: str) -> tuple[Environment, list[Tag]]:
    """Its markers and tags; Windows is nothing that a lock is ever solved for."""
    if machine != "windows":
        return environment(machine, python), tags(machine, python)
    own: Environment = {
        **environment("linux/amd64", python),
        "os_name": "nt",
        "platform_machine": "AMD64",
        "platform_system": "Windows",
        "sys_platform": "win32",
    }
    minor = int(python.removeprefix("3."))
    return own, [
        *cpython_tags((3, minor), platforms=["win_amd64"]),
        *compatible_tags((3, minor), f"cp3{minor}", ["win_amd64"]),
    ]


def exchanged(seed: random.Random, table: dict[str, Any]) -> None:
    """Another marker or another Requires-Python, of the whole or of one package."""
    package = seed.choice(table["packages"]) if table["packages"] and seed.random() < 0.7 else None
    holder, marker = (table, "environments") if package is None else (package, "marker")
    key = seed.choice([marker, "requires-python"])
    value: Any = seed.choice(SPECIFIERS if key == "requires-python" else ("", *MARKERS))
    if key == "environments":
        value = seed.sample([*MARKERS[:9], *table["environments"]], seed.randint(0, 3))
    holder.pop(key, None)
    if value:
        holder[key] = value


def findings(table: dict[str, Any]) -> list[str]:
    table["tool"]["provision"]["digest"] = digest_of(table)
    text = tomli_w.dumps(table)
    assert verify_digest(text)
    return [
        finding_words(one) for one in coherence_findings(parse_lock(text, file="pylock.x.toml"), text, file="pylock.x.toml")
    ]


@pytest.mark.property
@examples(300)
@given(dice())
def test_what_was_solved_does_not_contradict_itself(chance: Dice) -> None:
    text = write_lock(lock_of(*stacks(chance), installers={}))
    assert findings(tomllib.loads(text)) == []


@pytest.mark.property
@examples(400, shares={"differing": 0.1, "alike": 0.1})
@given(dice())
def test_there_are_words_exactly_where_somebody_gets_something_else(chance: Dice) -> None:
    table = tomllib.loads(write_lock(lock_of(*stacks(chance), installers={})))
    before = selection(table)
    exchanged(chance, table)
    said = findings(table)
    case("differing" if said else "alike")
    assert bool(said) == (selection(table) != before), said
