"""The frameworks that are installed as more than the spec names, because a GPU needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from provisioner.accelerators import ACCELERATORS, ON_GPUS
from provisioner.components import FRAMEWORKS
from provisioner.grounds.choice import InstalledForGpu
from provisioner.names import DISTRIBUTION_OF_COMPONENT, pep508
from provisioner.resolver.choices.frameworks import install_requirement
from provisioner.resolver.requirement import Key, ReleaseCandidate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate


def installed_for_gpu(problem: Problem, pins: Mapping[Key, Candidate]) -> Iterator[InstalledForGpu]:
    """Yield each framework of which a GPU needs extras, or another distribution, that the spec does not name."""
    asked: dict[str, set[str]] = {}
    for line in map(pep508, problem.request.spec.packages):
        asked.setdefault(canonicalize_name(line.name), set()).update(map(canonicalize_name, line.extras))
    twins = {row.gpu_twin: row.name for row in problem.matrix.distributions if row.gpu_twin}
    for component in FRAMEWORKS:
        chosen = pins.get(Key(component))
        if not isinstance(chosen, ReleaseCandidate) or chosen.build is None or chosen.build.accelerator not in ON_GPUS:
            continue
        installed = install_requirement(component, str(chosen.release.version), chosen.build)
        name, plain = canonicalize_name(installed.name), canonicalize_name(DISTRIBUTION_OF_COMPONENT[component])
        named = {plain: set(), **asked}.get(name)
        if named is not None and installed.extras <= named:
            continue
        yield InstalledForGpu(
            name=plain,
            distribution=name,
            extras=tuple(sorted(installed.extras)),
            accelerator=ACCELERATORS[chosen.build.accelerator].label,
            cpu_twin=twins.get(plain, ""),
        )
