"""Which checks run inside an image, by what its lock has."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.document import write_text
from provisioner.lock.format.file import write_lock
from provisioner.validate.compare_frameworks import compare_frameworks
from provisioner.validate.local_engine import LocalEngine
from provisioner.validate.measurement import Framework, check_source, parse_measurement, script
from provisioner.validate.programs import DISTRIBUTIONS, checked_packages, programs_for
from tests.built_files import build_wheel
from tests.leaving import leave
from tests.unit.validate.locks import CPU, lock_of, measured

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.lock.format.model import Lock
    from provisioner.validate.measurement import Measurement

SOURCES = (
    "files",
    "framework",
    "health",
    "system",
    "frameworks/imported",
    *(f"frameworks/{name}" for name in sorted(set(DISTRIBUTIONS.values()))),
)

PYTHON_MAX_ARGUMENT = 128 * 1024
"""execve(2): the length of one argument on Linux."""


def with_named(lock: Lock, *names: str) -> Lock:
    return replace(lock, asked={f"packages.{name}": "any version" for name in names})


@pytest.mark.parametrize("name", SOURCES)
def test_checks_are_syntax_for_python_3_7(name: str) -> None:
    ast.parse(check_source(name), feature_version=(3, 7))


def test_frameworks_are_checked_wherever_they_come_from_and_other_packages_if_the_spec_names_them() -> None:
    lock = lock_of({"numpy": "2.0", "idna": "3.10", "jaxlib": "0.5", "jax": "0.5", "torch": "2.4.1"})
    assert checked_packages(with_named(lock, "jax", "idna")) == ("idna", "jax", "numpy")
    assert checked_packages(lock) == ("jax", "numpy")


def test_a_lock_that_does_not_record_its_spec_names_what_nothing_requires() -> None:
    lock = lock_of({"idna": "3.10", "requests": "2.32"})
    idna, requests = lock.packages
    lock = replace(lock, asked={}, packages=(idna, replace(requests, dependencies=("idna",))))
    assert checked_packages(lock) == ("requests",)


def test_the_checks_of_a_large_lock_fit_into_one_argument() -> None:
    names = {f"package-{number}": "1.0" for number in range(200)}
    lock = with_named(lock_of({**names, **dict.fromkeys(DISTRIBUTIONS, "1.0")}), *names)
    assert len(str(programs_for(lock, 4, has_entry_point=True))) < PYTHON_MAX_ARGUMENT
    assert len(script()) < PYTHON_MAX_ARGUMENT


def measured_in(site: Path, python: str, lock: Lock) -> Measurement:
    """What the checks of a lock measure with an interpreter."""
    command = [python, "-c", script(), "3", str(programs_for(lock, 3, has_entry_point=False))]
    finished = subprocess.run(command, capture_output=True, text=True, check=True, cwd=site.parent)
    return parse_measurement(finished.stdout)


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize(("name", "version"), [("nvidia-cuda-nvrtc-cu12", "12.1.105"), ("nvidia-cuda-nvrtc", "13.0.88")])
def test_the_compiler_of_cuda_compiles_without_a_gpu(tmp_path: Path, name: str, version: str) -> None:
    lock = lock_of({name: version})
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    site = next((tmp_path / "env").glob("lib/python*/site-packages"))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), "--only-binary", ":all:"]
    done = subprocess.run([*command, f"{name}=={version}"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        (pytest.fail if os.environ.get("PROVISION_REQUIRE_INDEX") == "1" else pytest.skip)(done.stderr[-300:])
    measurement = measured_in(site, str(tmp_path / "env" / "bin" / "python"), lock)
    (framework,) = measurement.frameworks.values()
    assert (framework.outcomes, framework.facts) == (
        {"compile": True, "release": True},
        {"compiler": version.rpartition(".")[0]},
    )


def test_packages_are_imported_each_in_a_process_of_its_own(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    site = next((tmp_path / "env").glob("lib/python*/site-packages"))
    for name in ("good", "broken", "crashes", "exits"):
        filename, content = build_wheel(name, "1.0")
        (tmp_path / filename).write_bytes(content)
        shutil.unpack_archive(tmp_path / filename, site, "zip")
    (site / "broken.py").write_text("import nothing_of_this_name\n")
    (site / "crashes.py").write_text("import os\nos.kill(os.getpid(), 11)\n")
    (site / "exits.py").write_text("raise SystemExit(0)\n")
    lock = with_named(
        lock_of(dict.fromkeys(("good", "broken", "crashes", "exits"), "1.0")), "good", "broken", "crashes", "exits"
    )
    measurement = measured_in(site, str(tmp_path / "env/bin/python"), lock)
    assert {field.name: (field.verdict, field.note.partition(";")[0]) for field in compare_frameworks(lock, measurement)} == {
        "broken": ("no", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        "crashes": ("no", "RuntimeError: ended with signal 11"),
        "exits": ("no", "SystemExit: 0"),
        "good": ("yes", "modules good"),
    }
    assert measurement.files is not None
    assert [path.rpartition("/")[2] for path in measurement.files.changed] == ["broken.py", "crashes.py", "exits.py"]


def test_a_plug_in_adds_a_check_and_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "plug_in-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: plug-in\nVersion: 1\n")
    (folder / "entry_points.txt").write_text("[provision.checks]\ndemo = provision_demo_check\n")
    (tmp_path / "provision_demo_check.py").write_text("def measure(probe):\n    probe.version('1.0')\n\nX = 1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    lock = lock_of({"demo": "1.0"})
    assert checked_packages(lock) == ("demo",)
    sent = json.loads(str(programs_for(lock, 3, has_entry_point=False)))
    assert sent["programs"][-1]["parts"] == ["framework", "demo", "run"]
    assert "X = 1 / 0" in sent["sources"]["demo"]


PLUG_IN = b"""
def measure(probe):
    import demo

    probe.version(demo.__version__)
    probe.outcome("answer", lambda: demo.answer() == 42)
