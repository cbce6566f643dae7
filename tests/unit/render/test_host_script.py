"""The script that sets up a host: golden files of each family, its soundness as shell, what is refused, and what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.lock.format.file import parse_lock, write_lock
from provisioner.render import render
from provisioner.render.header import UnrenderableError
from provisioner.setups import HostSetup, SetupStep
from tests.host_setups import AMD, DEBIAN, LOCKS, MAC, ON_HOST, ON_MAC, ROCKY, UBUNTU_TO_COMPILE
from tests.lock_examples import cpu_stack, cuda_stack, lock_of, with_setups

if TYPE_CHECKING:
    from collections.abc import Callable

    from provisioner.lock.format.model import Lock

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", LOCKS)
def test_the_script_of_each_family_is_its_golden_file(name: str, golden: Callable[[Path, str], None]) -> None:
    golden(ROOT / f"tests/golden/render/host/{name}.sh", render(LOCKS[name], "host-script"))


@pytest.mark.parametrize("name", LOCKS)
def test_the_script_is_sound_for_shellcheck(name: str, tmp_path: Path) -> None:
    (tmp_path / "host.sh").write_text(render(LOCKS[name], "host-script"), encoding="utf-8")
    program = str(Path(sys.executable).parent / "shellcheck")
    finished = subprocess.run([program, "--shell=sh", "host.sh"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stdout) == (0, "")


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_keeps_its_setups(name: str) -> None:
    text = write_lock(LOCKS[name])
    assert parse_lock(text, file="pylock.trainer.toml").stacks == LOCKS[name].stacks


def refusal(lock: Lock) -> UnrenderableError:
    with pytest.raises(UnrenderableError) as caught:
        render(lock, "host-script")
    return caught.value


def test_a_lock_without_setups_says_what_to_write_into_the_spec() -> None:
    error = refusal(ON_HOST)
    assert error.message == "lock `trainer` does not say how its hosts are set up"
    assert error.hints == (
        "list `host-script` under `outputs` in provision.yaml and solve again",
        'its hosts must state `os`, `kernel` and `gpus`, such as `os: {id: ubuntu, version: "24.04"}`',
    )
    assert error.exit_code == 2


@pytest.mark.parametrize(
    ("setup", "message"),
    [
        (
            HostSetup(os="debian 12", driver_module="open", steps=(SetupStep(component="driver", version="550.163.01"),)),
            "the matrix does not say how driver 550.163.01 with open kernel modules is installed on debian 12 on linux/amd64",
        ),
        (
            HostSetup(os="debian 12", steps=(SetupStep(component="driver", version="580.95.05"),)),
            "the matrix does not say how driver 580.95.05 is installed on debian 12 on linux/amd64 without knowing its GPUs",
        ),
        (
            HostSetup(os="sles 15.6", steps=(SetupStep(component="driver", version="580.95.05"),)),
            (
                "there is no host script for sles 15.6 on linux/amd64, "
                "only for ubuntu, debian, rhel, rocky, almalinux, ol, fedora and macos"
            ),
        ),
        (
            HostSetup(os="debian 12"),
            "the stack takes nothing from a host with debian 12 on linux/amd64: there is nothing to set up",
        ),
        (
            replace(ROCKY, repositories=(replace(ROCKY.repositories[0], package=""), ROCKY.repositories[1])),
            "the matrix has no repository `epel` for rocky 9 on linux/amd64",
        ),
    ],
)
def test_what_nobody_knows_how_to_install_is_refused(setup: HostSetup, message: str) -> None:
    assert refusal(with_setups(ON_HOST, setup)).message == message


def test_a_driver_that_a_distribution_has_with_other_modules_is_a_hint() -> None:
    """Debian 12 has 535 with proprietary modules, and a stack without a wish has the open ones."""
    setup = HostSetup(os="debian 12", driver_module="open", steps=(SetupStep(component="driver", version="535.261.03"),))
    assert refusal(with_setups(ON_HOST, setup)).hints == (
        (
            "ask for another version of it, or `driver_module: proprietary`, under `requires`, "
            "or for another system (docs/outputs.md has them)"
        ),
        "install what the stack needs by the guides of its vendors and leave `host-script` out of `outputs`",
    )


def test_hosts_that_a_script_cannot_tell_apart_are_refused() -> None:
    message = "lock `trainer` has several ways to set up debian 12 on linux/amd64, which a script cannot tell apart"
    assert refusal(with_setups(ON_HOST, DEBIAN, replace(DEBIAN, driver_module="proprietary"))).message == message


def test_linux_and_macos_are_not_one_script() -> None:
    both = lock_of(replace(cuda_stack(), host_setups=(DEBIAN,)), replace(cpu_stack("macos/x86_64"), host_setups=(MAC,)))
    message = "lock `trainer` is for linux/amd64, macos/x86_64: a host script is for Linux or for macOS"
    assert refusal(both).message == message


def test_two_builds_of_macos_are_not_one_script() -> None:
    lock = with_setups(ON_MAC, MAC, replace(MAC, os="macos 10.13.6+17G14042"))
    assert refusal(lock).message == "lock `trainer` is for several builds of macOS, and a Web Driver is for one"


def test_nothing_of_the_lock_can_leave_its_quotes() -> None:
    name = "pylock.'; rm -rf /; '.toml"
    text = render(LOCKS["debian-12"], "host-script", lock_file_name=name)
    assert "lock='pylock.'\\''; rm -rf /; '\\''.toml'\n" in text


def test_the_drivers_of_a_distribution_are_kept_from_those_of_the_toolkits_repository() -> None:
    text = render(LOCKS["ubuntu-22.04"], "host-script")
    assert "'Package: nvidia-* libnvidia-*' 'Pin: origin developer.download.nvidia.com' 'Pin-Priority: -1'" in text
    assert "Pin-Priority: -1" not in render(with_setups(ON_HOST, DEBIAN), "host-script")


def programs(folder: Path, **texts: str) -> dict[str, str]:
    """An environment whose PATH begins with these programs, written as shell."""
    for name, text in texts.items():
        path = folder / name.replace("_", "-")
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


def run(lock: Lock, folder: Path, environment: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "host.sh").write_text(render(lock, "host-script"), encoding="utf-8")
    command = ["sh", "host.sh", *options]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_an_unknown_option_is_a_wrong_use(tmp_path: Path) -> None:
    for name in ("debian-12", "macos"):
        finished = run(LOCKS[name], tmp_path, dict(os.environ), "--now")
        assert (finished.returncode, finished.stderr) == (2, "usage: sh host.sh [--dry-run]\n")


def test_another_processor_is_refused(tmp_path: Path) -> None:
    environment = programs(tmp_path, uname="echo riscv64")
    finished = run(with_setups(ON_HOST, UBUNTU_TO_COMPILE), tmp_path, environment, "--dry-run")
    assert finished.returncode == 78
    assert re.fullmatch(
        r"pylock\.trainer\.toml: it is for ubuntu 22\.04 on x86_64; this host runs .* on riscv64\n", finished.stderr
    )


def test_the_targets_of_gpus_of_amd_are_read_from_the_kernel(tmp_path: Path) -> None:
    """A host of containers has no rocminfo, without which the script said that its GPUs were not compared, and then yes."""
    for number, version in enumerate((0, 90010, 90402, 90402, 110001, 100306)):
        (tmp_path / f"nodes/{number}").mkdir(parents=True)
        (tmp_path / f"nodes/{number}/properties").write_text(f"simd_count 4\ngfx_target_version {version}\n")
    text = render(LOCKS["amd-ubuntu"], "host-script")
    function = text[text.index("amd_targets() {") :].partition("\n}\n")[0]
    shell = f"set -euf\n{function.replace('/sys/class/kfd/kfd/topology', str(tmp_path))}\n}}\namd_targets"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["gfx1036", "gfx1101", "gfx90a", "gfx942"]
    assert "rocminfo" not in text


MAC_PROGRAMS = {
    "uname": "echo Darwin",
    "sw_vers": 'case $1 in -productVersion) echo 10.13.6 ;; *) echo "${BUILD-17G65}" ;; esac',
    "csrutil": "echo 'System Integrity Protection status: enabled.'",
    "nvram": "exit 1",
    "pkgutil": "echo 'version: 10.1.0.0.1.1539992718'",
    "shasum": f'echo "{"8" * 64}  $3"',
    "python": 'echo "${TORCH-}"; [ -n "${TORCH-}" ]',
}


def mac_programs(folder: Path) -> dict[str, str]:
    environment = programs(folder, **MAC_PROGRAMS)
    (folder / "sw-vers").rename(folder / "sw_vers")
    return environment


def test_a_mac_is_told_what_is_left_to_do_step_by_step(tmp_path: Path) -> None:
    (tmp_path / "cudnn-10.1-osx-x64-v7.6.5.32.tgz").write_text("archive")
    finished = run(LOCKS["macos"], tmp_path, mac_programs(tmp_path))
    assert (finished.returncode, finished.stderr) == (3, "")
    lines = [line for line in finished.stdout.splitlines() if not line.startswith(" ")]
    assert lines == [
        "ok: macOS 10.13.6 (17G65)",
        "ok: System Integrity Protection is on, with which NVIDIA's signed drivers load",
        "TO DO: install the Web Driver 387.10.10.10.40.105, which is for this build (found: none), and restart",
        "TO DO: install the CUDA driver 418.163 beside the Web Driver (found: none), and restart",
        "ok: Xcode none, command line tools 10.1.0.0.1.1539992718",
        "TO DO: install the CUDA toolkit 10.2.89, without the driver of its package: the one above is newer",
        "TO DO: unpack cuDNN 7.6.5.32 into the toolkit",
        "every shell in which programs run needs, in ~/.bash_profile:",
        "TO DO: compile pytorch 1.7.0, which nobody publishes with CUDA for macOS (found: none)",
        "then run this script again: it goes on where this run found something to do",
    ]
    assert "    cudnn-10.1-osx-x64-v7.6.5.32.tgz is here, and has the right SHA-256\n" in finished.stdout
    assert "    export TORCH_CUDA_ARCH_LIST=6.1\n" in finished.stdout


def test_a_mac_of_another_build_is_refused_because_the_web_driver_is_for_one(tmp_path: Path) -> None:
    finished = run(LOCKS["macos"], tmp_path, {**mac_programs(tmp_path), "BUILD": "17G14042"})
    assert finished.returncode == 78
    assert finished.stderr == (
        "pylock.trainer.toml: it is for macOS 10.13.6 (17G65); this Mac has 10.13.6 (17G14042): state that build under "
        "target.host and solve again\n"
    )


@pytest.mark.parametrize(
    ("torch", "told"),
    [
        ("1.7.0a0 10.2", "ok: pytorch 1.7.0a0 10.2"),
        ("1.7.0 None", "TO DO: compile pytorch 1.7.0, which nobody publishes with CUDA for macOS (found: 1.7.0 None)"),
        ("2.2.2 None", "TO DO: another pytorch is installed than 1.7.0: 2.2.2 None"),
    ],
)
def test_a_mac_is_told_which_pytorch_it_has(torch: str, told: str, tmp_path: Path) -> None:
    finished = run(LOCKS["macos"], tmp_path, {**mac_programs(tmp_path), "TORCH": torch})
    assert told in finished.stdout.splitlines()


def test_a_lock_for_a_system_without_gpus_of_a_vendor_has_no_driver_check() -> None:
    assert "nvidia-smi" not in render(with_setups(ON_HOST, AMD), "host-script").partition("use_apt")[2]
