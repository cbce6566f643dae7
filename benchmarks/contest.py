"""What is compared: commands that do the same job, in the same directory, on the same index."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

REQUIREMENTS = {"torch": "torch==2.6.0", "vllm": "vllm==0.8.5"}
"""Package sets that resolve without building anything: 23 and 154 distributions when they were chosen."""

_SPEC = """\
name: {name}
target:
  platform: linux/amd64
  host:
    platform: linux/amd64
    os: {{id: ubuntu, version: "22.04"}}
    kernel: 6.5.0-1017-aws
    glibc: "2.35"
    driver: {{version: 570.133.20, module: open}}
    gpus:
      - {{name: NVIDIA H100 80GB HBM3, compute_capability: "9.0", count: 8}}
    container_toolkit: 1.17.4
requires:
  python: "3.11"
packages:
  - {requirement}
# On the host there is no base image, whose registry would be one more network in the measurement.
runs: host
outputs: []
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One way to do the job.

    `removes` are files and directories deleted before each run; `answer` is the file its result is counted in; `codes` are
    the exit codes of a run that did its job.
    """

    name: str
    command: tuple[str, ...]
    removes: tuple[Path, ...] = ()
    answer: Path | None = None
    codes: tuple[int, ...] = (0,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Commands that do the same job; ratios are to the first. `setup` runs once before everything, untimed."""

    name: str
    title: str
    contenders: tuple[Contender, ...]
    rounds: int
    setup: tuple[tuple[str, ...], ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Where the programs are, and the directory they write in."""

    python: str
    provision: str
    uv: str
    pip_compile: str
    scratch: Path


def contests(tools: Tools, index: str) -> list[Contest]:
    """Return everything that is measured; `index` is the only index any tool is told of."""
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tools.scratch),
        "XDG_CACHE_HOME": str(tools.scratch / "cache"),
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_INDEX_URL": index,
        "UV_DEFAULT_INDEX": index,
        "UV_NO_CONFIG": "1",
        "UV_CACHE_DIR": str(tools.scratch / "cache" / "uv"),
    }
    return [
        _start_up(tools),
        _check(tools, environment),
        _stack_only(tools, environment),
        *(_packages(tools, environment, name=name, mode=mode) for name in REQUIREMENTS for mode in ("warm", "offline", "cold")),
    ]


def write_inputs(scratch: Path) -> None:
    """Write a spec and a requirements file for each package set: the same wish, said to each tool in its own words."""
    for name, requirement in REQUIREMENTS.items():
        directory = scratch / name
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "provision.yaml").write_text(_SPEC.format(name=name, requirement=requirement), encoding="utf-8")
        (directory / "requirements.in").write_text(f"{requirement}\n", encoding="utf-8")


def _floor(tools: Tools) -> Contender:
    return Contender(name="`python -I -c pass`, the floor", command=(tools.python, "-I", "-c", "pass"))


def _start_up(tools: Tools) -> Contest:
    return Contest(
        name="start-up",
        title="Start-up",
        rounds=21,
        contenders=(
            Contender(name="`provision --version`", command=(tools.provision, "--version")),
            _floor(tools),
            Contender(name="`uv --version`", command=(tools.uv, "--version")),
            Contender(name="`pip-compile --version`", command=(tools.pip_compile, "--version")),
        ),
    )


def _check(tools: Tools, environment: dict[str, str]) -> Contest:
    solved = tools.scratch / "check"
    spec = tools.scratch / "torch" / "provision.yaml"
    return Contest(
        name="check",
        title="Checking a lock of torch before a merge, offline",
        rounds=11,
        setup=(
            ("cp", "-r", str(spec.parent), str(solved)),
            (tools.provision, "solve", str(solved / spec.name), "--out", str(solved)),
        ),
        environment=environment,
        # 3: all was checked, and a fact of the host is unknown.
        contenders=(
            Contender(name="`provision check`", command=(tools.provision, "check", str(solved)), codes=(0, 3)),
            _floor(tools),
        ),
    )


def _stack_only(tools: Tools, environment: dict[str, str]) -> Contest:
    command = (tools.provision, "solve", str(tools.scratch / "torch" / "provision.yaml"), "--stack-only", "--dry-run")
    return Contest(
        name="stack",
        title="Solving the system stack alone: kernel, driver, CUDA, cuDNN, NCCL, PyTorch, Python",
        rounds=11,
        environment=environment,
        contenders=(Contender(name="`provision solve --stack-only`", command=command), _floor(tools)),
    )


_MODES = {
    "warm": ("the tool's own cache is warm", 11),
    "offline": ("from the tool's own cache, no connection", 11),
    "cold": ("the tool's own cache is empty", 5),
}


def _packages(tools: Tools, environment: dict[str, str], *, name: str, mode: str) -> Contest:
    """Resolve a package set; `provision` solves the system stack in the same problem, the others have no such thing."""
    directory = tools.scratch / name
    words, rounds = _MODES[mode]
    offline = ("--offline",) if mode == "offline" else ()
    caches = (tools.scratch / "cache", tools.scratch / ".cache") if mode == "cold" else ()
    contenders = [_provision(tools, directory, name, offline), _uv(tools, directory, offline)]
    if mode != "offline":  # pip-compile has no such mode
        contenders.append(_pip_compile(tools, directory))
    return Contest(
        name=f"{name}-{mode}",
        title=f"Resolving `{REQUIREMENTS[name]}`: {words}",
        rounds=min(rounds, 5) if name == "vllm" else rounds,
        environment=environment,
        contenders=tuple(
            Contender(name=one.name, command=one.command, removes=one.removes + caches, answer=one.answer) for one in contenders
        ),
    )


def _provision(tools: Tools, directory: Path, name: str, offline: tuple[str, ...]) -> Contender:
    out = directory / "solved"
    return Contender(
        name=" ".join(("`provision solve", *offline)) + "`",
        command=(tools.provision, "solve", str(directory / "provision.yaml"), "--out", str(out), *offline),
        removes=(out,),
        answer=out / f"pylock.{name}.toml",
    )


def _uv(tools: Tools, directory: Path, offline: tuple[str, ...]) -> Contender:
    out = directory / "uv.txt"
    platform = ("--python", tools.python, "--python-version", "3.11", "--python-platform", "linux")
    binary = ("--only-binary", ":all:", "--quiet", "--output-file", str(out), *offline)
    return Contender(
        name=" ".join(("`uv pip compile", *offline)) + "`",
        command=(tools.uv, "pip", "compile", str(directory / "requirements.in"), *platform, *binary),
        removes=(out,),
        answer=out,
    )


def _pip_compile(tools: Tools, directory: Path) -> Contender:
    out = directory / "pip-compile.txt"
    options = ("--quiet", "--strip-extras", "--pip-args", "--only-binary :all:", "--output-file", str(out))
    return Contender(
        name="`pip-compile`",
        command=(tools.pip_compile, str(directory / "requirements.in"), *options),
        removes=(out,),
        answer=out,
    )
