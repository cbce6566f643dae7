"""The emitted NVIDIA_REQUIRE_CUDA accepts exactly the hosts the stack runs on, by an evaluator written for this test."""

from __future__ import annotations

from provisioner.matrix.model import DriverMinimum
from provisioner.solve.coverage import capability, coverage
from provisioner.solve.drivers import RunsCuda
from provisioner.solve.gate import require_cuda
from provisioner.versions import Version
from tests import small

BRANCHES = {"470": "11.4", "525": "12.0", "535": "12.2", "550": "12.4", "560": "12.6", "580": "13.0"}
MATRIX = small.matrix(("driver",), {}, branches=BRANCHES)
SASS = ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "sm_120")


def gate(*, allowed: frozenset[str], is_data_centre: bool = False, branches: tuple[str, ...] = ()) -> str:
    minimum = DriverMinimum(
        toolkit=Version.parse("560.35.05"), minor_version=Version.parse("525.60.13"), forward_compat=branches
    )
    test = RunsCuda(MATRIX, Version.parse("12.6.3"), minimum, allowed, may_forward=is_data_centre)
    return require_cuda([test], SASS)


def admits(expression: str, driver: str, arch: str, brand: str = "nvidia") -> bool:
    """Spaces are OR, commas AND."""
    return any(all(_factor(factor, driver, arch, brand) for factor in term.split(",")) for term in expression.split(" "))


def _factor(factor: str, driver: str, arch: str, brand: str) -> bool:
    if factor.startswith("brand="):
        return factor == f"brand={brand}"
    for operator in (">=", "<"):
        name, found, wanted = factor.partition(operator)
        if found:
            have = Version.parse({"driver": driver, "arch": arch}[name])
            return have >= Version.parse(wanted) if operator == ">=" else have < Version.parse(wanted)
    raise AssertionError(factor)


def test_the_gate_says_the_family_floor_and_every_major_it_has_code_for() -> None:
    assert gate(allowed=frozenset({"minor-version"})) == (
        "driver>=525.60.13,arch>=5.0,arch<10.0 driver>=525.60.13,arch>=12.0,arch<13.0"
    )


def test_without_minor_version_compatibility_the_gate_asks_for_the_native_branch() -> None:
    assert gate(allowed=frozenset()).startswith("driver>=560,")


def test_forward_compatibility_is_a_term_of_its_own_for_data_centre_brands() -> None:
    expression = gate(allowed=frozenset({"forward-compat"}), is_data_centre=True, branches=("470",))
    assert admits(expression, "470.256.02", "8.0", brand="tesla")
    assert not admits(expression, "470.256.02", "8.0", brand="geforce")


def test_gate_and_coverage_agree_for_every_desktop_gpu_and_driver() -> None:
    expression = gate(allowed=frozenset({"minor-version"}))
    for arch in ("5.0", "5.2", "6.0", "6.1", "7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "10.3", "12.0", "12.1"):
        for driver in ("470.256.02", "525.60.12", "525.60.13", "535.104.05", "580.65.06"):
            runs = Version.parse(driver) >= Version.parse("525.60.13") and coverage(SASS, (), capability(arch)) == "native"
            assert admits(expression, driver, arch) == runs, (arch, driver)
