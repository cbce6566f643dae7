"""The shell file of a lock, sourced by the shells that are to understand it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.lock.format.file import lock_digest
from provisioner.render.environment import render
from provisioner.render.header import UnrenderableError
from tests.lock_examples import cpu_stack, cuda_stack, lock_of

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.lock.format.model import Lock

LOCK_FILE = "pylock.trainer.toml"
PRINT = f'{sys.executable} -c "import json, os; print(json.dumps(dict(os.environ)))"'
HOSTILE = "".join(map(chr, range(32, 127))) + " $(touch made) `touch made` ${HOME} 'a' \\' \" \\\\ \\n é 日本 \\"


def lock(environment: dict[str, str], name: str = "trainer") -> Lock:
    return lock_of(replace(cpu_stack(), environment=environment), name=name)


@pytest.fixture(params=["dash", "bash"])
def shell(request: pytest.FixtureRequest) -> str:
    """A shell that is on this machine."""
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return str(request.param)


def run(
    shell: str, folder: Path, script: str, *, uname: str = "Linux x86_64", environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a script in `folder`, on a machine whose `uname -s` and `-m` print the two words."""
    system, machine = uname.split()
    program = folder / "bin" / "uname"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\ncase $1 in -s) echo {system};; -m) echo {machine};; esac\n")
    program.chmod(0o755)
    variables = {"PATH": f"{program.parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", **(environment or {})}
    return subprocess.run([shell, "-c", script], cwd=folder, env=variables, capture_output=True, text=True, check=False)


