"""The three resolvers of the comparison, asked in the same words: provision, uv and pip."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from requirement_sets import RequirementSet

REFUSED = 1
"""The exit code of all three tools for a set that has no solution."""

UNFINISHED = 124
"""The code of an answer that did not come in time, as `timeout` reports it."""

NEWEST_PATCH = {"3.11": "3.11.18", "3.12": "3.12.16", "3.13": "3.13.18", "3.14": "3.14.10"}
"""The release that an image of each series holds. Source: `uv python list` of uv 0.13.8, read 2026-11-21.

provision takes a series for its newest release. uv and pip would take `3.11` for 3.11.0, which nobody installs.
"""

_LINUX_HOST = """\
    os: {id: debian, version: "12"}
    kernel: 6.1.0-18-amd64
    glibc: "2.36"
    driver: {version: 580.95.05, module: open}
    gpus:
"""
_HOSTS = {
    "linux/amd64": ("cuda", f'{_LINUX_HOST}      - {{name: NVIDIA H100 80GB HBM3, compute_capability: "9.0", count: 8}}\n'),
    "linux/arm64": ("cuda", f'{_LINUX_HOST}      - {{name: NVIDIA GH200, compute_capability: "9.0"}}\n'),
    "macos/arm64": ("mps", '    os: {id: macos, version: "15.5"}\n'),
}
"""The accelerator and the machine of each platform, in provision's words."""

_SPEC = """\
name: comparison
target:
  platform: {platform}
  host:
    platform: {platform}
{host}accelerator: {accelerator}
requires:
  python: "{python}"
packages: {packages}
{constraints}runs: host
outputs: []
"""
_UV_PLATFORMS = {
    "linux/amd64": "x86_64-manylinux_2_36",
    "linux/arm64": "aarch64-manylinux_2_36",
    "macos/arm64": "aarch64-apple-darwin",
}
_MACHINES = {"linux/amd64": "x86_64", "linux/arm64": "aarch64", "macos/arm64": "arm64"}
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one tool said: versions by distribution, or None and why not. `code` is its exit code."""

    code: int
    pins: Mapping[str, str] | None
    words: str = ""


@dataclass(frozen=True, slots=True)
class Tools:
    """The programs, the environment they run in, and how many seconds each may take for one answer."""

    provision: str
    environment: Mapping[str, str]
    scratch: Path
    patience: Mapping[str, int]

    def ask(self, tool: str, request: RequirementSet, pins: Mapping[str, str]) -> Answer:
        """One tool's answer to a set, with further requirements (provision) or constraints (uv, pip) of these versions."""
        folder = self.scratch / "work" / tool
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        asked = {"provision": self._provision, "uv": self._uv, "pip": self._pip}[tool]
        try:
            return asked(request, pins, folder)
        except subprocess.TimeoutExpired:
            return Answer(UNFINISHED, None, f"no answer within {self.patience[tool]} s")

    def _provision(self, request: RequirementSet, pins: Mapping[str, str], folder: Path) -> Answer:
        accelerator, host = _HOSTS[request.platform]
        packages = [*request.requirements, *(f"{name}=={version}" for name, version in pins.items())]
        spec = folder / "provision.yaml"
        spec.write_text(
            _SPEC.format(
                platform=request.platform,
                host=host,
                accelerator=accelerator,
                python=request.python,
                packages=json.dumps(packages),
                constraints=f"constraints: {json.dumps(request.constraints)}\n" if request.constraints else "",
            ),
            encoding="utf-8",
        )
        result = self._run("provision", folder, self.provision, "solve", str(spec), "--format", "json")
        if result.returncode != 0:
            return _refusal(result, folder)
        found: dict[str, str] = json.loads(result.stdout)["packages"]
        return Answer(0, {name: _public(version, name) for name, version in found.items()})

    def _uv(self, request: RequirementSet, pins: Mapping[str, str], folder: Path) -> Answer:
        listed, bounds = _requirement_files(request, pins, folder)
        target = ["--python-version", NEWEST_PATCH[request.python], "--python-platform", _UV_PLATFORMS[request.platform]]
        policy = ["--only-binary", ":all:"]
        quiet = ["--no-header", "--no-annotate", "--no-config", "--quiet"]
        uv = str(Path(sys.executable).parent / "uv")
        result = self._run("uv", folder, uv, "pip", "compile", listed, "--constraint", bounds, *target, *policy, *quiet)
        if result.returncode != 0:
            return _refusal(result, folder)
        return Answer(0, dict(_PIN.findall(result.stdout)))

    def _pip(self, request: RequirementSet, pins: Mapping[str, str], folder: Path) -> Answer:
        listed, bounds = _requirement_files(request, pins, folder)
        markers, report = folder / "markers.json", folder / "report.json"
        markers.write_text(json.dumps(_markers(request)), encoding="utf-8")
        pip = [sys.executable, str(Path(__file__).parent / "pip_for_target.py"), str(markers), "install"]
        what = ["--dry-run", "--quiet", "--report", str(report), "--ignore-installed", "--only-binary", ":all:", "--target"]
        target = [str(folder / "nowhere"), "--implementation", "cp", "--python-version", NEWEST_PATCH[request.python]]
        for platform in _pip_platforms(request.platform):
            target += ["--platform", platform]
        result = self._run("pip", folder, *pip, "-r", listed, "-c", bounds, *what, *target)
        if result.returncode != 0:
            return _refusal(result, folder)
        installed = json.loads(report.read_text(encoding="utf-8"))["install"]
        return Answer(0, {_normalized(one["metadata"]["name"]): one["metadata"]["version"] for one in installed})

    def _run(self, tool: str, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=self.patience[tool],
        )


