"""The wheel: the same bytes for the same commit, small, and a program that installs and starts without the checkout."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from provisioner import __version__

ROOT = Path(__file__).parent.parent
LARGEST = 3 * 2**20
MOMENT = "1700000000"


def tree(folder: Path) -> Path:
    """Return a copy of what a distribution is built from."""
    for name in ("provisioner", "matrices", "schemas"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "CHANGELOG.md", "LICENSE"):
        shutil.copyfile(ROOT / name, folder / name)
    return folder


def built(folder: Path) -> dict[str, bytes]:
    """Build both distributions of a copy, and return their bytes by name."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "SOURCE_DATE_EPOCH": MOMENT, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist", "."]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {path.name: path.read_bytes() for path in (folder / "dist").iterdir()}


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return built(tree(tmp_path_factory.mktemp("first")))


@pytest.fixture(scope="module")
def wheel(distributions: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    name = f"provision_ml-{__version__}-py3-none-any.whl"
    path = tmp_path_factory.mktemp("wheel") / name
    path.write_bytes(distributions[name])
    return path


pytestmark = pytest.mark.slow


def test_two_builds_in_two_folders_are_the_same_bytes(distributions: dict[str, bytes], tmp_path: Path) -> None:
    def digests(files: dict[str, bytes]) -> dict[str, str]:
        return {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}

    assert sorted(distributions) == [f"provision_ml-{__version__}-py3-none-any.whl", f"provision_ml-{__version__}.tar.gz"]
    assert digests(built(tree(tmp_path))) == digests(distributions)


def test_the_wheel_is_small_and_holds_the_program_and_its_data_alone(wheel: Path) -> None:
    assert wheel.stat().st_size < LARGEST
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0] for name in names} == {"provisioner", f"provision_ml-{__version__}.dist-info"}
    assert "provisioner/py.typed" in names
    assert "provisioner/schemas/spec.schema.json" in names
    assert not [name for name in names if "__pycache__" in name or "/tests/" in name]


@pytest.mark.network
@pytest.mark.parametrize("installer", ["pip", "pipx", "uv"])
def test_the_wheel_installs_and_answers_from_another_folder(
    installer: str, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    for name in ("HOME", "PIPX_HOME", "UV_TOOL_DIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    for name in ("PIPX_BIN_DIR", "UV_TOOL_BIN_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "bin"))
    environment, commands = {
        "pip": (tmp_path, [["-m", "venv", str(tmp_path)]]),
        "pipx": (tmp_path / "PIPX_HOME/venvs/provision-ml", [["-m", "pipx", "install", "--quiet", str(wheel)]]),
        "uv": (
            tmp_path / "UV_TOOL_DIR/provision-ml",
            [["-m", "uv", "tool", "install", "--quiet", "--no-cache", "--python", sys.executable, str(wheel)]],
        ),
    }[installer]
    for command in commands:
        subprocess.run([sys.executable, *command], check=True)
    python = environment / "bin/python"
    if installer == "pip":
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", str(wheel)], check=True)
    subprocess.run([sys.executable, "-m", "pip", f"--python={python}", "check"], check=True, stdout=subprocess.DEVNULL)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    program = str(tmp_path / "bin/provision")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout == f"provision {__version__}\n"
    command = [program, "solve", "examples/trainer/provision.yaml", "--stack-only"]
    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("✓ runs on NVIDIA H100")