def exported(finished: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """The variables that `PRINT`, run last, found; without those that every process here has."""
    assert (finished.returncode, finished.stderr) == (0, "")
    found: dict[str, str] = json.loads(finished.stdout)
    return {name: value for name, value in found.items() if name not in {"PATH", "LC_ALL", "PWD", "OLDPWD", "SHLVL", "_"}}


def test_the_variables_of_the_stack_and_its_versions_are_exported(shell: str, tmp_path: Path) -> None:
    made = lock({"HSA_OVERRIDE_GFX_VERSION": "10.3.0", "CXXFLAGS": "-O2 -g"})
    (tmp_path / "environment.sh").write_text(render(made, LOCK_FILE))
    found = exported(run(shell, tmp_path, f"set -eu; . ./environment.sh; {PRINT}"))
    names = found.pop("PROVISION_VARIABLES").split(" ")
    assert names == sorted(found)
    assert found == {
        "CXXFLAGS": "-O2 -g",
        "HSA_OVERRIDE_GFX_VERSION": "10.3.0",
        "PROVISION_ACCELERATOR": "cpu",
        "PROVISION_LOCK_DIGEST": lock_digest(made),
        "PROVISION_NAME": "trainer",
        "PROVISION_PLATFORM": "linux/amd64",
        "PROVISION_STACK_IMAGE": "python:3.12-slim",
        "PROVISION_STACK_PYTHON": "3.12",
    }


def test_no_character_of_a_value_means_anything_to_the_shell(shell: str, tmp_path: Path) -> None:
    (tmp_path / "environment.sh").write_text(render(lock({"HOSTILE": HOSTILE}), "pylock.$(touch made)';touch made;'.toml"))
    assert exported(run(shell, tmp_path, f". ./environment.sh; {PRINT}"))["HOSTILE"] == HOSTILE
    run(shell, tmp_path, ". ./environment.sh", uname="Plan9 mips")
    assert not (tmp_path / "made").exists()


def test_each_platform_has_its_own(shell: str, tmp_path: Path) -> None:
    stacks = [
        replace(cpu_stack(platform), environment={"FOR": platform}, image=None, runs="host")
        for platform in ("linux/amd64", "linux/arm64", "macos/x86_64", "macos/arm64")
    ]
    (tmp_path / "environment.sh").write_text(render(lock_of(*stacks), LOCK_FILE))
    for uname, platform in (
        ("Linux x86_64", "linux/amd64"),
        ("Linux aarch64", "linux/arm64"),
        ("Darwin x86_64", "macos/x86_64"),
        ("Darwin arm64", "macos/arm64"),
    ):
        found = exported(run(shell, tmp_path, f". ./environment.sh; {PRINT}", uname=uname))
        assert (found["FOR"], found["PROVISION_PLATFORM"]) == (platform, platform)


@pytest.mark.parametrize("command", [". ./environment.sh", "./environment.sh"])
def test_another_machine_is_told_and_gets_nothing(shell: str, tmp_path: Path, command: str) -> None:
    (tmp_path / "environment.sh").write_text(render(lock({"A": "1"}), LOCK_FILE))
    (tmp_path / "environment.sh").chmod(0o755)
    finished = run(shell, tmp_path, f"set -e; {command}; echo on", uname="Linux riscv64")
    assert (finished.returncode, finished.stdout) == (1, "")
    assert finished.stderr == "pylock.trainer.toml is for linux/amd64; this is Linux riscv64\n"
    assert exported(run(shell, tmp_path, f"set -eu; {command} 2>/dev/null || {PRINT}", uname="Linux riscv64")) == {}


def test_sourced_twice_is_sourced_once(shell: str, tmp_path: Path) -> None:
    (tmp_path / "environment.sh").write_text(render(lock({"A": "1", "B": "2"}), LOCK_FILE))
    once = exported(run(shell, tmp_path, f"set -eu; . ./environment.sh; {PRINT}"))
    twice = exported(run(shell, tmp_path, f"set -eu; . ./environment.sh; unset A; B=3; . ./environment.sh; {PRINT}"))
    assert twice == once


def test_the_environment_of_another_lock_is_unset_in_this_shell_and_in_its_children(shell: str, tmp_path: Path) -> None:
    (tmp_path / "one.sh").write_text(render(lock({"HSA_OVERRIDE_GFX_VERSION": "10.3.0", "Z": "1"}, name="one"), LOCK_FILE))
    (tmp_path / "two.sh").write_text(render(lock_of(cuda_stack(), name="two"), LOCK_FILE))
    alone = exported(run(shell, tmp_path, f"set -eu; . ./two.sh; {PRINT}"))
    assert exported(run(shell, tmp_path, f"set -eu; . ./one.sh; . ./two.sh; {PRINT}")) == alone
    parent = exported(run(shell, tmp_path, f". ./one.sh; {PRINT}"))
    assert exported(run(shell, tmp_path, f"set -eu; . ./two.sh; {PRINT}", environment=parent)) == alone


def test_variables_of_the_container_runtime_are_those_of_images(shell: str, tmp_path: Path) -> None:
    variables = {"NVIDIA_REQUIRE_BASE": "cuda>=12", "NVIDIA_DRIVER_CAPABILITIES": "all", "NVIDIA_TF32_OVERRIDE": "0"}
    (tmp_path / "environment.sh").write_text(render(lock_of(replace(cuda_stack(), environment=variables)), LOCK_FILE))
    found = exported(run(shell, tmp_path, f". ./environment.sh; {PRINT}"))
    assert [name for name in found if name.startswith("NVIDIA_")] == ["NVIDIA_TF32_OVERRIDE"]


@pytest.mark.parametrize("name", ["", "A B", "A-B", "1A", "A=1;touch made;B", "A\n", "É", "A[0]"])
def test_a_name_that_no_variable_can_have_is_refused(name: str) -> None:
    with pytest.raises(UnrenderableError) as caught:
        render(lock({name: "1"}), LOCK_FILE)
    assert caught.value.message == f"`{name}` in the environment of linux/amd64 cannot be the name of a shell variable"
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("value", ["a\nb", "\0", "\x1b[2J", "\x7f"])
def test_a_value_with_a_control_character_is_refused(value: str) -> None:
    with pytest.raises(UnrenderableError) as caught:
        render(lock({"A": value}), LOCK_FILE)
    assert caught.value.message == f"variable `A` of linux/amd64 holds a control character: {value!r}"


def test_a_version_with_a_control_character_is_refused() -> None:
    made = lock({})
    stacks = tuple(replace(stack, components={"cuda:jax": "12\n.9"}) for stack in made.stacks)
    with pytest.raises(UnrenderableError) as caught:
        render(replace(made, stacks=stacks), LOCK_FILE)
    assert caught.value.message == "variable `PROVISION_STACK_CUDA_JAX` of linux/amd64 holds a control character: '12\\n.9'"
