"""`provision render` from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.lock.format.file import write_lock
from provisioner.outputs import OUTPUTS
from provisioner.render import render
from provisioner.render.helper import helper_text
from tests.leaving import leave
from tests.lock_examples import cpu_stack, lock_of

if TYPE_CHECKING:
    from pathlib import Path

LOCK = lock_of(cpu_stack())
NAME = "pylock.trainer.toml"
HELPER = "provision/install.py"
HELPER_IS_MISSING = f"it uses {HELPER}, which --out writes with it\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a lock in it, to work in."""
    (tmp_path / NAME).write_text(write_lock(LOCK), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_dockerfile_goes_to_stdout_and_nothing_else_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("render", NAME) == 0
    assert capsys.readouterr() == (render(LOCK, "dockerfile"), HELPER_IS_MISSING)


def test_the_format_is_chosen_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("render", NAME, "--to", "requirements") == 0
    assert capsys.readouterr().out == render(LOCK, "requirements")


def test_out_names_a_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("render", NAME, "--out", "deep/Dockerfile.gpu") == 0
    assert (project / "deep" / "Dockerfile.gpu").read_text(encoding="utf-8") == render(LOCK, "dockerfile")
    assert capsys.readouterr() == ("", "wrote deep/Dockerfile.gpu, provision/install.py\n")
    assert (project / HELPER).read_text(encoding="utf-8") == helper_text("install.py")
    assert leave("render", NAME) == 0
    assert capsys.readouterr().err == ""


def test_a_helper_file_that_somebody_else_wrote_is_kept(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "provision").mkdir()
    (project / HELPER).write_text("print()\n", encoding="utf-8")
    assert leave("render", NAME, "--out", "Dockerfile") == 2
    assert f"`{HELPER}` is in the way, and provision did not render it" in capsys.readouterr().err
    assert (project / HELPER).read_text(encoding="utf-8") == "print()\n"
    assert not (project / "Dockerfile").exists()


def test_out_names_a_folder_in_which_the_file_has_its_usual_name(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("render", NAME, "--to", "requirements", "--out", ".") == 0
    assert (project / "requirements.txt").is_file()
    assert capsys.readouterr().err == "wrote requirements.txt\n"


def test_a_lock_in_another_folder_is_named_by_its_file_name(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("render", str(project / NAME)) == 0
    out = capsys.readouterr().out
    assert out == render(LOCK, "dockerfile")
    assert str(project) not in out


def test_an_edit_by_hand_is_warned_of(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (project / NAME).read_text(encoding="utf-8").replace('name = "trainer"', 'name = "trainee"')
    (project / NAME).write_text(text, encoding="utf-8")
    assert leave("render", NAME) == 0
    assert capsys.readouterr().err == (
        f"warning: `{NAME}` was changed after it was written: its digest does not fit its content\n{HELPER_IS_MISSING}"
    )


def test_an_unknown_format_is_refused_before_the_lock_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("render", "missing.toml", "--to", "dockerfle") == 2
    assert capsys.readouterr() == (
        "",
        (
            "error: `dockerfle` is not an output format  [bad-usage]\n"
            f"\nhint: did you mean `dockerfile`? there are {', '.join(OUTPUTS)}\n"
        ),
    )


def test_a_missing_lock_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("render", "missing.toml") == 2
    assert capsys.readouterr() == ("", "error: lock file `missing.toml` does not exist  [file]\n")


def test_a_broken_lock_is_refused_at_its_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / NAME).write_text("a = 1\nb = = 2\n", encoding="utf-8")
    assert leave("render", NAME) == 2
    assert capsys.readouterr().err == (f"error: lock file has 1 mistake  [invalid-document]\n  {NAME}:2:5: invalid value\n")


def test_a_lock_for_the_host_leaves_an_old_file_alone(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "Dockerfile").write_text("old", encoding="utf-8")
    (project / NAME).write_text(write_lock(lock_of(replace(cpu_stack(), runs="host", image=None))), encoding="utf-8")
    assert leave("render", NAME, "--out", "Dockerfile") == 2
    assert (project / "Dockerfile").read_text(encoding="utf-8") == "old"
    assert capsys.readouterr().err.startswith("error: lock `trainer` runs on the host (linux/amd64)")
