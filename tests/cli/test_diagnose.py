"""`provision diagnose`: whole answers as text and JSON, exit codes, stdin, and inputs that are no logs."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.leaving import leave

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/golden/diagnose"

LOGS = {
    "driver-too-old": """\
UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 11040).
Looking in indexes: https://ada:secret@pypi.example.org/simple
RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False.
nvidia: loading out-of-tree module taints kernel.
something else failed
""",
    "new-gpu": """\
| NVIDIA-SMI 550.144.03             Driver Version: 550.144.03     CUDA Version: 12.4     |
NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.
The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_61 sm_70 sm_75 sm_80 sm_86 sm_90.
\x1b[31mRuntimeError: CUDA error: no kernel image is available for execution on the device\x1b[0m
""",
    "dkms": """\
Error! Bad return status for module build on kernel: 6.12.5_1 (x86_64)
Consult /var/lib/dkms/nvidia/470.256.02/build/make.log for more information.
NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.
""",
    "modules": """\
NVRM: API mismatch: the client has the version 535.54.03, but
NVRM: this kernel module has the version 530.30.02.  Please
""",
}


def written(folder: Path, name: str) -> str:
    path = folder / f"{name}.log"
    path.write_text(LOGS[name], encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", LOGS)
def test_an_answer(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Callable[[Path, str], None]) -> None:
    assert leave("diagnose", written(tmp_path, name)) == 1
    printed = capsys.readouterr().out
    golden(GOLDEN / f"{name}.txt", printed)
    assert "secret" not in printed
    assert "\x1b" not in printed


def test_an_answer_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Callable[[Path, str], None]) -> None:
    assert leave("diagnose", written(tmp_path, "driver-too-old"), "--format", "json") == 1
    printed = capsys.readouterr().out
    found = json.loads(printed)
    assert found["status"] == "cause"
    assert {"name": "cuda_of_driver", "value": "11.4", "said_by": "log", "line": 1, "written": "11040"} in found["facts"]
    golden(GOLDEN / "driver-too-old.json", printed)


def test_a_lock_and_a_profile_are_planned_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Callable[[Path, str], None]
) -> None:
    lock = str(ROOT / "dockerfiles/training-h200/pylock.training-h200.toml")
    host = str(ROOT / "examples/hosts/h100.yaml")
    assert leave("diagnose", written(tmp_path, "driver-too-old"), "--lock", lock, "--host", host) == 1
    golden(GOLDEN / "with-lock.txt", capsys.readouterr().out)


def test_a_spec_is_planned_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = str(ROOT / "examples/trainer/provision.yaml")
    assert leave("diagnose", written(tmp_path, "driver-too-old"), "--spec", spec, "--format", "json") == 1
    steps = json.loads(capsys.readouterr().out)["findings"][0]["steps"]
    assert any(step["type"] == "change-host" and step["component"] == "driver" for step in steps)


def stdin_of(content: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "code", "first"),
    [
        (b"", 3, "? the log is empty\n"),
        (
            "x.c:1:2: 错误 隐式声明函数\n".encode(),
            3,
            "? nothing recognised in 1 line\n  hint: messages are known in English alone: run the command again with LC_ALL=C",
        ),
        (b"all is well\n", 3, "? nothing recognised in 1 line\n"),
        (
            b"nvidia: module license 'NVIDIA' taints kernel.\n",
            0,
            "\u2713 nothing wrong found: 1 message that looks like an error and harms nothing\n",
        ),
        (b"\xff\x00\x1b]0;\xfe" * 300, 3, "? nothing recognised in "),
    ],
)
def test_exit_codes(
    content: bytes, code: int, first: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", stdin_of(content))
    assert leave("diagnose", "-") == code
    assert capsys.readouterr().out.startswith(first)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nowhere.log",), "log `nowhere.log` does not exist"),
        ((".",), "log `.` is a directory, not a file"),
        (("a.log", "--host", "nowhere.yaml"), "nowhere.yaml"),
        (("a.log", "--lock", "nowhere.toml"), "nowhere.toml"),
        (("a.log", "--lock", "a.toml", "--spec", "b.yaml"), "--lock and --spec cannot be given together"),
        (("a.log", "--target", "x"), "--target names a target of --spec, which is not given"),
    ],
)
def test_what_cannot_be_read_is_told(
    words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.log").write_text("nothing", encoding="utf-8")
    assert leave("diagnose", *words) == 2
    assert message in capsys.readouterr().err


def test_a_long_log_is_read_from_its_end_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "long.log"
    path.write_text("all is well\n" * 400_000 + LOGS["modules"], encoding="utf-8")
    assert leave("diagnose", str(path), "--last", "1") == 1
    printed = capsys.readouterr().out
    assert "long.log:400001: NVRM: API mismatch" in printed
    assert "were not read; --last MB reads more" in printed
