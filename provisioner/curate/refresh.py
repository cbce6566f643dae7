"""Derivation of the generated matrix files from a package index, keeping facts measured before.

Nothing is written to disk here; the result is checked, so that the matrix can be loaded with it.
"""

from __future__ import annotations

import difflib
from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.curate.derive import GENERATED, Session
from provisioner.curate.derive_jax import JAX
from provisioner.curate.derive_nvidia import NVIDIA
from provisioner.curate.derive_python_builds import HEADER as PYTHON_BUILDS_HEADER
from provisioner.curate.derive_python_builds import PYTHON_BUILDS, derive_python_builds
from provisioner.curate.derive_pytorch import PYTORCH, TRITON
from provisioner.curate.derive_tensorflow import TENSORFLOW
from provisioner.curate.derive_wheels import HEADER, WHEELS, derive_wheels, lost_rows
from provisioner.curate.image_tags import IMAGES, add_images
from provisioner.curate.keep import losses, with_kept_facts
from provisioner.curate.rows import file_text
from provisioner.curate.system_wheels import HEADER as SYSTEM_WHEELS_HEADER
from provisioner.curate.system_wheels import SYSTEM_WHEELS, derive_system_wheels, lost_system_wheels
from provisioner.document import parse_document, parse_model
from provisioner.errors import RefusedError, UnavailableError, UsageError
from provisioner.matrix.check import check
from provisioner.matrix.files import (
    KIND,
    ComponentFile,
    ImageFile,
    Parsed,
    PythonBuildFile,
    SystemWheelFile,
    WheelFile,
    read_files,
)
from provisioner.matrix.location import INDEX
from provisioner.names import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from provisioner.curate.derive import Deriver
    from provisioner.curate.derive_wheels import DerivedWheels
    from provisioner.curate.system_wheels import DerivedSystemWheels
    from provisioner.curate.wheel_index import WheelIndex
    from provisioner.matrix.files import MatrixFiles

DERIVERS: dict[str, Deriver] = {one.component: one for one in (PYTORCH, TENSORFLOW, JAX, TRITON, *NVIDIA)}
"""The deriver of each component whose file can be generated."""


APART: dict[str, type[WheelFile | SystemWheelFile | ImageFile | PythonBuildFile]] = {
    WHEELS: WheelFile,
    SYSTEM_WHEELS: SystemWheelFile,
    IMAGES: ImageFile,
    PYTHON_BUILDS: PythonBuildFile,
}
"""Name of a file that is no component's -> the type of its content."""


class ShrunkenTableError(RefusedError):
    """Raised when the index lacks rows that the matrix has, and the user did not allow their removal."""

    code = "shrunken-table"


class UnloadableMatrixError(RefusedError):
    """Raised when the derived rows do not fit the matrix: a repeated release, or a need that no release meets."""

    code = "unloadable-matrix"


class Options(Struct, frozen=True, kw_only=True):
    """The options of a refresh; `today` is an ISO date.

    With `measure`, facts of new artefacts that cost little to read are measured. With `keep_going`, a file whose projects
    cannot be read from the index stays as it is, and so does a file that would lose rows; in the file of GPU wheels, the rows
    of a distribution that cannot be read stay as they are. With `allow_removals`, rows that the index lacks are removed.
    """

    today: str
    allow_removals: bool = False
    measure: bool = False
    keep_going: bool = False


class Refreshed(Struct, frozen=True, kw_only=True):
    """One refreshed file: its path, its name for messages, and its text before and after the refresh.

    `releases` and `builds` are the numbers of releases and builds in the file; for the file of GPU wheels (`component` is
    `wheels`), they are the numbers of rows and wheels, for that of base images (`images`) the number of rows and 0. `lost` are
    the rows of the old file that the new one lacks. `notes` are messages about measured facts that were dropped because their
    artefact changed, about wheels that could not be measured, and about tags that no row can be made of; `unread` are messages
    about parts of the file that stayed as they were.
    """

    component: str
    path: Path
    name: str
    before: str
    after: str
    releases: int
    builds: int
    lost: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def is_changed(self) -> bool:
        """Whether the new text differs from the file on disk."""
        return self.before != self.after

    @property
    def diff(self) -> str:
        """The change as a unified diff; "" when the file is unchanged."""
        lines = difflib.unified_diff(
            self.before.splitlines(keepends=True),
            self.after.splitlines(keepends=True),
            fromfile=f"a/{self.name}",
            tofile=f"b/{self.name}",
        )
        return "".join(lines)


