"""The check of files: what the loader finds for extension modules, in compiled libraries; the source of a file of bytecode."""

from __future__ import annotations

import base64
import ctypes
import hashlib
import json
import os
import py_compile
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from provisioner.validate.measurement import check_source

SYSTEMS = "libacl.so.1"
"""A library that Linux systems have, because tar needs it, and the environment of these tests has; Python does not load it."""


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An environment with a package whose extension module needs a library of the package, which is in another folder."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler on Linux")
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    site = next((tmp_path / "env").glob("lib/python*/site-packages"))
    for folder in ("demo", "demo.libs", "demo-1.dist-info"):
        (site / folder).mkdir()
    (tmp_path / "dep.c").write_text("int dep(void) { return 1; }\n")
    (tmp_path / "mod.c").write_text("extern int dep(void);\nint PyInit_mod(void) { return dep(); }\n")
    library, module = site / "demo.libs" / SYSTEMS, site / "demo" / "mod.so"
    common = [compiler, "-shared", "-fPIC"]
    subprocess.run([*common, "-Wl,-soname," + SYSTEMS, "-o", library, tmp_path / "dep.c"], check=True)
    subprocess.run([*common, "-o", module, tmp_path / "mod.c", library], check=True)
    (tmp_path / "elsewhere").mkdir()
    shutil.copyfile(library, tmp_path / "elsewhere" / SYSTEMS)
    record(site)
    return tmp_path / "env"


def record(site: Path) -> None:
    """Write the RECORD of the package."""
    lines = []
    for path in (site / "demo" / "mod.so", site / "demo.libs" / SYSTEMS):
        digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
        lines.append(f"{path.relative_to(site)},sha256={digest},{path.stat().st_size}\n")
    (site / "demo-1.dist-info" / "RECORD").write_text("".join([*lines, "demo-1.dist-info/RECORD,,\n"]))


def test_bytecode_that_a_wheel_records_may_be_compiled_again(environment: Path) -> None:
    """Numpy 1.26.4 brings one file of bytecode, with a hash, and an installer that compiles writes it anew."""
    site = next(environment.glob("lib/python*/site-packages"))
    source = site / "demo/tool.py"
    source.write_text("x = 1\n")
    compiled = py_compile.compile(str(source), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    assert compiled is not None
    bytecode = Path(compiled)
    lines = [f"{source.relative_to(site)},,\n", f"{bytecode.relative_to(site)},sha256={'A' * 43},9\n"]
    with (site / "demo-1.dist-info/RECORD").open("a") as stream:
        stream.writelines(lines)
    assert files(environment)["changed"] == []
    source.write_text("x = 2\n")
    assert files(environment)["stale"] == [str(bytecode.relative_to(environment))]
    source.unlink()
    assert str(bytecode.relative_to(environment)) in files(environment)["changed"]


def files(environment: Path) -> dict[str, Any]:
    command = [str(environment / "bin/python"), "-c", check_source("files")]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(finished.stdout)
    assert isinstance(found, dict)
    return found


def libraries(environment: Path, **variables: str) -> dict[str, Any]:
    command = [str(environment / "bin/python"), "-c", check_source("files")]
    finished = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **variables})
    found = json.loads(finished.stdout)["libraries"]
    assert isinstance(found, dict)
    return found


def test_a_library_that_the_system_has_too_is_that_which_is_loaded_first(environment: Path) -> None:
    try:
        ctypes.CDLL(SYSTEMS)
    except OSError:
        pytest.skip(f"this system has no {SYSTEMS}")
    found = libraries(environment)
    assert (found["modules"], found["unresolved"], found["shadowed"]) == (1, [], [])


def test_a_folder_of_the_variable_comes_before_the_environment(environment: Path) -> None:
    elsewhere = environment.parent / "elsewhere"
    found = libraries(environment, LD_LIBRARY_PATH=str(elsewhere))
    (shadowed,) = found["shadowed"]
    assert shadowed.endswith(f"demo/mod.so gets {elsewhere / SYSTEMS}")


def test_a_library_that_nothing_has_is_an_optional_part(environment: Path) -> None:
    site = next(environment.glob("lib/python*/site-packages"))
    module = site / "demo" / "mod.so"
    module.write_bytes(module.read_bytes().replace(SYSTEMS.encode(), b"libnot.so.1"))
    found = libraries(environment)
    assert (found["unresolved"], found["shadowed"]) == ([], [])
    assert found["optional"] == [f"{module.relative_to(environment)} needs libnot.so.1"]


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("one.cpython-313.pyc", "one.py"),
        ("one.cpython-313.opt-1.pyc", "one.py"),
        ("one.pypy39.pyc", "one.py"),
        ("__init__.tmpl.cpython-313.pyc", "__init__.tmpl.py"),
        ("__init__.tmpl.cpython-313.opt-2.pyc", "__init__.tmpl.py"),
    ],
)
def test_a_name_with_dots_is_that_of_a_source_too(name: str, source: str) -> None:
    program: dict[str, Any] = {"__name__": "files"}
    exec(check_source("files"), program)
    assert program["source_of_bytecode"](f"lib/package/__pycache__/{name}") == f"lib/package/{source}"
    assert program["source_of_bytecode"](f"lib/package/{name}") is None
