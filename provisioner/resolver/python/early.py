"""Pre-releases beside final versions, as candidates: each is for requirements that name one and no final meets.

PEP 440 keeps pre-releases out unless somebody asks for them or nothing else will do. Here both must hold, so that `>=2.0a4`
takes 2.0 once it is out. Who asks for the same distribution without naming a pre-release takes final versions alone: whether
a pre-release is let in must not depend on what else a search has met. What the metadata of distributions asks for is known
when it is read; a search that meets such a requirement is begun again with the pre-releases of that project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.index.model import EarlySource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from packaging.specifiers import SpecifierSet
    from packaging.utils import NormalizedName

    from provisioner.index.model import PackageRelease, PackageSource
    from provisioner.resolver.python.named_files import MetFiles
    from provisioner.resolver.requirement import Candidate

_ASKING = frozenset({"==", "===", ">=", "~=", ">"})
"""`<3.0.dev0` names one too, but to keep pre-releases out."""


def names_prerelease(specifier: SpecifierSet) -> bool:
    """Whether a requirement asks for a pre-release: by a lower bound or a pin that is one."""
    return any(one.prereleases and one.operator in _ASKING for one in specifier)


def is_met_without(specifier: SpecifierSet, listed: Iterable[Candidate]) -> bool:
    """Whether some version that is offered to everybody meets a requirement."""
    offered = (one for one in listed if not one.has_no_file and not one.is_withheld)
    return any(specifier.contains(one.pep440, prereleases=True) for one in offered)


class EarlyVersions:
    """Answers for the pre-releases of one search; `met` keeps from search to search whose are wanted."""

    def __init__(self, source: PackageSource, met: MetFiles) -> None:
        self._source = source
        self._met = met

    def releases(self, name: NormalizedName) -> tuple[PackageRelease, ...]:
        """The pre-releases of a project that some metadata asks for, newest first; raises `UnavailableError`."""
        return self._source.early(name) if name in self._met.early and isinstance(self._source, EarlySource) else ()

    def is_final_only(self, name: NormalizedName, specifier: SpecifierSet) -> bool:
        """Whether a requirement takes final versions alone although others ask for a pre-release of the same distribution."""
        return name in self._met.early and not names_prerelease(specifier)

    def look(self, name: NormalizedName, specifier: SpecifierSet, listed: Callable[[], Iterable[Candidate]]) -> None:
        """Remember a requirement of metadata that a pre-release alone meets; raises `UnavailableError`."""
        if name in self._met.early or not names_prerelease(specifier) or not isinstance(self._source, EarlySource):
            return
        if is_met_without(specifier, listed()):
            return
        if any(specifier.contains(one.version, prereleases=True) for one in self._source.early(name)):
            self._met.meet_early(name)
