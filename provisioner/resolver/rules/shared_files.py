"""Files that the wheels of several distributions write: a key, used as a mutex, for each such file.

A row is one such file in the matrix, with its owners: the distributions, in some versions, that write it. The matrix may refuse
a row: then no two owners may be installed together. The candidates of a refused row's key are its owners. A version that writes
the file requires its own distribution as the candidate of that key, so two owners exclude each other and neither requires the
other.

A row that is not refused has a key only if the policy forbids `shared-files`. Its key has one more candidate, several owners at
once, which requires that the policy no longer forbids `shared-files`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from provisioner.grounds.predicate import WritesFile
from provisioner.grounds.relaxation import SharedFiles as WriteSharedFile
from provisioner.grounds.requirement import Entails, Row, Subject
from provisioner.grounds.source import Hazard
from provisioner.names import pep508
from provisioner.resolver.requirement import PACKAGE, SEVERAL, SHARED_FILE, TORCH, Candidate, Key, Labelled, Requirement
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from provisioner.grounds.relaxation import Relaxation
    from provisioner.grounds.requirement import Ground
    from provisioner.matrix.model import Matrix, SharedFile
    from provisioner.request import Request

FORBIDDEN = "shared-files"
"""The word under `policy.forbid` that forbids every row, also those that the matrix does not refuse."""

WHEELS_SINCE = 12
"""The CUDA major from which on every framework requires NVIDIA's wheels: PyTorch 2.1, TensorFlow 2.15, JAX's cuda12."""

OF_EVERY_FRAMEWORK = ("cudnn", "nccl")
"""The names of the rows for libraries that every framework with CUDA requires."""


def key_of(row: SharedFile, owner: str = "") -> Key:
    """Return the key of a row's file.

    With `owner`, a distribution of the spec, it is the key with which that distribution owns the file in every version. So two
    distributions of the spec exclude each other before the metadata of every version of both is read.
    """
    return Key(f"{SHARED_FILE}:{row.name}:{owner}" if owner else f"{SHARED_FILE}:{row.name}")


def shared_file_domains(matrix: Matrix, request: Request) -> Iterator[tuple[Key, Callable[[], tuple[Candidate, ...]]]]:
    """Yield the key of every row that is refused or forbidden, with a function that returns the key's candidates.

    A row has one key for its file, and one for each owner that the spec requires and that writes the file in every version.
    """
    named = {canonicalize_name(pep508(text).name) for text in request.spec.packages}
    for row in _binding(matrix, request):
        yield key_of(row), partial(_owners, row)
        for owner in row.owners:
            if owner.distribution in named and not owner.versions:
                yield key_of(row, owner.distribution), partial(_owner, row, owner.distribution)


def _binding(matrix: Matrix, request: Request) -> Iterator[SharedFile]:
    is_forbidden = FORBIDDEN in request.spec.policy.forbid
    return (row for row in matrix.shared_files if row.refused or is_forbidden)


def _owners(row: SharedFile) -> tuple[Candidate, ...]:
    names = [owner.distribution for owner in row.owners]
    labels = names if row.refused else [*names, SEVERAL]
    return tuple(Candidate(key_of(row), Version.named(label), label) for label in labels)


def _owner(row: SharedFile, owner: str) -> tuple[Candidate, ...]:
    return (Candidate(key_of(row, owner), Version.named(owner), owner),)


class SharedFiles:
    """The requirements of distributions on the keys of the shared files that they write."""

    def __init__(self, matrix: Matrix, request: Request) -> None:
        self._matrix = matrix
        self._known: dict[Candidate, tuple[Requirement, ...]] = {}
        self._rows: dict[str, list[tuple[SharedFile, SpecifierSet]]] = {}
        for row in _binding(matrix, request):
            for owner in row.owners:
                self._rows.setdefault(owner.distribution, []).append((row, SpecifierSet(owner.versions)))

    def of(self, candidate: Candidate) -> tuple[Requirement, ...]:
        """Return the requirements that a version of a distribution owns its shared files; () when it writes none.

        They are known without the version's metadata. The same objects are returned each time.
        """
        rows = self._rows.get(candidate.key.name)
        if rows is None or candidate.key == TORCH:
            return ()
        found = self._known.get(candidate)
        if found is None:
            found = self._known[candidate] = tuple(self._owned(candidate, rows))
        return found

    def _owned(self, candidate: Candidate, rows: Sequence[tuple[SharedFile, SpecifierSet]]) -> Iterator[Requirement]:
        name = candidate.key.name
        for row, versions in rows:
            if versions.contains(candidate.pep440, prereleases=True):
                yield _ownership(row, name, candidate.label, matrix=self._matrix)

    def named(self, name: str, ground: Ground) -> Iterator[Requirement]:
        """Yield the requirements that a distribution owns the files that all its versions write.

        `name` is a distribution that the spec requires without extras; `ground` is the line of the spec.
        """
        for row, versions in self._rows.get(name, ()):
            if not len(versions):
                yield Requirement(key_of(row, name), Labelled(frozenset({name})), ground)


def shared_file_needs(matrix: Matrix, candidate: Candidate) -> Requirement | None:
    """Return the requirement that the owner in a key (see `key_of`) owns the row's file; None when the key has no owner."""
    _, row_name, owner = (*candidate.key.name.split(":"), "")[:3]
    row = next((row for row in matrix.shared_files if owner and row.name == row_name), None)
    return None if row is None else _ownership(row, owner, "", matrix=matrix)


