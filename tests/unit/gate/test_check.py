"""Yes, no and unknown, with the clauses at fault and the facts that would settle it."""

from __future__ import annotations

import pytest

from provisioner.gate.check import GateResult, check_gate
from provisioner.gate.evaluate import GateFacts, GateGpu
from provisioner.gate.grammar import parse
from provisioner.words.gate import refusal_words
from tests.shipped import shipped

H100 = GateGpu(arch="9.0", brands=("nvidia",), label="gpu 9.0 (NVIDIA H100)")
GEFORCE = GateGpu(arch="8.9", brands=("geforce", "geforcertx"), label="gpu 8.9 (NVIDIA GeForce RTX 4090)")


def judged(text: str, *more: str, driver: str = "", cuda: str = "", gpus: tuple[GateGpu, ...] | None = None) -> GateResult:
    return check_gate([parse(one) for one in (text, *more)], GateFacts(driver=driver, cuda=cuda, gpus=gpus))


def refusals(result: GateResult) -> tuple[str, ...]:
    return tuple(map(refusal_words, result.refusals))


@pytest.mark.parametrize(
    ("text", "is_met"),
    [
        ("cuda>=12.2", True),
        ("cuda>=12.2.0", True),
        ("cuda>12.2", False),
        ("cuda<=12.2", True),
        ("cuda<12.2.1", True),
        ("cuda=12.2.0", True),
        ("cuda!=12.2", False),
        ("driver>=535.104.5", True),
        ("driver>=535.104.05,driver<535.104.6", True),
        ("driver<535.104.05", False),
        ("arch=9", True),
        ("arch>=9.0,arch<10.0", True),
        ("brand=NVIDIA", True),
        ("brand!=nvidia", False),
        ("brand=tesla brand=nvidia", True),
        ("brand=tesla,brand=nvidia", False),
        ("cuda>=13 driver>=500", True),
        ("colour=green", True),
        ("colour=green,cuda>=13", False),
        ("colour=green cuda>=13", False),
        ("", True),
    ],
)
def test_a_host_that_states_everything_is_let_in_or_not(text: str, is_met: bool) -> None:  # noqa: FBT001
    result = judged(text, driver="535.104.05", cuda="12.2", gpus=(H100,))
    assert result.verdict == ("yes" if is_met else "no")


def test_every_requirement_must_be_met() -> None:
    assert judged("cuda>=12", "driver>=535", driver="535.104.05", cuda="12.2").verdict == "yes"
    result = judged("cuda>=12", "driver>=550", driver="535.104.05", cuda="12.2")
    assert (result.verdict, refusals(result)) == ("no", ("driver>=550: the driver is 535.104.05",))


def test_every_gpu_must_pass_by_whichever_alternative() -> None:
    text = "arch=9.0 brand=geforce brand=geforcertx"
    assert judged(text, gpus=(H100, GEFORCE)).verdict == "yes"
    result = judged("arch<9", gpus=(GEFORCE, H100))
    assert refusals(result) == ("arch<9: the compute capability of gpu 9.0 (NVIDIA H100) is 9.0",)


def test_without_a_gpu_what_is_asked_of_one_holds() -> None:
    assert judged("arch>=99,brand=none", gpus=()).verdict == "yes"


def test_the_nearest_alternatives_are_named() -> None:
    result = judged("cuda>=13.1 brand=tesla,driver>=580,driver<581", driver="580.95.05", cuda="13.0", gpus=(GEFORCE,))
    assert refusals(result) == (
        "cuda>=13.1: the driver's CUDA is 13.0",
        "brand=tesla: the brand of gpu 8.9 (NVIDIA GeForce RTX 4090) is geforce or geforcertx",
    )


def test_clauses_on_one_fact_are_told_together_and_many_are_counted() -> None:
    text = " ".join(f"brand={brand},driver>=580" for brand in ("tesla", "grid", "quadro", "vws", "vpc"))
    result = judged(text, driver="580.95.05", gpus=(GEFORCE,))
    found = "the brand of gpu 8.9 (NVIDIA GeForce RTX 4090) is geforce or geforcertx"
    assert refusals(result) == (f"brand=tesla or brand=grid or brand=quadro or 2 more: {found}",)


def test_an_alternative_that_fails_twice_names_both() -> None:
    result = judged("cuda>=13.1,arch>=10.0", driver="535.104.05", cuda="12.2", gpus=(H100,))
    assert refusals(result) == (
        "cuda>=13.1,arch>=10.0: the driver's CUDA is 12.2 and the compute capability of gpu 9.0 (NVIDIA H100) is 9.0",
    )


