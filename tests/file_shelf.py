"""A package source made of file names, for tests of what a listing means: selection, candidates and solving as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

from provisioner.index.model import Environment, IndexFile, PackageRelease
from provisioner.index.pages.selection import Selection
from provisioner.resolver.problem import join
from provisioner.resolver.python.finder import PackageFinder
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.resolve import decide
from tests import small
from tests.extras_named import applicable, extras_named

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

LINUX = Environment(platform="linux/amd64", python="3.12", glibc=(2, 36))

Metadata = dict[str, tuple[str, ...]]
"""What a version requires: `demo 1.0` -> texts of PEP 508."""


def wheel(name: str, version: str, tag: str = "py3-none-any", **fields: Any) -> IndexFile:  # noqa: ANN401 - any field
    """A wheel as an index lists it."""
    return listed(f"{name.replace('-', '_')}-{version}-{tag}.whl", **fields)


def listed(filename: str, **fields: Any) -> IndexFile:  # noqa: ANN401 - any field
    """Any file as an index lists it."""
    return IndexFile(filename=filename, url=f"https://files.example/{filename}", index="pypi", **fields)


class FileShelf:
    """An index in memory: the files of each project, and what its versions require (nothing, when not told)."""

    def __init__(
        self,
        files: Mapping[str, Sequence[IndexFile]],
        metadata: Mapping[str, tuple[str, ...]],
        environment: Environment,
        prereleases: Collection[str],
    ) -> None:
        self._files = files
        self._metadata = metadata
        self._environment = environment
        self._prereleases = prereleases

    def releases(self, name: NormalizedName, *, index: str = "") -> tuple[PackageRelease, ...]:
        assert not index
        selection = Selection(environment=self._environment, allow_prerelease=name in self._prereleases)
        return selection.releases(name, self._files.get(name, ()))

    def requirements(self, release: PackageRelease, extras: tuple[str, ...] = ("",)) -> tuple[Requirement, ...]:
        return applicable(self._declared(release), extras, self._environment)

    def _declared(self, release: PackageRelease) -> list[Requirement]:
        return [Requirement(text) for text in self._metadata.get(f"{release.name} {release.version}", ())]

    def extras(self, release: PackageRelease) -> tuple[str, ...]:
        return extras_named(self._declared(release))

    def prefetch(self, names: Iterable[NormalizedName], *, follows: bool = True) -> None:
        del follows
        for name in names:
            assert name == canonicalize_name(name)


def solved(
    files: Mapping[str, Sequence[IndexFile]],
    *packages: str,
    metadata: Mapping[str, tuple[str, ...]] | None = None,
    environment: Environment = LINUX,
    prereleases: Collection[str] = (),
    **spec: Any,  # noqa: ANN401 - any key of a spec
) -> dict[str, str] | None:
    """The versions that are chosen for some requirements; None when there is no answer."""
    matrix = small.matrix(("python",), {"python": {environment.python: {}}}, virtual=())
    request = small.request(
        {"python": environment.python},
        platform=environment.platform,
        accelerator="cpu",
        packages=packages,
        runs="host",
        **spec,
    )
    problem = join(matrix, request)
    shelf = FileShelf(files, metadata or {}, environment, prereleases)
    pins = decide(ProblemInstance(problem, PackageFinder(problem, shelf, environment)))
    if pins is None:
        return None
    return {key.name: one.label for key, one in sorted(pins.items()) if key.is_package and "[" not in key.name}
