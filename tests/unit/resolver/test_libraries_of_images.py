"""Which libraries of CUDA are in NVIDIA's base images, by the kind of the image."""

from __future__ import annotations

import pytest

from provisioner.request import Request
from provisioner.resolver.problem import join
from provisioner.resolver.python.libraries import Libraries
from provisioner.resolver.python.wheels import GpuWheels
from provisioner.resolver.requirement import PACKAGE, Key
from provisioner.spec.model import Spec
from tests.shipped import shipped


@pytest.mark.parametrize(("kind", "has_cupti"), [("cuda-base", False), ("cuda-runtime", False), ("cuda-devel", True)])
def test_cupti_is_in_the_images_for_compiling_alone(kind: str, *, has_cupti: bool) -> None:
    problem = join(shipped(), Request(spec=Spec(requires={"cuda": "12.*"}), hosts=(), platform="linux/amd64"))
    image = next(one for one in shipped().images if one.kind == kind and str(one.cuda).startswith("12."))
    libraries = set(Libraries(problem, GpuWheels(problem, "")).of_image(image))
    assert ("libcupti.so.12" in libraries) == has_cupti
    assert "libcudart.so.12" in libraries


def test_a_wheel_that_contains_a_library_for_itself_provides_it_to_nobody() -> None:
    """Warp 0.3.1 and older contain a CUDA runtime; Warp has kernels, and its other releases contain none."""
    problem = join(shipped(), Request(spec=Spec(requires={"cuda": "12.*"}), hosts=(), platform="linux/amd64"))
    libraries = Libraries(problem, GpuWheels(problem, ""))
    assert libraries.providers_of([("libcudart.so.11.0",), ("libcublas.so.12",)]) == [
        "nvidia-cublas-cu12",
        "nvidia-cuda-runtime-cu11",
    ]
    assert not libraries.is_provider(Key("warp-lang", PACKAGE))
