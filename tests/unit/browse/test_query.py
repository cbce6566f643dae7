"""What words of a question mean, and what is said of those that mean nothing."""

from __future__ import annotations

import pytest

from provisioner.browse.query import component_named, matching, newest_of_series, product, read_query
from provisioner.errors import UsageError
from provisioner.matrix.model import Gpu, Matrix
from tests.shipped import shipped
from tests.small import matrix


def small() -> Matrix:
    made = matrix(
        ["pytorch", "cuda", "driver", "driver_module", "gpu"],
        {
            "pytorch": {"2.7.1": {}},
            "cuda": {"12.6.3": {}, "12.6.0": {}, "11.8.0": {}},
            "driver": {"535.54.03": {}, "535.104.05": {}, "550.54.14": {}},
            "gpu": {"8.0": {}, "6.1": {}},
        },
    )
    gpus = (
        Gpu(name="NVIDIA A100", architecture="", compute_capability="8.0", kind="datacenter"),
        Gpu(name="NVIDIA A100 80GB", architecture="", compute_capability="8.0", kind="datacenter"),
        Gpu(name="NVIDIA GeForce GTX 1080", architecture="", compute_capability="6.1", kind="geforce"),
        Gpu(name="NVIDIA GeForce GTX 1080 Ti", architecture="", compute_capability="6.1", kind="geforce"),
        Gpu(name="NVIDIA Tesla Twin", architecture="", compute_capability="6.1"),
        Gpu(name="NVIDIA Quadro Twin", architecture="", compute_capability="8.0"),
        Gpu(name="NVIDIA T400", architecture="", compute_capability="7.5"),
        Gpu(name="Tesla T4", architecture="", compute_capability="7.5"),
        Gpu(name="AMD Instinct MI300X", architecture="", compute_capability="", gfx="gfx942"),
    )
    from msgspec.structs import replace

    return replace(made, gpus=gpus)


@pytest.mark.parametrize(
    ("word", "name", "text", "is_exact"),
    [
        ("cuda==12.6", "cuda", "12.6", True),
        ("cuda=12.6.3", "cuda", "12.6.3", True),
        ("cuda>=12", "cuda", ">=12", False),
        ("driver <= 550", "driver", "<=550", False),
        ("torch==2.7.1", "pytorch", "2.7.1", True),
        ("sm_61", "gpu", "6.1", True),
        ("compute_120", "gpu", "12.0", True),
        ("sm_90a", "gpu", "9.0", True),
        ("gfx942", "gpu", "gfx942", True),
        ("gpu=NVIDIA A100", "gpu", "NVIDIA A100", True),
        ("platform=linux/arm64", "platform", "linux/arm64", True),
    ],
)
def test_a_fact(word: str, name: str, text: str, is_exact: bool) -> None:  # noqa: FBT001 - a column of the table above
    fact = read_query(small(), [word]).facts[0]
    assert (fact.name, fact.text, fact.is_exact, fact.spelled) == (name, text, is_exact, word)


def test_words_that_are_no_facts_are_one_name() -> None:
    assert read_query(small(), ["NVIDIA", "A100"]).name == "NVIDIA A100"


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["cudaa==12"], "`cudaa` in `cudaa==12` is not a component of the matrix", "did you mean `cuda`?"),
        (["cuda==x"], "`cuda==x`: `x` is not a version: it must start with a number such as 12.6", ""),
        (["cuda==12", "cuda==11"], "`cuda==11` and `cuda==12` are about the same component", ""),
        (["cuda==12", "A100"], "`A100` is not a fact", "write facts as cuda==11.3, gpu=6.1, sm_61 or driver=535"),
    ],
)
def test_what_cannot_be_read_is_named(words: list[str], message: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_query(small(), words)
    assert (refused.value.message, "".join(refused.value.hints)) == (message, hint)


def test_releases_of_a_series_newest_first() -> None:
    made = small()
    fact = read_query(made, ["cuda==12.6"]).facts[0]
    assert [str(one.version) for one in matching(made.components["cuda"], fact)] == ["12.6.3", "12.6.0"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("NVIDIA A100", "NVIDIA A100"),
        ("a100", "NVIDIA A100"),
        ("GTX 1080", "NVIDIA GeForce GTX 1080"),
        ("1080 ti", "NVIDIA GeForce GTX 1080 Ti"),
        ("MI300X", "AMD Instinct MI300X"),
        ("NVIDIA T4", "Tesla T4"),
    ],
)
def test_a_product_by_part_of_its_name(text: str, name: str) -> None:
    found = product(small(), text)
    assert found is not None
    assert found.name == name


def test_a_capability_is_no_product() -> None:
    assert product(small(), "8.6") is None
    assert product(small(), "gfx1100") is None


def test_part_of_several_different_products_is_refused() -> None:
    with pytest.raises(UsageError, match="`twin` is the name of several GPUs: NVIDIA Tesla Twin, NVIDIA Quadro Twin"):
        product(small(), "twin")


def test_an_unknown_product_gets_the_nearest_name() -> None:
    with pytest.raises(UsageError) as refused:
        product(small(), "NVIDIA A10O")
    assert refused.value.hints == ("did you mean `NVIDIA A100`?",)


def test_a_series_stands_for_its_newest_release_and_an_exact_one_for_itself() -> None:
    driver = small().components["driver"]
    assert newest_of_series(driver, "535") == "535.104.05"
    assert newest_of_series(driver, "535.54.03") == "535.54.03"
    assert newest_of_series(driver, "535.99.99") == "535.99.99"
    assert newest_of_series(driver, "600") == "600"


def test_a_component_by_its_distribution_and_a_typo() -> None:
    assert component_named(small(), "torch").name == "pytorch"
    with pytest.raises(UsageError) as refused:
        component_named(small(), "cuuda")
    assert refused.value.hints == ("did you mean `cuda`?",)


def test_of_a_wanted_build_only_that_is_left() -> None:
    made = shipped()
    (release,) = matching(made.components["pytorch"], read_query(made, ["pytorch==2.7.1+cu126"]).facts[0])
    assert [build.name for build in release.builds] == ["cu126"]
    assert matching(made.components["pytorch"], read_query(made, ["pytorch==2.7.1+cu999"]).facts[0]) == ()
