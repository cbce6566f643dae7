"""`provision doctor`: what it is given, what it prints, and its exit codes; its machines are in tests/doctor."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.leaving import leave
from tests.pseudo_terminal import on_a_terminal

ROOT = Path(__file__).parents[2]
HOSTS = ROOT / "tests/fixtures/hosts"
LOCK = ROOT / "tests/fixtures/locks/pylock.cuda-12.toml"

RUN = "import sys\nfrom provisioner.cli.app import main\ntry:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(variable, raising=False)


def test_the_whole_screen_of_a_machine_that_is_too_old(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    code = leave("doctor", str(LOCK.relative_to(ROOT)), "--root", "tests/fixtures/hosts/ubuntu-20.04-t4-proprietary")
    assert code == 1
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.splitlines()[:6] == [
        "✗ ubuntu-20.04-t4-proprietary does not run tests/fixtures/locks/pylock.cuda-12.toml: mend the driver layer first",
        "    layer      found                      wanted",
        "  ✓ GPU        Tesla T4 (7.5)             5.0, 5.2, … 9.0",
        "  - system     ubuntu 20.04 · glibc 2.31",
        "  ✓ kernel     5.4.0-182-generic",
        "  ✗ driver     470.256.02 · proprietary   >=525.60.13,<=615.71.09",
    ]
    assert printed.out.splitlines()[-1].startswith("next: sudo ubuntu-drivers install nvidia:")


@pytest.mark.parametrize("columns", ["80", "60"])
def test_no_row_is_wider_than_the_terminal(columns: str) -> None:
    words = ("doctor", str(LOCK), "--root", str(HOSTS / "ubuntu-20.04-t4-proprietary"))
    variables = {"PATH": os.environ["PATH"], "COLUMNS": columns, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    shown = on_a_terminal(RUN, *words, variables=variables)
    # A path, an address or a command is one word, and is never broken.
    assert all(len(row) <= int(columns) or "/" in row or "$" in row for row in shown.splitlines()), shown
    assert "  ✗ driver " in shown


def test_a_terminal_without_our_symbols_gets_plain_ones() -> None:
    words = [sys.executable, "-m", "provisioner", "doctor", "--root", str(HOSTS / "ubuntu-20.04-t4-proprietary")]
    finished = subprocess.run(
        words,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.decode("ascii").splitlines()[0].startswith("+ the layers of ")


def test_json_has_every_layer_with_what_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("doctor", str(LOCK), "--root", str(HOSTS / "ubuntu-22.04-h100-open"), "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["status"] == "examined"
    assert [layer["layer"] for layer in found["layers"]] == [
        *("gpu", "system", "kernel", "driver", "cuda", "container", "libraries", "python", "framework", "packages")
    ]
    gpu, *_ = found["layers"]
    assert gpu["found"][0] == {"component": "gpu", "value": "9.0", "name": "NVIDIA H100 80GB HBM3", "count": 8}
    assert found["mend_first"] == ""


def test_v_tells_the_row_of_the_matrix_on_the_failure(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    machine = tmp_path / "machine"
    shutil.copytree(HOSTS / "ubuntu-22.04-h100-open", machine, symlinks=True)
    (machine / "var/lib/dpkg/status").write_text("Package: bash\nStatus: install ok installed\nVersion: 5.1-6\n")
    assert leave("-v", "doctor", str(LOCK), "--root", str(machine)) == 1
    assert "Docker knows no GPU driver: the NVIDIA Container Toolkit is missing" in capsys.readouterr().out


def test_strict_takes_no_unknown_fact_for_granted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    profile = tmp_path / "host.yaml"
    profile.write_text(
        'platform: linux/amd64\ngpus: [{compute_capability: "9.0"}]\ndriver: {version: 535.104.05, module: open}\n'
    )
    assert leave("doctor", str(LOCK), "--host", str(profile)) == 0
    assert leave("doctor", str(LOCK), "--host", str(profile), "--strict") == 3
    capsys.readouterr()


def test_a_folder_with_one_lock_stands_for_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    shutil.copy(LOCK, tmp_path)
    host = ("--root", str(HOSTS / "ubuntu-22.04-h100-open"))
    assert leave("doctor", str(tmp_path), *host) == 0
    shutil.copy(LOCK, tmp_path / "pylock.other.toml")
    assert leave("doctor", str(tmp_path), *host) == 2
    assert "has 2 locks, and one is examined at a time" in capsys.readouterr().err


def test_a_lock_of_another_platform_does_not_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    profile = tmp_path / "arm.yaml"
    profile.write_text("platform: linux/arm64\n")
    assert leave("doctor", str(LOCK), "--host", str(profile)) == 1
    assert f"`{LOCK}` is for linux/amd64, and arm.yaml is linux/arm64" in capsys.readouterr().err


def test_in_a_container_no_command_of_its_host_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    machine = tmp_path / "machine"
    shutil.copytree(HOSTS / "nouveau", machine, symlinks=True)
    (machine / ".dockerenv").touch()
    assert leave("doctor", "--root", str(machine)) == 1
    printed = capsys.readouterr().out
    assert "$ " not in printed
    assert "note: this is a container: kernel, driver and devices are those of its host" in printed


def test_what_is_needed_beside_another_step_is_no_alternative_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Nouveau holds the GPU, and no driver is installed: one step does not take the place of the other."""
    assert leave("doctor", "--root", str(HOSTS / "nouveau")) == 1
    printed = capsys.readouterr().out
    assert "remedy: keep nouveau off the GPU" in printed
    assert "then: install driver" in printed
    assert " or: " not in printed
    assert leave("doctor", "--root", str(HOSTS / "nouveau"), "--format", "json") == 1
    layers = {one["layer"]: one for one in json.loads(capsys.readouterr().out)["layers"]}
    assert [one["alternative"] for one in layers["driver"]["remedies"]] == [False, False]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nowhere.toml",), "lock file `nowhere.toml` does not exist"),
        (("--host", "a.yaml", "--root", "/"), "--host names a recorded profile, and --root a part of a machine that is read"),
        (("--root", "nowhere"), "`nowhere` is not a directory"),
    ],
)
def test_bad_input_is_told_without_a_traceback(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert leave("doctor", *words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"error: {message}")


def test_a_spec_is_judged_by_its_lock_or_by_itself(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    spec = tmp_path / "provision.yaml"
    spec.write_text('name: job\nrequires: {pytorch: ">=2.6,<2.7"}\n')
    assert leave("doctor", str(spec), "--root", str(HOSTS / "ubuntu-22.04-h100-open")) == 0
    assert capsys.readouterr().out.startswith("✓ ubuntu-22.04-h100-open runs the spec `job`")


@pytest.mark.parametrize(
    ("settings", "layer", "text"),
    [
        (
            {"FAKE_NVML_LIBRARY": "12.550.54.15", "FAKE_NVML_DRIVER": "535.104.05"},
            "driver",
            "user-mode driver libraries 550.54.15 and driver 535.104.05 do not go together",
        ),
        ({"FAKE_NVML_GPUS": "NVIDIA H100|9.0|2330;lost|9.0|2330"}, "gpu", "a GPU has fallen off the bus"),
        (
            {"FAKE_NVML_GPUS": "NVIDIA A100-SXM4-40GB|8.0|20b0|40960|1|0"},
            "gpu",
            "driver 550.54.15 and mig undivided do not go together",
        ),
    ],
)
def test_this_machine_is_asked_through_nvml(tmp_path: Path, settings: dict[str, str], layer: str, text: str) -> None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler is installed")
    if Path("/proc/driver/nvidia/version").exists():
        pytest.skip("this machine has NVIDIA's driver, whose files would answer too")
    library = tmp_path / "libnvidia-ml.so.1"
    source = ROOT / "tests/fixtures/nvml/fake_nvml.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True, capture_output=True)
    environment = {"FAKE_NVML_GPUS": "NVIDIA H100 80GB HBM3|9.0|2330", **settings}
    finished = subprocess.run(
        [sys.executable, "-m", "provisioner", "doctor", "--format", "json"],
        env={"LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": str(ROOT), "PATH": "/usr/bin", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 1, finished.stderr
    found = json.loads(finished.stdout)
    assert found["mend_first"] == layer
    faults = [fault["text"] for one in found["layers"] if one["layer"] == layer for fault in one["faults"]]
    assert any(text in fault for fault in faults), faults
