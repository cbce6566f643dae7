"""The shell commands that carry out remedies, for the package manager of the machine.

Sources: ubuntu-drivers(1) and "NVIDIA drivers installation" of the Ubuntu Server documentation; dkms(8); mokutil(1);
https://github.com/CachyOS/copr-linux-cachyos/issues/101 for the key of akmods;
nvidia-smi(1); nvidia-ctk(1) and "Installing the NVIDIA Container Toolkit"; `wsl --help`; "Prerequisites" of AMD's ROCm
installation guide for the groups; `uv pip install --help`.
"""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from provisioner.grounds import fault as of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provisioner.grounds.edit import SetFact
    from provisioner.grounds.fault import Act
    from provisioner.host.model import Host
    from provisioner.host.remark import Builder

_APT = frozenset({"ubuntu", "debian"})
_DNF = frozenset({"rhel", "rocky", "almalinux", "centos", "fedora", "ol", "amzn", "redhat"})
_ZYPPER = frozenset({"sles", "opensuse", "opensuse-leap"})

_CONFIGURED = ("docker", "containerd", "crio")
"""Container engines that `nvidia-ctk runtime configure` configures; Podman takes CDI specifications."""

_MOK = {"ubuntu": "/var/lib/shim-signed/mok/MOK.der", "debian": "/var/lib/dkms/mok.pub"}
_MOK_OF_AKMODS = "/etc/pki/akmods/certs/public_key.der"


_OF_THE_HOST = (of.LoadModule, of.BuildModule, of.EnrolKey, of.MakeDevices, of.ProvideDevices, of.InstallToolkit, of.WriteCdi)
"""What is done on the host of a container, and never in the container."""


def family(host: Host) -> str:
    """Return the package manager of a host: `apt`, `dnf` or `zypper`; "" if it is unknown."""
    if host.os is None:
        return ""
    names = {host.os.id, (host.os.like or "").partition(" ")[0]}
    return next((tool for tool, known in (("apt", _APT), ("dnf", _DNF), ("zypper", _ZYPPER)) if names & known), "")


def configured_engine(engines: Sequence[str]) -> str:
    """Return the container engine to configure for the toolkit: Docker where nothing is known, "" for one that takes CDI."""
    return next((name for name in _CONFIGURED if name in engines), "" if "podman" in engines else "docker")


def command(act: Act, host: Host) -> str:
    """Return the command that carries out a remedy on a host; "" if no single command does."""
    if host.virtualization == "container" and isinstance(act, _OF_THE_HOST):
        return ""
    tool = family(host)
    match act:
        case of.LoadModule(name=name):
            return f"sudo modprobe {name}"
        case of.BuildModule(kernel=kernel, needs_headers=needs_headers):
            headers = _headers(kernel, tool) if needs_headers else ""
            return " && ".join(part for part in (headers, f"sudo dkms autoinstall -k {kernel}", "sudo modprobe nvidia") if part)
        case of.EnrolKey(builder=builder):
            return _enrol(host, builder)
        case of.WriteCdi(file=file):
            return f"sudo nvidia-ctk cdi generate --output={file}"
        case of.InstallToolkit(engine=engine):
            return _toolkit(engine, tool)
        case of.JoinGroups(groups=groups):
            return f'sudo usermod -aG {",".join(groups)} "$USER"' if groups else ""
    return _device(act, tool) or _installation(act)


def _device(act: Act, tool: str) -> str:
    """Return the command of a remedy that provides device files, or the driver of Windows in WSL; "" for others."""
    match act:
        case of.MakeDevices() if tool:
            return f"sudo {tool} install nvidia-modprobe && sudo nvidia-modprobe -c 0 -u"
        case of.ProvideDevices(files=files) if "/dev/kfd" in files:
            return "sudo modprobe amdgpu"
        case of.RemovePackages(packages=packages) if packages:
            return f"sudo apt purge {' '.join(packages)}"
        case of.RestartWsl():
            return "wsl.exe --update && wsl.exe --shutdown"
        case of.UseWsl():
            return "wsl.exe --install"
    return ""


