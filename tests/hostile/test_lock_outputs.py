"""A hostile text in every place of a lock whose digest was made again: the lock is refused, or each output is as with any text.

The places come from the models of the lock file and the formats from the table of outputs: a new one of either is swept, or
this test says that the lock here lacks it, or that no reader is known for it.
"""

from __future__ import annotations

import json
import re
import tomllib
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import tomli_w
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from provisioner.errors import ProvisionError, obeyed
from provisioner.lock.format.file import digest_of, parse_lock, write_lock
from provisioner.lock.format.model import LockedFile, LockedSystemPackage, Reason
from provisioner.lock.format.tables import LockTable
from provisioner.outputs import OUTPUTS
from provisioner.render import render
from provisioner.resolver.stack import ManagedPython
from provisioner.setups import BuildFromSource
from provisioner.strict_model import read
from tests.hostile import shapes
from tests.hostile.places import ITEM, KEY, at, instead, kinds_in, largest, places_in, planted, text_places
from tests.hostile.texts import HARMLESS, HOSTILE, PWNED
from tests.lock_examples import SIX, UBUNTU_HOST, cpu_stack, cuda_stack, lock_of, with_setups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from provisioner.lock.format.model import Lock
    from tests.hostile.places import Place

REASON = Reason(
    component="pytorch",
    kind="rule",
    text="a reason",
    where="a table",
    type="Entails",
    subject="pytorch 2.7.1",
    object="cuda",
    ranges=(">=12",),
    source="a source",
    place="spec:1",
    gpus=("9.0",),
)
FILE = LockedFile(
    filename="python_dateutil-2.9.0.post0.tar.gz", sha256="0" * 64, url="https://x.example/python_dateutil-2.9.0.post0.tar.gz"
)
WHEEL = "python_dateutil-2.9.0.post0-py3-none-any.whl"
LOCAL = LockedFile(filename=WHEEL, sha256="1" * 64, path=f"wheels/{WHEEL}")


def _documents() -> Iterator[dict[str, Any]]:
    """Two locks, for a container and for a host, that have together every key of the format."""
    for is_image in (True, False):
        lock = with_setups(lock_of(cuda_stack() if is_image else replace(cpu_stack(), runs="host", image=None)))
        (stack,) = lock.stacks
        first, *rest = lock.packages
        own = replace(
            first,
            name="own",
            version="1.0",
            wheels=(),
            index="",
            index_url="",
            archive=replace(LOCAL, filename=""),
            variants=FILE,
        )
        six = replace(
            first,
            marker="sys_platform == 'linux'",
            requires_python=">=3.9",
            index="local",
            index_url="https://index.example/simple",
            sdist=FILE,
            wheels=(replace(first.wheels[0], path="", url=SIX.url), LOCAL),
            attestations=({"kind": "GitHub", "repository": "a/b"},),
            licenses=("BSD License",),
            requires=("six>=1.5",),
            dependencies=("six",),
        )
        setup = replace(
            UBUNTU_HOST,
            build=BuildFromSource(
                component="pytorch",
                version="2.7.1",
                repository="https://git.example/a",
                environment={"USE_CUDA": "1"},
                patches=("https://git.example/a.patch",),
                because="no wheels",
                sources=("a guide",),
            ),
        )
        image = stack.image and replace(
            stack.image,
            digest=f"sha256:{'d' * 64}",
            python="",
            require_cuda="cuda>=12.6",
            managed_python=ManagedPython(version="3.12.11", url="https://python.example/python.tar.gz", sha256="2" * 64),
        )
        stack = replace(
            stack,
            image=image,
            unverified=("a doubt",),
            assumes=("an assumption",),
            accepts=("a fact",),
            relaxations=("minor-version (cuda)",),
            host_reasons={"driver": (REASON,)},
            apt=(LockedSystemPackage(name="git", reasons=(REASON,)),) if is_image else (),
            host_setups=(setup,),
        )
        whole = replace(lock, packages=(own, six, *rest), stacks=(stack,), asked={"requires.pytorch": ">=2"}, target="gpu")
        document = tomllib.loads(write_lock(whole))
        (_fill_image if is_image else _fill_host)(document)
        yield document


