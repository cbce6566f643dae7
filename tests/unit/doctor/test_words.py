"""What is told of faults and remedies that no machine of tests/doctor has, and the commands of each package manager."""

from __future__ import annotations

import pytest

from provisioner.doctor.commands import command, configured_engine, driver_command, of_fact
from provisioner.grounds import fault as of
from provisioner.grounds.edit import SetFact
from provisioner.grounds.fault import Act, Difference, Fault
from provisioner.host.model import Host, OperatingSystem
from provisioner.words.fault import act_words, fault_words

UBUNTU = Host(os=OperatingSystem(id="ubuntu", version="24.04"), kernel="6.8.0-60-generic")
MINT = Host(os=OperatingSystem(id="linuxmint", version="22", like="ubuntu 24.04"), kernel="6.8.0-60-generic")
ROCKY = Host(os=OperatingSystem(id="rocky", version="9.4"), kernel="5.14.0-427.el9.x86_64")
ARCH = Host(os=OperatingSystem(id="arch"), kernel="6.12.1-arch1-1")
CONTAINER = Host(os=OperatingSystem(id="ubuntu", version="24.04"), virtualization="container")


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (
            of.ForbiddenDevices(layer="driver", files=("/dev/kfd", "/dev/dri"), groups=("render",)),
            "this user may not open /dev/kfd and /dev/dri; only render may",
        ),
        (of.ForbiddenDevices(layer="driver", files=("/dev/kfd",), groups=()), "this user may not open /dev/kfd; only root may"),
        (
            of.OtherPython(layer="python", locked="3.12", installed="3.11.9"),
            "the environment has Python 3.11.9, the lock is for 3.12",
        ),
        (
            of.NotAsLocked(
                layer="packages",
                count=52,
                differences=tuple(Difference(name=f"p{n}", needed="2", installed="1") for n in range(5)),
            ),
            "5 of 52 locked packages not as locked: p0 2 (1), p1 2 (1), p2 2 (1) and 2 more",
        ),
    ],
)
def test_a_fault_is_one_sentence(fault: Fault, text: str) -> None:
    assert fault_words(fault) == text


@pytest.mark.parametrize(
    ("act", "host", "text"),
    [
        (of.JoinGroups(("render", "video")), UBUNTU, 'sudo usermod -aG render,video "$USER"'),
        (of.JoinGroups(()), UBUNTU, ""),
        (of.InstallLock("pylock.a.toml"), UBUNTU, "uv pip install -r pylock.a.toml"),
        (of.InstallLock("pylock.a.toml", "3.12"), UBUNTU, "uv venv --python 3.12 && uv pip install -r pylock.a.toml"),
        (
            of.InstallToolkit(""),
            ROCKY,
            "sudo dnf install nvidia-container-toolkit && sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
        ),
        (of.InstallToolkit("docker"), ARCH, ""),
        (of.LoadModule("nvidia"), CONTAINER, ""),
        (
            of.BuildModule(kernel="5.14.0-427.el9.x86_64", needs_headers=True),
            ROCKY,
            (
                "sudo dnf install kernel-devel-5.14.0-427.el9.x86_64 && sudo dkms autoinstall -k 5.14.0-427.el9.x86_64"
                " && sudo modprobe nvidia"
            ),
        ),
        (
            of.SolveAnew("provision.yaml", ""),
            UBUNTU,
            "provision inspect > this.yaml && provision solve provision.yaml --host this.yaml",
        ),
        (of.SolveAnew("", "host.yaml"), UBUNTU, ""),
    ],
)
def test_a_command_is_that_of_the_machine_or_none(act: Act, host: Host, text: str) -> None:
    assert command(act, host) == text
    assert act_words(act)


@pytest.mark.parametrize(
    ("name", "host", "text"),
    [
        ("kernel_headers", MINT, "sudo apt install linux-headers-6.8.0-60-generic"),
        ("kernel_headers", ARCH, ""),
        ("secure_boot", UBUNTU, "sudo mokutil --import /var/lib/shim-signed/mok/MOK.der && sudo reboot"),
        ("secure_boot", ROCKY, ""),
        ("secure_boot", CONTAINER, ""),
        ("loaded_modules", ARCH, ""),
    ],
)
def test_a_fact_is_changed_by_the_command_of_the_distribution(name: str, host: Host, text: str) -> None:
    assert of_fact(SetFact(name=name, host="this machine", value="x", today="nouveau"), host) == text


def test_a_driver_is_installed_by_a_command_on_ubuntu_alone() -> None:
    chosen = {"driver": "580.95.05", "driver_module": "open"}
    assert driver_command(chosen, UBUNTU) == "sudo ubuntu-drivers install nvidia:580-open && sudo reboot"
    assert driver_command(chosen, ROCKY) == ""
    assert driver_command({}, UBUNTU) == ""


def test_the_engine_to_configure_is_one_that_is_there() -> None:
    assert configured_engine(("podman", "containerd")) == "containerd"
    assert configured_engine(("podman",)) == ""
    assert configured_engine(()) == "docker"
