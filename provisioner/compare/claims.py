"""What other published tables claim, in one form: question, subject, answer and place; and the disagreements that are known."""

from __future__ import annotations

from msgspec import Struct

from provisioner.strict_model import StrictModel

QUESTIONS = {
    "driver-floor": "the oldest Linux driver that runs a CUDA release",
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
    "tensorflow-cuda": "the CUDA and cuDNN of a TensorFlow release",
    "tensorflow-python": "the Pythons a TensorFlow release exists for",
}
"""Every question a claim may answer, in words."""


class Claim(Struct, frozen=True, kw_only=True):
    """One line of somebody's table.

    `subject` is what it is about (`cuda 12.6`, `sm_90`), `says` the answer, `scope` the part of the question the whole table
    speaks about (`>=3.10`: it lists no older Python at all), `line` its place.
    """

    question: str
    subject: str
    says: str
    scope: str = ""
    line: int = 0


class Table(Struct, frozen=True, kw_only=True):
    """A published table: its short name (`uv`), what it is, where it was published, and its claims."""

    name: str
    title: str
    claims: tuple[Claim, ...]
    where: str = ""
    url: str = ""
    read: str = ""


class ClaimEntry(StrictModel, frozen=True, kw_only=True):
    """A `Claim` in a `TableFile`, which has its question as a key."""

    subject: str
    says: str
    scope: str = ""
    line: int = 0


class TableFile(StrictModel, frozen=True, kw_only=True):
    """The YAML of a `Table`: where it stood, when it was read, and its claims by question."""

    table: str
    title: str
    where: str
    url: str
    read: str
    claims: dict[str, tuple[ClaimEntry, ...]]


class Disagreement(StrictModel, frozen=True, kw_only=True):
    """Why a table differs from this matrix and the matrix stays as it is.

    `subject` may hold `*`; `says` and `ours`, where given, must be exactly what is found, so that a reason written for one
    difference never covers another one.
    """

    table: str
    question: str
    subject: str
    says: str = ""
    ours: str = ""
    because: str
    source: str = ""


class DisagreementFile(StrictModel, frozen=True, kw_only=True):
    """The YAML of every known disagreement."""

    disagreements: tuple[Disagreement, ...] = ()
