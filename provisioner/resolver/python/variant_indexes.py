"""The indexes that serve a framework's builds: what they list, and which of them are out of reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.errors import UnavailableError
from provisioner.grounds.choice import IndexLeftOut

if TYPE_CHECKING:
    from packaging.utils import NormalizedName

    from provisioner.index.model import PackageRelease, PackageSource
    from provisioner.resolver.problem import Problem


class VariantIndexes:
    """The framework's indexes as one environment reads them.

    A mirror of PyPI alone is what many machines reach. So an index of builds that is out of reach, and that the spec does not
    name, lists nothing; the answer then names it, and nothing is proved impossible without it.
    """

    def __init__(self, problem: Problem, source: PackageSource) -> None:
        self._named = {one.name for one in problem.request.spec.indexes}
        self._source = source
        self.unreached: dict[str, UnavailableError] = {}
        """The error of each index that was left out."""

    def releases(self, name: NormalizedName, index: str) -> tuple[PackageRelease, ...]:
        """The releases of a distribution on an index; raises `UnavailableError` for one that the spec names."""
        family = index.partition("-")[0]
        other = next((error for one, error in self.unreached.items() if one.partition("-")[0] == family), None)
        if other is not None:
            self.unreached.setdefault(index, other)
            return ()
        try:
            return tuple(self._source.releases(name, index=index))
        except UnavailableError as error:
            if self._named & {index, family}:
                raise
            self.unreached[index] = error
            return ()

    @property
    def left_out(self) -> tuple[IndexLeftOut, ...]:
        """What was not looked at, a line for each error: something more wanted than what was chosen may be there.

        A warning, no doubt: what was chosen was verified. So a lock that is solved again, and keeps its choice without asking
        that index, is the same lock.
        """
        return tuple(
            IndexLeftOut(
                indexes=tuple(sorted(index for index, one in self.unreached.items() if one is error)), problem=error.message
            )
            for error in dict.fromkeys(self.unreached.values())
        )

    def why_not(self, index: str) -> str:
        """Why an index has no file of a build."""
        return f"index {index} is out of reach" if index in self.unreached else f"index {index} has no such file"
