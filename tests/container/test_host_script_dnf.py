"""The script that sets up a host of RHEL's family, run with the real dnf and rpm, which Debian has, too.

The repository is made in the container, with the names, epochs and module streams of NVIDIA's; its packages hold nothing.
`curl` writes the file of the repository, in place of NVIDIA's.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.container.siblings import TOOLS
from tests.container.test_host_script import Host, commands
from tests.host_setups import ON_HOST, ROCKY, ROCKY_10
from tests.lock_examples import with_setups

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.docker

BRANCHES = ("575.57.08", "580.65.06", "580.95.05", "590.48.01")
OF_DRIVER = ("nvidia-driver-cuda", "kmod-nvidia-latest-dkms", "kmod-nvidia-open-dkms", "nvidia-persistenced")
OTHERS = ("kernel-devel-matched", "kernel-headers", "epel-release", "python3-dnf-plugin-versionlock", "cuda-toolkit-12-6")
SHELF = r"""
import subprocess, sys
release, *packages = sys.argv[1:]
streams = {}
for package in packages:
    name, epoch, version = package.split("=")
    head = f"Name: {name}\nEpoch: {epoch}\nVersion: {version}\nRelease: 1.{release}\n"
    head += "Summary: none\nLicense: none\nBuildArch: noarch\n"
    # A driver and its modules are of one version, as in NVIDIA's repository.
    needs = f"Requires: nvidia-driver-cuda = {epoch}:{version}\n" if name.startswith("kmod-") else ""
    open("/package.spec", "w").write(f"{head}{needs}%description\nnone\n%files\n")
    subprocess.run(["rpmbuild", "-bb", "--quiet", "--define", "_rpmdir /shelf", "/package.spec"], check=True)
    if epoch == "3":
        streams.setdefault(version.partition(".")[0], []).append(f"{name}-{epoch}:{version}-1.{release}.noarch")
subprocess.run(["createrepo_c", "--quiet", "/shelf"], check=True)
head = "document: modulemd\nversion: 2\ndata:\n  name: nvidia-driver\n  version: 1\n  context: c0ffee\n  arch: x86_64\n"
head += "  summary: driver\n  description: driver\n  license: {module: [MIT]}\n"
if release == "el9":
    with open("/modules.yaml", "w") as modules:
        for branch, names in streams.items():
            listed = "".join(f"      - {name}\n" for name in names)
            modules.write(f"---\n{head}  stream: {branch}-dkms\n  artifacts:\n    rpms:\n{listed}...\n")
    add = ["modifyrepo_c", "--mdtype=modules", "/modules.yaml", "/shelf/repodata"]
    subprocess.run(add, check=True, stdout=subprocess.DEVNULL)
"""
REPOSITORY = "[{name}]\nname={name}\nbaseurl=file:///shelf\nenabled=1\ngpgcheck=0\n"
CURL = f"""\
#!/bin/sh
while [ "$1" != --output ]; do shift; done
cat >"$2" <<'END'
{REPOSITORY.format(name="cuda")}END
"""


@pytest.fixture
def machine(tools_image: None) -> Iterator[Host]:
    command = ["docker", "run", "--detach", "--rm", "--network=none", TOOLS, "sleep", "600"]
    name = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    yield Host(name)
    subprocess.run(["docker", "rm", "--force", name], capture_output=True, check=True)


def of_release(machine: Host, release: str) -> Host:
    packages = (*(f"{name}=0=1.0" for name in OTHERS), *(f"{name}=3={one}" for one in BRANCHES for name in OF_DRIVER))
    made = machine.run("python3", "-c", SHELF, f"el{release}", *packages)
    assert made.returncode == 0, made.stderr
    machine.write("/etc/os-release", f'ID="rocky"\nVERSION_ID="{release}.1"\n')
    machine.write("/etc/dnf/vars/releasever", f"{release}\n")
    machine.write("/etc/dnf/dnf.conf", f"[main]\ngpgcheck=0\nmodule_platform_id=platform:el{release}\n")
    machine.write("/etc/dnf/plugins/local.conf", "[main]\nenabled = false\n")
    machine.write("/etc/yum.repos.d/system.repo", REPOSITORY.format(name="system"))
    machine.write("/usr/local/bin/curl", CURL)
    return machine


def installed(machine: Host) -> list[str]:
    found = machine.run("rpm", "--query", "--all", "--queryformat", "%{NAME} %{VERSION}\n", "*nvidia*").stdout
    return sorted(found.splitlines())


def test_release_9_gets_the_stream_of_the_branch_also_from_a_newer_one(machine: Host) -> None:
    host, lock = of_release(machine, "9"), with_setups(ON_HOST, ROCKY)
    wanted = ["kmod-nvidia-latest-dkms 580.95.05", "nvidia-driver-cuda 580.95.05"]
    first = host.set_up(lock)
    assert first.returncode == 1, first.stdout + first.stderr  # nobody made an nvcc
    assert installed(host) == wanted
    assert "stream=580-dkms\n" in host.run("cat", "/etc/dnf/modules.d/nvidia-driver.module").stdout
    assert commands(host.set_up(lock).stdout) == []
    assert host.run("dnf", "module", "reset", "--assumeyes", "nvidia-driver").returncode == 0
    done = host.run("dnf", "module", "enable", "--assumeyes", "nvidia-driver:590-dkms")
    assert done.returncode == 0, done.stderr
    assert host.run("dnf", "upgrade", "--assumeyes", "nvidia-driver-cuda").returncode == 0
    assert installed(host) == [one.replace("580.95.05", "590.48.01") for one in wanted]
    again = host.set_up(lock)
    assert installed(host) == wanted, again.stdout + again.stderr


def test_release_10_is_locked_to_the_branch_also_from_a_newer_one(machine: Host) -> None:
    host, lock = of_release(machine, "10"), with_setups(ON_HOST, ROCKY_10)
    wanted = ["kmod-nvidia-open-dkms 580.95.05", "nvidia-driver-cuda 580.95.05"]
    assert host.run("dnf", "versionlock", "add", "*nvidia*575*", "kernel-headers").returncode == 0
    first = host.set_up(lock)
    assert first.returncode == 3, first.stdout + first.stderr
    assert installed(host) == wanted
    locked = host.run("dnf", "--quiet", "versionlock", "list").stdout
    assert "kernel-headers-0:1.0-1.el10.*" in locked
    assert "-3:580.95.05-1.el10.*" in locked
    assert "575" not in locked
    assert commands(host.set_up(lock).stdout) == []
    assert host.run("dnf", "versionlock", "clear").returncode == 0
    assert host.run("dnf", "upgrade", "--assumeyes").returncode == 0
    assert installed(host) == [one.replace("580.95.05", "590.48.01") for one in wanted]
    again = host.set_up(lock)
    assert (again.returncode, installed(host)) == (3, wanted), again.stdout + again.stderr