def _fill_image(document: dict[str, Any]) -> None:
    """Add the keys of a lock for an image that the examples lack."""
    (platform,) = document["tool"]["provision"]["platforms"]
    platform["image"]["python"] = "3.12"
    platform["image"]["snapshot"] = "20261101T000000Z"
    platform["image"]["runtime"] = {"reference": "nvidia/cuda:12.6.3-runtime-ubuntu24.04", "digest": f"sha256:{'e' * 64}"}
    platform["installer"]["file"]["path"] = f"wheels/{platform['installer']['file']['name']}"
    platform["pins"][0]["reasons"] = [json.loads(json.dumps(to_builtins(REASON)))]


def _fill_host(document: dict[str, Any]) -> None:
    """Add the keys of packages and of setups of hosts that the examples lack."""
    own, package = document["packages"][:2]
    own["archive"] |= {"url": FILE.url}
    own["variants-json"] |= {"path": LOCAL.path}
    package["sdist"] |= {"path": f"wheels/{FILE.filename}"}
    package["dependencies"][0] |= {"version": "1.17.0", "marker": "sys_platform == 'linux'"}
    (setup,) = document["tool"]["provision"]["platforms"][0]["host-setups"]
    registered = {"package": "cuda-keyring", "url": "https://x.example/cuda-keyring.deb", "sha256": "3" * 64, "pin": "origin x"}
    setup["repositories"].append({"name": "keyring", "kind": "keyring", "sources": ["a guide"], **registered})
    setup["steps"][1]["repositories"].append("keyring")
    setup["steps"][1] |= {
        "stream": "x:y",
        "first": ["a"],
        "url": "https://x.example/a.run",
        "file": "a.run",
        "lock": "*nvidia*",
        "sha256": "4" * 64,
    }


DOCUMENTS = tuple(_documents())

WITHOUT_FREE_TEXT = {"devcontainer"}
"""Outputs of names and versions alone, which the reader of locks spells out."""


def text_of(document: dict[str, Any]) -> str:
    document["tool"]["provision"]["digest"] = digest_of(document)
    return tomli_w.dumps(document)


def general(place: Place, schema_places: set[Place]) -> Place:
    """A place of a document as the schema spells it: with `ITEM` for each number, and `KEY` for each name that is free."""
    found: list[Place] = [()]
    for part in place:
        words = [ITEM] if isinstance(part, int) else [part] if part == KEY else [part, KEY]
        found = [(*one, word, *(("",) if word == KEY and part != KEY else ())) for one in found for word in words]
    return next((one for one in found if one in schema_places), ())


def read_lock(document: dict[str, Any]) -> Lock | None:
    """The lock of a document, None if it is refused."""
    try:
        read(document, LockTable)  # most are refused here, without looking for the line
        return parse_lock(text_of(document), file="pylock.x.toml")
    except (msgspec.ValidationError, ProvisionError):
        return None


def rendered(lock: Lock | None, output: str) -> str | None:
    """The output of a lock, without the hashes that differ because a text does; None if it is refused."""
    try:
        return None if lock is None else re.sub(r"\b[0-9a-f]{64}\b", "hash", render(lock, output))
    except ProvisionError:
        return None


def test_the_locks_here_have_every_key_of_the_format() -> None:
    wanted = text_places(msgspec.json.schema(LockTable))
    found = {general(place, wanted) for document in DOCUMENTS for place in places_in(document)}
    moments = {place for place in wanted if place[-1] == "upload-time"}  # no text in TOML
    assert sorted(wanted - found - moments) == []


def test_every_output_has_a_reader() -> None:
    assert set(shapes.OUTPUTS) == set(OUTPUTS)