@pytest.mark.parametrize(
    ("text", "facts", "unknown"),
    [
        ("cuda>=13.1", GateFacts(), ("cuda",)),
        ("cuda>=13.1 driver>=580", GateFacts(), ("cuda", "driver")),
        ("cuda>=13.1 driver>=580", GateFacts(driver="570.1"), ("cuda",)),
        ("brand=tesla", GateFacts(gpus=(GateGpu(arch="8.0"),)), ("brand",)),
        ("brand=tesla", GateFacts(gpus=(GateGpu(brands=("tesla", "nvidia")),)), ("brand",)),
        ("arch>=8.0", GateFacts(gpus=(H100, GateGpu())), ("arch",)),
        ("cuda>=13,brand=tesla", GateFacts(cuda="13.0"), ("brand",)),
    ],
)
def test_what_would_settle_it_is_named(text: str, facts: GateFacts, unknown: tuple[str, ...]) -> None:
    result = check_gate([parse(text)], facts)
    assert (result.verdict, result.unknown) == ("unknown", unknown)


@pytest.mark.parametrize(
    ("text", "facts", "verdict"),
    [
        ("cuda>=13.1 driver>=580", GateFacts(driver="580.95.05"), "yes"),
        ("cuda>=13.1,driver>=580", GateFacts(driver="570.1"), "no"),
        ("driver>=535 driver<535", GateFacts(), "yes"),
        ("driver>535 driver<535 driver=535", GateFacts(), "yes"),
        ("driver>=550,driver<535", GateFacts(), "no"),
        ("driver>535,driver<535.0.1", GateFacts(), "unknown"),
        ("brand=tesla brand!=tesla", GateFacts(), "yes"),
        ("brand=tesla brand=nvidia", GateFacts(gpus=(GateGpu(brands=("tesla", "nvidia")),)), "yes"),
        ("arch<8 arch>=8", GateFacts(gpus=(GateGpu(),)), "yes"),
    ],
)
def test_an_unknown_fact_that_makes_no_difference_leaves_nothing_open(text: str, facts: GateFacts, verdict: str) -> None:
    assert check_gate([parse(text)], facts).verdict == verdict


def test_requirements_that_no_fact_meets_together_are_a_no() -> None:
    result = judged("driver>=580", "driver<580", gpus=())
    assert result.verdict == "no"
    assert refusals(result) == ("NVIDIA_REQUIRE_CUDA `driver>=580` cannot be met together with the others",)
    assert refusals(judged("driver>=580,driver<580")) == (
        "no value of its unknown facts meets NVIDIA_REQUIRE_CUDA `driver>=580,driver<580`",
    )


def test_skipped_clauses_are_told() -> None:
    assert judged("colour=green cuda>=12", cuda="12.2").skipped == ("colour=green",)


def test_a_driver_that_is_no_number_is_unknown() -> None:
    assert judged("driver>=535", driver="unknown").verdict == "unknown"


def test_every_gate_of_the_shipped_matrix_can_be_read() -> None:
    texts = {image.require_cuda for image in shipped().images if image.require_cuda}
    assert len(texts) > 20
    assert all(parse(text).terms and not parse(text).skipped for text in texts)


@pytest.mark.parametrize(
    ("driver", "cuda", "gpu", "verdict"),
    [
        ("590.48.01", "13.1", GEFORCE, "yes"),
        ("580.95.05", "13.0", GEFORCE, "no"),
        ("580.95.05", "13.0", H100, "yes"),
        ("560.35.05", "12.6", H100, "no"),
        ("535.104.05", "12.2", GateGpu(arch="7.5", brands=("tesla",)), "yes"),
        ("535.104.05", "12.2", GateGpu(arch="7.5"), "unknown"),
        ("525.60.13", "12.0", GateGpu(arch="7.5"), "no"),
    ],
)
def test_the_official_image_of_cuda_13_1(driver: str, cuda: str, gpu: GateGpu, verdict: str) -> None:
    """GeForce cards get no forward compatibility, and its branches are those the image lists."""
    brands = (
        *("unknown", "grid", "tesla", "nvidia", "quadro", "quadrortx"),
        *("nvidiartx", "vapps", "vpc", "vcs", "vws", "cloudgaming"),
    )
    branches = (535, 550, 570, 575, 580)
    text = "cuda>=13.1 " + " ".join(
        f"brand={brand},driver>={branch},driver<{branch + 1}" for branch in branches for brand in brands
    )
    (image,) = (one for one in shipped().images if one.reference == "nvidia/cuda:13.1.0-runtime-ubuntu24.04")
    assert sorted(image.require_cuda.split()) == sorted(text.split())
    assert judged(image.require_cuda, driver=driver, cuda=cuda, gpus=(gpu,)).verdict == verdict
