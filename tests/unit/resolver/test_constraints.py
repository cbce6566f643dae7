"""Constraints, overrides and hashes: what they rule out, what they bring in (nothing), and how a conflict tells them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from packaging.specifiers import SpecifierSet

from provisioner.places import Place
from provisioner.resolver.choices.constraints import ForPython
from provisioner.resolver.joint import NoStackError, solve_joint, solve_system
from provisioner.resolver.problem import join
from provisioner.resolver.requirement import Candidate, Key
from provisioner.versions import Version
from provisioner.words.conflict import conflict_lines, fix_line, fix_words
from provisioner.words.notation import source_words
from provisioner.words.relaxation import relaxation_words
from tests import small
from tests.unit.resolver.test_finder import Shelf, matrix_with_facts

if TYPE_CHECKING:
    from provisioner.index.model import PackageRelease
    from provisioner.resolver.stack import Stack

TABLE: dict[str, dict[str, list[str] | str]] = {
    "app": {"2": ["core>=2", "extra-part; extra == 'more'"], "1": ["core"]},
    "core": {"3": [], "2": ["low<2"], "1": []},
    "low": {"2": [], "1": []},
    "extra-part": {"1": ["core<3"]},
    "never": {"1": []},
    "torch": {"2.4": ["low"], "2.1": []},
}


def solved(packages: list[str], table: dict[str, dict[str, list[str] | str]] | None = None, **spec: Any) -> Stack:  # noqa: ANN401
    """The answer for a spec with other keys, its lines numbered in the order of the lists."""
    requires = spec.pop("requires", {})
    request = small.request({"python": "3.11", **requires}, {}, packages=packages)
    places = {f"{key}.{index}": Place(key, index + 1) for key in ("packages", "constraints", "overrides") for index in range(5)}
    request = replace(request, spec=replace(request.spec, **spec), places={**places, "hashes.core": Place("r.txt", 4)})
    return solve_joint(join(matrix_with_facts(), request), lambda _: Shelf(table or TABLE))


def versions(stack: Stack) -> dict[str, str]:
    return {package.name: package.version for package in stack.packages}


def refused(*arguments: Any, **spec: Any) -> list[str]:  # noqa: ANN401
    with pytest.raises(NoStackError) as caught:
        solved(*arguments, **spec)
    conflict = caught.value.conflict
    return [*conflict_lines(conflict), *(f"hint: {fix_line(hint)}" for hint in conflict.fixes)]


def test_a_constraint_bounds_what_somebody_requires_and_brings_nothing_in() -> None:
    assert versions(solved(["app"])) == {"app": "2", "core": "3"}
    assert versions(solved(["app"], constraints=("core<3", "never==1"))) == {"app": "2", "core": "2", "low": "1"}
    assert versions(solved(["app"], constraints=("core<2",))) == {"app": "1", "core": "1"}
    assert versions(solved(["app"], constraints=("Core!=3; sys_platform == 'win32'",))) == {"app": "2", "core": "3"}


def test_a_constraint_bounds_the_distribution_of_an_extra() -> None:
    assert versions(solved(["app[more]"], constraints=("app<2",))) == {"app": "1", "core": "3"}


def test_a_constraint_on_the_framework_is_one_on_the_component_and_does_not_require_it() -> None:
    assert versions(solved(["low"], constraints=("torch<2.4",))) == {"low": "2"}
    assert solved(["torch"], constraints=("torch<2.4",)).components["pytorch"] == "2.1.0"
    request = small.request({"pytorch": "*"}, {})
    request = replace(request, spec=replace(request.spec, constraints=("torch<2.4",)))
    assert solve_system(join(matrix_with_facts(), request)).components["pytorch"] == "2.1.0"


def test_a_conflict_names_the_line_of_a_constraint_and_a_hint_leaves_it_out() -> None:
    assert refused(["app>=2"], constraints=("never<2", "core<2")) == [
        "you constrain core<2  (constraints:2)",
        "you require app>=2  (packages:1)",
        "app 2 needs core>=2  (metadata of app 2)",
        "so no app>=2 is left",
        "hint: app 1 instead of `app>=2` would do: gives app 1, python 3.11",
        "hint: leaving out the constraint `core<2` would do: gives app 2, python 3.11",
    ]


def test_each_of_two_constraints_on_one_distribution_is_a_way_out() -> None:
    assert refused(["core"], constraints=("core<3", "core>=3")) == [
        "you constrain core<3  (constraints:1)",
        "you constrain core>=3  (constraints:2)",
        "you require core  (packages:1)",
        "so no core is left",
        "hint: leaving out the constraint `core<3` would do: gives core 3, python 3.11",
        "hint: leaving out the constraint `core>=3` would do: gives core 2, python 3.11",
    ]


def test_an_override_stands_in_the_place_of_what_anybody_requires() -> None:
    stack = solved(["app"], overrides=("core==1",))
    assert versions(stack) == {"app": "2", "core": "1"}
    assert [(one.name, one.component, relaxation_words(one), source_words(one.source)) for one in stack.relaxations] == [
        ("override", "core", "app 2 needs core>=2, and has core 1: you override it with core==1", "overrides:1")
    ]
    assert {package.name: package.requires for package in stack.packages}["app"] == ("core>=2",)


def test_an_override_that_the_metadata_would_have_met_relaxes_nothing() -> None:
    assert solved(["app"], overrides=("core>=2",)).relaxations == ()


def test_an_override_replaces_the_users_own_requirement_with_its_extras() -> None:
    assert versions(solved(["app[more]>=2"], overrides=("app==1",))) == {"app": "1", "core": "3"}
    assert versions(solved(["app"], overrides=("app[more]",))) == {"app": "2", "core": "2", "extra-part": "1", "low": "1"}


def test_an_override_brings_nothing_in_and_one_that_does_not_apply_takes_away() -> None:
    assert versions(solved(["low"], overrides=("core==1",))) == {"low": "2"}
    stack = solved(["app"], overrides=("core; sys_platform == 'win32'",))
    assert versions(stack) == {"app": "2"}
    assert relaxation_words(stack.relaxations[0]) == (
        'app 2 needs core>=2, and has no core: you override it with core; sys_platform == "win32"'
    )


def test_what_is_required_elsewhere_only_is_not_overridden_into_the_environment() -> None:
    table: dict[str, dict[str, list[str] | str]] = {"app": {"1": ["low; sys_platform == 'win32'"]}, "low": {"1": []}}
    assert versions(solved(["app"], table, overrides=("low==1",))) == {"app": "1"}
    assert versions(solved(["app", "low; sys_platform == 'win32'"], table, overrides=("low==1",))) == {"app": "1"}


def test_overrides_for_different_environments_stand_side_by_side() -> None:
    overrides = ("core==1; python_version < '3.11'", "core==2; python_version >= '3.11'")
    assert versions(solved(["app"], overrides=overrides)) == {"app": "2", "core": "2", "low": "1"}


def test_an_override_of_the_framework_is_one_of_the_component() -> None:
    tool: dict[str, list[str] | str] = {"1": ["torch==2.4"]}
    table = {**TABLE, "tool": tool}
    stack = solved(["tool"], table, overrides=("torch==2.1",))
    assert stack.components["pytorch"] == "2.1.0"
    assert [relaxation_words(one) for one in stack.relaxations if one.name == "override"] == [
        "tool 1 needs torch==2.4, and has torch 2.1: you override it with torch==2.1"
    ]


def test_an_override_that_cannot_be_met_is_in_the_conflict() -> None:
    assert refused(["app>=2"], overrides=("core<1",)) == [
        "you override core with core<1: the index has 3, 2, 1  (overrides:1)",
        "you require app>=2  (packages:1)",
        "so no app>=2 is left",
        "hint: leaving out the override `core<1` would do: gives app 2, python 3.11",
    ]


class Hashing(Shelf):
    """Files whose digest is their version's digit, sixty-four times."""

    def releases(self, name: Any, *, index: str = "") -> tuple[PackageRelease, ...]:  # noqa: ANN401
        def hashed(one: PackageRelease) -> PackageRelease:
            file = one.file
            return one if file is None else one.with_file(replace(file, sha256=str(one.version)[0] * 64))

        return tuple(map(hashed, super().releases(name, index=index)))


