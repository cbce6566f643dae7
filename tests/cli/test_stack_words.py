"""The lines of an answer about its image."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from provisioner.cli.stack_words import answer_lines
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
