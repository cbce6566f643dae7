"""What `requirements` renders is what pip and uv install, with hashes required: of an index, a build of another one, a file."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from uv import find_uv_bin

from tests.project import changed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.project import Project

RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
HOST = ("runs: host", "outputs: [requirements]", f"requires: {{python: '=={RUNNING}'}}")
COMMANDS = {
    "pip": (sys.executable, "-m", "pip", "install", "--target", "there", "--require-hashes", "-r", "requirements.txt"),
    "uv": (find_uv_bin(), "pip", "install", "--python", sys.executable, "--target", "there", "--require-hashes"),
    "uv without a word": (find_uv_bin(), "pip", "install", "--python", sys.executable, "--target", "there"),
}


def installed(folder: Path, installer: str, *, index: str = "") -> list[str]:
    """The distributions that an installer puts into an empty folder, as `name-version`."""
    command = [*COMMANDS[installer], *(("-r", "requirements.txt", "--no-cache") if installer != "pip" else ("--no-cache-dir",))]
    variables = {"PIP_INDEX_URL": index, "UV_INDEX_URL": index} if index else {}
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return sorted(path.name.removesuffix(".dist-info") for path in (folder / "there").glob("*.dist-info"))


@pytest.mark.parametrize("installer", COMMANDS)
def test_versions_of_an_index_a_build_of_another_and_a_file_are_installed(project: Project, installer: str) -> None:
    index = project.index
    index.add_wheel("delta", "1.0+cu126", index="extra", requires=["beta"])
    index.add_wheel("beta", "2.0", index="extra", padding=8)
    index.add_wheel("omega", "3.0", index="hidden")
    more = f"indexes: [{{name: extra, url: '{index.root}/extra', packages: [delta]}}, {{name: local, url: '{index.url}'}}]"
    project.spec(f"[alpha, delta, 'omega @ {index.root}/files/hidden/omega-3.0-py3-none-any.whl']", *HOST, more)
    assert project.run("solve").code == 0
    text = project.read("requirements.txt")
    assert [line.removesuffix(" \\") for line in text.splitlines() if line[:1] not in "# "] == [
        "--index-url INDEX/simple",
        "--find-links INDEX/extra/delta/",
        "alpha==2.0",
        "beta==2.0",
        "delta==1.0+cu126",
        "omega @ INDEX/files/hidden/omega-3.0-py3-none-any.whl",
    ]
    assert installed(project.folder, installer) == ["alpha-2.0", "beta-2.0", "delta-1.0+cu126", "omega-3.0"]
    project.write(
        changed(f"packages: [alpha, delta, 'omega @ {index.root}/files/hidden/omega-3.0-py3-none-any.whl']", *HOST, more)
    )
    assert project.run("check").code == 0


def test_the_index_of_the_installers_own_configuration_is_not_written(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a mirror can stand in for it."""
    monkeypatch.setenv("PIP_INDEX_URL", project.index.url)
    project.spec("[alpha]", "indexes: []", *HOST)
    assert project.run("solve").code == 0
    assert "--index-url" not in project.read("requirements.txt")
    assert "/files/" not in project.read("requirements.txt")
    for installer in ("pip", "uv"):
        assert installed(project.folder, installer, index=project.index.url) == ["alpha-2.0", "beta-2.0"]


@pytest.mark.network
@pytest.mark.parametrize("installer", COMMANDS)
def test_of_the_real_index_too(tmp_path: Path, installer: str) -> None:
    lines = ("accelerator: cpu", "packages: [requests, rich]", *HOST)
    (tmp_path / "provision.yaml").write_text("\n".join(lines), encoding="utf-8")
    solved = subprocess.run(
        [sys.executable, "-m", "provisioner", "solve"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert solved.returncode == 0, solved.stderr
    assert "http" not in (tmp_path / "requirements.txt").read_text(encoding="utf-8")
    names = {name.rpartition("-")[0] for name in installed(tmp_path, installer)}
    assert {"requests", "urllib3", "rich", "idna"} <= names