"""


@pytest.mark.parametrize(("answer", "verdict"), [(42, "yes"), (41, "no")])
def test_a_package_of_somebody_else_adds_a_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: int, verdict: str
) -> None:
    plugins = tmp_path / "plugins"
    entry_points = b"[provision.checks]\ndemo = provision_check_demo.demo\n"
    members = {
        "*.dist-info/entry_points.txt": entry_points,
        "provision_check_demo/__init__.py": b"raise RuntimeError('imported')\n",
        "provision_check_demo/demo.py": PLUG_IN,
    }
    filename, content = build_wheel("somebodys-checks", "1.0", members=members)
    (tmp_path / filename).write_bytes(content)
    shutil.unpack_archive(tmp_path / filename, plugins, "zip")
    module = f'__version__ = "1.0"\n\ndef answer():\n    return {answer}\n'.encode()
    filename, content = build_wheel("demo", "1.0", members={"demo.py": module})
    (tmp_path / filename).write_bytes(content)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    python = tmp_path / "env/bin/python"
    shutil.unpack_archive(tmp_path / filename, next((tmp_path / "env").glob("lib/python*/site-packages")), "zip")
    numbers = f"{sys.version_info.major}.{sys.version_info.minor}"
    lock = lock_of({"demo": "1.0"}, components={"python": numbers}, platform=LocalEngine.connect(python).platform)
    write_text(tmp_path / "pylock.trial.toml", write_lock(lock))
    monkeypatch.syspath_prepend(str(plugins))
    command = ("validate", str(tmp_path / "pylock.trial.toml"), "--engine", "local", "--python", str(python), "--no-record")
    code = leave(*command, "--format", "json")
    (report,) = json.loads(capsys.readouterr().out)["reports"]
    found = {
        field["name"]: (field["level"], field["verdict"]) for field in report["fields"] if field["name"].startswith("demo")
    }
    assert found == {"demo": (3, "yes"), "demo answer": (3, verdict)}, [
        one for one in report["fields"] if one["verdict"] != "yes"
    ]
    assert (report["verdict"], code) == (verdict, int(verdict == "no")), [
        one for one in report["fields"] if one["verdict"] != "yes"
    ]


DRIVER = "OSError: libcuda.so.1: cannot open shared object file: No such file or directory"


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "yes"),
        ({"version": "1.31.0"}, "no"),
        ({"errors": {"import": "ImportError: libgomp.so.1"}}, "no"),
        ({"errors": {"import": "ImportError: libamdhip64.so.7: cannot open shared object file"}}, "no"),
        ({"errors": {"import": DRIVER}}, "unverified"),
        ({"errors": {"import": "RuntimeError: libnvidia-encode.so.1: cannot open shared object file"}}, "unverified"),
        ({"outcomes": {"matmul": False}}, "no"),
        ({"outcomes": {"matmul": None}, "errors": {"matmul": DRIVER}}, "unverified"),
        ({"shadowed": ("/usr/local/cuda/lib64/libcudnn.so.9",)}, "no"),
    ],
)
def test_a_framework_is_compared_by_what_it_says_and_computes(changes: dict[str, object], verdict: str) -> None:
    good = Framework(
        version="1.32.0",
        facts={"providers": "CPUExecutionProvider"},
        outcomes={"matmul": True},
        errors={},
        devices=None,
        on_devices={},
        shadowed=(),
        seconds=1.0,
    )
    measurement = replace(measured(CPU), frameworks={"onnxruntime": replace(good, **changes)})
    verdicts = {field.verdict for field in compare_frameworks(lock_of({"onnxruntime": "1.32.0"}), measurement)}
    assert verdicts - {"yes"} == {verdict} - {"yes"}
