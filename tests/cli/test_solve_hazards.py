"""`provision solve` where packages do not go together although their metadata says so: whole screens."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.project import Outcome, changed

if TYPE_CHECKING:
    from tests.project import Project

BECAUSE = (
    "each has other execution providers, and all are the module onnxruntime: "
    "the one installed last decides whether a GPU is used"
)
FILE = "onnxruntime/capi/build_and_package_info.py"


def unnumbered(outcome: Outcome) -> str:
    """What was said, without the lines of the matrix, which move."""
    return re.sub(r"(hazards\.yaml):\d+", r"\1:N", outcome.err)


def test_two_packages_that_write_one_file_are_refused_and_each_can_be_left_out(project: Project) -> None:
    for name in ("onnxruntime", "onnxruntime-gpu"):
        project.index.add_wheel(name, "1.31.1")
    project.spec("[onnxruntime, onnxruntime-gpu]")
    outcome = project.run("solve")
    assert (outcome.code, outcome.out) == (1, "")
    assert unnumbered(outcome) == (
        "error: onnxruntime and onnxruntime-gpu exclude each other  [no-stack]\n"
        "  you require onnxruntime  (provision.yaml:8)\n"
        "  you require onnxruntime-gpu  (provision.yaml:8)\n"
        f"  onnxruntime writes files such as {FILE}; onnxruntime-gpu writes files such as {FILE}"
        f"  (matrices/hazards.yaml:N: {BECAUSE})\n"
        "  so no onnxruntime is left that goes with onnxruntime-gpu\n"
        "\n"
        "hint: leaving out `onnxruntime` would do: gives onnxruntime-gpu 1.31.1, python 3.12\n"
        "hint: leaving out `onnxruntime-gpu` would do: gives onnxruntime 1.31.1, python 3.12\n"
    )


def test_what_the_matrix_does_not_refuse_is_named_once(project: Project) -> None:
    for name in ("opencv-python", "opencv-python-headless"):
        project.index.add_wheel(name, "5.0.0.93")
    project.spec("[opencv-python, opencv-python-headless]")
    outcome = project.run("solve", "--format", "json")
    (relaxed,) = (one for one in outcome.json["relaxations"] if one["name"] == "shared-files")
    assert outcome.code == 0
    assert (relaxed["name"], relaxed["component"]) == ("shared-files", "opencv-python")
    assert relaxed["text"] == (
        "opencv-python 5.0.0.93 and opencv-python-headless 5.0.0.93 write files such as cv2/version.py, and the one installed "
        "last is in effect: all are the module cv2, with and without windows and extra modules: its documentation says to "
        "install one of them"
    )


def test_a_lock_that_was_made_before_a_hazard_was_known_is_stale(project: Project) -> None:
    project.index.add_wheel("opencv-python", "5.0.0.93")
    project.index.add_wheel("opencv-python-headless", "5.0.0.93")
    project.spec("[opencv-python, opencv-python-headless]")
    assert project.run("solve").code == 0
    project.write(changed("packages: [opencv-python, opencv-python-headless]", "policy: {forbid: [shared-files]}"))
    outcome = project.run("check")
    assert outcome.code == 1
    assert "opencv-python 5.0.0.93 and opencv-python-headless 5.0.0.93 write files such as cv2/version.py" in outcome.out
