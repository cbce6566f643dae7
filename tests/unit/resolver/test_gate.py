"""The gate of a base image that the spec names binds the hosts, unless the spec lifts it; then it is a relaxation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from provisioner.matrix.model import DriverBranch, Failure, Gpu, ImageFacts, Matrix
from provisioner.resolver.joint import NoStackError, solve_system
from provisioner.resolver.problem import join
from provisioner.resolver.rules.gate import brands_of, cuda_of, facts_of
from provisioner.resolver.rules.guards import Guards
from provisioner.versions import Version
from provisioner.words.conflict import member_words
from provisioner.words.notation import source_words, sources_words
from provisioner.words.relaxation import relaxation_words
from tests import small
from tests.told import changes, unverified

if TYPE_CHECKING:
    from provisioner.grounds.conflict import Conflict
    from provisioner.resolver.stack import Stack

OFFICIAL = "cuda>=12.6 brand=tesla,driver>=550,driver<551 brand=nvidia,driver>=550,driver<551"
BRANCHES = {"470": "11.4", "535": "12.2", "550": "12.4", "560": "12.6", "580": "13.0"}
GEFORCE, TESLA, NAMELESS = {"name": "GeForce Card"}, {"name": "Tesla T4"}, {"compute_capability": "7.5"}
IMAGES = (
    ImageFacts(
        reference="vendor/cuda:12.6",
        glibc="2.39",
        cuda="12.6.3",
        kind="cuda-runtime",
        require_cuda=OFFICIAL,
        source=("invented",),
    ),
)


def gated() -> Matrix:
    drivers: dict[str, dict[str, str]] = {version: {} for version in ("580.65.06", "560.35.05", "550.54.15", "535.104.05")}
    matrix = small.matrix(
        ("pytorch", "cuda", "image", "driver", "gpu"),
        {"gpu": {"7.0": {}, "7.5": {}, "9.0": {}}, "driver": drivers},
        releases={
            "pytorch": (
                small.release("2.7.1", {}, builds=(small.build("cu126", {"cuda": "==12.6.*"}, sass=("sm_70", "sm_90")),)),
            ),
            "cuda": (small.cuda("12.6.3", "525.60.13", "560.35.05"),),
        },
        gpus=(
            Gpu(name="GeForce Card", architecture="", compute_capability="7.5", kind="geforce"),
            Gpu(name="Tesla T4", architecture="", compute_capability="7.5", kind="datacenter"),
        ),
        images=IMAGES,
    )
    branches = tuple(DriverBranch(branch=one, native_cuda=Version.parse(level)) for one, level in reversed(BRANCHES.items()))
    leaves_compat_alone = Failure(
        name="cuda-compat-not-mounted",
        layer="container_toolkit",
        when=small.needs({"container_toolkit": "==1.17.4"}),
        symptoms=("none",),
        cause="none",
        remedy="none",
        source=("invented",),
    )
    return replace(matrix, branches=branches, failures=(leaves_compat_alone,))


def solved(driver: str | None, *gpus: dict[str, str], image: dict[str, str], toolkit: str = "", **spec: Any) -> Stack:  # noqa: ANN401 - any key of a spec
    host = {"gpus": list(gpus), **({"driver": {"version": driver}} if driver else {})}
    host |= {"container_toolkit": toolkit} if toolkit else {}
    return solve_system(join(gated(), small.request({"pytorch": ""}, host, image=image, **spec)))


def refused(driver: str | None, *gpus: dict[str, str], image: dict[str, str], **spec: Any) -> Conflict:  # noqa: ANN401
    with pytest.raises(NoStackError) as caught:
        solved(driver, *gpus, image=image, **spec)
    return caught.value.conflict


LEAVES_COMPAT_ALONE = "1.17.4"
"""The release of the container toolkit with which cuda-compat breaks no driver, so that the gate alone decides."""

KNOWN = {"base": "vendor/cuda:12.6"}
FOREIGN = {"base": "my/base:1", "require": OFFICIAL}


@pytest.mark.parametrize("image", [KNOWN, {"base": "vendor/cuda:12.6@sha256:" + "a" * 64}, FOREIGN])
def test_a_named_base_refuses_a_host_with_the_exact_clauses(image: dict[str, str]) -> None:
    members = refused("550.54.15", GEFORCE, image=image, toolkit=LEAVES_COMPAT_ALONE).members
    reference = image["base"]
    says = (
        f"base image {reference} lets in hosts with `cuda>=12.6` or 2 more alternatives;"
        " cuda>=12.6: the driver's CUDA is 12.4;"
        " brand=tesla or brand=nvidia: the brand of gpu 7.5 (GeForce Card) is geforce or geforcertx"
    )
    assert [(one.component, one.kind, member_words(one)) for one in members] == [
        ("image", "request", f"the base image is {reference}"),
        ("image", "rule", says),
        ("driver", "fact", "the host has driver 550.54.15"),
    ]


def test_the_gate_of_a_known_base_is_cited_and_that_of_another_is_the_line_of_the_spec() -> None:
    (_, known, _) = refused("550.54.15", GEFORCE, image=KNOWN, toolkit=LEAVES_COMPAT_ALONE).members
    (_, foreign, _) = refused("550.54.15", GEFORCE, image=FOREIGN).members
    assert (sources_words(known.sources), sources_words(foreign.sources)) == ("an invented table, row 1", "the spec")


def test_what_the_spec_says_of_a_known_base_holds_before_what_the_matrix_says() -> None:
    lower = solved("550.54.15", GEFORCE, image={**KNOWN, "require": "cuda>=12.4"}, toolkit=LEAVES_COMPAT_ALONE)
    assert lower.components["driver"] == "550.54.15"
    members = refused("580.65.06", TESLA, image={**KNOWN, "require": "cuda>=13.1"}).members
    assert (
        member_words(members[1])
        == "base image vendor/cuda:12.6 lets in hosts with `cuda>=13.1`; cuda>=13.1: the driver's CUDA is 13.0"
    )


def test_brand_and_branch_let_in_who_the_image_lists() -> None:
    assert solved("550.54.15", TESLA, image=KNOWN).components["driver"] == "550.54.15"
    assert solved("560.35.05", GEFORCE, image=KNOWN).components["driver"] == "560.35.05"


def test_a_kept_gate_is_kept_in_the_image_beside_the_stacks_own() -> None:
    stack = solved("560.35.05", GEFORCE, image=KNOWN)
    assert stack.environment == {"NVIDIA_REQUIRE_BASE": OFFICIAL}
    assert stack.require_cuda.startswith("driver>=560,")
    assert "brand=tesla,driver>=550,driver<551," in stack.require_cuda, "the branch that the gate of the base lists"
    assert "driver>=525" not in stack.require_cuda
    lifted = solved("560.35.05", GEFORCE, image=KNOWN, policy={"allow": ["minor-version", "image-gate"]})
    chosen = solved("560.35.05", GEFORCE, image={"base": "cuda-runtime"})
    assert (lifted.environment, chosen.environment) == ({}, {})


def test_a_driver_that_is_chosen_passes_the_gate() -> None:
    upper = {**FOREIGN, "require": "driver<560"}
    assert solved(None, TESLA, image=upper).components["driver"] == "550.54.15"
    assert solved(None, TESLA, image={**FOREIGN, "require": "cuda>=12.6,cuda<13.0"}).components["driver"] == "560.35.05"


def test_an_unknown_brand_is_told_and_refuses_nothing() -> None:
    stack = solved("550.54.15", NAMELESS, image=KNOWN)
    assert stack.verdict == "unverified"
    expected = (
        "image: whether the NVIDIA_REQUIRE_CUDA of vendor/cuda:12.6 lets host0 in depends on its brand, which is not known;"
        " state `gpus[].name` in its profile (`provision inspect` writes one)"
    )
    assert expected in unverified(stack)
    assert not [one for one in unverified(solved("560.35.05", NAMELESS, image=KNOWN)) if one.startswith("image:")]


def test_a_gpu_no_driver_helps_is_what_the_conflict_is_about() -> None:
    conflict = refused("560.35.05", TESLA, image={**FOREIGN, "require": "cuda>=12.0,arch>=9.0"})
    assert [(one.component, one.kind) for one in conflict.members] == [("image", "request"), ("image", "rule"), ("gpu", "fact")]
    assert member_words(conflict.members[1]) == (
        "base image my/base:1 lets in hosts with `cuda>=12.0,arch>=9.0`;"
        " arch>=9.0: the compute capability of gpu 7.5 (Tesla T4) is 7.5"
    )
    assert (("gpu", "==9.0"),) in [changes(hint) for hint in conflict.fixes]


def test_every_gpu_of_a_host_must_pass() -> None:
    both = (TESLA, {"compute_capability": "9.0"})
    assert solved("560.35.05", *both, image={**FOREIGN, "require": "arch>=7.5"}).components["gpu"] == "7.5, 9.0"
    members = refused("560.35.05", *both, image={**FOREIGN, "require": "arch<9"}).members
    assert member_words(members[-1]) == "the host has gpu 9.0"


def test_a_clause_nobody_knows_is_told() -> None:
    stack = solved("560.35.05", TESLA, image={**FOREIGN, "require": "colour=green,cuda>=12.6"})
    expected = (
        "image: `colour=green` in the NVIDIA_REQUIRE_CUDA of my/base:1 is about nothing that runtimes know:"
        " one runtime skips it, another refuses it"
    )
    assert expected in unverified(stack)


def test_the_gate_may_be_lifted_and_the_relaxation_is_named() -> None:
    stack = solved("550.54.15", GEFORCE, image=FOREIGN, policy={"allow": ["minor-version", "image-gate"]})
    (used,) = (one for one in stack.relaxations if one.name == "image-gate")
    assert (used.component, source_words(used.source)) == ("image", "the spec")
    assert relaxation_words(used) == (
        "base image my/base:1 alone would refuse host0 (cuda>=12.6: the driver's CUDA is 12.4;"
        " brand=tesla or brand=nvidia: the brand of gpu 7.5 (GeForce Card) is geforce or geforcertx);"
        " the NVIDIA_REQUIRE_CUDA of this stack replaces its own"
    )
    assert stack.require_cuda == "driver>=525.60.13,arch>=7.0,arch<8.0,arch!=7.2 driver>=525.60.13,arch>=9.0,arch<10.0"


@pytest.mark.parametrize(("driver", "names"), [("550.54.15", ["image-gate"]), ("560.35.05", [])])
def test_the_gate_of_a_chosen_base_is_replaced_and_named_only_where_it_would_have_refused(
    driver: str, names: list[str]
) -> None:
    stack = solved(driver, GEFORCE, image={"base": "cuda-runtime"}, toolkit=LEAVES_COMPAT_ALONE)
    assert [one.name for one in stack.relaxations if one.name == "image-gate"] == names
    assert stack.require_cuda.startswith("driver>=525.60.13,"), "a host it was solved for is admitted"


@pytest.mark.parametrize("toolkit", ["", "1.17.3", "1.17.5"])
def test_cuda_compat_before_an_older_driver_of_a_geforce_is_refused(toolkit: str) -> None:
    members = refused("550.54.15", GEFORCE, image={"base": "cuda-runtime"}, toolkit=toolkit).members
    assert (
        "image vendor/cuda:12.6 needs driver >=560 (native CUDA 12.6), for the image's cuda-compat is put before an older one,"
        " which only data-centre GPUs support (error 804)"
    ) in [member_words(one) for one in members]
    assert solved("550.54.15", TESLA, image={"base": "cuda-runtime"}, toolkit=toolkit).components["driver"] == "550.54.15"


def test_what_a_foreign_base_holds_is_the_cuda_of_the_stack() -> None:
    conflict = refused("560.35.05", TESLA, image={"base": "my/base:1", "cuda": "12.4.1"})
    assert any(member_words(one).startswith("image my/base:1 needs cuda ==12.4.*") for one in conflict.members)


@pytest.mark.parametrize("accelerator", ["cpu", "rocm"])
def test_other_accelerators_have_no_gate(accelerator: str) -> None:
    matrix = small.matrix(("image", "python"), {"python": {"3.12": {}}}, images=IMAGES)
    host = {"gpus": [] if accelerator == "cpu" else [{"gfx": "gfx942"}]}
    request = small.request({"python": ""}, host, image={"base": "my/base:1", "require": "cuda>=99"}, accelerator=accelerator)
    stack = solve_system(join(matrix, request))
    assert (stack.relaxations, [one for one in unverified(stack) if one.startswith("image:")]) == ((), [])


@pytest.mark.parametrize(
    ("name", "kind", "brands"),
    [
        ("Tesla T4", "datacenter", ("tesla",)),
        ("NVIDIA A100-SXM4-80GB", "datacenter", ("nvidia", "tesla", "unknown")),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "datacenter", ("nvidia", "nvidiartx", "tesla", "unknown")),
        ("NVIDIA GeForce RTX 4090", "geforce", ("geforce", "geforcertx")),
        ("NVIDIA TITAN RTX", "geforce", ("titan", "titanrtx")),
        ("Quadro P4000", "workstation", ("quadro",)),
        ("Quadro RTX 4000", "workstation", ("quadro", "quadrortx", "unknown")),
        ("NVIDIA RTX A6000", "workstation", ("nvidia", "nvidiartx", "quadro", "quadrortx", "unknown")),
        ("Jetson AGX Orin", "jetson", ()),
        ("", "", ()),
    ],
)
def test_the_brands_a_gpu_may_be_of(name: str, kind: str, brands: tuple[str, ...]) -> None:
    assert brands_of(name, kind) == brands


def test_the_facts_a_gate_sees() -> None:
    matrix = gated()
    request = small.request({}, {"gpus": [TESLA, {"gfx": "gfx942"}, {"name": "Card of Tomorrow"}]})
    facts = facts_of(matrix, Guards(matrix, request), request.hosts[0].host, driver="550.54.15")
    assert (facts.driver, facts.cuda) == ("550.54.15", "12.4")
    assert [(gpu.arch, gpu.brands, gpu.label) for gpu in facts.gpus or ()] == [
        ("7.5", ("tesla",), "gpu 7.5 (Tesla T4)"),
        ("", (), "gpu (Card of Tomorrow)"),
    ]
    assert [cuda_of(matrix, driver) for driver in ("560.1", "565.1", "", "none")] == ["12.6", "", "", ""]
