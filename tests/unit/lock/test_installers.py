"""uv and pip install a lock as it is, and refuse it when a file is not the locked one."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from uv import find_uv_bin

from provisioner.index.model import IndexFile
from provisioner.lock.create import local_files
from provisioner.lock.file import lock_path, write_lock
from provisioner.resolver.stack import PackagePin
from tests.built_files import build_wheel
from tests.lock_examples import SIX, cpu_stack, lock_of, with_file

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.resolver.stack import Stack

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"

pytestmark = pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="the lock is for linux/amd64; installers refuse it here"
)


def stack_here() -> Stack:
    return replace(cpu_stack(), components={"python": HERE})


def local_stack(folder: Path) -> Stack:
    """Two wheels of this machine, one of which needs the other."""
    pins = []
    for name, requires in (("alpha", ("beta>=1",)), ("beta", ())):
        filename, content = build_wheel(name, "1.0")
        (folder / filename).write_bytes(content)
        file = IndexFile(filename=filename, url="", index="find-links", path=str(folder / filename))
        pins.append(PackagePin(name=name, version="1.0", file=file, requires=requires))
    return replace(stack_here(), packages=tuple(pins))


def write(stack: Stack, folder: Path, *, name: str = "small") -> Path:
    """The lock in a folder, with its local wheels beside it, as the command leaves them."""
    folder.mkdir()
    for relative, source in local_files([stack]).items():
        (folder / relative).parent.mkdir(exist_ok=True)
        shutil.copy(source, folder / relative)
    path = folder / lock_path(name)
    path.write_text(write_lock(lock_of(stack, name=name)), encoding="utf-8")
    return path


def uv(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [find_uv_bin(), "pip", "install", "--no-config", "--python", sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_uv_installs_a_lock_of_local_wheels_without_a_network(tmp_path: Path) -> None:
    lock = write(local_stack(tmp_path), tmp_path / "project")
    done = uv("--offline", "--no-cache", "--target", tmp_path / "target", "-r", lock)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "target" / "alpha.py").is_file()
    assert (tmp_path / "target" / "beta.py").is_file()


def test_uv_refuses_a_wheel_that_was_exchanged(tmp_path: Path) -> None:
    lock = write(local_stack(tmp_path), tmp_path / "project")
    (wheel,) = lock.parent.glob("wheels/beta-*.whl")
    content = bytearray(wheel.read_bytes())
    content[10] ^= 2  # the time of the first member: the same wheel to a reader, and another file
    wheel.write_bytes(content)
    done = uv("--offline", "--no-cache", "--target", tmp_path / "target", "-r", lock)
    assert done.returncode == 1
    assert "Hash mismatch for `beta" in done.stderr


def test_uv_refuses_a_wheel_of_another_size(tmp_path: Path) -> None:
    lock = write(local_stack(tmp_path), tmp_path / "project")
    (wheel,) = lock.parent.glob("wheels/beta-*.whl")
    locked = len(wheel.read_bytes())
    wheel.write_bytes(build_wheel("beta", "1.0", padding=10)[1])
    done = uv("--offline", "--no-cache", "--target", tmp_path / "target", "-r", lock)
    assert done.returncode == 2
    assert f"but the lockfile records {locked}" in done.stderr


def test_uv_refuses_a_lock_for_another_machine(tmp_path: Path) -> None:
    lock = write(replace(local_stack(tmp_path), platform="linux/arm64"), tmp_path / "project")
    done = uv("--offline", "--no-cache", "--target", tmp_path / "target", "-r", lock)
    assert done.returncode == 2
    assert "The target environment is not supported by the lockfile" in done.stderr


def test_uv_refuses_a_lock_for_another_python(tmp_path: Path) -> None:
    lock = write(replace(local_stack(tmp_path), components={"python": "3.8"}), tmp_path / "project")
    done = uv("--offline", "--no-cache", "--target", tmp_path / "target", "-r", lock)
    assert done.returncode == 2
    assert "incompatible with the `pylock.toml`'s Python requirement: `==3.8.*`" in done.stderr


@pytest.mark.network
def test_uv_installs_a_lock_of_the_real_index(tmp_path: Path) -> None:
    lock = write(stack_here(), tmp_path / "project")
    done = uv("--dry-run", "--no-cache", "--target", tmp_path / "target", "-r", lock)
    assert done.returncode == 0, done.stderr
    assert "Would install 2 packages" in done.stderr


@pytest.mark.network
def test_pip_installs_a_lock_of_the_real_index_and_refuses_an_exchanged_file(tmp_path: Path) -> None:
    """Since 26.1, pip reads such files, as an experiment it warns of."""
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "pip>=26.1"], check=True)
    right = write(stack_here(), tmp_path / "right")
    wrong = write(with_file(stack_here(), "six", replace(SIX, sha256="0" * 64)), tmp_path / "wrong")
    results = {}
    for lock in (right, wrong):
        command = [str(python), "-m", "pip", "install", "--dry-run", "--no-cache-dir", "-r", str(lock)]
        results[lock] = subprocess.run(command, capture_output=True, text=True, check=False)
    assert results[right].returncode == 0, results[right].stderr
    assert "Would install python-dateutil-2.9.0.post0 six-1.17.0" in results[right].stdout
    assert results[wrong].returncode == 1
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in results[wrong].stderr
