"""Releases about which a family of rows states nothing: what they work with is unknown, so they are chosen last.

A family is a pair of components, such as ROCm and GPUs, for which rows of the matrix must state what works together (`Family`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.components import ABSENT, PRESENT
from provisioner.matrix.families import families_of

if TYPE_CHECKING:
    from provisioner.matrix.model import Build, Family, Matrix, Release
    from provisioner.request import Request


class Silence:
    """The families of the matrix that apply to one request, and the releases about which their rows state nothing."""

    def __init__(self, matrix: Matrix, request: Request) -> None:
        self.matrix = matrix
        self._families = families_of(matrix)
        self._asked = {
            "platform": request.platform,
            "accelerator": request.accelerator,
            "runs": request.runs,
            "build": request.spec.build.kind if request.spec.build is not None else ABSENT,
            "framework": PRESENT if request.names_framework else ABSENT,
        }
        self._binding: dict[str, tuple[Family, ...]] = {}

    def about(self, component: str, release: Release, build: Build | None) -> tuple[Family, ...]:
        """Return the families without a row about a release of a component, or about its `build` if that is not None."""
        return tuple(one for one in self.binding(component) if not self._families.speaks(one, release, build))

    def binding(self, component: str) -> tuple[Family, ...]:
        """Return the families with a component as their subject that apply to the request."""
        found = self._binding.get(component)
        if found is None:
            found = self._binding[component] = tuple(one for one in self._families.of(component) if self._binds(one))
        return found

    def _binds(self, family: Family) -> bool:
        return all(self._asked[guard.component] in {str(one) for one in guard.one_of} for guard in family.on)
