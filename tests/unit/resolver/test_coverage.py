"""Which compiled code runs on which GPU: the CUDA guide's rules as cases; AMD targets and their overrides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.matrix.model import GfxOverride
from provisioner.resolver.rules.coverage import Target, capability, coverage, override_for, runs_on


@pytest.mark.parametrize(
    ("sass", "ptx", "device", "expected"),
    [
        (["sm_90"], [], "9.0", "native"),
        (["sm_86"], [], "8.9", "native"),
        (["sm_89"], [], "8.6", "none"),
        (["sm_70"], [], "7.5", "native"),
        (["sm_90"], [], "10.0", "none"),
        (["sm_100"], [], "12.0", "none"),
        (["sm_100"], [], "10.3", "native"),
        (["sm_120"], [], "12.1", "native"),
        (["sm_90a"], [], "9.0", "native"),
        (["sm_100a"], [], "10.3", "none"),
        (["sm_100f"], [], "10.3", "native"),
        (["sm_100f"], [], "12.0", "none"),
        (["sm_80"], ["compute_90"], "10.0", "ptx"),
        (["sm_80"], ["compute_90"], "8.6", "native"),
        ([], ["compute_90a"], "10.0", "none"),
        ([], ["compute_100f"], "12.0", "none"),
        ([], ["compute_100f"], "10.3", "ptx"),
        ([], ["compute_120"], "9.0", "none"),
        (["sm_70"], [], "7.2", "none"),
        (["sm_80"], [], "8.7", "none"),
        (["sm_72"], [], "7.5", "none"),
        (["sm_60"], [], "6.2", "none"),
        ([], [], "9.0", "none"),
    ],
)
def test_coverage_follows_binary_compatibility(sass: list[str], ptx: list[str], device: str, expected: str) -> None:
    assert coverage(tuple(sass), tuple(ptx), capability(device)) == expected


@pytest.mark.parametrize("text", ["sm90", "gfx942", "sm_9", "compute_", "sm_90b"])
def test_what_is_not_a_target_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        Target.parse(text)
    assert str(caught.value) == f"`{text}` is not a compiled target: write for example sm_90, sm_90a or compute_100f"


CAPABILITIES = st.tuples(st.integers(3, 13), st.integers(0, 9))


@given(CAPABILITIES, CAPABILITIES)
def test_plain_machine_code_never_crosses_a_major_and_never_runs_on_an_older_minor(
    target: tuple[int, int], device: tuple[int, int]
) -> None:
    served = coverage((f"sm_{target[0]}{target[1]}",), (), device) == "native"
    assert not served or (target[0] == device[0] and target[1] <= device[1])


RDNA2 = GfxOverride(
    name="rdna-2",
    gfx=("gfx1031", "gfx1032"),
    runs_as="gfx1030",
    set={"HSA_OVERRIDE_GFX_VERSION": "10.3.0"},
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
