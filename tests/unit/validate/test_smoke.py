"""The smoke script, run as a container runs it: from its text alone, by an interpreter that knows nothing of this package."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
import venv
from typing import TYPE_CHECKING, Any

import pytest

from provisioner.validate.measurement import UnreadableMeasurementError, parse_measurement, script
from tests.built_files import build_wheel

if TYPE_CHECKING:
    from pathlib import Path

NVML = r"""
#include <stdlib.h>
#include <string.h>
static int fails(void) { const char *v = getenv("FAKE_NVML_STATUS"); return v ? atoi(v) : 0; }
int nvmlInit_v2(void) { return fails(); }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int status) { return status == 18 ? "Driver/library version mismatch" : "?"; }
int nvmlSystemGetDriverVersion(char *text, unsigned n) { strncpy(text, "550.54.15", n); return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) { *handle = (void *)(long)(index + 1); return 0; }
int nvmlDeviceGetName(void *handle, char *text, unsigned n) { strncpy(text, "NVIDIA A100-SXM4-40GB", n); return 0; }
int nvmlDeviceGetUUID(void *handle, char *text, unsigned n) { strncpy(text, "GPU-0", n); return handle == (void *)2 ? 3 : 0; }
"""
CUDA = r"""
#include <stdlib.h>
int cuInit(unsigned flags) { const char *v = getenv("FAKE_CUDA_STATUS"); return v ? atoi(v) : 0; }
int cuDriverGetVersion(int *version) { *version = 12040; return 0; }
int cuDeviceGetCount(int *count) { *count = 2; return 0; }
"""


def run_script(level: int, *, python: str = sys.executable, **environment: str) -> dict[str, Any]:
    finished = subprocess.run(
        [python, "-c", script(), str(level)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert finished.returncode == 0, finished.stderr
    (line,) = finished.stdout.splitlines()
    found = json.loads(line)
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="session")
def driver_libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two libraries with the names and functions of the driver's own, which list devices that do not exist."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler on Linux")
    folder = tmp_path_factory.mktemp("driver")
    for name, source in (("libnvidia-ml.so.1", NVML), ("libcuda.so.1", CUDA)):
        code = folder / f"{name}.c"
        code.write_text(source)
        subprocess.run([compiler, "-shared", "-fPIC", "-o", str(folder / name), str(code)], check=True)
    return folder


def bare_environment(folder: Path) -> tuple[str, Path]:
    """A new virtual environment: its interpreter, and where its packages are."""
    venv.create(folder, with_pip=False, symlinks=True)
    return str(folder / "bin/python"), next(folder.glob("lib/python*/site-packages"))


def test_the_script_is_syntax_for_python_3_7() -> None:
    ast.parse(script(), feature_version=(3, 7))


def test_the_script_imports_nothing_but_the_standard_library_and_the_stack() -> None:
    imported = {
        alias.name.partition(".")[0]
        for node in ast.walk(ast.parse(script()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in (node.names if isinstance(node, ast.Import) else [ast.alias(name=str(node.module))])
    }
    assert imported - set(sys.stdlib_module_names) == {"torch", "pkg_resources"}


def test_one_line_is_printed_and_it_is_a_measurement() -> None:
    measurement = parse_measurement(json.dumps(run_script(2)))
    assert measurement.python == sys.version.split()[0]
    assert measurement.distributions is not None
    assert "msgspec" in measurement.distributions


def test_an_empty_environment_is_measured_as_empty(tmp_path: Path) -> None:
    python, _ = bare_environment(tmp_path / "bare")
    found = run_script(2, python=python)
    assert found["distributions"] == {}
    assert found["torch"] is None


def test_installed_distributions_are_named_as_indexes_name_them(tmp_path: Path) -> None:
    python, site = bare_environment(tmp_path / "one")
    filename, content = build_wheel("Some.Package_Name", "2.0")
    (tmp_path / filename).write_bytes(content)
    shutil.unpack_archive(tmp_path / filename, site, "zip")
    assert run_script(2, python=python)["distributions"] == {"some-package-name": "2.0"}


def test_a_framework_that_prints_and_then_fails_to_import_is_one_recorded_error(tmp_path: Path) -> None:
    python, site = bare_environment(tmp_path / "broken")
    filename, content = build_wheel("torch", "2.4.1")
    (tmp_path / filename).write_bytes(content)
    shutil.unpack_archive(tmp_path / filename, site, "zip")
    (site / "torch.py").write_text("print('hello from a chatty library')\nraise ImportError('libcudnn.so.9: cannot open')\n")
    found = run_script(3, python=python)
    assert found["torch"] is None
    assert found["errors"]["import torch"] == "ImportError: libcudnn.so.9: cannot open"


def test_a_framework_that_exits_does_not_take_the_measurement_with_it(tmp_path: Path) -> None:
    python, site = bare_environment(tmp_path / "exits")
    filename, content = build_wheel("torch", "2.4.1")
    (tmp_path / filename).write_bytes(content)
    shutil.unpack_archive(tmp_path / filename, site, "zip")
    (site / "torch.py").write_text("raise SystemExit(7)\n")
    assert run_script(3, python=python)["errors"]["import torch"] == "SystemExit: 7"


def test_the_driver_is_asked_through_its_own_libraries(driver_libraries: Path, tmp_path: Path) -> None:
    python, _ = bare_environment(tmp_path / "bare")
    found = run_script(4, python=python, LD_LIBRARY_PATH=str(driver_libraries))
    identities = [f"sha256:{hashlib.sha256(b'GPU-0').hexdigest()}", ""]
    assert found["nvml"] == {"driver": "550.54.15", "names": ["NVIDIA A100-SXM4-40GB"] * 2, "identities": identities}
    assert "GPU-0" not in json.dumps(found), "a UUID names one GPU of the world"
    assert found["cuda_driver"] == {"level": 12040, "count": 2}


def test_a_driver_that_does_not_match_its_library_is_told_in_its_own_words(driver_libraries: Path, tmp_path: Path) -> None:
    python, _ = bare_environment(tmp_path / "bare")
    environment = {"LD_LIBRARY_PATH": str(driver_libraries), "FAKE_NVML_STATUS": "18", "FAKE_CUDA_STATUS": "803"}
    found = run_script(4, python=python, **environment)
    assert found["nvml"] is None
    assert found["errors"]["nvml"] == "RuntimeError: nvmlInit returned 18 (Driver/library version mismatch)"
    assert found["errors"]["cuda_driver"] == "RuntimeError: cuInit returned 803"


def test_output_that_is_no_measurement_is_shown_and_not_guessed_at() -> None:
    with pytest.raises(UnreadableMeasurementError) as unreadable:
        parse_measurement("Segmentation fault\n")
    assert unreadable.value.exit_code == 3
    assert unreadable.value.causes[-1] == "it printed: Segmentation fault"
    with pytest.raises(UnreadableMeasurementError) as unreadable:
        parse_measurement("")
    assert unreadable.value.causes[-1] == "it printed nothing"
