"""Which libraries of the system a wheel needs, from what its libraries link to."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from packaging.version import Version

from provisioner.curate.system_wheels import derive_system_wheels, system_links
from provisioner.curate.wheel_index import Wheel, WheelIndex
from provisioner.index.model import IndexFile
from provisioner.matrix.files import SystemWheelFile
from provisioner.matrix.model import SystemSurvey, SystemWheel
from provisioner.measure.links import LinkedLibrary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def library(path: str, *needed: str, soname: str = "") -> LinkedLibrary:
    return LinkedLibrary(path=path, soname=soname, needed=needed)


def test_a_module_needs_what_it_and_the_libraries_below_it_link_to() -> None:
    libraries = (
        library("cv2/cv2.abi3.so", "libavcodec-1a2b3c4d.so.59", "libGL.so.1"),
        library("opencv.libs/libavcodec-1a2b3c4d.so.59", "libxcb.so.1", soname="libavcodec-1a2b3c4d.so.59"),
    )
    assert system_links(libraries) == ("libGL.so.1", "libxcb.so.1")


def test_a_library_that_python_code_opens_is_needed_too() -> None:
    assert system_links((library("lightgbm/lib/lib_lightgbm.so", "libgomp.so.1"),)) == ("libgomp.so.1",)


def test_plug_ins_are_loaded_on_request_but_that_for_x11_is_by_default() -> None:
    libraries = (
        library("PyQt6/Qt6/plugins/sqldrivers/libqsqlodbc.so", "libodbc.so.2"),
        library("PyQt6/Qt6/plugins/platforms/libqxcb.so", "libQt6XcbQpa.so.6"),
        library("PyQt6/Qt6/lib/libQt6XcbQpa.so.6", "libxcb-cursor.so.0", soname="libQt6XcbQpa.so.6"),
    )
    assert system_links(libraries) == ("libxcb-cursor.so.0",)


def test_what_a_survey_names_is_loaded_on_use() -> None:
    libraries = (library("numba/_dispatcher.so", "libc.so.6"), library("numba/np/ufunc/omppool.so", "libgomp.so.1"))
    assert system_links(libraries, on_use=["ufunc/omppool"]) == ("libc.so.6",)


def test_libraries_of_gpus_are_measured_elsewhere() -> None:
    assert system_links((library("a/_C.so", "libcudart.so.12", "libtorch_cpu.so", "libnuma.so.1"),)) == ("libnuma.so.1",)


def test_what_wheels_of_qt_and_drivers_bring_is_no_library_of_the_system() -> None:
    needed = ("libQt6Core.so.6", "libshiboken6.abi3.so.6.3", "libcuda.so.1", "libpython3.9.so.1.0", "ld-linux-x86-64.so.2")
    assert system_links((library("a/_C.so", *needed, "libssh2.so.1"),)) == ("libssh2.so.1",)


class OneWheel:
    """An index with one wheel, which links to three libraries of the system."""

    def wheels(self, name: str) -> list[Wheel]:
        tag = "cp311-cp311-manylinux_2_28_x86_64"
        file = IndexFile(filename=f"{name}-1.0-{tag}.whl", url="https://files.example/1", index="pypi", sha256="0" * 64)
        return [Wheel(project=name, version=Version("1.0"), text="1.0", tag=tag, build=(0, ""), file=file)]

    def linked(self, _: IndexFile) -> tuple[LinkedLibrary, ...]:
        return (library("demo/_C.so", "libc.so.6", "libGL.so.1", "libunheard.so.7"),)

    def side_by_side(
        self, rows: Callable[[SystemSurvey], list[SystemWheel]], surveys: Sequence[SystemSurvey]
    ) -> list[list[SystemWheel]]:
        return [rows(survey) for survey in surveys]


def test_a_library_without_a_row_is_kept_by_its_name() -> None:
    old = SystemWheelFile(surveys=(SystemSurvey(distribution="demo"),))
    index = cast("WheelIndex", OneWheel())
    found = derive_system_wheels(old, index, everywhere={"libc.so.6"}, today="2026-11-27", measure=True)
    assert [row.links for row in found.file.wheels] == [("libGL.so.1", "libunheard.so.7")]
