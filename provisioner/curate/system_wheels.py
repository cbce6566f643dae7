"""What the libraries in a wheel link to and the wheel does not contain: facts, from its libraries, and rows of the matrix.

A library that a Python program imports, or that one of these links to, must be there for the import. What only plug-ins of the
wheel link to is needed when a program asks for that plug-in.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.curate.derive import GENERATED
from provisioner.curate.gpu_wheels import covered, grouped
from provisioner.curate.surveys import one_wheel_a_release, survey_rows
from provisioner.matrix.files import SystemWheelFile  # noqa: TC001 - msgspec reads the annotation at run time
from provisioner.matrix.model import Citation, SystemWheel, WheelSurvey
from provisioner.measure import UnreadableArtefactError
from provisioner.measure.scan import SONAME
from provisioner.platforms import LINUX_PLATFORMS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from provisioner.curate.wheel_index import Wheel, WheelIndex
    from provisioner.matrix.model import SystemSurvey
    from provisioner.measure.links import LinkedLibrary

SYSTEM_WHEELS = "system-wheels"
"""The name that selects the file in a refresh, used like the name of a component."""

SOURCE = "linked-libraries"

HEADER = f"""\
The libraries of the system that wheels link to and do not contain.
{GENERATED} {SYSTEM_WHEELS} --measure`, not by hand, except `surveys`, which say what is measured.
What was measured in a wheel is kept while its name and hash are the same; without --measure nothing is measured."""

CITATION = Citation(
    title="wheels on the package index, those named under `artefacts`",
    where=(
        "DT_NEEDED of the libraries in the wheels at both ends of `versions`, which are equal; releases between them were not "
        "read. Libraries of other wheels and GPU drivers are left out, and what only plug-ins, except Qt's for X11, link to"
    ),
    url="https://pypi.org/",
    measured=True,
)

PLUG_INS = "/plugins/"
X11_PLUG_IN = "/platforms/libqxcb.so"
"""The plug-in that a Qt application loads unless it asks for another one. Source: Qt, "Qt Platform Abstraction"."""


OF_OTHERS = re.compile(
    r"ld-linux[\w-]*\.so\.\d|libpython[\w.]+|lib(?:cuda|nvidia-ml)\.so\.\d+"
    r"|libQt[56]\w*\.so\.\d+|lib(?:pyside6|shiboken6)\.abi3\.so[\d.]*|libtvm_ffi\.so|libz3\.so[\d.]*"
)
"""The loader and Python's own library, those of a GPU's driver, and those that wheels of Qt, TVM and Z3 bring to others."""


def system_links(libraries: Sequence[LinkedLibrary], *, on_use: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the names of the libraries outside of a wheel that its libraries link to; sorted.

    Left out are those of GPUs, and those that wheels of their own bring.

    `on_use` are parts of paths; libraries with such a path are loaded on use only, like plug-ins.
    """
    own: dict[str, LinkedLibrary] = {}
    for one in libraries:
        own |= {one.filename: one, one.soname or one.filename: one}
    parts = tuple(on_use)
    apart = {one.path for one in libraries if _is_plug_in(one) or any(part in one.path for part in parts)}
    linked_to = {name for one in libraries for name in one.needed}
    # Libraries that nothing in the wheel links to are imported, or opened by Python code.
    roots = [one for one in libraries if one.path not in apart and not {one.filename, one.soname} & linked_to]
    reached = _closure(roots, own)
    return tuple(sorted({name for one in reached for name in one.needed if not _is_of_others(name)} - own.keys()))


def _is_of_others(name: str) -> bool:
    return bool(SONAME.fullmatch(name) or OF_OTHERS.fullmatch(name))


def _is_plug_in(library: LinkedLibrary) -> bool:
    path = f"/{library.path}"
    return PLUG_INS in path and not path.endswith(X11_PLUG_IN)


def _closure(roots: Iterable[LinkedLibrary], own: dict[str, LinkedLibrary]) -> list[LinkedLibrary]:
    """Return libraries with all libraries of the same wheel that they link to, directly or through others."""
    found: dict[str, LinkedLibrary] = {}
    waiting = list(roots)
    while waiting:
        one = waiting.pop()
        if one.path not in found:
            found[one.path] = one
            waiting.extend(own[name] for name in one.needed if name in own)
    return list(found.values())


class DerivedSystemWheels(Struct, frozen=True, kw_only=True):
    """The newly derived content of the file; `notes` are messages about wheels that could not be measured.

    `unread` are messages about distributions that could not be read from the index, whose rows are those of the old file.
    """

    file: SystemWheelFile
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def derive_system_wheels(
    old: SystemWheelFile, index: WheelIndex, *, everywhere: Collection[str], today: str, measure: bool, keep_going: bool = False
) -> DerivedSystemWheels:
    """Return the file `old` with its rows derived from an index; with `measure`, wheels not measured before are measured.

    Rows list all libraries but those in `everywhere`, which every base image has: also one that the
    matrix knows no package for, so that nobody takes it for there. With `keep_going`, a distribution that cannot be read from
    the index keeps its rows; otherwise `UnavailableError` is raised.
    """
    measured = {artefact: row.links for row in old.wheels for artefact in row.artefacts.items()}
    notes: list[str] = []

    def rows(asked: SystemSurvey) -> list[SystemWheel]:
        def links(wheel: Wheel) -> tuple[str, ...] | None:
            try:
                found = system_links(index.linked(wheel.file), on_use=asked.on_use)
            except UnreadableArtefactError as error:
                notes.append(error.message)
                return None
            return tuple(name for name in found if name not in everywhere)

        survey = WheelSurvey(distribution=asked.distribution, versions=asked.versions, most=asked.most)
        found: list[SystemWheel] = []
        for platform in LINUX_PLATFORMS:
            wheels = one_wheel_a_release(index, asked.distribution, platform, known=measured)
            most = (asked.most if platform == LINUX_PLATFORMS[0] else asked.most // 2) if measure else 0
            for some, facts in grouped(survey, wheels, old=measured, measure=links, most=most):
                found.append(
                    SystemWheel(
                        distribution=asked.distribution,
                        versions=covered(some),
                        platforms=(platform,),
                        links=facts,
                        artefacts={wheel.file.filename: wheel.file.sha256 for wheel in (some[-1], some[0])},
                        source=(SOURCE,),
                    )
                )
        return found

    wheels, unread = survey_rows(index, old.surveys, rows, name=SYSTEM_WHEELS, old=old.wheels, keep_going=keep_going)
    changed = wheels != old.wheels
    citation = replace(CITATION, read=today) if changed or SOURCE not in old.sources else old.sources[SOURCE]
    file = replace(old, sources={**old.sources, SOURCE: citation} if wheels else {}, wheels=wheels)
    return DerivedSystemWheels(file=file, notes=tuple(sorted(notes)), unread=unread)


def lost_system_wheels(old: SystemWheelFile, new: SystemWheelFile) -> tuple[str, ...]:
    """Return the distributions and platforms of `old` without any row in `new`, each as `opencv-python linux/amd64`."""
    now = {(row.distribution, row.platforms) for row in new.wheels}
    gone = dict.fromkeys(
        (row.distribution, row.platforms) for row in old.wheels if (row.distribution, row.platforms) not in now
    )
    return tuple(f"{name} {', '.join(platforms)}" for name, platforms in gone)
