"""Law 11: parsers are total. Whatever a text holds, reading it gives a value or says what is wrong with it, by line.

The parsers of what a machine says about itself are held to it in tests/unit/host/test_parsers_are_total.py.
"""

from __future__ import annotations

import random
import re
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect
from msgspec.structs import replace

from provisioner.document import parse_document, parse_model
from provisioner.errors import InvalidDocumentError, Mistake, ProvisionError
from provisioner.host.catalogue import Catalogue
from provisioner.host.inventory import plain_json, read_inventory
from provisioner.host.must_gather import read_must_gather
from provisioner.host.profile import host_document, host_from_document, load_profile, profile_names
from provisioner.host.rocm_report import inspect_rocm_report, is_rocm_report
from provisioner.host.smi_report import inspect_smi_report
from provisioner.lock.format.file import parse_lock, write_lock
from provisioner.matrix.check import check
from provisioner.matrix.files import KIND, Parsed, read_files
from provisioner.matrix.location import default_directory
from provisioner.spec.gather import Gathered
from provisioner.spec.load import parse_spec
from provisioner.versions import Range, Version
from tests.lock_examples import cuda_stack, lock_of
from tests.strategies import Dice, dice, examples, times

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from provisioner.document import KeyPath
    from provisioner.matrix.files import MatrixFiles, SourcedFile

pytestmark = pytest.mark.property

ROOT = Path(__file__).parents[2]
GATHERED = ROOT / "tests/fixtures/must-gather/gpu-operator"
MUTATIONS = 40
"""How many keys of the shipped matrix are misspelled, and how many get a value of the wrong kind."""

CHARACTERS = "{}[]:,&*!|>'\"%@#-+=<~`?\\ \t\n\r\0\ufeff\u2028\ud800é٣²0129aεz."
PIECES = (
    "<<: *a", "&a ", "*a", "!!python/object ", "!!binary ", "? ", "- ", "null", "~", "1e999", "0x10", ".inf", "2026-01-01",
    "true", '"""', "[[", "= =", ">=", "==", ",", "==1.*", "+cu126", "[tool.provision]", "[[packages]]", "\n\n", "9" * 20,
)  # fmt: skip


def mutated(text: str, draw: random.Random) -> str:
    """A text with a few random edits: characters and pieces put in, taken out, doubled and moved."""
    for _ in range(draw.randint(1, 4)):
        start = draw.randint(0, len(text))
        end = min(len(text), start + draw.choice((0, 1, 1, 3, 20)))
        middle = draw.choice(("", draw.choice(CHARACTERS), draw.choice(PIECES), text[start:end] * 2, text[start:end][::-1]))
        text = text[:start] + middle + text[end:]
    return text


def read_spec(text: str) -> object:
    return parse_spec(Gathered(parse_document(text, file="provision.yaml", kind="spec")))


def read_host(text: str) -> object:
    return host_from_document(parse_document(text, file="host.yaml", kind="host profile"))


def read_lock(text: str) -> object:
    return parse_lock(text, file="pylock.trainer.toml")


def read_report(text: str) -> object:
    return inspect_smi_report(text, file="smi.xml", gpu_names={})


def read_rocm_report(text: str) -> object:
    """Read a report where the text is still one; what is none is read as an inventory, which another law holds."""
    data = plain_json(text)
    return inspect_rocm_report(data, catalogue=Catalogue(modules={"6.3.6": "6.0"})) if is_rocm_report(data) else None


@cache
def rocm_reports() -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests/fixtures/rocm").glob("*.json")))


@cache
def reports() -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests/fixtures/smi").glob("*.xml")))


@cache
def specs() -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").rglob("provision.yaml")))


@cache
def hosts() -> tuple[str, ...]:
    return tuple(host_document(load_profile(name).host) for name in profile_names())


@cache
def locks() -> tuple[str, ...]:
    return (write_lock(lock_of(cuda_stack())),)


READERS: dict[str, tuple[Callable[[str], object], Callable[[], tuple[str, ...]]]] = {
    "spec": (read_spec, specs),
    "host profile": (read_host, hosts),
    "lock": (read_lock, locks),
    "report of nvidia-smi": (read_report, reports),
    "report of rocm-smi": (read_rocm_report, rocm_reports),
}


def reads(read: Callable[[str], object], text: str) -> None:
    """Read it, or be told in words: anything else is a crash."""
    with suppress(ProvisionError):
        read(text)


@pytest.mark.parametrize("kind", READERS)
@examples(150)
@given(text=st.text())
def test_any_text_is_read_or_refused(kind: str, text: str) -> None:
    reads(READERS[kind][0], text)


@pytest.mark.parametrize("kind", READERS)
@examples(250)
@given(chance=dice())
def test_a_valid_file_with_random_edits_is_read_or_refused(kind: str, chance: Dice) -> None:
    read, valid = READERS[kind]
    texts = valid()
    assert texts
    reads(read, mutated(chance.choice(texts), chance))


