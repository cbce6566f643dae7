"""YAML with positions, mistakes all at once, and files written whole or not at all."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import field
from ruamel.yaml import YAML

from provisioner.document import (
    FileError,
    Position,
    load_document,
    parse_document,
    parse_model,
    write_text,
    write_together,
    yaml_text,
)
from provisioner.errors import InvalidDocumentError
from provisioner.strict_model import StrictModel


class Inner(StrictModel, frozen=True):
    platform: str | tuple[str, ...] = "x"


class Outer(StrictModel, frozen=True):
    name: str
    target: Inner | None = None
    requires: dict[str, str] = field(default_factory=dict)


def test_an_anchor_may_be_used_again_as_yaml_allows_and_nothing_is_said(recwarn: pytest.WarningsRecorder) -> None:
    document = parse_document("a: &same 1\nb: *same\nc: &same 2\nd: *same\n", file="spec.yaml", kind="spec")
    assert document.data == {"a": 1, "b": 1, "c": 2, "d": 2}
    assert not recwarn.list


def refused(text: str) -> list[str]:
    with pytest.raises(InvalidDocumentError) as caught:
        parse_model(parse_document(text, file="spec.yaml", kind="spec"), Outer, kind="spec")
    return list(caught.value.causes)


def test_every_mistake_of_a_file_is_reported_at_once_with_line_and_column() -> None:
    text = 'nam: trainer\ntarget: {platfrm: here, platform: 3}\nrequires:\n  cuda: 12.60\n  driver: ">=550"\n'
    assert refused(text) == [
        "spec.yaml:1:1: `name` is missing",
        "spec.yaml:1:1: nam: unknown key `nam`; did you mean `name`?",
        "spec.yaml:2:10: target.platfrm: unknown key `platfrm`; did you mean `platform`?",
        'spec.yaml:2:25: target.platform: 3 is not quoted; write "3" (12.10 is not 12.1)',
        'spec.yaml:4:3: requires.cuda: 12.60 is not quoted; write "12.60" (12.10 is not 12.1)',
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: a\nname: b\n", "spec.yaml:2:1: name: `name` is given twice; the first is on line 1"),
        ("- a\n", "spec.yaml:1:1: the file must hold a mapping of keys to values"),
        ("", "spec.yaml:1:1: the file must hold a mapping of keys to values"),
        (
            "name: a\nrequires:\n\tcuda: b\n",
            "spec.yaml:3:1: a tab cannot indent YAML; write spaces",
        ),
        (
            "<<<<<<< HEAD\nname: a\n=======\nname: b\n>>>>>>> topic\n",
            "spec.yaml:1:1: a merge left both sides of a conflict here; keep one (a generated file is best written anew)",
        ),
        ("name: [a\n", "spec.yaml:2:1: while parsing a flow sequence did not find expected ',' or ']'"),
        ("<<: {a: b}\nname: x\n", "spec.yaml:1:1: keys must be plain words; merge keys (<<) are not read"),
        ("name: &a [*a]\n", "spec.yaml:1:7: name: `&a` holds itself, as `*a` at name[0]; write it out"),
        (
            "hosts:\n  - &one {b: 1, c: &two [2, {d: *one}]}\n",
            "spec.yaml:2:5: hosts[0]: `&one` holds itself, as `*one` at hosts[0].c[1].d; write it out",
        ),
        (f"name: {'[' * 80}{']' * 80}\n", "spec.yaml:1:57: the file is nested too deeply, or holds too much, to be read"),
        (f"name: {'[' * 5000}{']' * 5000}\n", "spec.yaml:1:57: the file is nested too deeply, or holds too much, to be read"),
        ("name: !!python/name:os.system x\n", "spec.yaml:1:7: name: the tag `!!python/name:os.system` is not read; write"),
        ("name: !secret {a: b}\n", "spec.yaml:1:7: name: the tag `!secret` is not read; write the value without it"),
        ("name:\n", "spec.yaml:1:1: name: has no value; write one, or leave the key out"),
        ("name: a\ntarget: here\n", "spec.yaml:2:1: target: `here` must be a mapping of keys to values"),
        ("name: a\nrequires: [b]\n", "spec.yaml:2:1: requires: must be a mapping of keys to values"),
        ("name: [a]\n", "spec.yaml:1:1: name: must be text"),
        ("name: a\ntarget: {platform: [x, 1.5]}\n", 'spec.yaml:2:24: target.platform[1]: 1.5 is not quoted; write "1.5"'),
    ],
)
def test_text_that_is_not_a_usable_document_says_where_and_why(text: str, message: str) -> None:
    found = refused(text)
    assert len(found) == 1
    start = message.partition("while")[0] or message
    assert found[0].startswith(start), found


def test_aliases_that_would_fill_the_memory_are_not_followed_to_the_end() -> None:
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"l{level}: &l{level} [{', '.join([f'*l{level - 1}'] * 10)}]" for level in range(1, 9)]
    assert refused("\n".join(lines)) == ["spec.yaml:1:37: l4: is nested too deeply, or holds too much, to be read"]


def test_an_interrupted_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_text(tmp_path / "file", "text")
    assert list(tmp_path.iterdir()) == []


def test_positions_are_those_an_editor_shows() -> None:
    document = parse_document('a: 1\nb:\n  - {c: "x"}\n', file="f", kind="k")
    assert document.position(("b", 0, "c")) == Position(3, 6)
    assert document.where(("b", 0, "c", "deeper")) == "f:3"
    assert document.below(("b", 0)).position(("c",)) == Position(3, 6)


def test_dates_and_kernels_stay_text() -> None:
    data = parse_document("day: 2026-09-01\nkernel: 6.5.0-1017-aws\n", file="f", kind="k").data
    assert data == {"day": "2026-09-01", "kernel": "6.5.0-1017-aws"}


def test_a_file_that_cannot_be_read_names_the_file_and_the_reason(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none.yaml", "does not exist"), (tmp_path, "is a directory, not a file")):
        with pytest.raises(FileError) as caught:
            load_document(path, kind="spec")
        assert caught.value.message == f"spec `{path}` {reason}"
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"a: \xff")
    with pytest.raises(FileError) as caught:
        load_document(binary, kind="spec")
    assert caught.value.message == f"spec `{binary}` is not UTF-8 text (byte 3)"


def test_a_written_file_replaces_the_old_one_whole_and_follows_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.txt"
    write_text(path, "first\n")
    write_text(path, "second\n")
    assert path.read_text(encoding="utf-8") == "second\n"
    assert [one.name for one in path.parent.iterdir()] == ["file.txt"]
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_full_disk_loses_nothing_and_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full at the second file: the first must not have been replaced either."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("old", encoding="utf-8")
    real = os.fsync
    calls = iter([False, True])

    def full(descriptor: int) -> None:
        if next(calls):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError) as caught:
        write_together({first: b"new", second: b"new"})
    assert caught.value.message == f"`{second}` cannot be written: No space left on device"
    assert first.read_text(encoding="utf-8") == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["first"]


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "Dockerfile").write_text("old", encoding="utf-8")
    (tmp_path / "Dockerfile").symlink_to("deploy/Dockerfile")
    (tmp_path / "nowhere").symlink_to("new/file")
    write_together({tmp_path / "Dockerfile": b"new", tmp_path / "nowhere": b"new"})
    assert str((tmp_path / "Dockerfile").readlink()) == "deploy/Dockerfile"
    assert [(tmp_path / name).read_text(encoding="utf-8") for name in ("deploy/Dockerfile", "new/file")] == ["new", "new"]
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["Dockerfile", "Dockerfile", "deploy", "file", "new", "nowhere"]


def test_a_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "host.sh"
    path.write_text("old", encoding="utf-8")
    for mode in (0o700, 0o640):
        path.chmod(mode)
        write_text(path, "new")
        assert path.stat().st_mode & 0o777 == mode


def test_a_name_as_long_as_names_may_be_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("\u00e9" * 127)  # 254 bytes
    write_text(path, "text")
    assert list(tmp_path.iterdir()) == [path]


def test_what_was_renamed_before_renaming_failed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [tmp_path / name for name in ("one", "two", "three")]
    real = os.replace

    def locked(old: Path, new: Path) -> None:
        if new.name == "three":
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))
        real(old, new)

    monkeypatch.setattr(os, "replace", locked)
    with pytest.raises(FileError) as caught:
        write_together(dict.fromkeys(names, b"new"))
    assert caught.value.message == f"`{names[2]}` cannot be written: Operation not permitted"
    assert caught.value.hints == (
        f"`{names[0]}` is written already; `{names[1]}` is written already; free space or choose another --out",
    )
    assert sorted(one.name for one in tmp_path.iterdir()) == ["one", "two"]


def test_a_path_that_cannot_be_created_is_an_error_with_advice(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(FileError) as caught:
        write_text(tmp_path / "file" / "below", "x")
    assert caught.value.hints == ("nothing was changed; free space or choose another --out",)


def test_what_is_written_is_read_alike_by_parsers_of_yaml_1_1_and_1_2() -> None:
    texts = [
        "",
        "a",
        "yes",
        "12:30",
        "1",
        "null",
        "~",
        "- a",
        "a: b",
        "#x",
        "it's",
        '"',
        "x\ny",
        "\t",
        " a ",
        "\u2028",
        "é",
        "=",
        "<<",
    ]
    document = {
        "texts": texts,
        "keys": {text or "none": text for text in texts},
        "nested": [[1, -2, True, False, None], [], {"a": [], "b": {}, "c": None}, [{"inside": texts}, [["deep"]]]],
        "nothing": None,
    }
    written = yaml_text(document)
    assert yaml.safe_load(written) == document
    assert YAML(typ="safe", pure=True).load(written) == document


_NAMES = st.text(max_size=6) | st.sampled_from(["yes", "-", "1.5", "~", "a: b", "<<", "w" * 200, "\x85\u2028\ufeff\U0001f600"])
_DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | _NAMES,
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(_NAMES, inside, max_size=3),
    max_leaves=12,
)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(document=st.dictionaries(_NAMES, _DATA, max_size=4))
def test_any_data_is_written_as_yaml_that_is_read_back(document: dict[str, object]) -> None:
    written = yaml_text(document)
    assert yaml.safe_load(written) == document
    assert YAML(typ="safe", pure=True).load(written) == document


SPECS = sorted((Path(__file__).parents[2] / "examples").rglob("*.yaml"))
SIGNS = (
    *("[", "]", "{", "}", ": ", ":", "- ", ", ", "\n", "\n  ", "#", " #", "'", '"', "a", "1", "null", "~", "yes", "0o7", "010"),
    *("|", "|\n", ">", ">\n", "? ", "&a ", "*a", "!x ", "%", "---\n", "...\n", "@", "`", "<<: ", "\\", "\t", "é", "\u2028"),
    *('"a":1', "{a:1}", "%YAML 1.1\n---\n", ".inf", "1_0", "1:30", "'a\n  b'", "name: x\n", "\x85"),
)
APART = (
    *("&a:~\n", "a: |#\n", "a: >#\n", 'a: [b, "a":1c]\n', "a: !!int 1\n", "%YAML 1.1\n---\na: yes\n", "a\tb: 1\n"),
    "a: b\x85c: d\n",
)
"""Texts that libyaml reads otherwise than the parser in Python, or that it reads and the other refuses."""


@pytest.mark.parametrize("seed", range(8))
def test_every_text_is_read_as_the_parser_in_python_reads_it(seed: int) -> None:
    draw = random.Random(seed)
    texts = [path.read_text(encoding="utf-8") for path in SPECS]
    for _ in range(100):
        lines = draw.choice(texts).splitlines(keepends=True)
        start = draw.randrange(len(lines))
        text = "".join(lines[start : start + draw.randint(1, 8)])
        for _ in range(draw.randint(0, 3)):
            at = draw.randrange(len(text) + 1)
            text = text[:at] + draw.choice(SIGNS) + text[at + draw.choice((0, 0, 1, 3)) :]
        # A comment with a tab is nothing that libyaml is trusted with, so all below it is read by the parser in Python.
        assert _read(text, above=0) == _read(f"#\t\n{text}", above=1), text


@pytest.mark.parametrize("text", APART)
def test_what_libyaml_reads_otherwise_is_left_to_the_parser_in_python(text: str) -> None:
    assert _read(text, above=0) == _read(f"#\t\n{text}", above=1)


def _read(text: str, *, above: int) -> object:
    """What a text says, with the place of each key in it below so many lines; None if it is refused."""
    try:
        found = parse_document(text, file="a.yaml", kind="spec")
    except InvalidDocumentError:
        return None
    keys = {path: (place.line - above, place.column) for path, place in found.keys.items()}
    return repr((found.data, keys, found.texts))
