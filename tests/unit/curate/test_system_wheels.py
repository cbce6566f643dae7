"""Which libraries of the system a wheel needs, from what its libraries link to."""

from __future__ import annotations

from provisioner.curate.system_wheels import system_links
from provisioner.measure.links import LinkedLibrary


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
