"""What a GPU needs of a framework that is installed as the spec names it, and whether that goes with the rest.

The GPUs of a target call for an accelerator, and a line such as `tensorflow` does not ask for what a GPU needs beside it. The
problem is solved once more with the same Python, as if the spec named the accelerator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace
from packaging.specifiers import SpecifierSet

from provisioner.errors import UnavailableError
from provisioner.grounds.relaxation import FrameworkOnCpu
from provisioner.resolver.attempts import PYTHON, with_python
from provisioner.resolver.choices.frameworks import install_requirement, is_taken_as_named
from provisioner.resolver.refutation import Refutation, decided
from provisioner.resolver.requirement import Key, ReleaseCandidate
from provisioner.resolver.search.instance import StepBudget

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.grounds.relaxation import Relaxation
    from provisioner.resolver.attempts import SourceFor
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.stack import Stack

MOST_STEPS = 40_000
"""The most steps (`StepBudget`) that are taken to learn what a GPU needs; a read of metadata counts a hundred.

Where they end it is not told whether that goes with the rest.
"""


def told_of_gpus(stack: Stack, problem: Problem, source_for: SourceFor) -> Stack:
    """Return the stack of a problem that tells what a GPU needs of each framework that is installed as the spec names it."""
    request = problem.request
    on_cpu = [one.component for one in stack.relaxations if isinstance(one, FrameworkOnCpu) and one.install]
    if not any(is_taken_as_named(problem.matrix.components[name], request) for name in on_cpu):
        return stack
    from provisioner.resolver.explain.outcomes import rejoined  # loaded only where something is left to explain

    asked = replace(request, spec=replace(request.spec, accelerator=request.accelerator))
    again = rejoined(problem, asked)
    python = next(one for one in again.domains[PYTHON] if one.label == stack.components[PYTHON.name])
    steps = StepBudget()
    steps.limit(MOST_STEPS)
    try:
        found = decided(with_python(again, python), source_for, steps)
    except UnavailableError:
        return stack
    pins: Mapping[Key, Candidate] = {}
    if isinstance(found, Refutation):
        found.close()
    else:
        _, pins = found
    return replace(stack, relaxations=tuple(_with_version(one, pins) for one in stack.relaxations))


def _with_version(relaxation: Relaxation, pins: Mapping[Key, Candidate]) -> Relaxation:
    if not isinstance(relaxation, FrameworkOnCpu) or not relaxation.install:
        return relaxation
    chosen = pins.get(Key(relaxation.component))
    if not isinstance(chosen, ReleaseCandidate):
        return replace(relaxation, version="")
    version = str(chosen.release.version)
    installed = install_requirement(relaxation.component, version, chosen.build)
    installed.specifier = SpecifierSet()
    return replace(relaxation, install=str(installed), version=version)
