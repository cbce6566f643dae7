"""A lock for linux/arm64, from its spec to a validated image, on a machine of another architecture that emulates that one."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provisioner.validate.engine import BuildRequest
from tests.container.conftest import unavailable

if TYPE_CHECKING:
    from provisioner.validate.docker_engine import DockerEngine

pytestmark = [pytest.mark.docker, pytest.mark.network]

BASE = "provision-test/debian-arm64:bookworm"
EMULATOR = Path("/proc/sys/fs/binfmt_misc/qemu-aarch64")
SPEC = """\
name: emulated
target:
  platform: linux/arm64
accelerator: cpu
requires:
  python: "==3.11.*"
packages: [markupsafe]
image: {base: "provision-test/debian-arm64:bookworm", distribution: "debian:12", python: "3.11"}
outputs: [dockerfile]
"""


@pytest.fixture(scope="module")
def foreign_base(engine: DockerEngine, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Debian for arm64 with Python, from packages that are unpacked and not configured, so nothing is emulated for it."""
    if platform.machine() == "x86_64" and not EMULATOR.exists():
        unavailable("this machine does not emulate arm64; run .ci/engine.sh start")
    if engine.inspect(BASE) is None:
        context = tmp_path_factory.mktemp("arm64")
        script = Path(__file__).with_name("debian_root.sh")
        made = subprocess.run([script, "bookworm", "arm64", context / "root.tar"], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            unavailable(f"the arm64 base image cannot be made: {made.stderr.strip()[-300:]}")
        # Not `docker import`, which gives images the platform of the engine before Docker 23.
        dockerfile = context / "Dockerfile"
        dockerfile.write_text('FROM scratch\nADD root.tar /\nCMD ["python3"]\n', encoding="utf-8")
        engine.build(BuildRequest(context=context, dockerfile=dockerfile, tag=BASE, platform="linux/arm64"), lambda _: None)
    return BASE


def test_an_image_for_arm64_builds_and_is_as_locked_under_emulation(foreign_base: str, tmp_path: Path) -> None:
    (tmp_path / "provision.yaml").write_text(SPEC, encoding="utf-8")
    run(tmp_path, "solve")
    options = ("--platform", "linux/arm64", "--build-network", "host", "--format", "json")
    (report,) = json.loads(run(tmp_path, "validate", "pylock.emulated.toml", *options))["reports"]
    measured = {field["name"]: (field["measured"], field["verdict"]) for field in report["fields"]}
    assert measured["image platform"] == ("linux/arm64", "yes")
    assert measured["architecture"] == ("arm64", "yes")
    assert measured["packages"] == ("1 as locked", "yes")
    assert measured["markupsafe"][1] == "yes"
    assert (report["platform"], report["level"], report["verdict"]) == ("linux/arm64", 3, "yes")
    if platform.machine() == "x86_64":
        (architecture,) = (field for field in report["fields"] if field["name"] == "architecture")
        assert architecture["note"] == "emulated on linux/amd64"


def run(folder: Path, *words: str) -> str:
    """Run the program, as a process of its own, in a folder; returns what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "provisioner", *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
