"""A scan of a library's bytes finds the CUDA runtime and compiler in it, what it links to and loads, and NumPy's ABI."""

from __future__ import annotations

import struct
import subprocess
from typing import TYPE_CHECKING

import pytest

from provisioner.measure.elf import read_library
from provisioner.measure.scan import Scanner
from tests.built_artefacts import shared_library

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RUNTIME = b"\0/cudart.shm.%x.%x.%llx\0"


def scanned(content: bytes, size: int = 0) -> Scanner:
    scanner = Scanner()
    for start in range(0, len(content), size or len(content)):
        scanner.feed(content[start : start + (size or len(content))])
    return scanner


def x86(version: int) -> bytes:
    """`mov dword [rdi], VERSION; xor eax, eax; ret`."""
    return b"\xc7\x07" + struct.pack("<I", version) + b"\x31\xc0\xc3"


def arm(version: int) -> bytes:
    """`mov w2, #VERSION; mov w0, #0; str w2, [x1]; ret` in the libcudart.so.13 for arm64."""
    return struct.pack("<IIII", 0x52800000 | version << 5 | 2, 0x52800000, 0xB9000022, 0xD65F03C0)


def head(machine: int) -> bytes:
    return b"\x7fELF" + bytes(14) + struct.pack("<H", machine) + bytes(44)


@pytest.mark.parametrize("size", [0, 1, 7, 200])
@pytest.mark.parametrize(("machine", "stored"), [(62, x86), (183, arm)])
def test_the_runtime_that_is_linked_statically(machine: int, stored: Callable[[int], bytes], size: int) -> None:
    code = stored(12080)
    content = head(machine) + code + bytes(400) + code + RUNTIME + bytes(400)
    found = scanned(content, size)
    assert (found.has_runtime, found.runtime) == (True, "12.8")


def test_numbers_without_a_runtime_are_none() -> None:
    assert scanned(head(62) + x86(12080) * 2).runtime == ""
    assert scanned(head(62) + x86(12080) * 2).has_runtime is False


def test_a_number_that_is_no_release_of_cuda_is_not_its_version() -> None:
    found = scanned(head(62) + x86(12345) * 5 + x86(13030) * 2 + RUNTIME)
    assert found.runtime == "13.3"


def test_a_number_that_is_seen_once_is_not_the_version_of_the_runtime() -> None:
    assert scanned(head(62) + x86(12080) + RUNTIME).runtime == ""
    assert scanned(head(62) + x86(12080) + x86(12090) + RUNTIME).runtime == ""


def test_a_number_that_is_stored_once_is_believed_where_a_compiler_of_the_release_is_named() -> None:
    made = b"\0Cuda compilation tools, release 12.8, V12.8.93\0"
    assert scanned(head(62) + x86(12080) + x86(12090) + made + RUNTIME).runtime == "12.8"
    assert scanned(head(62) + x86(12080) + x86(12090) * 2 + made + RUNTIME).runtime == "12.9"


@pytest.mark.parametrize("size", [0, 1, 50])
def test_a_compiler_and_the_compilers_that_made_the_code(size: int) -> None:
    made = b"\0Cuda ation tools, release 13.3, V13.3.33\0 release 12.9, V12.9.41\0"
    assert scanned(made, size).tools == ("12.9", "13.3")
    assert scanned(made, size).compiler == ""
    assert scanned(made + b"Value '%s' is not defined for option '%s'\0", size).compiler == "13.3"


def test_what_a_library_links_to_and_what_it_loads(tmp_path: Path) -> None:
    library = ["gcc", "-shared", "-xc", "/dev/null", "-o", "libcublas.so.12", "-Wl,-soname,libcublas.so.12"]
    subprocess.run(library, cwd=tmp_path, check=True)
    source = (
        "static const char pad[65536] = {1};\n"
        'const char *const names[] = {pad, "libcudnn.so.9", "libcuda.so.1", "libcufft-d0da41ae.so.11", "libz.so.1"};\n'
    )
    shared_library(tmp_path, source=source)
    subprocess.run(
        ["gcc", "-shared", "-Wl,--no-as-needed", "code.o", "libcublas.so.12", "-o", "linked.so"], cwd=tmp_path, check=True
    )
    content = (tmp_path / "linked.so").read_bytes()
    for size in (0, 1, 999):
        found = scanned(content, size)
        assert found.linked == ("libcublas.so.12",)
        assert found.named == ("libcublas.so.12", "libcudnn.so.9")
        assert found.knows_links


@pytest.mark.parametrize("size", [0, 1, 999])
def test_where_a_library_looks_for_others(tmp_path: Path, size: int) -> None:
    paths = (
        "$ORIGIN",
        "$ORIGIN/../nvidia/cublas/lib",
        "/opt/cuda/lib64",
        *(f"${{ORIGIN}}/../a-long-path/{at}" for at in range(20)),
    )
    shared_library(tmp_path)
    subprocess.run(["gcc", "-shared", "code.o", f"-Wl,-rpath,{':'.join(paths)}", "-o", "looking.so"], cwd=tmp_path, check=True)
    content = (tmp_path / "looking.so").read_bytes()
    assert read_library(content, name="looking.so").searched == paths
    assert scanned(content, size).searched == tuple(sorted(paths))


def test_a_name_that_begins_a_section_is_read_and_the_end_of_a_longer_text_is_not() -> None:
    """As libcublas.so.11 in CTranslate2 2.17, the first text of its section, after a constant that ends with 0xe0."""
    assert scanned(b"\0\xe0libcublas.so.11\0cannot open libcudnn.so.8\0").named == ("libcublas.so.11",)


def test_bytes_without_a_table_of_names_say_nothing_of_links() -> None:
    found = scanned(b"\0libcudnn.so.9\0")
    assert (found.linked, found.named, found.knows_links) == ((), ("libcudnn.so.9",), False)


@pytest.mark.parametrize(
    ("names", "is_old"),
    [
        (b"\0numpy.core._multiarray_umath\0", True),
        (b"\0numpy._core._multiarray_umath\0numpy.core._multiarray_umath\0", False),
        (b"\0numpy._core._multiarray_umath\0", False),
        (b"\0numpy.core.multiarray\0", False),
    ],
)
def test_a_module_compiled_against_numpy_1(names: bytes, *, is_old: bool) -> None:
    assert scanned(names).needs_numpy_1 is is_old