def runtime_needs(matrix: Matrix, candidate: Candidate) -> Iterator[Requirement]:
    """Yield the requirements of a slot's CUDA release that its cuDNN and NCCL wheels own the shared files that they write.

    The files of cuDNN and NCCL have one name for all CUDA majors, so frameworks with different majors would overwrite them.
    From CUDA 12 on every framework requires wheels of these libraries; before, some frameworks bundled them.
    """
    major = candidate.version.release[0] if candidate.version.release else 0
    for row in matrix.shared_files if major >= WHEELS_SINCE else ():
        owner = next((one for one in row.owners if one.distribution == f"nvidia-{row.name}-cu{major}"), None)
        if row.name in OF_EVERY_FRAMEWORK and owner is not None and row.refused:
            predicate = WritesFile(row.path, through=owner.distribution, framework=candidate.key.slot)
            source = Hazard(matrix.place_of(f"shared-file:{row.name}"), row.because)
            ground = candidate.entails(predicate, Row("shared file", row.name), source)
            yield Requirement(key_of(row), Labelled(frozenset({owner.distribution})), ground)


def _ownership(row: SharedFile, name: str, label: str, *, matrix: Matrix) -> Requirement:
    """Return the requirement that a distribution owns a row's file; `label` is the version, "" for all its versions."""
    ground = Entails(
        name=name,
        subject=Subject(name, label),
        predicate=WritesFile(row.path),
        relation=Row("shared file", row.name),
        # The reason is part of the source, so that a conflict has it once and not for each owner.
        cited=Hazard(matrix.place_of(f"shared-file:{row.name}"), row.because),
    )
    return Requirement(key_of(row), Labelled(frozenset({name} if row.refused else {name, SEVERAL})), ground)


def shared_file_relaxations(matrix: Matrix, pins: Mapping[Key, Candidate]) -> Iterator[Relaxation]:
    """Yield a relaxation for every file that several chosen distributions write and that the matrix does not refuse."""
    for row in matrix.shared_files:
        if row.refused:
            continue
        chosen = [
            candidate
            for owner in row.owners
            if (candidate := pins.get(Key(owner.distribution, PACKAGE))) is not None
            and SpecifierSet(owner.versions).contains(candidate.pep440, prereleases=True)
        ]
        if len(chosen) > 1:
            yield WriteSharedFile(
                component=chosen[0].key.name,
                subjects=tuple(one.subject for one in chosen),
                path=row.path,
                because=row.because,
                source=matrix.place_of(f"shared-file:{row.name}"),
            )
