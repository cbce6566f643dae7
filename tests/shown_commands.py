"""The command lines that documents and `--help` show, and the folder in which each of them can be run.

The folder holds what a line names and no more, since `check` looks at everything that is there. The index is one on loopback;
`dmesg`, `kubectl` and `scontrol` are stand-ins.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.project import IMAGE, LOCK, UV_TAG

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.loopback_index import LoopbackIndex

ROOT = Path(__file__).parent.parent
SLURM_NODES = ROOT / "tests/fixtures/slurm/nodes.txt"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)

SPEC = """\
name: trainer
target: {host: hosts/h100.yaml}
requires:
  python: "==3.12"
  pytorch: ">=2.6"
packages: [numpy, transformers]
indexes:
  - {name: local, url: "INDEX/simple"}
image: {base: "IMAGE"}
"""
HOST_SPEC = """\
name: host
target:
  host:
    platform: linux/amd64
    os: {id: ubuntu, version: "22.04"}
    kernel: 6.8.0-60-generic
    gpus: [{name: NVIDIA H100 80GB HBM3, compute_capability: "9.0", count: 1}]
requires: {driver: "==580.*"}
runs: host
outputs: [host-script]
"""
PROJECT = '[project]\nname = "trainer"\nversion = "1.0"\ndependencies = ["numpy"]\n\n[tool.provision]\naccelerator = "cpu"\n'
LOG = "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"


def shown_in(page: str) -> list[str]:
    """Return the command lines of a page of Markdown, each with the lines that continue it."""
    lines = [line for block in BLOCK.findall(page) for line in block.replace("\\\n", "").splitlines()]
    return [re.sub(r"\s+# .*$", "", line.removeprefix("$ ")).strip() for line in lines if line.startswith("$ ")]


class Workplace:
    """An index on loopback, programs that stand in for others, and two locks that were really solved."""

    def __init__(self, folder: Path, index: LoopbackIndex) -> None:
        self.folder = folder
        self.index = index
        self._fill_index()
        self.programs = folder / "bin"
        self._write_programs()
        self.trainer, self.serving = self._solved("trainer"), self._solved("serving")

    def folder_for(self, line: str) -> Path:
        """Return a new folder with what a command line needs."""
        place = self.folder / f"place{len(list(self.folder.iterdir()))}"
        shutil.copytree(self.trainer, place)
        if line.startswith(("provision init", "provision solve pyproject.toml", "provision solve requirements.txt")):
            for name in ("provision.yaml", LOCK, "Dockerfile"):
                (place / name).unlink()
        if "trainer.yaml" in line and (place / "provision.yaml").exists():
            (place / "provision.yaml").rename(place / "trainer.yaml")
        for name, put in self._named().items():
            if re.search(rf"(?<![\w./-])(?<!--out ){re.escape(name)}", line):
                put(place)
        return place

    def run(self, line: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run a command line as a shell does, where `provision` is the program of this checkout."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")} | {
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.folder),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": self.index.url,
            "NETRC": os.devnull,
        }
        # Not one command alone: bash would be replaced by it, and completion asks which shell started the program.
        command = ["bash", "-o", "pipefail", "-c", f"{line}\nexit $?"]
        return subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )

    def _fill_index(self) -> None:
        self.index.add_wheel("uv", "0.9.11", tag=UV_TAG, upload_time="2025-11-20T10:00:00Z")
        for version in ("2.6.0", "2.7.1"):
            self.index.add_wheel("torch", version, tag="cp312-cp312-manylinux_2_28_x86_64", upload_time="2026-02-01T00:00:00Z")
        self.index.add_wheel("numpy", "2.2.0", upload_time="2026-02-01T00:00:00Z")
        self.index.add_wheel("transformers", "4.50.0", requires=["numpy>=2"], upload_time="2026-02-01T00:00:00Z")
        self.index.add_wheel("vllm", "0.8.5", requires=["torch", "transformers"], upload_time="2026-02-01T00:00:00Z")

    def _write_programs(self) -> None:
        self.programs.mkdir()
        texts = {
            "provision": f'exec {sys.executable} -m provisioner "$@"',
            "kubectl": f"cat {ROOT / 'tests/fixtures/nodes/cluster.json'}",
            "scontrol": f"cat {SLURM_NODES}",
            "dmesg": "echo 'NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.'",
        }
        for name, text in texts.items():
            path = self.programs / name
            path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
            path.chmod(0o755)

    def _solved(self, name: str) -> Path:
        """Return a folder with a spec of this name, its lock and its outputs."""
        place = self.folder / name
        spec = SPEC.replace("trainer", name).replace("INDEX", self.index.root).replace("IMAGE", IMAGE)
        _write(place / "provision.yaml", spec)
        for host in ("a100.yaml", "h100.yaml"):
            _copy(ROOT / "examples/hosts" / host, place / "hosts" / host)
        done = self.run("provision solve", place)
        assert done.returncode == 0, done.stderr
        return place

    def _named(self) -> Mapping[str, Callable[[Path], object]]:
        """Return how to put what a command line may name, by its name."""
        imports, nodes = ROOT / "tests/fixtures/imports", ROOT / "tests/fixtures/nodes/cluster.json"
        cluster = json.loads(nodes.read_text(encoding="utf-8"))
        cluster["items"] = cluster["items"][:1]
        cluster["items"][0]["metadata"]["name"] = "gpu-7"
        logs = ("build.log", "pod.log", "train.log", "dmesg.txt")
        return {
            **{name: partial(_write_log, name) for name in logs},
            "examples/": lambda place: shutil.copytree(ROOT / "examples", place / "examples"),
            "dockerfiles/": lambda place: shutil.copytree(ROOT / "dockerfiles", place / "dockerfiles"),
            "environments/": lambda place: shutil.copytree(self.serving, place / "environments/serving"),
            "envs/v7/": lambda place: shutil.copytree(ROOT / "dockerfiles/onnx-cpu", place / "envs/v7"),
            "my-matrices": lambda place: shutil.copytree(ROOT / "matrices", place / "my-matrices"),
            "host.yaml": lambda place: _write(place / "host.yaml", HOST_SPEC),
            ".venv/": lambda place: (place / ".venv").symlink_to(sys.prefix),
            "a100.yaml": lambda place: _copy(ROOT / "examples/hosts/a100.yaml", place / "a100.yaml"),
            "pyproject.toml": lambda place: _write(place / "pyproject.toml", PROJECT),
            "requirements.txt": lambda place: _write(place / "requirements.txt", "numpy\n"),
            "environment.yml": lambda place: _copy(imports / "together/environment.yml", place / "environment.yml"),
            "--from Dockerfile": lambda place: _copy(imports / "together/Dockerfile", place / "Dockerfile"),
            "cog.yaml": lambda place: _copy(imports / "cog/cog.yaml", place / "cog.yaml"),
            "nodes.json": lambda place: _write(place / "nodes.json", json.dumps(cluster)),
            "nvidia-smi.xml": lambda place: _copy(
                ROOT / "tests/fixtures/smi/driver-590-two-gpus.xml", place / "nvidia-smi.xml"
            ),
            "nodes.txt": lambda place: _copy(SLURM_NODES, place / "nodes.txt"),
            "machines.csv": lambda place: _copy(ROOT / "examples/fleet/machines.csv", place / "machines.csv"),
            "old.toml": lambda place: _copy(place / LOCK, place / "old.toml"),
            "next/": lambda place: _copy(place / LOCK, place / "next" / LOCK),
            "git show main:": self._commit,
        }

    def _commit(self, place: Path) -> None:
        author = "-c user.name=a -c user.email=a@example.org"
        done = self.run(f"git init -q -b main && git add . && git {author} commit -q -m first", place)
        assert done.returncode == 0, done.stderr


def _write_log(name: str, place: Path) -> None:
    _write(place / name, LOG)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _copy(source: Path, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, path)