class Planted(Struct, frozen=True):
    """A hostile text at every place of a lock that takes it, together."""

    name: str
    document: dict[str, Any]
    texts: dict[Place, str]

    def lock(self, texts: dict[Place, str]) -> Lock | None:
        return read_lock(planted(self.document, texts))

    def largest(self, works: Callable[[Lock | None], bool]) -> dict[Place, str]:
        """The texts of places at which, together, the lock works."""
        places = largest(list(self.texts), lambda some: works(self.lock({place: self.texts[place] for place in some})))
        return {place: self.texts[place] for place in places}


@cache
def plantings() -> tuple[Planted, ...]:
    """Every hostile text in every place of each lock that its reader takes it at: alone, or else behind what stood there."""
    return tuple(_planting(name, text, document) for document in DOCUMENTS for name, text in HOSTILE.items())


def _planting(name: str, text: str, document: dict[str, Any]) -> Planted:
    declared = {}
    for place in kinds_in(document):
        if place[-1] == "digest" or place[:-2] in {(), ("tool",)}:
            continue
        for one in (text, f"{at(document, place)}{text}"):
            if place not in declared and _is_declared(document, place, one):
                declared[place] = one
    planting = Planted(name, document, declared)
    return replace(planting, texts=planting.largest(lambda lock: lock is not None))


def _is_declared(document: dict[str, Any], place: Place, text: str) -> bool:
    """Whether the declaration of a key takes a text, by which most are refused."""
    with instead(document, place, text):
        try:
            read(document, LockTable)
        except msgspec.ValidationError:
            return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("output", OUTPUTS)
def test_a_hostile_text_changes_nothing_but_itself(output: str, tmp_path: Path) -> None:
    shape_of = cache(lambda text: _shape(output, text, tmp_path))
    wrong = []
    written = 0
    rendered_once = False
    for one in plantings():
        original = rendered(one.lock({}), output)
        if original is None:
            continue  # one of the locks is for containers, the other for a host
        rendered_once = True
        if is_refused_where_it_is_written(one.name) and rendered(one.lock(one.texts), output) is None:
            continue
        texts = one.largest(lambda lock: rendered(lock, output) is not None)
        harmless = {place: text.replace(HOSTILE[one.name], HARMLESS) for place, text in texts.items()}
        usual = rendered(one.lock(harmless), output) or original
        hostile = rendered(one.lock(texts), output) or original
        written += hostile != usual
        if shape_of(hostile) != shape_of(usual):
            wrong.append(f"{one.name}: {difference(shape_of(hostile), shape_of(usual))}")
        wrong += [f"{one.name}: {found[0]!a}" for found in [obeyed(hostile)] if found]
    assert rendered_once
    assert not wrong, "\n".join(wrong[:40])
    assert (written == 0) is (output in WITHOUT_FREE_TEXT)


def is_refused_where_it_is_written(name: str) -> bool:
    """Whether `render` looks for what a text holds in all that it wrote, so that no place need be looked for alone."""
    return "\n" not in HOSTILE[name] and obeyed(HOSTILE[name]) is not None


def difference(found: object, usual: object, path: str = "") -> str:
    """Where two shapes differ first, and how."""
    pairs: list[tuple[object, object, object]] = []
    if isinstance(found, dict) and isinstance(usual, dict) and list(found) == list(usual):
        pairs = [(key, found[key], usual[key]) for key in found]
    elif isinstance(found, (list, tuple)) and isinstance(usual, (list, tuple)) and len(found) == len(usual):
        pairs = list(zip(range(len(found)), found, usual, strict=True))
    for key, one, other in pairs:
        if one != other:
            return difference(one, other, f"{path}.{key}")
    return f"{path}: {found!s:.300} instead of {usual!s:.300}"


def _shape(output: str, text: str, folder: Path) -> object:
    """What a reader of the format finds in a text; that a text in it was run is told by a file."""
    try:
        found = shapes.OUTPUTS[output](text, folder)
    except Exception as error:  # noqa: BLE001 - the reader of a format raises what it likes
        return repr(error)
    if (folder / PWNED).exists():
        (folder / PWNED).unlink()
        return "it was run"
    return found
