"""The deriver of the matrix file about GPU wheels (wheels with GPU code); it measures wheels of the distributions in `surveys`.

`surveys` is a section of the file itself. Without measuring, the deriver only checks that the measured wheels are still on the
index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from packaging.specifiers import SpecifierSet

from provisioner.curate.derive import GENERATED
from provisioner.curate.gpu_wheels import SOURCE, Facts, facts, facts_of, survey
from provisioner.curate.surveys import one_wheel_a_release, survey_rows
from provisioner.index.pages.filename import parse_filename
from provisioner.matrix.files import WheelFile  # noqa: TC001 - msgspec reads the annotation at run time
from provisioner.matrix.model import Citation
from provisioner.measure import UnreadableArtefactError
from provisioner.platforms import LINUX_PLATFORMS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provisioner.curate.wheel_index import Wheel, WheelIndex
    from provisioner.index.model import IndexFile
    from provisioner.matrix.model import GpuWheel, WheelSurvey

WHEELS = "wheels"
"""The name that selects the file of GPU wheels in a refresh or an audit, used like the name of a component."""

WHOLE_UP_TO = 150 << 20
"""The size in bytes up to which all of a wheel is measured; in a larger wheel, large libraries are measured in part."""

HEADER = f"""\
The GPU code in the wheels of Python distributions, and the libraries for GPUs that they link to, load and contain.
{GENERATED} {WHEELS} --measure`, not by hand, except `surveys`, which say what is measured.
What was measured in a wheel is kept while its name and hash are the same; without --measure nothing is measured."""

CITATION = Citation(
    title="wheels on the package index, those named under `artefacts`",
    where=(
        "fat binaries, dynamic sections, texts and the stored version of the CUDA runtime in the libraries of the wheels at "
        "both ends of `versions`, which are equal; releases between them were not read. Libraries above 24 MB of wheels above "
        "150 MB are read until 10 MB of them bring no further target; `runpath` of ranges measured before 2026-11-23 was read "
        "in one of the two wheels"
    ),
    url="https://pypi.org/",
    measured=True,
)


def is_read_whole(file: IndexFile) -> bool:
    """Return whether a wheel is small enough to be measured to the end of each library."""
    return file.size is not None and file.size <= WHOLE_UP_TO


def lost_rows(old: WheelFile, new: WheelFile) -> tuple[str, ...]:
    """Return the rows of `old` that are lost, each as `torchao >=0.9,<=0.10`.

    A row is lost if it names a wheel that no row of `new` names and whose version no row of `new` covers.
    """
    return tuple(f"{row.distribution} {row.versions}" for row in old.wheels if not _is_kept(row, new.wheels))


def _is_kept(row: GpuWheel, now: Iterable[GpuWheel]) -> bool:
    later = [one for one in now if one.distribution == row.distribution and one.platforms == row.platforms]
    named = {artefact for one in later for artefact in one.artefacts}
    # A row that grew by a release no longer names the wheel that was its newest, and stands for it nevertheless.
    names = [parse_filename(artefact, row.distribution) for artefact in row.artefacts if artefact not in named]
    return all(name is not None and any(name.version in SpecifierSet(one.versions) for one in later) for name in names)


class DerivedWheels(Struct, frozen=True, kw_only=True):
    """The newly derived content of the file of GPU wheels; `notes` are messages about wheels that could not be measured.

    `unread` are messages about distributions that could not be read from the index, whose rows are those of the old file.
    """

    file: WheelFile
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def derive_wheels(old: WheelFile, index: WheelIndex, *, today: str, measure: bool, keep_going: bool = False) -> DerivedWheels:
    """Return the file `old` with its rows derived from an index; with `measure`, wheels not measured before are measured.

    With `keep_going`, a distribution that cannot be read from the index keeps its rows; otherwise `UnavailableError` is raised.
    """
    known = {artefact: facts_of(row) for row in old.wheels for artefact in row.artefacts.items()}
    notes: list[str] = []

    def rows(asked: WheelSurvey) -> list[GpuWheel]:
        def measured(wheel: Wheel) -> Facts | None:
            try:
                measurement = index.measurement(wheel.file, is_full=is_read_whole(wheel.file))
            except UnreadableArtefactError as error:
                notes.append(error.message)
                return None
            if wheel.tag.endswith("-any") and not measurement.libraries:
                return None  # its libraries may be for another system, or written when it runs
            return facts(asked.distribution, measurement)

        found: list[GpuWheel] = []
        for platform in LINUX_PLATFORMS:
            is_first = platform == LINUX_PLATFORMS[0]
            wheels = one_wheel_a_release(
                index, asked.distribution, platform, known=known, of_any_platform=asked.of_any_platform and is_first
            )
            most = (asked.most if is_first else max(asked.most // 3, 1)) if measure else 0
            found += survey(asked, platform, wheels, old=known, measure=measured, most=most)
        return found

    wheels, unread = survey_rows(index, old.surveys, rows, name=WHEELS, old=old.wheels, keep_going=keep_going)
    changed = wheels != old.wheels
    citation = replace(CITATION, read=today) if changed or SOURCE not in old.sources else old.sources[SOURCE]
    sources = {**old.sources, SOURCE: citation} if wheels else {}
    file = replace(old, sources=sources, wheels=wheels)
    return DerivedWheels(file=file, notes=tuple(sorted(notes)), unread=unread)
