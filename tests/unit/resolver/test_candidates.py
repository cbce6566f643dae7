"""Which builds may be chosen: a name that builds of several platforms share means the one of the request's platform."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.resolver.choices.candidates import candidates_of
from provisioner.resolver.choices.variants import LABELLED_BUILDS
from provisioner.resolver.rules.silence import Silence
from tests import small

if TYPE_CHECKING:
    from provisioner.matrix.model import Matrix


@pytest.mark.parametrize("platform", ["linux/amd64", "linux/arm64", "macos/x86_64", "macos/arm64"])
@pytest.mark.parametrize("accelerator", ["cuda", "rocm", "mps", "cpu"])
def test_a_label_that_a_platform_has_means_no_build_of_another_one(matrix: Matrix, platform: str, accelerator: str) -> None:
    """`2.15.0+cpu` is a wheel of PyPI on macOS and one of the CPU index on Linux; a requirement names the label alone."""
    request = small.request({"python": "==3.12"}, platform=platform, accelerator=accelerator)
    for name in LABELLED_BUILDS:
        builds = [
            (one.label, one.build.platforms)
            for one in candidates_of(matrix.components[name], request, silence=Silence(matrix, request))
            if one.build is not None
        ]
        own = {label for label, platforms in builds if not platforms or platform in platforms}
        assert [label for label, platforms in builds if label in own and platforms and platform not in platforms] == []
