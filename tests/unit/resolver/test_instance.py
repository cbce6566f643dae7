"""What searches ask an instance: which candidates a requirement allows, and the same subject with something given up."""

from __future__ import annotations

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from provisioner.grounds.requirement import SpecLine
from provisioner.index.model import PackageRelease
from provisioner.resolver.problem import join
from provisioner.resolver.requirement import PACKAGE, Candidate, FileCandidate, Key, Matching
from provisioner.resolver.search.instance import ProblemInstance, violations
from provisioner.resolver.search.provider import search
from provisioner.resolver.search.resolve import decide
from provisioner.versions import Version
from tests import small

MATRIX = small.matrix(
    ("pytorch", "cuda", "driver", "python"),
    {
        "cuda": {"12.6": {"driver": ">=560"}, "11.8": {"driver": ">=450"}},
        "driver": {"560": {}, "450": {}},
        "python": {"3.12": {}, "3.11": {}},
    },
    releases={
        "pytorch": (
            small.release("2.7", {"cuda": "12.6", "python": ["3.12"]}),
            small.release("2.1", {"cuda": "11.8", "python": ["3.11"]}),
        )
    },
)
PYTORCH = Key("pytorch")
VERSIONS = ("2.0", "2.0rc1", "2.0.post1", "2.0+local", "1.10", "1.9", "1!1.0", "1.9.dev3")
SPECIFIERS = (
    "",
    ">=1.9,<2",
    "==2.0",
    "===2.0",
    "===2.0+local",
    "~=1.9",
    "!=1.10",
    "<2",
    "==1.*",
    ">1.9",
    "==2.0+local",
    "<=2.0",
)


def instance(requires: dict[str, str]) -> ProblemInstance:
    return ProblemInstance(join(MATRIX, small.request(requires, {"driver": {"version": "450"}})))


def distribution(version: str) -> Candidate:
    release = PackageRelease.of(name=canonicalize_name("tool"), version_text=version, file=None)
    return FileCandidate(Key("tool", PACKAGE), Version.named(""), version, release)


def test_asking_for_many_candidates_at_once_gives_what_asking_for_each_gives() -> None:
    offered = [distribution(version) for version in VERSIONS]
    for text in SPECIFIERS:
        test = Matching(SpecifierSet(text))
        assert list(test.among(offered)) == [one for one in offered if test.allows(one)], text


def test_equal_requirements_share_one_answer_and_each_keeps_it() -> None:
    subject = instance({"pytorch": ">=2"})
    first, second = (
        next(root for root in made.roots if root.key == PYTORCH) for made in (subject, instance({"pytorch": ">=2"}))
    )
    assert first is not second
    assert subject.allowed(first) is subject.allowed(second)
    assert subject.allowed(first) is subject.allowed(first)


def test_a_relaxed_universe_lacks_only_what_was_given_up() -> None:
    subject = instance({"pytorch": "2.7"})
    assert decide(subject) is None
    relaxed = subject.relaxed(without={SpecLine("requires", "pytorch")}, present=(PYTORCH,))
    pins = search(relaxed)
    assert pins is not None
    assert violations(relaxed, pins) == []
    assert {key.name: pin.label for key, pin in pins.items() if key.name in MATRIX.order} == {
        "pytorch": "2.1",
        "cuda": "11.8",
        "driver": "450",
        "python": "3.11",
    }
    assert decide(subject) is None


def test_a_relaxed_universe_can_require_one_candidate() -> None:
    subject = instance({})
    older = next(one for one in subject.candidates(PYTORCH) if one.label == "2.1")
    pins = decide(subject.relaxed(given=(older,)))
    assert pins is not None
    assert pins[PYTORCH] is older