def hashed(digits: str) -> dict[str, str] | list[str]:
    request = small.request({"python": "3.11"}, {}, packages=["app"])
    digests = tuple(digit * 64 for digit in digits)
    request = replace(request, spec=replace(request.spec, hashes={"core": digests}), places={"hashes.core": Place("r.txt", 4)})
    try:
        return versions(solve_joint(join(matrix_with_facts(), request), lambda _: Hashing(TABLE)))
    except NoStackError as error:
        return [*conflict_lines(error.conflict), *(fix_words(hint) for hint in error.conflict.fixes)]


def test_only_files_with_a_given_hash_are_chosen() -> None:
    assert hashed("12") == {"app": "2", "core": "2", "low": "1"}
    assert hashed("1") == {"app": "1", "core": "1"}
    assert hashed("9") == [
        "you give hashes of core, and no file for this target has one of them  (r.txt:4)",
        "you require app  (the spec)",
        "app 2 needs core>=2; app 1 needs core  (metadata of app 2 and 1 more)",
        "so no app is left",
        "leaving out the hashes of core would do",
    ]


def test_a_project_runs_on_a_series_of_which_it_takes_the_newest_patch() -> None:
    python = Candidate(Key("python"), Version.parse("3.11"), "3.11")
    ranges = (">=3.11.4", "<3.12", "==3.11.*", "<=3.11", ">=3.12", "!=3.11.*", "~=3.10")
    assert [ForPython(SpecifierSet(text)).allows(python) for text in ranges] == [True, True, True, False, False, False, True]
    with pytest.raises(NoStackError) as caught:
        solved(["app"], requires_python=("<3.8",))
    assert conflict_lines(caught.value.conflict)[0].startswith("the project requires python <3.8")


def test_a_constraint_is_decided_without_reading_what_it_rules_out() -> None:
    class Counting(Shelf):
        def requirements(self, release: PackageRelease, extras: tuple[str, ...] = ("",)) -> Any:  # noqa: ANN401
            assert (release.name, str(release.version)) != ("core", "3"), "ruled out beforehand"
            return super().requirements(release, extras)

    request = small.request({"python": "3.11"}, {}, packages=["app"])
    request = replace(request, spec=replace(request.spec, constraints=("core<3",)))
    assert versions(solve_joint(join(matrix_with_facts(), request), lambda _: Counting(TABLE)))["core"] == "2"
