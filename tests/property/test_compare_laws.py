"""Laws of comparing two locks: nothing differs from itself, back mirrors forth, and changes lead from one to the other."""

from __future__ import annotations

from itertools import permutations, product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from provisioner.lock.diff.compare import compare
from provisioner.lock.diff.hosts import direction, fall_out
from provisioner.lock.format.file import parse_lock, write_lock
from provisioner.lock.format.model import Lock, LockedFile, LockedPackage, Reason
from provisioner.resolver.stack import BaseImage
from provisioner.versions import Range, Version
from provisioner.words.change import change_words, comparison_lines
from tests.lock_examples import IMAGE_DIGEST, cuda_stack, lock_of
from tests.strategies import examples

if TYPE_CHECKING:
    from provisioner.grounds.change import Change, Comparison

pytestmark = pytest.mark.property

SETTINGS = examples(150)
NAMES = ("alpha", "beta", "gamma", "torch")
VERSIONS = ("1.0", "1.1", "2.0", "2.0+cu126", "2026.1")
LOCK = lock_of(cuda_stack(), cuda_stack("linux/arm64"))


@st.composite
def wheels(draw: st.DrawFn, name: str, version: str) -> LockedFile:
    """One of a few wheels of a release; the same name may have other content."""
    filename = f"{name}-{version}-{draw(st.sampled_from(['cp311-cp311-any', 'cp312-cp312-any']))}.whl"
    return LockedFile(filename=filename, sha256=draw(st.sampled_from("12")) * 64, url=f"https://example.org/{filename}")


requirements = st.lists(st.sampled_from([f"{name}{test}" for name in NAMES for test in ("", "<2", ">=1.1")]), max_size=2)


@st.composite
def packages(draw: st.DrawFn, platforms: tuple[str, ...]) -> tuple[LockedPackage, ...]:
    """A few packages, on all platforms or one, that may require each other in circles or in vain."""
    found = []
    for name in draw(st.sets(st.sampled_from(NAMES))):
        requires, version = tuple(draw(requirements)), draw(st.sampled_from(VERSIONS))
        found.append(
            LockedPackage(
                name=name,
                version=version,
                platforms=draw(st.sampled_from([platforms, platforms[:1], platforms[-1:]])),
                wheels=(draw(wheels(name, version)),),
                index=draw(st.sampled_from(["pypi", "mirror"])),
                requires=requires,
            )
        )
    return tuple(sorted(found, key=lambda package: package.name))


ranges = st.sampled_from(["", ">=525", ">=550.54", ">=525,<580", "<=535", ">550", "==535.*"])
reasons = st.lists(
    st.builds(
        Reason,
        component=st.sampled_from(["pytorch", "cudnn"]),
        kind=st.sampled_from(["rule", "request"]),
        text=st.sampled_from(["pytorch 2.7.1 needs cuda ==12.*", "you require cuda >=12", "cudnn 9 needs cuda >=13"]),
        where=st.just("matrices/x.yaml"),
    ),
    max_size=2,
)


@st.composite
def locks(draw: st.DrawFn) -> Lock:
    """A lock of two platforms, or of one."""
    stacks = []
    for stack in LOCK.stacks[: draw(st.integers(1, 2))]:
        facts = {"driver": draw(ranges), "gpu": draw(st.sampled_from(["", "7.0, 8.0", "8.0", "9.0"]))}
        pins = tuple(replace(pin, reasons=tuple(draw(reasons))) for pin in stack.pins)
        stacks.append(
            replace(
                stack,
                accelerator=draw(st.sampled_from(["cuda", "cpu"])),
                components={**stack.components, "cuda": draw(st.sampled_from(["12.6.3", "13.0.2"]))},
                host_requirements={name: value for name, value in facts.items() if value},
                arch_list=draw(st.sampled_from([(), ("sm_70", "sm_80"), ("sm_80", "sm_90", "compute_90")])),
                environment=draw(st.dictionaries(st.sampled_from("AB"), st.sampled_from("12"))),
                image=draw(
                    st.sampled_from([None, BaseImage(reference="a:1"), BaseImage(reference="a:1", digest=IMAGE_DIGEST)])
                ),
                relaxations=draw(st.sampled_from([(), ("minor-version (cuda)",)])),
                pins=pins,
            )
        )
    asked = draw(
        st.dictionaries(st.sampled_from(["requires.cuda", "packages.alpha"]), st.sampled_from(["<2", ">=13", "any version"]))
    )
    return replace(
        LOCK,
        stacks=tuple(stacks),
        packages=draw(packages(tuple(stack.platform for stack in stacks))),
        asked=asked,
        spec_digest=str(sorted(asked.items())),
    )


