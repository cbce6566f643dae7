"""Whatever a person writes a login into, no command tells it: what is printed ends up in the logs of CI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

TOKEN = "s3cretTOKEN99"
ADDRESS = f"https://ada:{TOKEN}@host.invalid"
GIT = f"{ADDRESS}/o/r.git"

COMMANDS = (
    ("solve", "--matrix", f"{ADDRESS}/m"),
    ("solve", f"{ADDRESS}/spec.yaml"),
    ("solve", "--host", f"{ADDRESS}/h.yaml"),
    ("solve", "--exclude-newer", ADDRESS),
    ("explain", ADDRESS),
    ("check", ADDRESS),
    ("check", "--hosts", ADDRESS),
    ("render", ADDRESS, "--to", "dockerfile"),
    ("fetch", ADDRESS, "--to", "here"),
    ("validate", ADDRESS),
    ("inspect", "--root", ADDRESS),
    ("inspect", "--nodes", ADDRESS),
    ("doctor", ADDRESS),
    ("diagnose", ADDRESS),
    ("plan", "--to", ADDRESS),
    ("fleet", "--hosts", ADDRESS),
    ("init", "--from", ADDRESS, "--out", "new.yaml"),
    ("matrix", "check", "--matrix", ADDRESS),
)
SPECS = (
    f'image: {{base: "{ADDRESS}/img:1"}}',
    f'image: {{base: "ada:{TOKEN}@host.invalid/img:1"}}',
    f'target: {{host: "{ADDRESS}/h.yaml"}}',
    f'packages: ["foo @ {ADDRESS}/foo.whl"]',
    f'packages-from: ["{ADDRESS}/req.txt"]',
    f'constraints: ["{ADDRESS}/c.txt"]',
    f'indexes: [{{name: x, url: "{ADDRESS}/simple"}}]',
)
REQUIREMENTS = (
    f"git+{GIT}",
    f"foo @ git+{GIT}@v1",
    f"-e git+{GIT}#egg=x",
    f"-r {ADDRESS}/req.txt",
    f"-f {ADDRESS}/x",
    f"--foo {ADDRESS}",
    f"{ADDRESS}/foo.whl",
    f"{ADDRESS}/foo.whl#sha256=abc",
    f"foo @ {ADDRESS}/foo-1.0-py3-none-any.whl#sha256=zz",
)
VARIABLES = {"PIP_TIMEOUT": ADDRESS, "PIP_FIND_LINKS": f"{ADDRESS}/x", "PIP_CERT": f"{ADDRESS}/cert.pem"}


def run(folder: Path, *words: str, **environment: str) -> str:
    """All that a run of the program prints, which has to fail."""
    command = [sys.executable, "-m", "provisioner", *words]
    variables = {**os.environ, "PROVISION_CACHE_DIR": str(folder / "cache"), **environment}
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode != 0, done.stdout
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[:2]).replace(ADDRESS, "ADDRESS"))
def test_a_login_in_an_argument_is_not_told(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "provision.yaml").write_text("name: a\nrequires: {python: '3.12'}\n", encoding="utf-8")
    printed = run(tmp_path, *words)
    assert TOKEN not in printed
    assert "host.invalid" in printed, "the rest of what was written is told"


@pytest.mark.parametrize("line", SPECS, ids=lambda line: line.partition(":")[0])
def test_a_login_in_a_spec_is_not_told(tmp_path: Path, line: str) -> None:
    (tmp_path / "provision.yaml").write_text(f"name: a\n{line}\n", encoding="utf-8")
    assert TOKEN not in run(tmp_path, "solve", "--offline", "--dry-run")


@pytest.mark.parametrize("line", REQUIREMENTS)
def test_a_login_in_a_requirement_file_is_not_told(tmp_path: Path, line: str) -> None:
    (tmp_path / "requirements.txt").write_text(f"{line}\n", encoding="utf-8")
    assert TOKEN not in run(tmp_path, "solve", "requirements.txt", "--offline", "--dry-run")


@pytest.mark.parametrize("name", VARIABLES)
def test_a_login_in_a_variable_is_not_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "provision.yaml").write_text("name: a\npackages: [six]\n", encoding="utf-8")
    assert TOKEN not in run(tmp_path, "solve", "--offline", "--dry-run", **{name: VARIABLES[name]})


def test_the_environment_of_the_process_is_no_requirement_file(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("-r environ\n", encoding="utf-8")
    (tmp_path / "environ").write_text(f"PATH=/bin\0SECRET={TOKEN}\0", encoding="utf-8")
    printed = run(tmp_path, "solve", "requirements.txt", "--offline", "--dry-run")
    assert TOKEN not in printed
    assert "is not text: it has a NUL character" in printed


@pytest.mark.parametrize("form", ["text", "json", "sarif", "junit", "github", "gitlab"])
def test_a_login_in_a_lock_is_not_told_in_any_format(tmp_path: Path, form: str) -> None:
    (tmp_path / "pylock.a.toml").write_text(f'lock-version = "1.0"\n[[packages]]\nname = "{ADDRESS}"\n', encoding="utf-8")
    printed = run(tmp_path, "check", "pylock.a.toml", "--format", form)
    assert TOKEN not in printed
    assert "pylock.a.toml" in printed


def test_a_document_that_is_printed_is_as_it_is(tmp_path: Path) -> None:
    """The schema of a spec has a pattern of addresses, which looks like one with a login."""
    command = [sys.executable, "-m", "provisioner", "schema", "spec"]
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert json.loads(printed)
    assert "…@" not in printed