def _installation(act: Act) -> str:
    """Return the command of a remedy that installs distributions into the environment that is active; "" for others."""
    match act:
        case of.InstallBuild(requirement=requirement, index=index):
            return f"uv pip install {quote(requirement)}{f' --index {index}' if index else ''}"
        case of.InstallLock(file=file, python=python):
            return f"{f'uv venv --python {python} && ' if python else ''}uv pip install -r {file}"
        case of.SolveAnew(spec=spec, host=host) if spec:
            profile = host or "this.yaml"
            inspected = "" if host else f"provision inspect > {profile} && "
            return f"{inspected}provision solve {quote(spec)} --host {quote(profile)}"
        case of.InstallMissing(requirements=requirements):
            return f"uv pip install {' '.join(map(quote, requirements))}"
    return ""


def of_fact(edit: SetFact, host: Host, built_by: Builder | None = None) -> str:
    """Return the command that changes a fact of a host, whose modules `built_by` built; "" if no single command does."""
    if host.virtualization == "container":
        return ""
    tool = family(host)
    if edit.shown_by:
        return "sudo reboot"
    match edit.name:
        case "loaded_modules":
            module = edit.today.replace("-", "_")
            rebuild = {"apt": "sudo update-initramfs -u", "dnf": "sudo dracut --force", "zypper": "sudo dracut --force"}.get(
                tool
            )
            blacklist = f"echo blacklist {module} | sudo tee /etc/modprobe.d/blacklist-{module}.conf"
            return f"{blacklist} && {rebuild} && sudo reboot" if rebuild else ""
        case "secure_boot":
            return _enrol(host, built_by)
        case "mig":
            return "sudo nvidia-smi -mig 0"
        case "kernel_headers":
            return _headers(host.kernel or "", tool)
        case "container_toolkit":
            return _toolkit("docker", tool)
        case "fabric_manager":
            return _fabric_manager(edit.value, tool)
    return ""


def _enrol(host: Host, built_by: Builder | None) -> str:
    key = _MOK_OF_AKMODS if built_by == "akmods" else _MOK.get(host.os.id if host.os is not None else "", "")
    return f"sudo mokutil --import {key} && sudo reboot" if key else ""


def _fabric_manager(version: str, tool: str) -> str:
    """Return the command that installs and starts the Fabric Manager of a driver's branch; "" where no package is known."""
    if tool != "apt":
        return ""
    package = f"nvidia-fabricmanager-{version.partition('.')[0]}"
    return f"sudo apt install {package} && sudo systemctl enable --now nvidia-fabricmanager"


def driver_command(chosen: Mapping[str, str], host: Host) -> str:
    """Return the command that installs a driver of the chosen branch and flavour; "" where none is known.

    ubuntu-drivers takes modules that Ubuntu built and signed for the kernel where it has them.
    """
    branch = chosen.get("driver", "").partition(".")[0]
    if not branch or host.os is None or host.os.id != "ubuntu" or host.virtualization in {"wsl1", "wsl2", "container"}:
        return ""
    return (
        f"sudo ubuntu-drivers install nvidia:{branch}{'-open' if chosen.get('driver_module') == 'open' else ''} && sudo reboot"
    )


def _headers(kernel: str, tool: str) -> str:
    packages = {"apt": f"linux-headers-{kernel}", "dnf": f"kernel-devel-{kernel}"}
    return f"sudo {tool} install {packages[tool]}" if kernel and tool in packages else ""


def _toolkit(engine: str, tool: str) -> str:
    parts = [f"sudo {tool} install nvidia-container-toolkit" if tool else ""]
    if engine:
        parts += [f"sudo nvidia-ctk runtime configure --runtime={engine}", f"sudo systemctl restart {engine}"]
    else:
        parts.append("sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml")
    return " && ".join(part for part in parts if part) if tool else ""
