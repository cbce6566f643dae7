"""Mistakes in a spec's policy, each at its line and column, with what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.document import parse_document
from provisioner.errors import InvalidDocumentError
from provisioner.spec.check import component_mistakes
from provisioner.spec.gather import Gathered
from provisioner.spec.interval import Interval, interval_of_range
from provisioner.spec.load import parse_spec
from provisioner.versions import Range

if TYPE_CHECKING:
    from provisioner.spec.model import Spec

KNOWN = ("pytorch", "python", "cuda", "driver", "driver_module", "kernel", "jax", "cupti", "gpu")


def mistakes(policy: str) -> list[str]:
    document = parse_document(f"policy:\n{policy}", file="spec.yaml", kind="spec")
    with pytest.raises(InvalidDocumentError) as caught:
        parse_spec(Gathered(document), besides=component_mistakes(document, KNOWN))
    return [str(mistake).removeprefix("spec.yaml:") for mistake in caught.value.mistakes]


def read(policy: str, packages: str = "[]") -> Spec:
    document = parse_document(f"policy:\n{policy}packages: {packages}\n", file="spec.yaml", kind="spec")
    return parse_spec(Gathered(document), besides=component_mistakes(document, KNOWN))


def test_every_word_and_table_is_read() -> None:
    spec = read(
        "  strategy: stable\n  allow: [end-of-life, image-gate]\n  forbid: [patched-kernel, minor-version]\n"
        '  prefer: {python: "3.12", torch: "==2.7.1+cu126", driver_module: open, numpy: "<2.4,!=2.3.0"}\n'
        '  avoid: {cuda: "13.*"}\n'
    )
    assert (spec.policy.strategy, spec.policy.allow, spec.policy.forbid) == (
        "stable",
        ("end-of-life", "image-gate"),
        ("patched-kernel", "minor-version"),
    )
    assert spec.policy.avoid == {"cuda": "13.*"}


def test_a_word_cannot_be_both_allowed_and_forbidden() -> None:
    assert mistakes("  allow: [ptx-jit]\n  forbid:\n    - sdist\n    - ptx-jit\n") == [
        "5:7: policy.forbid[1]: `ptx-jit` is allowed on line 2 and forbidden here; keep one"
    ]


def test_forbidding_what_is_allowed_by_default_takes_it_away() -> None:
    assert read("  forbid: [minor-version]\n").policy.forbid == ("minor-version",)


@pytest.mark.parametrize(
    ("line", "mistake"),
    [
        (
            'prefer: {cuda: "newest"}',
            "2:12: policy.prefer.cuda: `newest` is not a version: it must start with a number such as 12.6",
        ),
        (
            'avoid: {numpy: "=>2"}',
            "2:11: policy.avoid.numpy: `=>2` is not a range: write for example >=2.6, ==12.* or >=550,<580",
        ),
        ('avoid: {numpy: ">3,<2"}', "2:11: policy.avoid.numpy: `>3,<2` allows no version at all"),
        ('prefer: {python: "*"}', "2:12: policy.prefer.python: `*` is every version, which puts none before another"),
        ("prefer: {python: 3.12}", '2:12: policy.prefer.python: 3.12 is not quoted; write "3.12" (12.10 is not 12.1)'),
        ('prefer: {gpu: "9.0"}', "2:12: policy.prefer.gpu: `gpu` is given, not chosen, so that nothing can be preferred"),
        (
            'avoid: {torch: "<2", pytorch: "<2"}',
            "2:24: policy.avoid.pytorch: `pytorch` is named twice; the first is on line 2",
        ),
        (
            'prefer: {kernl: "6.8"}',
            (
                "2:12: policy.prefer.kernl: `kernl` is not a component of the matrix; did you mean `kernel`? "
                "name a Python package of this name under `packages`, too"
            ),
        ),
        ('avoid: {"-": "1"}', "2:11: policy.avoid.-: `-` is neither a component of the matrix nor the name of a distribution"),
    ],
)
def test_a_preference_that_means_nothing_is_a_mistake(line: str, mistake: str) -> None:
    assert mistakes(f"  {line}\n") == [mistake]


def test_a_distribution_may_be_preferred_however_much_it_sounds_like_a_component_when_packages_name_it() -> None:
    assert (
        read('  prefer: {kernels: "1.*", cupy: ">=13", tensorflow-io: "1.0"}\n', "[kernels>=1]").policy.prefer["kernels"]
        == "1.*"
    )


@pytest.mark.parametrize("avoided", ["3.12", ">=3.11", "==3.*", ">=3,<4", "<=4"])
def test_what_is_preferred_and_altogether_avoided_is_a_mistake(avoided: str) -> None:
    assert mistakes(f'  prefer: {{python: "3.12"}}\n  avoid: {{python: "{avoided}"}}\n') == [
        "2:12: policy.prefer.python: all of `==3.12.*` is avoided on line 3, so that nothing is preferred; keep one"
    ]


@pytest.mark.parametrize("avoided", [">=3.12.4", "3.11", "!=3.13", "<3.12", "3.12.3"])
def test_what_is_preferred_and_partly_avoided_is_none(avoided: str) -> None:
    assert read(f'  prefer: {{python: "3.12"}}\n  avoid: {{python: "{avoided}"}}\n').policy.avoid == {"python": avoided}


@pytest.mark.parametrize(
    ("outer", "inner", "is_held"),
    [
        (">=2", ">=2", True),
        (">=2", ">=1", False),
        ("<3", "<3", True),
        ("<3", "<=3", False),
        ("<=3", "<3", True),
        (">=2,<3", "2.5", True),
        (">=2,<3", ">=2.5", False),
        ("==2.5.1", "2.5", False),
    ],
)
def test_an_interval_holds_another(outer: str, inner: str, *, is_held: bool) -> None:
    assert interval_of_range(Range.parse(outer)).contains(interval_of_range(Range.parse(inner))) is is_held


def test_everything_holds_everything() -> None:
    assert Interval().contains(Interval())