def refresh(directory: Path, components: Sequence[str], index: WheelIndex, *, options: Options) -> tuple[Refreshed, ...]:
    """Derive the matrix files of `components` from an index; without components, all in `DERIVERS` and `APART`.

    Raises `UsageError` for an unknown component or one that is curated by hand, `ShrunkenTableError` when rows are lost without
    `allow_removals`, `UnloadableMatrixError` when the result is inconsistent, and the errors of reading the index.
    """
    files = read_files(directory)
    of_components = [name for name in components if name not in APART]
    wanted = _wanted(files, of_components) if of_components or not components else []
    found = [_one(files, deriver, index, options) for deriver in wanted]
    for name, apart in ((WHEELS, _wheels), (SYSTEM_WHEELS, _system_wheels), (IMAGES, _images), (PYTHON_BUILDS, _python_builds)):
        if getattr(files.index.content, _attribute(name)) and (not components or name in components):
            found.append(apart(files, index, options))
    if options.keep_going and not options.allow_removals:
        found = [_unless_rows_are_lost(one) for one in found]
    lost = [f"{one.name}: {row}" for one in found for row in one.lost]
    if lost and not options.allow_removals:
        noun = "row" if len(lost) == 1 else "rows"
        raise ShrunkenTableError(
            f"the index lacks {len(lost)} {noun} that the matrix has",
            causes=tuple(lost),
            hints=("yanked files count as gone; pass --allow-removals to take them out of the matrix",),
        )
    _require_loadable(files, found)
    return tuple(found)


def _wanted(files: MatrixFiles, components: Sequence[str]) -> list[Deriver]:
    known = files.index.content.components
    refreshed = sorted([*(DERIVERS.keys() & known.keys()), *APART])
    for name in components:
        if name not in known:
            near = nearest(name, refreshed) or nearest(name, known)
            hint = f"did you mean `{near}`?" if near else f"can be refreshed: {', '.join(refreshed)}"
            raise UsageError(f"there is no component `{name}` in this matrix", hints=(hint,))
        if name not in DERIVERS:
            file = next(iter(known[name].files), INDEX)
            raise UsageError(
                f"`{name}` is curated by hand: {files.directory.name}/{file}",
                causes=("no package index tells of it",),
                hints=(f"can be refreshed: {', '.join(refreshed)}",),
            )
    return [DERIVERS[name] for name in known if name in DERIVERS and (not components or name in components)]


def _one(files: MatrixFiles, deriver: Deriver, index: WheelIndex, options: Options) -> Refreshed:
    name = files.index.content.components[deriver.component].files[0]
    path = files.directory / name
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    part = next((one for one in files.components[deriver.component] if one.name == name), None)
    if part is None and before:
        wrong = tuple(str(mistake) for mistake in files.mistakes if mistake.file == str(path))
        raise UnloadableMatrixError(
            f"{files.directory.name}/{name} cannot be read, so nothing of it could be kept", causes=wrong
        )
    old = part.content if part is not None else ComponentFile()
    if old.releases and GENERATED not in before:
        raise UsageError(
            f"{files.directory.name}/{name} was not generated, and would be overwritten",
            hints=("move what is in it to another file of the component, named after this one in matrix.yaml",),
        )
    session = Session(index=index, today=options.today, old=old)
    try:
        derived, dropped = with_kept_facts(old, deriver.derive(session))
        if options.measure:
            derived = deriver.measure(session, derived)
    except UnavailableError as error:
        if not options.keep_going:
            raise
        return Refreshed(
            component=deriver.component,
            path=path,
            name=f"{files.directory.name}/{name}",
            before=before,
            after=before,
            releases=len(old.releases),
            builds=len(old.builds),
            unread=("; ".join((f"{deriver.component}: {error.message}", *error.causes)),),
        )
    return Refreshed(
        component=deriver.component,
        path=path,
        name=f"{files.directory.name}/{name}",
        before=before,
        after=file_text(derived, header=deriver.header),
        releases=len(derived.releases),
        builds=len(derived.builds),
        lost=losses(old, derived),
        notes=dropped,
    )


def _unless_rows_are_lost(one: Refreshed) -> Refreshed:
    """Return `one` unchanged if no rows were lost; else with the old text, and a message about each lost row in `unread`."""
    if not one.lost:
        return one
    kept = tuple(f"{one.component}: the index lacks {row}, so that {one.name} is as it was" for row in one.lost)
    return replace(one, after=one.before, lost=(), unread=(*one.unread, *kept))