def tools(index: str, provision: str, scratch: Path, patience: Mapping[str, int]) -> Tools:
    """The three tools, with caches of their own below `scratch` and nothing of this machine's configuration."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))},
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_INDEX_URL": index,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "UV_DEFAULT_INDEX": index,
        "XDG_CACHE_HOME": str(scratch / "cache"),
        "UV_CACHE_DIR": str(scratch / "cache" / "uv"),
        "MACOSX_DEPLOYMENT_TARGET": "15.5",
        "NO_COLOR": "1",
    }
    return Tools(provision, environment, scratch, patience)


def _refusal(result: subprocess.CompletedProcess[str], folder: Path) -> Answer:
    """What a tool said in place of an answer, without the folder it was asked in, which is another in another checkout."""
    return Answer(result.returncode, None, result.stderr.strip().replace(f"{folder}/", ""))


def _requirement_files(request: RequirementSet, pins: Mapping[str, str], folder: Path) -> tuple[str, str]:
    listed, bounds = folder / "requirements.in", folder / "constraints.txt"
    listed.write_text("".join(f"{one}\n" for one in request.requirements), encoding="utf-8")
    bounds.write_text(
        "".join(f"{one}\n" for one in (*request.constraints, *(f"{name}=={version}" for name, version in pins.items()))),
        encoding="utf-8",
    )
    return str(listed), str(bounds)


def _markers(request: RequirementSet) -> dict[str, str]:
    """PEP 508's variables on the target."""
    is_linux = request.platform.startswith("linux/")
    return {
        "implementation_name": "cpython",
        "implementation_version": NEWEST_PATCH[request.python],
        "os_name": "posix",
        "platform_machine": _MACHINES[request.platform],
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux" if is_linux else "Darwin",
        "platform_version": "",
        "python_full_version": NEWEST_PATCH[request.python],
        "python_version": request.python,
        "sys_platform": "linux" if is_linux else "darwin",
    }


def _pip_platforms(platform: str) -> Sequence[str]:
    """Pip expands macOS's tags and manylinux2014; of the numbered ones it takes only those that it is given."""
    machine = _MACHINES[platform]
    if platform.startswith("macos/"):
        return [f"macosx_15_0_{machine}"]
    numbered = [f"manylinux_2_{minor}_{machine}" for minor in range(36, 4 if machine == "x86_64" else 16, -1)]
    return [*numbered, f"manylinux2014_{machine}", f"linux_{machine}"]


def _public(version: str, name: str) -> str:
    """The framework's release without its build: the default index, which uv is given, has one build of each release."""
    return version.partition("+")[0] if name == "torch" else version


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