def facts_of(changes: tuple[Change, ...]) -> set[tuple[object, ...]]:
    """What is left of changes without the words for them, platform by platform.

    What is alike on two platforms is told once, and a cause is part of that; but causes have a direction: a release that no
    longer fits beside its neighbour is why the newer one came, and nothing says why it should go again.
    """
    return {
        (one.section, one.subject, one.aspect, one.change, one.old, one.new, platform)
        for one in changes
        for platform in one.platforms or ("",)
    }


MIRRORED = {"added": "removed", "upgraded": "downgraded", "tightened": "loosened"}
"""Each kind of change and what it is the other way round; `changed` is its own mirror image."""


def mirrored(comparison: Comparison) -> set[tuple[object, ...]]:
    back = {**MIRRORED, **{value: key for key, value in MIRRORED.items()}, "changed": "changed"}
    return {(section, subject, aspect, back[str(change)], new, old, where)
            for section, subject, aspect, change, old, new, where in facts_of(comparison.changes)}  # fmt: skip


@SETTINGS
@given(locks())
def test_nothing_differs_from_itself(lock: Lock) -> None:
    assert compare(lock, lock).changes == ()


@SETTINGS
@given(locks(), locks())
def test_back_mirrors_forth(old: Lock, new: Lock) -> None:
    assert mirrored(compare(old, new)) == facts_of(compare(new, old).changes)


@SETTINGS
@given(locks(), locks())
def test_package_changes_lead_from_one_lock_to_the_other(old: Lock, new: Lock) -> None:
    comparison = compare(old, new)
    for platform in comparison.platforms:
        versions = {package.name: package.version for package in old.on(platform).packages}
        for change in comparison.of("packages"):
            if change.aspect != "version" or platform not in change.platforms:
                continue
            assert versions.pop(change.subject, "") == change.old
            if change.new:
                versions[change.subject] = change.new
        assert versions == {package.name: package.version for package in new.on(platform).packages}


@SETTINGS
@given(locks(), locks())
def test_the_words_are_there_for_any_two_locks_and_are_the_same_twice(old: Lock, new: Lock) -> None:
    comparison = compare(old, new)
    lines = comparison_lines(comparison, old="a", new="b")
    assert lines == comparison_lines(compare(old, new), old="a", new="b")
    text = "\n".join(lines)
    assert all(change_words(change) in text.replace("`==12.*`", "==12.*") for change in comparison.changes)
    assert all(change.causes for change in comparison.of("packages"))


@SETTINGS
@given(locks(), locks())
def test_a_comparison_survives_the_file(old: Lock, new: Lock) -> None:
    read = [parse_lock(write_lock(lock), file="lock") for lock in (old, new)]
    assert compare(*read) == compare(old, new)


FLOORS, CEILINGS = ("", ">=3", ">3", ">=5.1", ">5.1"), ("", "<8", "<=8", "<9.2", "<=9.2")
BOUNDS = [",".join(part for part in parts if part) for parts in product(FLOORS, CEILINGS)]
WITNESSES = [
    Version.parse(text) for text in ("0", "2.9", "3", "3.0.1", "5.1", "5.1.1", "7.9", "8", "8.0.1", "9.1", "9.2", "9.2.1", "99")
]


def test_a_direction_agrees_with_every_version_tried() -> None:
    """An independent judge, of every pair of bounds: versions on, just below and just above every end."""
    for old, new in permutations(BOUNDS, 2):
        before, after = ({version for version in WITNESSES if Range.parse(text).allows(version)} for text in (old, new))
        expected = "tightened" if after < before else "loosened" if before < after else "changed"
        assert direction(old, new) == expected, (old, new)
        assert bool(fall_out(old, new)) == bool(before - after), (old, new)
