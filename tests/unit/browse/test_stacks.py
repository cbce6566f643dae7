"""Which releases run on a host of a few facts, and which rule refuses the others."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from provisioner.browse.query import read_query
from provisioner.browse.stacks import Stacks, frameworks, which_stacks
from provisioner.errors import UsageError
from provisioner.matrix.model import Gpu, Matrix, Rule
from provisioner.words.conflict import member_words
from tests.shipped import shipped
from tests.small import build, cuda, matrix, need, needs, release
from tests.told import unverified


def small() -> Matrix:
    drops = Rule(
        name="driver-590-drops-volta",
        when=need("driver", ">=590"),
        require=needs({"gpu": ">=7.5"}),
        because="580 is the last",
        source=("invented",),
    )
    sass = ("sm_70", "sm_80")
    return matrix(
        ["pytorch", "cuda", "python", "driver", "driver_module", "kernel", "gpu", "glibc"],
        {
            "python": {"3.12": {}},
            "driver": {"590.1": {"kernel": ">=4,<7"}, "530.1": {"kernel": ">=4,<7"}, "470.1": {"kernel": ">=4,<7"}},
            "kernel": {"6.1": {}},
            "gpu": {"9.0": {}, "8.0": {}, "7.0": {}},
        },
        rules=(drops,),
        branches={"590": "13.1", "530": "12.1", "470": "11.4"},
        releases={
            "pytorch": [
                release("2.2.0", {}, builds=(build("cu121", {"cuda": "==12.1.*"}, sass=sass),)),
                release(
                    "2.1.0",
                    {},
                    builds=(build("cu121", {"cuda": "==12.1.*"}, sass=sass), build("cu118", {"cuda": "==11.8.*"}, sass=sass)),
                ),
                release("2.0.0", {}, builds=(build("cu118", {"cuda": "==11.8.*"}, sass=("sm_80",)),)),
            ],
            "cuda": [cuda("12.1.0", "525.60.13", "530.30.02"), cuda("11.8.0", "450.80.02", "520.61.05")],
        },
    )


def ask(*words: str, allow: tuple[str, ...] = ("minor-version",)) -> Stacks:
    made = small()
    return which_stacks(made, read_query(made, words).facts, allow)


def test_the_newest_build_that_runs_of_every_release() -> None:
    found = ask("sm_80", "driver=470.1")
    assert [(one.release, one.build, one.stack.basis) for one in found.running] == [
        ("2.1.0", "cu118", "minor-version"),
        ("2.0.0", "cu118", "minor-version"),
    ]
    (refused,) = found.refused
    assert (refused.releases, refused.rules) == (("2.2.0",), ("cuda needs driver", "pytorch needs cuda"))
    assert any(member_words(member) == "the host has driver 470.1" for member in refused.members)


def test_releases_refused_by_the_same_rule_are_one_line() -> None:
    found = ask("sm_70", "driver=590.1")
    assert found.running == ()
    (refused,) = found.refused
    assert refused.releases == ("2.2.0", "2.1.0", "2.0.0")
    assert refused.rules == ("driver-590-drops-volta",)


def test_a_gpu_no_build_was_compiled_for() -> None:
    found = ask("sm_70", "driver=530.1")
    assert [one.release for one in found.running] == ["2.2.0", "2.1.0"]
    assert [(one.releases, one.rules) for one in found.refused] == [(("2.0.0",), ("pytorch needs gpu",))]


def test_a_request_beside_the_facts_narrows_the_answer() -> None:
    found = ask("sm_80", "driver=530.1", "cuda==11.8")
    assert [one.release for one in found.running] == ["2.1.0", "2.0.0"]


def test_a_range_of_a_host_component_is_chosen_from() -> None:
    found = ask("sm_80", "driver<590")
    assert {one.stack.components["driver"] for one in found.running} == {"530.1"}


def test_the_facts_are_told_as_they_were_understood() -> None:
    assert ask("sm_80", "driver=530").facts == (("gpu", "8.0"), ("driver", "530.1"))


def test_a_fact_no_profile_can_state() -> None:
    made = matrix(["pytorch", "clang"], {"clang": {"14.0": {}}}, virtual=("clang",))
    with pytest.raises(UsageError, match=r"`clang=14\.0` cannot be stated of a host"):
        which_stacks(made, read_query(made, ["clang=14.0"]).facts)


def test_a_matrix_without_builds_has_no_frameworks() -> None:
    assert frameworks(matrix(["pytorch"], {"pytorch": {"2.0": {}}})) == ()
    assert frameworks(small()) == ("pytorch",)


@pytest.mark.parametrize("gpu", ["TITAN X", "A100"])
@pytest.mark.parametrize("driver", ["440.1", "460.1", "527.1"])
def test_another_allowed_way_takes_no_stack_away(gpu: str, driver: str) -> None:
    """NVIDIA's cuda-compat breaks GPUs other than those of data centres: there an image is not assumed to have it."""
    products = [
        Gpu(name="A100", compute_capability="8.0", architecture="Ampere", kind="datacenter", source=("invented",)),
        Gpu(name="TITAN X", compute_capability="7.0", architecture="Volta", kind="geforce", source=("invented",)),
    ]
    made = replace(small(), gpus=tuple(products))
    facts = read_query(made, (f"gpu={gpu}", f"driver={driver}")).facts
    few = {(one.release, one.build) for one in which_stacks(made, facts, ("minor-version",)).running}
    more = {(one.release, one.build) for one in which_stacks(made, facts, ("minor-version", "forward-compat")).running}
    assert few <= more
    assert bool(few) is (driver != "440.1")


def test_what_is_only_expected_refuses_nothing() -> None:
    asked = ["nsight_systems==2023.4.4.54", "cuda==12.6.3", "pytorch==2.7.1", "driver==580.95.05", "gpu=9.0"]
    (found,) = which_stacks(shipped(), read_query(shipped(), asked).facts).running
    wanted = "nsight_systems 2023.4.4.54 is expected to need cuda <12.5, which no source states; cuda 12.6.3 was chosen"
    assert [one for one in unverified(found.stack) if one.startswith("nsight")] == [f"nsight_systems: {wanted}"]
