"""Each tool's own words for the same job: these packages, from wheels, for Python 3.11 on Linux x86_64, from this index."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from programs import environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from programs import Programs

_SPEC = """\
name: contest
target:
  platform: linux/amd64
  host:
    platform: linux/amd64
    os: {id: ubuntu, version: "22.04"}
    kernel: 6.5.0-1017-aws
    glibc: "2.35"
    driver: {version: 580.95.05, module: open}
    gpus:
      - {name: NVIDIA H100 80GB HBM3, compute_capability: "9.0", count: 8}
    container_toolkit: 1.17.4
requires:
  python: "3.11"
packages:
PACKAGES
# On the host there is no base image, whose registry would be one more network in the measurement.
runs: host
outputs: []
"""

_PYPROJECT = """\
[project]
name = "contest"
version = "0"
requires-python = "==3.11.*"
dependencies = [
PACKAGES
]
"""

_PDM = """
[tool.pdm]
distribution = false

[[tool.pdm.source]]
name = "pypi"
url = "INDEX"
"""

_POETRY = """
[tool.poetry]
package-mode = false

[[tool.poetry.source]]
name = "contest"
url = "INDEX"
priority = "primary"
"""

_ON_LINUX = "; sys_platform == 'linux' and platform_machine == 'x86_64'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One way to do the job.

    `removes` are files and directories deleted before each run; `answer` is the file its result is read from; `codes` are
    the exit codes of a run that did its job. The first `unmeasured` runs only prepare the others. Where `cache` is to be warm
    and is not there yet, `prepare` is run before anything is measured.
    """

    name: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    removes: tuple[Path, ...] = ()
    answer: Path | None = None
    codes: tuple[int, ...] = (0,)
    unmeasured: int = 0
    cache: Path | None = None
    prepare: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One package set on one index; every tool has a folder and a cache of its own."""

    programs: Programs
    index: str
    folder: Path

    def cache(self, tool: str) -> Path:
        """The tool's own cache, empty at first and warm once it has run."""
        return self.folder / "caches" / tool

    def contender(
        self, tool: str, name: str, command: tuple[str, ...], *, answer: str, mode: str, **settings: str
    ) -> Contender:
        """A run in the tool's own folder, which leaves `answer` there; its cache goes first when `mode` is cold."""
        path = self.folder / tool / answer
        removes = (path, self.cache(tool)) if mode == "cold" else (path,)
        cache = str(self.cache(tool))
        return Contender(
            name=f"`{name}`",
            command=command,
            environment=environment(HOME=cache, XDG_CACHE_HOME=cache, **settings),
            removes=removes,
            answer=path,
            cache=self.cache(tool) if mode != "cold" else None,
            prepare=tuple(word for word in command if word != "--offline"),
        )


def prepared(programs: Programs, name: str, packages: tuple[str, ...], index: str, *, folder: str = "") -> Job:
    """Write a package set down in each tool's own words: the same request for all."""
    home = programs.scratch / (folder or name)
    lines = [f'    "{package}",' for package in packages]
    marked = [f'    "{package}{_ON_LINUX}",' for package in packages]
    texts = {
        "provision.yaml": _SPEC.replace("PACKAGES", "\n".join(f'  - "{package}"' for package in packages)),
        "requirements.in": "".join(f"{package}\n" for package in packages),
        "pdm/pyproject.toml": _PYPROJECT.replace("PACKAGES", "\n".join(lines)) + _PDM.replace("INDEX", index),
        "poetry/pyproject.toml": _PYPROJECT.replace("PACKAGES", "\n".join(marked)) + _POETRY.replace("INDEX", index),
    }
    for tool in TOOLS:
        (home / tool).mkdir(parents=True, exist_ok=True)
    for place, text in texts.items():
        (home / place).write_text(text, encoding="utf-8")
    return Job(programs=programs, index=index, folder=home)