def _wheels(files: MatrixFiles, index: WheelIndex, options: Options) -> Refreshed:
    old = files.wheels.content
    found = derive_wheels(old, index, today=options.today, measure=options.measure, keep_going=options.keep_going)
    return replace(_with_wheels(_unchanged(files, WHEELS), found, header=HEADER), lost=lost_rows(old, found.file))


def _system_wheels(files: MatrixFiles, index: WheelIndex, options: Options) -> Refreshed:
    old = files.system_wheels.content
    everywhere = {row.soname for row in files.system_packages.content.libraries if row.everywhere}
    found = derive_system_wheels(
        old, index, everywhere=everywhere, today=options.today, measure=options.measure, keep_going=options.keep_going
    )
    file = _with_wheels(_unchanged(files, SYSTEM_WHEELS), found, header=SYSTEM_WHEELS_HEADER)
    return replace(file, lost=lost_system_wheels(old, found.file))


def _with_wheels(file: Refreshed, found: DerivedWheels | DerivedSystemWheels, *, header: str) -> Refreshed:
    """Return a file of `APART` with the rows of wheels that were derived for it."""
    derived = found.file
    return replace(
        file,
        after=file_text(derived, header=header),
        releases=len(derived.wheels),
        builds=sum(len(row.artefacts) for row in derived.wheels),
        notes=found.notes,
        unread=found.unread,
    )


def _images(files: MatrixFiles, index: WheelIndex, options: Options) -> Refreshed:
    file, old = _unchanged(files, IMAGES), files.images.content
    found = add_images(file.before, old, index, today=options.today, keep_going=options.keep_going)
    releases = len(old.images) + found.rows
    return replace(file, after=found.text, releases=releases, notes=found.notes, unread=found.unread)


def _python_builds(files: MatrixFiles, index: WheelIndex, options: Options) -> Refreshed:
    file, derived = _unchanged(files, PYTHON_BUILDS), files.python_builds.content
    if derived.latest:
        try:
            derived = derive_python_builds(derived, index, today=options.today)
            file = replace(file, after=file_text(derived, header=PYTHON_BUILDS_HEADER))
        except UnavailableError as error:
            if not options.keep_going:
                raise
            file = replace(file, unread=("; ".join((f"{PYTHON_BUILDS}: {error.message}", *error.causes)),))
    return replace(file, releases=len({str(row.version) for row in derived.builds}), builds=len(derived.builds))


def _unchanged(files: MatrixFiles, component: str) -> Refreshed:
    """Return a file of `APART` as it is on disk."""
    name = getattr(files.index.content, _attribute(component))
    path = files.directory / name
    before = path.read_text(encoding="utf-8")
    return Refreshed(
        component=component, path=path, name=f"{files.directory.name}/{name}", before=before, after=before, releases=0, builds=0
    )


def _attribute(name: str) -> str:
    """Return the name that a file of `APART` has in `MatrixFile` and `MatrixFiles`."""
    return name.replace("-", "_")


def _require_loadable(files: MatrixFiles, found: Sequence[Refreshed]) -> None:
    """Raise `UnloadableMatrixError` when the derived files (`found`) add an inconsistency to the matrix (`files`)."""
    changed = [one for one in found if one.is_changed]
    if not changed:
        return
    # Lines and key paths move when a file grows.
    before = Counter((mistake.file, mistake.text) for mistake in check(files))
    new = []
    for mistake in check(_with(files, changed)):
        if before[mistake.file, mistake.text]:
            before[mistake.file, mistake.text] -= 1
        else:
            new.append(mistake)
    if new:
        raise UnloadableMatrixError(
            "the matrix could not be loaded with what the index says",
            causes=tuple(str(mistake) for mistake in sorted(new)),
            hints=("add what is missing to the files curated by hand, or refresh the components named there too",),
        )


def _with(files: MatrixFiles, changed: Sequence[Refreshed]) -> MatrixFiles:
    components = dict(files.components)
    apart: dict[str, object] = {}
    for one in changed:
        document = parse_document(one.after, file=str(one.path), kind=KIND)
        if one.component in APART:
            content = parse_model(document, APART[one.component], kind=KIND)
            name = _attribute(one.component)
            apart[name] = Parsed(files.directory, getattr(files, name).name, document, content)
            continue
        name = files.index.content.components[one.component].files[0]
        fresh = Parsed(files.directory, name, document, parse_model(document, ComponentFile, kind=KIND))
        components[one.component] = (fresh, *(part for part in files.components[one.component] if part.name != name))
    return replace(files, components=components, **apart)