@pytest.mark.parametrize("name", ["hosts.csv", "hosts.json", "hosts.yaml", "hosts.ndjson"])
@examples(60)
@given(chance=dice())
def test_a_list_of_hosts_with_random_edits_is_read_or_refused(
    name: str, chance: Dice, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("inventory") / name
    listed = {
        "hosts.csv": "name,kernel,driver,gpus\nnode1,6.8.0,535.104.05,4x NVIDIA H100 80GB HBM3\n",
        "hosts.json": '[{"name": "node1", "kernel": "6.8.0", "driver": {"version": "535.104.05"}, "gpus": []}]\n',
        "hosts.yaml": "kernel: 6.8.0\ndriver: {version: 535.104.05}\n",
        "hosts.ndjson": '{"name": "node1", "kernel": "6.8.0"}\n{"name": "node2"}\n',
    }
    path.write_bytes(mutated(listed[name], chance).encode("utf-8", "surrogatepass"))
    reads(lambda _: read_inventory([path]), "")


@pytest.mark.parametrize("name", sorted(path.name for path in GATHERED.iterdir()))
@examples(60)
@given(chance=dice())
def test_a_must_gather_with_random_edits_is_read_or_refused(
    name: str, chance: Dice, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("gathered")
    for path in GATHERED.iterdir():
        text = path.read_text(encoding="utf-8")
        (folder / path.name).write_bytes((mutated(text, chance) if path.name == name else text).encode("utf-8", "replace"))
    reads(lambda _: read_must_gather(folder, catalogue=Catalogue()), "")


VERSIONS = st.one_of(
    st.text(max_size=12),
    st.lists(
        st.sampled_from(("1", "12.6", ".", "*", ">=", "<", "==", "~=", "!=", ",", " ", "+cu126", "rc1", "-", "v", "٣")),
        max_size=6,
    ).map("".join),
)


@examples(1500)
@given(text=VERSIONS)
def test_versions_and_ranges_are_read_or_refused_and_say_what_was_written(text: str) -> None:
    for parse in (Version.parse, Range.parse):
        try:
            found = parse(text)
        except ValueError:
            continue
        assert found == Range() or parse(str(found)) == found, "what it prints means the same"


@cache
def shipped() -> MatrixFiles:
    return read_files(default_directory())


def keys_of(file: Parsed[SourcedFile]) -> Iterator[KeyPath]:
    """The keys of a file that its format names; names of components, sources and versions are data.

    So are those of a `Need`, which is `array_like`: a file spells one as a mapping of a component.
    """

    def below(value: object, kind: inspect.Type, path: KeyPath) -> Iterator[KeyPath]:
        if isinstance(kind, inspect.UnionType):
            shape = inspect.StructType if isinstance(value, dict) else inspect.VarTupleType
            kind = next((one for one in kind.types if isinstance(one, shape)), kind.types[0])
        if isinstance(kind, inspect.StructType) and not kind.array_like and isinstance(value, dict):
            types = {field.encode_name: field.type for field in kind.fields}
            for key, item in value.items():
                yield (*path, key)
                yield from below(item, types[key], (*path, key))
        elif isinstance(kind, inspect.DictType) and isinstance(value, dict):
            for key, item in value.items():
                yield from below(item, kind.value_type, (*path, key))
        elif isinstance(kind, inspect.VarTupleType) and isinstance(value, tuple):
            for index, item in enumerate(value):
                yield from below(item, kind.item_type, (*path, index))

    return below(file.document.data, inspect.type_info(type(file.content)), ())


def changed(file: Parsed[SourcedFile], path: KeyPath, change: Callable[[str], str]) -> str:
    """The text of a file with the line from one of its keys on changed."""
    text = (default_directory() / file.name).read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    position = file.document.position(path)
    line = lines[position.line - 1]
    lines[position.line - 1] = line[: position.column - 1] + change(line[position.column - 1 :])
    return "".join(lines)


def mistakes_of(file: Parsed[SourcedFile], text: str) -> tuple[Mistake, ...]:
    """What is wrong with the shipped matrix when one of its files reads like this."""
    try:
        document = parse_document(text, file=file.document.file, kind=KIND, is_ours=True)
        content = parse_model(document, type(file.content), kind=KIND)
    except InvalidDocumentError as error:
        return error.mistakes
    new = Parsed(file.directory, file.name, document, content)
    files = shipped()
    changes: dict[str, Any] = {name: new for name in files.__struct_fields__ if getattr(files, name) is file}
    components = {name: tuple(new if one is file else one for one in parts) for name, parts in files.components.items()}
    return check(replace(files, components=components, **changes))


def picked(seed: int) -> list[tuple[Parsed[SourcedFile], KeyPath]]:
    """Some keys of the shipped files: every file as likely as any other, however long it is."""
    draw = random.Random(seed)
    files = shipped().all_files
    chosen = [draw.choice(files) for _ in range(times(MUTATIONS))]
    return [(file, draw.choice(list(keys_of(file)))) for file in chosen]


def test_a_misspelled_key_of_the_shipped_matrix_is_an_error_that_names_its_line() -> None:
    for file, path in picked(1):
        text = changed(file, path, lambda rest: re.sub(r"^\w+", lambda match: f"{match[0]}x", rest))
        found = mistakes_of(file, text)
        line = file.document.position(path).line
        assert any(one.line == line and one.file == file.document.file for one in found), (file.name, path, found)


def test_a_value_of_another_kind_in_the_shipped_matrix_is_an_error_that_names_its_line() -> None:
    changes = 0
    for file, path in picked(2):
        text = changed(file, path, lambda rest: re.sub(r"^(\w+): (\"[^\"]*\"|[^\"{\[,}\]\n]+)", r"\1: {nonsense: [1]}", rest))
        if text == (default_directory() / file.name).read_text(encoding="utf-8"):
            continue  # the value is a list or a table, or stands on the lines below
        changes += 1
        found = mistakes_of(file, text)
        line = file.document.position(path).line
        assert any(one.line == line and one.file == file.document.file for one in found), (file.name, path, found)
    assert changes >= times(MUTATIONS) // 3
