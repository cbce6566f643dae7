"""What is compared: commands that do the same job, in the same directory, on the same index."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from contenders import OFFLINE, TOOLS, Contender, prepared
from large_sets import LARGE, SERVER
from programs import environment

if TYPE_CHECKING:
    from programs import Programs

SETS = {"torch": ("torch==2.6.0",), "vllm": ("vllm==0.8.5",), "platform": LARGE}
"""Package sets that resolve from wheels alone, the smallest first: 23, 154 and 416 distributions when they were chosen."""

TITLES = {
    "torch": "`torch==2.6.0`, 23 packages",
    "vllm": "`vllm==0.8.5`, 154 packages",
    "platform": "a data platform, 416 packages (`LARGE` in `benchmarks/large_sets.py`)",
}

MODES = {
    "cold": "the tool's own cache is empty",
    "warm": "the tool's own cache is warm",
    "offline": "from the tool's own cache, no connection",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Commands that do the same job; ratios are to the first.

    `setup` runs once before everything, untimed. A contender runs `rounds` times, but starts no run after `seconds` of its own,
    and one run is ended after `limit` seconds. `is_real` means that the real index is asked. Who gives no answer in time is
    not asked again in later contests of the same `subject`.
    """

    name: str
    title: str
    contenders: tuple[Contender, ...]
    rounds: int
    seconds: float = 12.0
    limit: float = 120.0
    is_real: bool = False
    subject: str = ""
    setup: tuple[tuple[str, ...], ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


def contests(programs: Programs, index: str, real_index: str) -> list[Contest]:
    """Return everything that is measured: `index` is the only index any tool is told of, but for the last tables."""
    plain = environment(HOME=str(programs.scratch))
    return [
        _start_up(programs, plain),
        _stack_only(programs, plain),
        *(_packages(programs, name, mode, index) for name in SETS for mode in MODES),
        _check(programs, index),
        *(_memory(programs, mode, index) for mode in ("cold", "warm")),
        _real(programs, "vllm", real_index),
    ]


def _floor(programs: Programs) -> Contender:
    return Contender(name="`python -I -c pass`, the floor", command=(programs.python, "-I", "-c", "pass"))


def _start_up(programs: Programs, plain: dict[str, str]) -> Contest:
    others = [("uv", "uv"), ("pip", "pip"), ("pip-tools", "pip-compile"), ("pdm", "pdm"), ("poetry", "poetry")]
    return Contest(
        name="start-up",
        title="Start-up",
        rounds=21,
        seconds=6.0,
        environment=plain,
        contenders=(
            Contender(name="`provision --version`", command=(programs.provision, "--version"), unmeasured=1),
            _floor(programs),
            *(
                Contender(name=f"`{program} --version`", command=(programs.path(name, program), "--version"))
                for name, program in others
            ),
        ),
    )


def _check(programs: Programs, index: str) -> Contest:
    """After the tables of vllm, whose inputs and cache it uses."""
    job = prepared(programs, "vllm", SETS["vllm"], index)
    solve = TOOLS["provision"](job, "warm")
    settings = solve.environment
    solved = programs.scratch / "check"
    spec = job.folder / "provision.yaml"
    # 3: all was checked, and a fact of the host is unknown.
    return Contest(
        name="check",
        title="Checking a lock of 154 packages before a merge",
        rounds=11,
        setup=(
            ("mkdir", "-p", str(solved)),
            ("cp", str(spec), str(solved)),
            (programs.provision, "solve", str(solved / spec.name), "--out", str(solved)),
        ),
        environment=settings,
        contenders=(
            Contender(name="`provision check`", command=(programs.provision, "check", str(solved)), codes=(0, 3)),
            Contender(
                name="`provision check --changes --offline`: solved twice again, from the cache",
                command=(programs.provision, "check", str(solved), "--changes", "--offline"),
                codes=(0, 3),
            ),
            _floor(programs),
        ),
    )


def _stack_only(programs: Programs, plain: dict[str, str]) -> Contest:
    spec = prepared(programs, "torch", SETS["torch"], "").folder / "provision.yaml"
    command = (programs.provision, "solve", str(spec), "--stack-only", "--dry-run")
    return Contest(
        name="stack",
        title="Solving the system stack alone: kernel, driver, CUDA, cuDNN, NCCL, PyTorch, Python",
        rounds=11,
        environment=plain,
        contenders=(Contender(name="`provision solve --stack-only`", command=command, unmeasured=1), _floor(programs)),
    )


def _packages(programs: Programs, name: str, mode: str, index: str) -> Contest:
    """Resolve a package set; `provision` solves the system stack in the same problem, the others have no such thing."""
    job = prepared(programs, name, SETS[name], index)
    contenders = [TOOLS[one](job, mode) for one in (OFFLINE if mode == "offline" else TOOLS)]
    return Contest(
        name=f"{name}-{mode}",
        title=f"Resolving {TITLES[name]}: {MODES[mode]}",
        subject=name,
        rounds={"torch": 7, "vllm": 5, "platform": 3}[name],
        contenders=tuple(contenders),
    )


def _memory(programs: Programs, mode: str, index: str) -> Contest:
    """A large set with a framework in it, for the two that are meant to be used at that size."""
    job = prepared(programs, "server", SERVER, index)
    return Contest(
        name=f"memory-{mode}",
        title=f"Memory for a model server's image, 380 packages with PyTorch (`SERVER`): {MODES[mode]}",
        rounds=3,
        contenders=tuple(TOOLS[one](job, mode) for one in OFFLINE),
    )


def _real(programs: Programs, name: str, index: str) -> Contest:
    job = prepared(programs, name, SETS[name], index, folder=f"real-{name}")
    return Contest(
        name=f"real-{name}",
        title=f"Resolving {TITLES[name]} on the real index: {MODES['cold']}",
        rounds=3,
        seconds=10.0,
        limit=45.0,
        is_real=True,
        contenders=tuple(one(job, "cold") for one in TOOLS.values()),
    )
