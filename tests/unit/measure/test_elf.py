"""What real libraries, compiled here, need; what is none is named; a scan of bytes agrees with the tables."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.measure import UnreadableArtefactError
from provisioner.measure.elf import VersionScanner, newest, read_library
from tests.built_artefacts import shared_library
from tests.strategies import examples

if TYPE_CHECKING:
    from pathlib import Path

CPLUSPLUS = '#include <string>\nstd::string greet(const std::string &name) { return "hello " + name + name.substr(1); }\n'


def told_by_readelf(library: Path) -> str:
    """The newest GLIBC version in the tables, as binutils read them."""
    text = subprocess.run(["readelf", "-V", "-W", library], capture_output=True, text=True, check=True).stdout
    return newest(word.removeprefix("GLIBC_") for word in text.split() if word.startswith("GLIBC_2"))


def test_a_library_of_c(tmp_path: Path) -> None:
    found = read_library(shared_library(tmp_path), name="libcode.so")
    assert found.glibc == told_by_readelf(tmp_path / "libcode.so") != ""
    assert (found.soname, found.needed) == ("libcode.so.1", ("libc.so.6",))
    assert found.has_executable_stack is False
    assert found.cxx11_abi is None


def test_a_library_that_wants_an_executable_stack(tmp_path: Path) -> None:
    shared_library(tmp_path)
    subprocess.run(["gcc", "-shared", "-z", "execstack", "code.o", "-o", "stack.so"], cwd=tmp_path, check=True)
    assert read_library((tmp_path / "stack.so").read_bytes(), name="stack.so").has_executable_stack is True


@pytest.mark.parametrize(("flag", "is_new"), [("-D_GLIBCXX_USE_CXX11_ABI=1", True), ("-D_GLIBCXX_USE_CXX11_ABI=0", False)])
def test_the_abi_of_a_library_of_cplusplus(tmp_path: Path, *, flag: str, is_new: bool) -> None:
    library = shared_library(tmp_path, source=CPLUSPLUS, flags=("-xc++", flag))
    found = read_library(library, name="libcode.so")
    assert found.cxx11_abi is is_new
    assert found.glibcxx.startswith("3.4")


def test_a_scan_in_pieces_finds_what_the_tables_say(tmp_path: Path) -> None:
    content = shared_library(tmp_path, source=CPLUSPLUS, flags=("-xc++",))
    told = read_library(content, name="libcode.so")
    for size in (1, 7, 64, 1000, len(content)):
        scanner = VersionScanner()
        for start in range(0, len(content), size):
            scanner.feed(content[start : start + size])
        assert (scanner.glibc, scanner.glibcxx) == (told.glibc, told.glibcxx)


def test_newest_compares_numbers() -> None:
    assert newest(["2.4", "2.28", "2.3.4"]) == "2.28"
    assert newest([]) == ""


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF" + bytes(60), b"MZ" + bytes(100)])
def test_what_is_no_library_is_named(content: bytes) -> None:
    with pytest.raises(UnreadableArtefactError, match=r"`libx\.so` is not a readable ELF file"):
        read_library(content, name="libx.so")


@examples(150)
@given(st.lists(st.tuples(st.integers(0, 20000), st.integers(0, 255)), min_size=1, max_size=20))
def test_damage_is_named_and_nothing_else_happens(tmp_path: Path, damage: list[tuple[int, int]]) -> None:
    path = tmp_path / "libcode.so"
    content = bytearray(path.read_bytes() if path.exists() else shared_library(tmp_path))
    for place, value in damage:
        content[place % len(content)] = value
    try:
        read_library(bytes(content), name="libx.so")
    except UnreadableArtefactError as error:
        assert "libx.so" in error.message  # noqa: PT017 - both outcomes are right
