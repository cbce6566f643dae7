"""The script that sets up a host of Debian, solved from the shipped matrix and run with apt-get against Debian's own archive.

apt-get only simulates what it would install: that every package exists, goes with the others and is of the branch is what is
tried. `uname` is a stand-in for the newest kernel of the release.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.container.conftest import BASE_TAG, SUITE_OF_TOOLS, unavailable
from tests.container.test_host_script import Host

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.docker, pytest.mark.network]

SPEC = """\
name: trainer
target:
  platform: linux/amd64
  host:
    os: {{id: debian, version: "{release}"}}
    kernel: {kernel}
    gpus: [{{name: Tesla V100-SXM2-16GB, compute_capability: "7.0"}}]
requires: {{pytorch: "2.5.*", python: "3.12", driver: "{branch}.*"}}
runs: host
outputs: [host-script]
"""
SIMULATE = 'APT::Get::Simulate "true";\n'


@contextmanager
def machine(image: str) -> Iterator[Host]:
    command = ["docker", "run", "--detach", "--rm", "--network=host", image, "sleep", "600"]
    name = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    yield Host(name)
    subprocess.run(["docker", "rm", "--force", name], capture_output=True, check=True)


@pytest.mark.usefixtures("base_image", "tools_image")
@pytest.mark.parametrize(("release", "branch"), [("12", "535"), ("13", "550")])
def test_the_driver_of_debian_is_what_its_archive_has(tmp_path: Path, release: str, branch: str) -> None:
    with machine({"12": BASE_TAG, "13": SUITE_OF_TOOLS}[release]) as host:
        read = host.run("sh", "-c", "apt-get update && apt-cache depends linux-headers-amd64")
        if read.returncode != 0:
            unavailable(f"Debian's archive cannot be read: {read.stderr.strip()[-300:]}")
        kernel = read.stdout.rpartition("Depends: linux-headers-")[2].split()[0]
        (tmp_path / "provision.yaml").write_text(SPEC.format(release=release, kernel=kernel, branch=branch))
        solve = [sys.executable, "-m", "provisioner", "solve", "--stack-only"]
        subprocess.run(solve, cwd=tmp_path, check=True, capture_output=True)
        # What cannot be reached from here may have a mirror, which the image was made from.
        mirror = host.run("awk", "/^deb/ { print $2; exit }", "/etc/apt/sources.list").stdout.strip()
        script = (tmp_path / "host.sh").read_text()
        assert "'http://deb.debian.org/debian " in script
        host.write("/root/host.sh", script.replace("http://deb.debian.org/debian", mirror))
        host.write("/usr/local/bin/uname", f"#!/bin/sh\ncase $1 in -r) echo {kernel} ;; *) echo x86_64 ;; esac\n")
        host.write("/root/apt.conf", SIMULATE)
        done = host.run("env", "APT_CONFIG=/root/apt.conf", "sh", "/root/host.sh")
    assert done.returncode == 3, done.stdout + done.stderr
    chosen = {line.split()[1]: line.split("(")[1].split()[0] for line in done.stdout.splitlines() if line.startswith("Inst ")}
    assert f"linux-headers-{kernel}" in chosen
    names = ("nvidia-kernel-dkms", "nvidia-smi", "libcuda1")
    assert [chosen[name].partition(".")[0] for name in names] == [branch] * 3
