"""Distributions whose wheels write the same file: a mutex for each such file.

A refused row of the matrix is a key, whose candidates are the distributions that write the file. A version with the file
requires its own distribution as the candidate, so two owners exclude each other and neither requires the other. A row that is
not refused is a key only where the policy forbids `shared-files`; several owners at once are then a candidate, too, which
requires the word lifted.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from packaging.requirements import Requirement as Pep508
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from provisioner.grounds.predicate import WritesFile
from provisioner.grounds.relaxation import SharedFiles as WriteSharedFile
from provisioner.grounds.requirement import Entails, Row, Subject
from provisioner.grounds.source import Hazard
from provisioner.resolver.requirement import PACKAGE, SEVERAL, SHARED_FILE, TORCH, Candidate, Key, Labelled, Requirement
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from provisioner.grounds.relaxation import Relaxation
    from provisioner.grounds.requirement import Ground
    from provisioner.matrix.model import Matrix, SharedFile
    from provisioner.request import Request

FORBIDDEN = "shared-files"
"""The word of a policy that forbids every row."""

WHEELS_SINCE = 12
"""The CUDA major since which every framework requires NVIDIA's wheels: PyTorch 2.1, TensorFlow 2.15, JAX's cuda12."""

OF_EVERY_FRAMEWORK = ("cudnn", "nccl")
"""The rows of libraries that every framework with CUDA requires."""


def key_of(row: SharedFile, owner: str = "") -> Key:
    """Return the key of a row's file; with `owner` the key by which a distribution of the spec owns it in every version.

    So two distributions of the spec exclude each other before the metadata of every version of both is read.
    """
    return Key(f"{SHARED_FILE}:{row.name}:{owner}" if owner else f"{SHARED_FILE}:{row.name}")


def shared_file_domains(matrix: Matrix, request: Request) -> Iterator[tuple[Key, Callable[[], tuple[Candidate, ...]]]]:
    """Yield every key with a function that returns its candidates."""
    named = {canonicalize_name(Pep508(text).name) for text in request.spec.packages}
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
    """The requirements of versions of distributions that write a shared file."""

    def __init__(self, matrix: Matrix, request: Request) -> None:
        self._matrix = matrix
        self._known: dict[Candidate, tuple[Requirement, ...]] = {}
        self._rows: dict[str, list[tuple[SharedFile, SpecifierSet]]] = {}
        for row in _binding(matrix, request):
            for owner in row.owners:
                self._rows.setdefault(owner.distribution, []).append((row, SpecifierSet(owner.versions)))

    def of(self, candidate: Candidate) -> tuple[Requirement, ...]:
        """Return the keys that a version must own, known without its metadata; the same requirements each time."""
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
        """Yield the keys that a distribution of the spec, without extras, must own in every version."""
        for row, versions in self._rows.get(name, ()):
            if not len(versions):
                yield Requirement(key_of(row, name), Labelled(frozenset({name})), ground)


def shared_file_needs(matrix: Matrix, candidate: Candidate) -> Requirement | None:
    """Return the requirement of a key with `owner`: the owner of its row's file; None for the other keys."""
    _, row_name, owner = (*candidate.key.name.split(":"), "")[:3]
    row = next((row for row in matrix.shared_files if owner and row.name == row_name), None)
    return None if row is None else _ownership(row, owner, "", matrix=matrix)


def runtime_needs(matrix: Matrix, candidate: Candidate) -> Iterator[Requirement]:
    """Yield the files that the CUDA libraries of one of several frameworks own: cuDNN and NCCL have one name for all majors.

    From CUDA 12 on every framework requires wheels of these libraries; earlier some frameworks had them inside.
    """
    major = candidate.version.release[0] if candidate.version.release else 0
    for row in matrix.shared_files if major >= WHEELS_SINCE else ():
        owner = next((one for one in row.owners if one.distribution == f"nvidia-{row.name}-cu{major}"), None)
        if row.name in OF_EVERY_FRAMEWORK and owner is not None and row.refused:
            ground = Entails(
                name="cuda",
                subject=Subject("cuda", candidate.label),
                predicate=WritesFile(row.path, through=owner.distribution, framework=candidate.key.slot),
                relation=Row("shared file", row.name),
                cited=Hazard(matrix.place_of(f"shared-file:{row.name}"), row.because),
            )
            yield Requirement(key_of(row), Labelled(frozenset({owner.distribution})), ground)


def _ownership(row: SharedFile, name: str, label: str, *, matrix: Matrix) -> Requirement:
    """Return the requirement that a distribution owns a file; `label` "" stands for all of its versions."""
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
    """Yield the files that several chosen distributions write and that no row refuses."""
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
                subjects=tuple(Subject(one.key.name, one.label) for one in chosen),
                path=row.path,
                because=row.because,
                source=matrix.place_of(f"shared-file:{row.name}"),
            )
