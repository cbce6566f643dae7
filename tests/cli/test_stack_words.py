"""The lines of an answer about its image, and about what computes on the CPU."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from provisioner.cli.stack_words import answer_lines
from provisioner.grounds.relaxation import CpuOnly, FrameworkOnCpu
from provisioner.grounds.requirement import Subject
from provisioner.index.model import IndexFile
from provisioner.resolver.stack import BaseImage, RuntimeImage
from provisioner.spec.model import Spec
from tests.lock_examples import cuda_stack, with_file

DEVEL = BaseImage(
    reference="nvidia/cuda:12.6.3-devel-ubuntu24.04", runtime=RuntimeImage(reference="nvidia/cuda:12.6.3-runtime")
)
SENTENCE = "image builds on nvidia/cuda:12.6.3-devel-ubuntu24.04 and ships nvidia/cuda:12.6.3-runtime"


@pytest.mark.parametrize(("filename", "is_told"), [("six-1.17.0.tar.gz", True), ("six-1.17.0-py3-none-any.whl", False)])
def test_an_image_that_is_shipped_in_place_of_the_base_is_told_where_something_is_built(
    filename: str, *, is_told: bool
) -> None:
    file = IndexFile(filename=filename, url=f"https://example.org/{filename}", index="x", sha256="5" * 64)
    stack = with_file(replace(cuda_stack(), image=DEVEL), "six", file)
    assert (SENTENCE in [line.text for line in answer_lines(stack, Spec())]) is is_told


def test_the_first_line_names_what_was_asked_for_and_computes_on_the_cpu_beside_a_gpu() -> None:
    on_cpu = (
        CpuOnly(component="onnxruntime", subject=Subject("onnxruntime", "1.32.0"), gpu_twin="onnxruntime-gpu", source=None),
        CpuOnly(component="av", subject=Subject("av", "1.0"), gpu_twin="", needed_by="other", source=None),
        FrameworkOnCpu(
            component="jax", subject=Subject("jax", "0.12.0"), accelerator="cuda", install="jax[cuda13]", source=None
        ),
    )
    first, *_ = answer_lines(replace(cuda_stack(), relaxations=on_cpu), Spec())
    assert ", onnxruntime and jax on the CPU alone" in first.text
