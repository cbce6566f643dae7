"""`provision matrix audit`: rows measured again, as words, as JSON and as an exit code; interrupted runs go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.built_artefacts import fat_binary, serve, shared_library, zipped
from tests.leaving import leave
from tests.loopback_index import LoopbackIndex

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MATRIX = """\
order: [nccl, cuda, glibc]
components:
  nccl: {title: NCCL, file: nccl.yaml}
  cuda: {title: CUDA, file: cuda.yaml}
  glibc: {title: glibc, file: glibc.yaml, virtual: true}
"""
NCCL = """\
sources:
  nccl-wheels: {title: NCCL wheels, measured: true}
releases:
"""
CUDA = """\
sources:
  cuda-notes: {title: release notes}
releases: [{version: "13.0.1", source: [cuda-notes]}, {version: "12.9.1", source: [cuda-notes]}]
"""
ROW = """\
  - version: "%(version)s"
    builds:
      - name: cu12
        platforms: [linux/amd64]
        requires: {cuda: "%(cuda)s"}
        sass: [sm_90]
        artefact: "%(wheel)s"
        source: [nccl-wheels]
"""
VERSIONS = ("2.27.3", "2.26.2")


def wheel_of(version: str) -> str:
    return f"nvidia_nccl_cu12-{version}-py3-none-manylinux2014_x86_64.whl"


def write(folder: Path, *, cuda: str = "==12.*", unnamed: bool = False) -> Path:
    """A matrix with two releases of NCCL; those after the first need `cuda`."""
    folder.mkdir(exist_ok=True)
    needs = {VERSIONS[0]: "==12.*", VERSIONS[1]: cuda}
    rows = "".join(ROW % {"version": version, "cuda": needs[version], "wheel": wheel_of(version)} for version in VERSIONS)
    if unnamed:
        rows = "".join(line for line in rows.splitlines(keepends=True) if "artefact" not in line)
    for name, text in (("matrix", MATRIX), ("nccl", NCCL + rows), ("cuda", CUDA), ("glibc", "releases: []\n")):
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackIndex]:
    """An index with both wheels, configured as the installer's."""
    library = shared_library(tmp_path, section=fat_binary("sm_90"))
    with LoopbackIndex() as index:
        for version in VERSIONS:
            content = library + f"NCCL version {version}+cuda12.9\0".encode()
            serve(index, wheel_of(version), zipped({"nvidia/nccl/lib/libnccl.so.2": content}))
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        yield index


@pytest.mark.usefixtures("served")
def test_honest_rows_are_counted_and_shown_when_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path / "rules")
    assert leave("matrix", "audit", "--matrix", folder) == 0
    short = capsys.readouterr().out
    assert short.splitlines()[:2] == [
        "component  rows  confirmed  refuted  not measurable  fields read",
        "nccl          2          2        0               0            6",
    ]
    assert leave("matrix", "audit", "nccl==2.27.3", "--all", "--matrix", folder) == 0
    long = capsys.readouterr().out
    assert "  sass: confirmed\n    stated: sm_90\n    read:   entries: sm_90 1\n" in long
    assert "2.26.2" not in long


@pytest.mark.usefixtures("served")
def test_a_refuted_row_is_shown_with_its_place_and_what_was_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path / "rules", cuda="==13.*")
    assert leave("matrix", "audit", "nccl", "--matrix", folder) == 1
    text = capsys.readouterr().out
    assert f"nccl.yaml:14), {wheel_of('2.26.2')}\n" in text
    assert "  cuda: refuted\n    stated: ==13.*\n    read:   it says 12.9\n" in text
    assert leave("matrix", "audit", "nccl", "--limit", 1, "--matrix", folder) == 0


@pytest.mark.usefixtures("served")
def test_json_says_every_field(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("matrix", "audit", "--format", "json", "--matrix", write(tmp_path / "rules", cuda="==13.*")) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["status"] == "refuted"
    assert report["counts"] == {"confirmed": 1, "refuted": 1, "not measurable": 0}
    assert [row["row"] for row in report["rows"]] == [f"nccl=={version}+cu12 (linux/amd64)" for version in VERSIONS]
    assert {one["field"]: one["outcome"] for one in report["rows"][1]["findings"]} == {
        "version": "confirmed",
        "sass": "confirmed",
        "cuda": "refuted",
    }
    assert report["fetched"] > 0


def test_what_was_measured_needs_no_network_again(
    served: LoopbackIndex, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(tmp_path / "rules")
    assert leave("matrix", "audit", "--offline", "--matrix", folder) == 3
    assert "offline" in capsys.readouterr().out
    assert leave("matrix", "audit", "--matrix", folder) == 0
    count = sum(served.requests.values())
    assert leave("matrix", "audit", "--offline", "--matrix", folder) == 0
    assert sum(served.requests.values()) == count


def test_nothing_measurable_is_neither_yes_nor_no(
    served: LoopbackIndex, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    served.status = 503
    assert leave("matrix", "audit", "--matrix", write(tmp_path / "rules")) == 3
    assert "not measurable: index `main` answers 503" in capsys.readouterr().out
    assert leave("matrix", "audit", "--matrix", write(tmp_path / "other", unnamed=True)) == 3
    assert "2 builds name no artefact" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("ncl", "the matrix has no component `ncl`"),
        ("nccl==9.9", "the matrix has no release 9.9 of nccl"),
    ],
)
def test_a_row_that_does_not_exist_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], word: str, message: str
) -> None:
    assert leave("matrix", "audit", word, "--matrix", write(tmp_path / "rules")) == 2
    text = capsys.readouterr().err
    assert message in text
    assert "hint:" in text


def test_an_interrupted_audit_goes_on_where_it_stopped(served: LoopbackIndex, tmp_path: Path) -> None:
    first, second = (f"/files/{wheel_of(version)}" for version in VERSIONS)
    command = [
        sys.executable,
        "-m",
        "provisioner",
        "matrix",
        "audit",
        "--jobs",
        "1",
        "--matrix",
        str(write(tmp_path / "rules")),
    ]
    # The first wheel is read at once; the second is refused, tried again, and hangs until the run is interrupted.
    served.statuses[second] = 503
    process = subprocess.Popen(command, env=os.environ.copy(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for _ in range(200):
        if served.requests[second]:
            break
        time.sleep(0.05)
    served.delay = 5
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    served.delay = 0
    del served.statuses[second]
    count = served.requests[first]
    assert count > 0
    again = subprocess.run(command, env=os.environ.copy(), capture_output=True, text=True, timeout=60, check=False)
    assert (again.returncode, served.requests[first]) == (0, count)
