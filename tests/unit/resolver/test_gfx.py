"""AMD targets: what runs on what, and which settings let a GPU pass for another."""

from __future__ import annotations

import pytest

from provisioner.matrix.model import GfxOverride
from provisioner.resolver.rules.gfx import override_for, runs_on

RDNA2 = GfxOverride(
    name="rdna-2",
    gfx=("gfx1031", "gfx1032"),
    runs_as="gfx1030",
    variables=(("HSA_OVERRIDE_GFX_VERSION", "10.3.0"),),
    because="one instruction set",
)


@pytest.mark.parametrize(
    ("target", "device", "expected"),
    [
        ("gfx942", "gfx942", True),
        ("gfx942", "gfx950", False),
        ("gfx9-4-generic", "gfx950", True),
        ("gfx9-4-generic", "gfx90a", False),
        ("gfx11-generic", "gfx1151", True),
        ("gfx11-generic", "gfx1201", False),
        ("gfx10-3-generic", "gfx1036", True),
        ("gfx1030", "gfx1031", False),
    ],
)
def test_code_runs_on_its_own_target_and_generic_code_on_its_family(target: str, device: str, *, expected: bool) -> None:
    assert runs_on([target], device) is expected


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        (["gfx1030"], ()),
        (["gfx1031"], (RDNA2,)),
        (["gfx1031", "gfx1030"], (RDNA2,)),
        (["gfx1031", "gfx1100"], None),
        (["gfx803"], None),
    ],
)
def test_one_setting_must_do_for_every_gpu(devices: list[str], expected: tuple[GfxOverride, ...] | None) -> None:
    assert override_for(["gfx1030", "gfx1100"], devices, [RDNA2]) == expected


def test_a_gpu_cannot_pass_for_a_target_that_is_not_compiled() -> None:
    assert override_for(["gfx1100"], ["gfx1031"], [RDNA2]) is None
