"""An installed Python environment is read from its files, and nothing of it is run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from provisioner.errors import UsageError
from provisioner.host.environment import Distribution, active_environment, read_environment
from provisioner.host.machine import Machine
from provisioner.host.parse import TorchBuild, torch_version


def write(root: Path, path: str, content: str = "") -> None:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(content)


def environment(root: Path) -> Path:
    packages = "venv/lib/python3.12/site-packages"
    write(root, "venv/pyvenv.cfg", "home = /usr/bin\nversion_info = 3.12.4.final.0\n")
    write(root, "venv/bin/python")
    metadata = "Metadata-Version: 2.1\nName: Torch\nVersion: 2.7.1+cu126\nRequires-Dist: sympy>=1.13.3\n\nVersion: 9\n"
    write(root, f"{packages}/torch-2.7.1+cu126.dist-info/METADATA", metadata)
    write(root, f"{packages}/torch/version.py", "__version__ = '2.7.1+cu126'\ncuda: Optional[str] = '12.6'\nhip = None\n")
    write(root, f"{packages}/nvidia/cudnn/lib/libcudnn.so.9")
    write(root, f"{packages}/nvidia/cudnn/lib/README")
    write(root, f"{packages}/broken-1.dist-info/METADATA", "\x00")
    return root


def test_distributions_python_and_build_are_read(tmp_path: Path) -> None:
    found = read_environment(Machine(environment(tmp_path)), "venv", found_by="--python")
    assert found is not None
    assert (found.name, found.python, found.python_series) == ("venv", "3.12.4", "3.12")
    assert found.distributions == {"torch": Distribution(version="2.7.1+cu126", requires=("sympy>=1.13.3",))}
    assert found.torch == TorchBuild(version="2.7.1+cu126", cuda="12.6")
    assert found.libraries == ("libcudnn.so.9",)


@pytest.mark.parametrize(
    ("text", "build"),
    [
        ("__version__ = '2.7.1+cu126'\ncuda: Optional[str] = '12.6'\nhip: Optional[str] = None\n", "cu126"),
        ("__version__ = '2.7.1+rocm6.3'\ncuda: Optional[str] = None\nhip: Optional[str] = '6.3.42131-fa1d09cbd'\n", "rocm6.3"),
        ("__version__ = '2.7.1+cpu'\ndebug = False\ncuda: Optional[str] = None\nhip: Optional[str] = None\n", "cpu"),
        ("__version__ = \"1.4.0\"\ncuda = '10.1'\n", "cu101"),
    ],
)
def test_the_build_of_pytorch_is_the_one_it_says_it_is(text: str, build: str) -> None:
    found = torch_version(text)
    assert found is not None
    assert found.build == build


def test_an_environment_of_conda_tells_its_python(tmp_path: Path) -> None:
    (tmp_path / "env/lib/python3.11/site-packages").mkdir(parents=True)
    write(tmp_path, "env/conda-meta/python-3.11.9-h955ad1f_0.json", "{}")
    found = read_environment(Machine(tmp_path), "env", found_by="CONDA_PREFIX")
    assert found is not None
    assert found.python == "3.11.9"


def test_the_active_environment_is_that_of_the_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = environment(tmp_path) / "venv"
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.chdir(tmp_path)
    assert active_environment(Machine(Path("/")), None) is None
    (tmp_path / ".venv").symlink_to(place)
    usual = active_environment(Machine(Path("/")), None)
    assert usual is not None
    assert usual.found_by == ".venv", "where none is active, as uv does"
    monkeypatch.setenv("CONDA_PREFIX", str(place))
    found = active_environment(Machine(Path("/")), None)
    assert found is not None
    assert found.found_by == "CONDA_PREFIX"
    assert active_environment(Machine(tmp_path), None) is None, "the shell of this machine says nothing of a saved tree"


def test_the_option_names_an_environment_by_its_interpreter(tmp_path: Path) -> None:
    place = environment(tmp_path) / "venv/bin/python"
    found = active_environment(Machine(Path("/")), place)
    assert found is not None
    assert found.found_by == "--python"


def test_the_environment_of_this_process_is_read() -> None:
    if sys.prefix == sys.base_prefix:
        pytest.skip("this interpreter is in no environment")
    found = active_environment(Machine(Path("/")), Path(sys.executable))
    assert found is not None
    assert "pytest" in found.distributions
    assert found.python == ".".join(map(str, sys.version_info[:3]))


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("nowhere/bin/python", "it is not there"),
        ("lonely/bin/python", "no lib/python3.*/site-packages is beside its folder"),
    ],
)
def test_an_interpreter_of_no_environment_is_refused(tmp_path: Path, path: str, problem: str) -> None:
    write(tmp_path, "lonely/bin/python")
    with pytest.raises(UsageError) as refused:
        active_environment(Machine(Path("/")), tmp_path / path)
    assert refused.value.message == f"--python `{os.fspath(tmp_path / path)}` is no interpreter of an environment: {problem}"
