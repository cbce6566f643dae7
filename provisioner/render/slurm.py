"""Render a lock as a batch script for Slurm.

Features of nodes have the names that a site gives them, and Slurm refuses a job with an unknown one: the constraint is a line
to be adapted. The script itself checks the GPUs and the driver of its node. Sources: slurm.schedmd.com/sbatch.html and
gres.html, 2026-11-23.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.accelerators import ACCELERATORS
from provisioner.render.container import repository
from provisioner.render.entry_guard import REFUSED
from provisioner.render.gpu_check import gpu_check
from provisioner.render.header import UnrenderableError, header
from provisioner.render.node_affinity import drivers_of
from provisioner.render.shell import quoted, variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.lock.format.model import Lock, LockedStack
    from provisioner.render.node_affinity import Served


def render(lock: Lock, lock_file_name: str) -> str:
    """Return the batch script of a lock, to be submitted in the lock's folder.

    A container is the Apptainer image of the output `apptainer`; on the host it is the virtual environment `.venv`. Raises
    `UnrenderableError` when the lock has no linux platform, or platforms that differ in more than the processor.
    """
    stacks = tuple(stack for stack in lock.stacks if stack.platform.startswith("linux/"))
    bodies = {_body(lock, lock_file_name, stack): None for stack in stacks}
    if len(bodies) != 1:
        raise UnrenderableError(
            f"a batch script is for one kind of linux node, and lock `{lock.name}` is for {', '.join(lock.platforms)}",
            hints=("write a target for each platform in the specification and solve again",),
        )
    use = "To submit it with a program: sbatch job.slurm python train.py"
    return f"#!/bin/sh\n{header(lock, lock_file_name, use)}\n{''.join(bodies)}"


def _body(lock: Lock, lock_file_name: str, stack: LockedStack) -> str:
    served = drivers_of(stack)
    options = [f"#SBATCH --job-name={repository(lock)}", "#SBATCH --nodes=1"]
    if ACCELERATORS[stack.accelerator].target_key:
        options.append("#SBATCH --gres=gpu:1")
    capabilities = sorted({capability for _, those in served for capability in those})
    if capabilities:
        features = "|".join(f"sm_{major}{minor}" for major, minor in capabilities)
        options += ["# Remove one # if your site calls the features of its nodes so:", f"##SBATCH --constraint={features}"]
    checks = [*(_check(served) if capabilities else ()), *(_environment(stack) if stack.runs == "host" else ())]
    named = [f"lock={quoted(''.join(filter(str.isprintable, lock_file_name)))}"] if checks else []
    program = '[ "$#" -gt 0 ] || set -- python --version'
    return "\n".join([*options, "", "set -eu", *named, *checks, program, *_start(lock, stack), ""])


def _check(served: Served) -> Iterator[str]:
    """Yield the lines that end the job with exit code `REFUSED` on a node whose GPUs or driver the lock excludes."""
    yield from (
        "# Refuse a node that the stack does not run on.",
        f'refuse() {{ echo "$lock does not run on $(hostname): $1" >&2; exit {REFUSED}; }}',
    )
    yield from gpu_check(served)


def _environment(stack: LockedStack) -> Iterator[str]:
    """Yield the lines that end the job where `.venv` has no interpreter of the lock's Python: `PATH` would find another one."""
    python = stack.components.get("python")
    if python is None:
        return
    show = quoted('import sys; print("%d.%d" % sys.version_info[:2])')
    yield from (
        "# Without its environment the program would run with the Python of the node.",
        f'absent() {{ echo "$lock: $PWD/.venv $1: uv venv --python {python} && uv pip install -r $lock" >&2; exit 1; }}',
        f'python=$(.venv/bin/python -I -S -c {show} 2>/dev/null) || absent "has no Python that runs on $(hostname)"',
        f'[ "$python" = {python} ] || absent "has Python $python, not {python}"',
    )


def _start(lock: Lock, stack: LockedStack) -> Iterator[str]:
    if stack.runs == "container":
        option = ACCELERATORS[stack.accelerator].apptainer_option
        yield " ".join(filter(None, ("exec apptainer run", option, f'{repository(lock)}.sif "$@"')))
        return
    yield from (f"export {name}={quoted(value)}" for name, value in variables(stack).items())
    yield 'PATH=$PWD/.venv/bin:$PATH exec "$@"'