def _provision(job: Job, mode: str) -> Contender:
    flags = ("--offline",) if mode == "offline" else ()
    out = str(job.folder / "provision")
    return job.contender(
        "provision",
        " ".join(("provision solve", *flags)),
        (job.programs.provision, "solve", str(job.folder / "provision.yaml"), "--out", out, *flags),
        answer="pylock.contest.toml",
        mode=mode,
        PIP_CONFIG_FILE="/dev/null",
        PIP_INDEX_URL=job.index,
    )


def _uv(job: Job, mode: str) -> Contender:
    flags = ("--offline",) if mode == "offline" else ()
    target = ("--python", job.programs.python, "--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_35")
    out = ("--only-binary", ":all:", "--quiet", "--output-file", str(job.folder / "uv" / "requirements.txt"))
    return job.contender(
        "uv",
        " ".join(("uv pip compile", *flags)),
        (job.programs.path("uv"), "pip", "compile", str(job.folder / "requirements.in"), *target, *out, *flags),
        answer="requirements.txt",
        mode=mode,
        UV_DEFAULT_INDEX=job.index,
        UV_NO_CONFIG="1",
        UV_CACHE_DIR=str(job.cache("uv")),
    )


def _pip_compile(job: Job, mode: str) -> Contender:
    answer = str(job.folder / "pip-compile" / "requirements.txt")
    options = ("--quiet", "--strip-extras", "--allow-unsafe", "--pip-args", "--only-binary :all:", "--output-file", answer)
    return job.contender(
        "pip-compile",
        "pip-compile",
        (job.programs.path("pip-tools", "pip-compile"), str(job.folder / "requirements.in"), *options),
        answer="requirements.txt",
        mode=mode,
        PIP_CONFIG_FILE="/dev/null",
        PIP_INDEX_URL=job.index,
        PIP_DISABLE_PIP_VERSION_CHECK="1",
    )


def _pip(job: Job, mode: str) -> Contender:
    answer = str(job.folder / "pip" / "report.json")
    options = ("--dry-run", "--ignore-installed", "--quiet", "--only-binary", ":all:", "--report", answer)
    return job.contender(
        "pip",
        "pip install --dry-run",
        (job.programs.path("pip"), "install", *options, "--requirement", str(job.folder / "requirements.in")),
        answer="report.json",
        mode=mode,
        PIP_CONFIG_FILE="/dev/null",
        PIP_INDEX_URL=job.index,
        PIP_DISABLE_PIP_VERSION_CHECK="1",
    )


def _pdm(job: Job, mode: str) -> Contender:
    target = ("--python", "==3.11.*", "--platform", "manylinux_2_35_x86_64", "--implementation", "cpython")
    return job.contender(
        "pdm",
        "pdm lock",
        (job.programs.path("pdm"), "lock", "--quiet", "--project", str(job.folder / "pdm"), *target),
        answer="pdm.lock",
        mode=mode,
        PDM_CACHE_DIR=str(job.cache("pdm")),
        PDM_CHECK_UPDATE="false",
        PDM_ONLY_BINARY=":all:",
        # It takes wheels tagged py37 for unfit on 3.11 (PDM 2.29.3), and this project has no others.
        PDM_NO_BINARY="interegular",
        PDM_PYTHON=job.programs.python,
        PDM_USE_VENV="0",
    )


def _poetry(job: Job, mode: str) -> Contender:
    return job.contender(
        "poetry",
        "poetry lock",
        (job.programs.path("poetry"), "lock", "--no-interaction", "--project", str(job.folder / "poetry")),
        answer="poetry.lock",
        mode=mode,
        POETRY_CACHE_DIR=str(job.cache("poetry")),
        POETRY_VIRTUALENVS_CREATE="false",
        POETRY_KEYRING_ENABLED="false",
    )


TOOLS: dict[str, Callable[[Job, str], Contender]] = {
    "provision": _provision,
    "uv": _uv,
    "pip-compile": _pip_compile,
    "pip": _pip,
    "pdm": _pdm,
    "poetry": _poetry,
}

OFFLINE = ("provision", "uv")
"""Tools that can be told to open no connection; of the others none has such a switch for resolving from its cache."""
