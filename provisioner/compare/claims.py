"""Claims, the lines of published compatibility tables in one form, and known disagreements of the matrix with them.

A claim is the answer of a table to one of `QUESTIONS` about a subject, such as a release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.strict_model import StrictModel
from provisioner.versions import numbers_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provisioner.versions import Version

QUESTIONS = {
    "driver-floor": "the oldest Linux driver that runs a CUDA release",
    "driver-kernel": "the newest kernel that a distribution's package of a driver release is tested on",
    "driver-major": "whether any driver that knows a CUDA major runs a release of that major",
    "nvcc-target": "the CUDA compilers that know a GPU target",
    "ptx-isa": "the first CUDA release that knows a PTX version",
    "gcc": "the GCC majors a CUDA compiler accepts",
    "clang": "the Clang majors a CUDA compiler accepts",
    "cudnn-cuda": "the CUDA majors a cuDNN release is built for",
    "image": "what an image tag holds",
    "pytorch-cuda": "the CUDA of a PyTorch build",
    "pytorch-python": "the Pythons a PyTorch build or release exists for",
    "rocm-target": "the AMD targets the PyTorch builds of a variant are compiled for",
    "signed-modules": "the driver branches with signed modules for a kernel of a distribution",
    "tensorflow-cuda": "the CUDA and cuDNN of a TensorFlow release",
    "tensorflow-python": "the Pythons a TensorFlow release exists for",
}
"""The questions that claims answer, each with its meaning."""


class Claim(Struct, frozen=True, kw_only=True):
    """One line of a compatibility table that another project published, as the answer to a question about a release.

    `question` is a key of `QUESTIONS`. `subject` is the release or target that the line is about (`cuda 12.6`, `sm_90`), `says`
    the answer in the table, and `scope` the versions that the table covers ("" for all): with `>=3.10` it does not cover older
    Pythons. `line` is its number in the table's file, 0 when unknown.
    """

    question: str
    subject: str
    says: str
    scope: str = ""
    line: int = 0


class Table(Struct, frozen=True, kw_only=True):
    """A published table: its short name (`uv`), title, claims and source.

    `where` is its file in the other project, `read` the day on which it was read.
    """

    name: str
    title: str
    claims: tuple[Claim, ...]
    where: str = ""
    url: str = ""
    read: str = ""


class ClaimEntry(StrictModel, frozen=True, kw_only=True):
    """A `Claim` in a `TableFile`, without the question, which is the key under which the file lists the claim."""

    subject: str
    says: str
    scope: str = ""
    line: int = 0


class TableFile(StrictModel, frozen=True, kw_only=True):
    """The YAML form of a `Table`, with the claims by question; `table` is its short name."""

    table: str
    title: str
    where: str
    url: str
    read: str
    claims: dict[str, tuple[ClaimEntry, ...]]


class Disagreement(StrictModel, frozen=True, kw_only=True):
    """A known disagreement of the matrix with a table, and the reason (`because`) why the matrix is not changed.

    `subject` is that of the claims concerned, and may contain `*`. `says` and `ours`, unless "", must equal the answers of the
    table and the matrix, so that a reason written for one difference never explains another.
    """

    table: str
    question: str
    subject: str
    says: str = ""
    ours: str = ""
    because: str
    source: str = ""


class DisagreementFile(StrictModel, frozen=True, kw_only=True):
    """The YAML form of all known disagreements."""

    disagreements: tuple[Disagreement, ...] = ()


MAJORS = range(3, 30)
"""The compiler majors that are compared: older ones are out of use, newer ones are not released."""


def majors_text(majors: Iterable[int]) -> str:
    """Return majors as text, such as `5 to 9, 11 and newer`; the last of `MAJORS` stands for all later majors, too."""
    parts: list[list[int]] = []
    for major in sorted(majors):
        if parts and parts[-1][-1] == major - 1:
            parts[-1].append(major)
        else:
            parts.append([major])
    shown = []
    for part in parts:
        end = " and newer" if part[-1] == MAJORS[-1] else f" to {part[-1]}" if len(part) > 1 else ""
        shown.append(f"{part[0]}{end}")
    return ", ".join(shown) or "none"


def in_series(version: Version, text: str) -> bool:
    """Return whether a version belongs to a series of one to three numbers, as 12.6.3 belongs to `12.6`."""
    wanted = numbers_of(text)
    return version.release[: len(wanted)] == wanted
