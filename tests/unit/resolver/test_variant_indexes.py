"""An index of framework builds that is out of reach is left out where nobody asked for it, and never in silence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from packaging.utils import canonicalize_name

from provisioner.errors import UnavailableError
from provisioner.resolver.joint import NoStackError, solve_joint
from provisioner.resolver.problem import join
from provisioner.resolver.python.finder import VariantIndexes
from provisioner.versions import Version
from provisioner.words.choice import caution_words, held_back_words
from provisioner.words.conflict import fix_words, refusal_hints
from tests import small
from tests.unit.resolver.test_finder import Shelf, matrix_with_facts

if TYPE_CHECKING:
    from packaging.utils import NormalizedName

    from provisioner.index.model import PackageRelease
    from provisioner.resolver.problem import Problem

TORCH = canonicalize_name("torch")
TORCH_OF_NO_USE: dict[str, dict[str, list[str] | str]] = {
    "torch": {"2.4.0": ["six==9"], "2.1.0": ["six==9"]},
    "six": {"1": []},
}
"""Nothing of this index can be installed, so that what the other one has matters."""
LEFT_OUT = "pytorch: what pytorch-cu118 may have was left out: index `pytorch-cu118` cannot be reached: no route"


class Cut(Shelf):
    """A shelf whose every index but the default one is out of reach."""

    def releases(self, name: NormalizedName, *, index: str = "") -> tuple[PackageRelease, ...]:
        if index:
            self.asked.append(f"{name}@{index}")
            raise UnavailableError(f"index `{index}` cannot be reached: no route")
        return super().releases(name, index=index)


def problem(*packages: str, gpu: str = "", index: str = "") -> Problem:
    indexes = [{"name": index, "url": "https://builds.test/{variant}"}] if index else []
    host = {"gpus": [{"compute_capability": gpu}], "container_toolkit": "1.17.4"} if gpu else {}
    request = small.request({"python": "==3.11"}, host, packages=packages, indexes=indexes)
    return join(matrix_with_facts(), request)


def test_an_index_that_nobody_named_lists_nothing_and_its_family_is_not_asked_again() -> None:
    shelf = Cut({})
    indexes = VariantIndexes(problem("torch"), shelf)
    assert indexes.releases(TORCH, "pytorch-cu118") == ()
    assert indexes.releases(TORCH, "pytorch-cu126") == ()
    assert shelf.asked == ["torch@pytorch-cu118"]
    assert list(indexes.unreached) == ["pytorch-cu118", "pytorch-cu126"]
    assert indexes.why_not("pytorch-cu126") == "index pytorch-cu126 is out of reach"


@pytest.mark.parametrize("name", ["pytorch", "pytorch-cu118"])
def test_an_index_that_the_spec_names_must_answer(name: str) -> None:
    indexes = VariantIndexes(problem("torch", index=name), Cut({}))
    with pytest.raises(UnavailableError) as caught:
        indexes.releases(TORCH, "pytorch-cu118")
    assert caught.value.message == "index `pytorch-cu118` cannot be reached: no route"


def test_an_answer_without_the_index_says_that_it_was_left_out() -> None:
    """The newest tool needs a build of 2.1.0, and the default one needs what is not there."""
    torch: dict[str, list[str] | str] = {"2.4.0": [], "2.1.0": ["six==9"]}
    shelf = Cut({"torch": torch, "six": {"1": []}, "tool": {"2": ["torch<2.4"], "1": []}})
    stack = solve_joint(problem("tool"), lambda _: shelf)
    assert {package.name: package.version for package in stack.packages} == {"tool": "1"}
    assert [caution_words(one) for one in stack.warnings] == [LEFT_OUT]


def test_a_package_that_is_old_for_want_of_the_index_is_told_as_held_back() -> None:
    """The newest tool is for one build, which is on the other index; an older tool needs no PyTorch at all."""
    shelf = Cut({"torch": {"2.4.0": [], "2.1.0": []}, "tool": {"2": ["torch==2.1.0+cu118"], "1": []}})
    stack = solve_joint(problem("tool"), lambda _: shelf)
    (held,) = map(held_back_words, stack.held_back)
    assert held == (
        "tool 1 rather than 2: tool 2 needs torch==2.1.0+cu118; "
        "torch 2.1.0+cu118 cannot be installed: index pytorch-cu118 is out of reach"
    )


def test_years_old_packages_are_no_answer_where_every_pytorch_is_on_an_index_out_of_reach() -> None:
    """As accelerate 0.0.1, which needs no PyTorch, on a machine of AMD's where PyTorch's own index cannot be reached."""
    own = small.build("cu118", {"python": "==3.11.*"}, sass=("sm_80",), index="pytorch-cu118", local="cu118")
    components = {
        "pytorch": small.release("2.4.0", {}, builds=(own,)),
        "python": small.release("3.11", {}),
        "gpu": small.release("8.0", {}),
    }
    matrix = small.matrix(
        ("pytorch", "cuda", "python", "driver", "gpu"), {}, releases={name: (one,) for name, one in components.items()}
    )
    asked = join(matrix, small.request({}, {"gpus": [{"compute_capability": "8.0"}]}, packages=["tool"]))
    shelf = Cut({"tool": {"2": ["torch"], "1": []}})
    with pytest.raises(UnavailableError) as caught:
        solve_joint(asked, lambda _: shelf)
    assert caught.value.message == "index `pytorch-cu118` cannot be reached: no route"
    assert caught.value.causes == (
        "without what it has the answer would be one without PyTorch:",
        (
            "  tool 1 rather than 2: tool 2 needs torch; "
            "torch 2.4.0+cu118 cannot be installed: index pytorch-cu118 is out of reach"
        ),
    )


def test_nothing_is_proved_impossible_without_the_index() -> None:
    """Of both releases the builds of the default index need what is not there; the third build is on the other index."""
    shelf = Cut({"torch": {"2.4.0": ["six==9"], "2.1.0": ["six==9"]}, "six": {"1": []}})
    with pytest.raises(UnavailableError) as caught:
        solve_joint(problem("torch"), lambda _: shelf)
    assert caught.value.message == "index `pytorch-cu118` cannot be reached: no route"


def test_an_index_that_matters_is_told_with_what_stands_against_every_answer_without_it() -> None:
    shelf = Cut({"torch": {"2.4.0": ["six==9"], "2.1.0": ["six==9"]}, "six": {"1": []}})
    with pytest.raises(UnavailableError) as caught:
        solve_joint(problem("torch"), lambda _: shelf)
    assert caught.value.causes == (
        "without what it has there is no answer:",
        "  you require torch  (the spec)",
        "  pytorch 2.1.0+cu118 cannot be installed: index pytorch-cu118 is out of reach  (index pytorch-cu118)",
        "  pytorch 2.1.0+cu121 and 2.4.0+cu124 need six==9  (metadata of pytorch 2.4.0+cu124 and 1 more)",
        "  every CUDA build of pytorch 2.1.0 and 2.4.0 is installed from its wheel  (index pypi and 1 more)",
        "  so no torch is left",
    )


def test_what_is_impossible_whatever_the_index_has_is_proved_without_it() -> None:
    """The tool needs what is not there; the framework, whose third build is on the other index, has nothing to do with it.

    The search comes to the framework first, and to the tool never: so that the proof is one, it has to be found without it.
    """
    shelf = Cut({**TORCH_OF_NO_USE, "tool": {"1": ["six==8"]}, "app": {"1": ["tool"]}})
    with pytest.raises(NoStackError) as caught:
        solve_joint(problem("torch", "app"), lambda _: shelf)
    assert "torch@pytorch-cu118" in shelf.asked
    assert caught.value.causes == (
        "you require app  (the spec)",
        "app 1 needs tool  (metadata of app 1)",
        "tool 1 needs six==8: the index has 1  (metadata of tool 1)",
        "so no app is left",
    )


def test_a_fix_is_told_for_what_can_be_solved_and_the_framework_is_not_given_up_for_want_of_the_index() -> None:
    """The builds of the default index need what is not there, and the app can be had in another release."""
    shelf = Cut({**TORCH_OF_NO_USE, "app": {"2": ["six==8"], "1": []}})
    with pytest.raises(NoStackError) as caught:
        solve_joint(problem("torch", "app==2"), lambda _: shelf)
    (conflict,) = caught.value.conflicts
    assert [(fix_words(fix), fix.is_unverified) for fix in conflict.fixes] == [("app 1 instead of `app==2` would do", True)]
    assert conflict.unreached == "pytorch-cu118"
    assert "not solved: what needs index `pytorch-cu118` or another like it, which are out of reach" in refusal_hints(
        [conflict]
    )


def test_a_fix_within_reach_is_taken_before_a_nearer_one_out_of_reach() -> None:
    """The release between the two has builds on the index out of reach alone."""
    matrix = matrix_with_facts()
    far = small.build("cu118", {"python": ["3.11"]}, index="pytorch-cu118", local="cu118", sass=("sm_75",))
    newest, oldest = matrix.components["pytorch"].releases
    releases = (newest, replace(oldest, version=Version.parse("2.3.0"), builds=(far,)), oldest)
    components = {**matrix.components, "pytorch": replace(matrix.components["pytorch"], releases=releases)}
    host = {"gpus": [{"compute_capability": "7.5"}], "container_toolkit": "1.17.4"}
    asked = join(replace(matrix, components=components), small.request({}, host, packages=("torch==2.4.0",)))
    with pytest.raises(NoStackError) as caught:
        solve_joint(asked, lambda _: Cut({"torch": {"2.4.0": [], "2.3.0": [], "2.1.0": []}}))
    (conflict,) = caught.value.conflicts
    assert fix_words(conflict.fixes[0]) == "torch 2.1.0+cu121 instead of `torch==2.4.0` would do"


def test_no_python_that_the_framework_has_no_build_for_keeps_a_proof_from_being_one() -> None:
    """Every build is for Python 3.11; that the rest has an answer on 3.12 is beside the point, and told."""
    matrix = matrix_with_facts()
    pythons = (*matrix.components["python"].releases, small.release("3.12", {}))
    components = {**matrix.components, "python": replace(matrix.components["python"], releases=pythons)}
    shelf = Cut({**TORCH_OF_NO_USE, "tool": {"1": ["six==8"]}, "app": {"1": ["tool"]}})
    other = Cut({**TORCH_OF_NO_USE, "app": {"1": []}})
    asked = join(replace(matrix, components=components), small.request({}, packages=("torch", "app")))
    with pytest.raises(NoStackError) as caught:
        solve_joint(asked, lambda environment: shelf if environment.python == "3.11" else other)
    assert "torch@pytorch-cu118" in shelf.asked
    assert caught.value.causes == (
        "you require app  (the spec)",
        "you require torch  (the spec)",
        "app 1 needs tool with python 3.11  (metadata of app 1)",
        "tool 1 needs six==8: the index has 1  (metadata of tool 1)",
        "every CUDA build of pytorch 2.1.0 and 2.4.0 needs python 3.11  (matrices/pytorch.yaml)",
        "so no app is left that goes with torch",
    )


def test_what_the_index_may_have_settles_is_not_proved_by_leaving_the_framework_out() -> None:
    """Without the framework the rest has an answer, so nobody knows whether the whole has one."""
    shelf = Cut({"torch": {"2.4.0": ["six==9"], "2.1.0": ["six==9"]}, "six": {"1": []}, "app": {"1": ["six"]}})
    with pytest.raises(UnavailableError) as caught:
        solve_joint(problem("torch", "app"), lambda _: shelf)
    assert caught.value.message == "index `pytorch-cu118` cannot be reached: no route"


def test_what_no_build_could_meet_is_proved_though_the_search_came_to_the_index_first() -> None:
    """Both lines are about the framework: the one excludes what the other needs, whatever builds the index has."""
    shelf = Cut({**TORCH_OF_NO_USE, "app": {"2": ["tool"], "1": ["tool"]}, "tool": {"1": ["torch>=2.4"]}})
    with pytest.raises(NoStackError) as caught:
        solve_joint(problem("torch<2.4", "app"), lambda _: shelf)
    assert "torch@pytorch-cu118" in shelf.asked
    assert caught.value.causes == (
        "you require torch<2.4  (the spec)",
        "you require app  (the spec)",
        "app 1 and 2 need tool  (metadata of app 2 and 1 more)",
        "tool 1 needs torch>=2.4  (metadata of tool 1)",
        "so no torch<2.4 is left that goes with app",
    )


def test_what_a_build_of_the_index_would_meet_is_not_proved() -> None:
    """As above, but the oldest release of the app goes with the build that the index may have."""
    shelf = Cut({**TORCH_OF_NO_USE, "app": {"2": ["torch>=2.4"], "1": ["torch"]}})
    with pytest.raises(UnavailableError) as caught:
        solve_joint(problem("app", "torch<2.4"), lambda _: shelf)
    assert caught.value.message == "index `pytorch-cu118` cannot be reached: no route"


def test_what_a_distribution_of_the_index_may_meet_is_not_proved() -> None:
    """The index of the builds may have a vision for the older framework, which the default index has not."""
    shelf = Cut({**TORCH_OF_NO_USE, "torchvision": {"2": ["torch==2.4.0"]}, "app": {"1": ["torchvision"]}})
    with pytest.raises(UnavailableError) as caught:
        solve_joint(problem("app", "torch<2.4"), lambda _: shelf)
    assert caught.value.message == "index `pytorch-cu118` cannot be reached: no route"


def test_an_index_whose_builds_no_host_can_run_is_not_asked() -> None:
    """PyTorch's index of CUDA 13 on a machine whose driver ends with CUDA 12: a page, or a warning where it is cut off."""
    python = {"python": "==3.11.*"}
    builds = [
        small.build(f"cu{name}", {**python, "cuda": f"=={cuda}"}, index=f"pytorch-cu{name}", local=f"cu{name}")
        for name, cuda in (("132", "13.2"), ("130", "13.0"), ("126", "12.6"))
    ]
    toolkits = {"13.2": {"driver": ">=590"}, "13.0": {"driver": ">=580"}, "12.6": {"driver": ">=525"}}
    drivers: dict[str, dict[str, str]] = {"595.1": {}, "585.1": {}, "545.29": {}}
    matrix = small.matrix(
        ("pytorch", "cuda", "python", "driver", "gpu"),
        {"python": {"3.11": {}}, "cuda": toolkits, "driver": drivers, "gpu": {"7.0": {}}},
        releases={"pytorch": [small.release(version, {}, builds=tuple(builds)) for version in ("2.4.0", "2.3.0")]},
    )
    host = {"gpus": [{"compute_capability": "7.0"}], "driver": {"version": "545.29"}}
    shelf = Shelf({"tool": {"1": ["torch"]}}, {"torch@pytorch-cu126": {"2.4.0+cu126": []}})
    stack = solve_joint(join(matrix, small.request({}, host, packages=["tool"])), lambda _: shelf)
    assert {package.name: package.version for package in stack.packages} == {"tool": "1", "torch": "2.4.0+cu126"}
    assert {one for one in shelf.asked if "@" in one} == {"torch@pytorch-cu126"}
