"""`provision explain` from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.project import changed
from tests.shipped import shipped

if TYPE_CHECKING:
    from tests.project import Project

T4 = """\
target:
  host:
    driver: {version: 470.256.02}
    gpus: [{compute_capability: "7.5"}]
    container_toolkit: 1.17.4
"""


def gpu_spec(pytorch: str) -> str:
    return changed("accelerator: cuda", f'requires: {{python: "==3.11", pytorch: "{pytorch}"}}', "image: {base: auto}", T4)


def test_the_system_stack_is_a_table_with_a_reason_each_and_no_index_is_asked(project: Project) -> None:
    outcome = project.run("explain", "--stack-only")
    assert (outcome.code, outcome.err) == (0, "")
    answer, table = outcome.out.split("\n\n")
    assert answer == "✓ runs on linux/amd64, on the CPU alone\n  python 3.12"
    rows = [line.split(maxsplit=2) for line in table.splitlines()]
    assert rows == [
        ["component", "chosen", "because"],
        ["image", "IMAGE", "the base image is IMAGE  (provision.yaml:9)"],
        ["python", "3.12", "you require python ==3.12  (provision.yaml:4)"],
        ["glibc", "2.36", "image IMAGE needs glibc 2.36  (matrices/image.yaml)"],
        ["platform", "linux/amd64"],
    ]
    assert not project.index.requests


def test_one_component_is_told_with_what_holds_back_a_newer_one(project: Project) -> None:
    project.write(gpu_spec("*"))
    outcome = project.run("explain", "provision.yaml", "pytorch", "--stack-only")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    newest = str(max(one.version for one in shipped().components["pytorch"].releases))
    assert lines[0] == "pytorch 2.7.1+cu118 is chosen"
    assert lines[1] == "  you require pytorch *  (provision.yaml:7)"
    assert lines[2] == f"not pytorch {newest}: driver 470.256.02 excludes it"
    assert "  the host has driver 470.256.02  (provision.yaml:11)" in lines
    assert f"  so pytorch {newest} cannot be chosen for this host" in lines
    assert "not pytorch 2.8 to 2.14: driver 470.256.02 excludes them" in lines
    assert lines[-2] == f"the way to pytorch {newest}:"
    assert lines[-1].startswith("hint: driver >=580")
    assert f"pytorch {newest}" in lines[-1]


@pytest.mark.parametrize("key", ["packages", "constraints"])
def test_a_range_in_parentheses_is_told_whole(project: Project, key: str) -> None:
    """PEP 508 allows `torch (<2.8)`."""
    asked = "packages: ['torch (<2.8)']" if key == "packages" else "packages: [torch]\nconstraints: ['torch (<2.8)']"
    project.write(changed(*asked.splitlines()))
    outcome = project.run("explain", "provision.yaml", "pytorch", "--stack-only")
    line = 1 + (project.folder / "provision.yaml").read_text().splitlines().index(asked.splitlines()[-1])
    (held,) = [text for text in outcome.out.splitlines() if "holds it back" in text and text.startswith("not pytorch")]
    assert held.endswith(f": only `torch (<2.8)`  (provision.yaml:{line}) holds it back")


def test_where_nothing_frees_the_newest_that_is_said(project: Project) -> None:
    project.write(gpu_spec("<2.7"))
    outcome = project.run("explain", "provision.yaml", "cuda", "--stack-only")
    assert outcome.code == 0
    last = (
        "hint: no way out was found: up to 40 combinations of the spec's requests and the hosts' facts were changed, "
        "3 at most together, and then up to 40 of any size"
    )
    assert outcome.out.splitlines()[-1] == last


def test_one_component_as_json(project: Project) -> None:
    project.write(gpu_spec("*"))
    outcome = project.run("explain", "provision.yaml", "pytorch", "--stack-only", "--format", "json")
    assert outcome.code == 0
    assert list(outcome.json) == [
        "status", "component", "chosen", "platform", "is_fact", "reasons", "newer", "held_by", "conflict", "series",
    ]  # fmt: skip
    assert (outcome.json["chosen"], outcome.json["platform"], outcome.json["held_by"]) == ("2.7.1+cu118", "linux/amd64", [])
    members = {(member["kind"], member["component"]) for member in outcome.json["conflict"]["members"]}
    assert ("fact", "driver") in members
    assert outcome.json["conflict"]["conclusion"].endswith("cannot be chosen for this host")


def test_a_fact_of_the_host_is_no_choice(project: Project) -> None:
    project.write(gpu_spec("*"))
    outcome = project.run("explain", "driver", "--stack-only")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[:2] == [
        "driver 470.256.02 is what the host states",
        "  the host has driver 470.256.02  (provision.yaml:11)",
    ]
    assert not any(line.startswith(("not ", "nothing ")) for line in lines)


def test_a_package_is_explained_with_the_one_that_holds_it_back(project: Project) -> None:
    project.index.add_wheel("kappa", "1.0")
    project.index.add_wheel("kappa", "2.0")
    project.index.add_wheel("iota", "1.0", requires=["kappa<2"])
    project.spec("[iota, kappa]")
    outcome = project.run("explain", "kappa")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == (
        "kappa 1.0 is chosen\n"
        "  iota 1.0 needs kappa<2  (metadata of iota 1.0)  <- holds it back\n"
        "  you require kappa  (provision.yaml:8)\n"
        "not kappa 2.0: iota excludes it\n"
        "  you require iota  (provision.yaml:8)\n"
        "  iota 1.0 needs kappa<2  (metadata of iota 1.0)\n"
        "  so kappa 2.0 cannot be chosen\n"
        "hint: leaving out `iota` would do: gives kappa 2.0, python 3.12\n"
    )


def test_the_newest_package_has_nothing_that_holds_it_back(project: Project) -> None:
    outcome = project.run("explain", "alpha")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == (
        "alpha 2.0 is chosen\n  you require alpha  (provision.yaml:6)\nnothing newer is known to the index\n"
    )


def test_the_oldest_is_chosen_because_the_policy_says_so(project: Project) -> None:
    project.write(changed("policy: {strategy: oldest}"))
    outcome = project.run("explain", "alpha")
    assert outcome.code == 0
    assert outcome.out.splitlines()[-1] == ("not alpha 2.0: it would work, but policy.strategy is oldest  (provision.yaml:10)")


def test_what_an_earlier_lock_has_is_kept_and_that_is_said(project: Project) -> None:
    project.spec('["alpha<2"]')
    assert project.run("solve").code == 0
    project.write()
    outcome = project.run("explain", "alpha")
    assert outcome.code == 0
    assert outcome.out.splitlines()[-1] == (
        "not alpha 2.0: it would work, but the lock has alpha 1.0; --upgrade-package alpha lets it move"
    )


def test_what_comes_first_in_the_order_of_preference_is_named(project: Project) -> None:
    project.index.add_wheel("eta", "1.0")
    project.index.add_wheel("eta", "2.0")
    project.index.add_wheel("zeta", "1.0")
    project.index.add_wheel("zeta", "2.0", requires=["eta<2"])
    project.spec("[zeta, eta]")
    outcome = project.run("explain", "eta")
    assert outcome.out.splitlines()[-1] == (
        "not eta 2.0: it would work, but with zeta 1.0 instead of 2.0, and zeta comes first in the order of preference"
    )


def test_of_several_platforms_one_is_explained_and_named(project: Project) -> None:
    project.write(changed("target: {platform: [linux/amd64, linux/arm64]}"))
    assert project.run("explain", "python", "--stack-only").out.splitlines()[0] == "python 3.12 is chosen for linux/amd64"
    outcome = project.run("explain", "python", "--stack-only", "--platform", "linux/arm64")
    assert outcome.out.splitlines()[0] == "python 3.12 is chosen for linux/arm64"
    refused = project.run("explain", "--platform", "macos/arm64")
    assert refused.code == 2
    assert refused.err == (
        "error: `macos/arm64` is not a platform of provision.yaml  [bad-usage]\n\nhint: it has linux/amd64, linux/arm64\n"
    )


def test_an_index_out_of_reach_is_no_answer_and_the_way_around_it_is_named(project: Project) -> None:
    outcome = project.run("explain", "alpha", "--offline")
    assert outcome.code == 3
    assert outcome.err.splitlines()[-1] == "hint: --stack-only explains the system stack alone, without an index"


def test_the_component_alone_is_about_the_spec_of_this_folder(project: Project) -> None:
    assert project.run("explain", "python") == project.run("explain", "provision.yaml", "python")


def test_what_the_distribution_is_called_means_the_component(project: Project) -> None:
    project.write(gpu_spec("*"))
    assert project.run("explain", "torch", "--stack-only").out == project.run("explain", "pytorch", "--stack-only").out


def test_nothing_fits_is_explained_and_the_answer_is_no(project: Project) -> None:
    project.write(gpu_spec(">=2.9"))
    outcome = project.run("explain")
    assert (outcome.code, outcome.out) == (1, "")
    lines = outcome.err.splitlines()
    assert lines[0] == "error: pytorch >=2.9 and driver 470.256.02 exclude each other  [no-stack]"
    assert lines[1] == "  you require pytorch >=2.9  (provision.yaml:7)"
    assert "  the host has driver 470.256.02  (provision.yaml:11)" in lines
    assert any(line.startswith("hint: ") for line in lines)
    told = project.run("explain", "--format", "json")
    assert (told.code, told.json["status"]) == (1, "no-stack")


def test_a_component_that_is_not_in_the_stack_is_a_mistake(project: Project) -> None:
    outcome = project.run("explain", "pyhton")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        "error: `pyhton` is not part of the stack of this spec  [bad-usage]\n\nhint: did you mean `python`?\n"
    )


class TestAVersionThatTheSpecHoldsBack:
    @pytest.fixture(autouse=True)
    def newest(self, project: Project) -> None:
        """A third alpha, which needs a third beta and delta."""
        project.index.add_wheel("alpha", "3.0", requires=["beta>=3", "delta"])
        project.index.add_wheel("beta", "3.0", requires=["epsilon"])
        project.index.add_wheel("delta", "1.0")
        project.index.add_wheel("epsilon", "1.0")

    def test_alone(self, project: Project) -> None:
        project.spec("['alpha==2.0']")
        outcome = project.run("explain", "alpha")
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.out == (
            "alpha 2.0 is chosen\n"
            "  you require alpha==2.0  (provision.yaml:8)  <- holds it back\n"
            "not alpha 3.0: only `alpha==2.0`  (provision.yaml:8) holds it back\n"
            "  alpha 3.0 would come with delta 1.0, which is new\n"
            "hint: alpha 3.0 instead of `alpha==2.0` would do: gives alpha 3.0, python 3.12\n"
        )

    def test_alone_and_nothing_else_would_change(self, project: Project) -> None:
        project.index.add_wheel("epsilon", "2.0")
        project.spec("[alpha, 'epsilon<2']")
        assert project.run("explain", "epsilon").out.splitlines()[3:5] == [
            "not epsilon 2.0: only `epsilon<2`  (provision.yaml:8) holds it back",
            "  nothing else would change with it",
        ]

    def test_in_a_constraints_file(self, project: Project) -> None:
        project.write("# not yet\nalpha<3\n", name="limits.txt")
        project.spec("[alpha]", "constraints: [limits.txt]")
        assert project.run("explain", "alpha").out.splitlines()[3:] == [
            "not alpha 3.0: only `alpha<3`  (limits.txt:2) holds it back",
            "  alpha 3.0 would come with delta 1.0, which is new",
            "hint: leaving out the constraint `alpha<3` would do: gives alpha 3.0, python 3.12",
        ]

    def test_beside_something_else(self, project: Project) -> None:
        project.spec("['alpha<3', 'beta==2.0']")
        both = (
            "alpha 3.0 instead of `alpha<3` and beta 3.0 instead of `beta==2.0` would do: these 2 changes are needed together"
        )
        assert project.run("explain", "alpha").out.splitlines()[2:] == [
            "not alpha 3.0: `alpha<3`  (provision.yaml:8) holds it back; without it, beta==2.0 excludes it",
            "  you require beta==2.0  (provision.yaml:8)",
            "  alpha 3.0 needs beta>=3  (metadata of alpha 3.0)",
            "  so alpha 3.0 cannot be chosen",
            f"hint: {both}: gives alpha 3.0, beta 3.0, python 3.12",
        ]

    def test_of_a_component(self, project: Project) -> None:
        newest = max(one.version for one in shipped().components["pytorch"].releases)
        project.write(changed("requires: {python: '==3.12', pytorch: '==2.6.0'}", "packages: []"))
        assert project.run("explain", "pytorch").out.splitlines()[1:4] == [
            "  you require pytorch ==2.6.0  (provision.yaml:6)  <- holds it back",
            f"not pytorch {newest}: only `pytorch ==2.6.0`  (provision.yaml:6) holds it back",
            "  nothing else would change with it",
        ]

    def test_as_json(self, project: Project) -> None:
        project.spec("['alpha==2.0', 'beta<3', 'alpha<3']")
        line = "provision.yaml:8"
        fields = {"component": "alpha", "kind": "request", "type": "requires-distribution", "object": "alpha"}
        lines = [
            {**fields, "text": "you require alpha==2.0", "where": line, "ranges": ["==2.0"], "place": line},
            {**fields, "text": "you require alpha<3", "where": line, "ranges": ["<3"], "place": line},
        ]
        found = project.run("explain", "alpha", "--format", "json").json
        assert found["without"]["lines"] == lines == found["held_by"]
        assert found["without"]["conflict"]["conclusion"] == "so alpha 3.0 cannot be chosen"
        project.spec("['alpha<3']", "requires: {python: '==3.12'}")
        found = project.run("explain", "alpha", "--format", "json").json
        assert found["without"]["changes"] == [{"component": "delta", "from": "", "to": "1.0"}]

    @pytest.mark.parametrize(
        ("policy", "then"),
        [
            ("strategy: oldest", "it would work, but policy.strategy is oldest  (provision.yaml:9)"),
            ("prefer: {alpha: '==2.0'}", "it would work, but policy.prefer says alpha ==2.0  (provision.yaml:9)"),
        ],
    )
    def test_that_the_policy_would_choose_of_itself(self, project: Project, policy: str, then: str) -> None:
        project.spec("['alpha<3']", f"policy: {{{policy}}}")
        line = f"not alpha 3.0: `alpha<3`  (provision.yaml:8) holds it back; without it, {then}"
        assert line in project.run("explain", "alpha").out.splitlines()
        assert project.run("explain", "alpha", "--format", "json").json["without"]["order"] == then

    def test_that_the_lock_has(self, project: Project) -> None:
        project.spec("['alpha<3']")
        assert project.run("solve").code == 0
        project.spec("[alpha]", "constraints: ['alpha<3']")
        then = "it would work, but the lock has alpha 2.0; --upgrade-package alpha lets it move"
        # No hint: leaving out the constraint would not do.
        assert project.run("explain", "alpha").out.splitlines()[-2:] == [
            f"not alpha 3.0: `alpha<3`  (provision.yaml:9) holds it back; without it, {then}",
            "  alpha 3.0 would come with delta 1.0, which is new",
        ]

    def test_in_two_lines(self, project: Project) -> None:
        project.spec("['alpha==2.0', 'alpha<3']")
        assert project.run("explain", "alpha").out.splitlines()[3:] == [
            "not alpha 3.0: only `alpha==2.0`  (provision.yaml:8) and `alpha<3`  (provision.yaml:8) hold it back",
            "  alpha 3.0 would come with delta 1.0, which is new",
            "hint: alpha 3.0 instead of `alpha==2.0` and `alpha<3` would do: gives alpha 3.0, python 3.12",
        ]

    def test_an_override_is_more_than_a_version(self, project: Project) -> None:
        project.spec("[alpha]", "overrides: ['beta==2.0']")
        outcome = project.run("explain", "beta")
        assert "not beta 3.0: the override beta==2.0 and alpha exclude it\n" in outcome.out
        assert "without" not in project.run("explain", "beta", "--format", "json").json

    def test_with_an_extra(self, project: Project) -> None:
        for version in ("1.0", "2.0"):
            project.index.add_wheel("zeta", version, extras=["fast"], requires=["delta; extra == 'fast'"])
        project.index.add_wheel("eta", "1.0", requires=["zeta[fast]>=1"])
        project.spec("['zeta[fast]==1.0', eta]")
        outcome = project.run("explain", "zeta")
        assert outcome.out == (
            "zeta 1.0 is chosen\n"
            "  you require zeta[fast]==1.0  (provision.yaml:8)  <- holds it back\n"
            "  eta 1.0 needs zeta>=1  (metadata of eta 1.0)\n"
            "not zeta 2.0: only `zeta[fast]==1.0`  (provision.yaml:8) holds it back\n"
            "  nothing else would change with it\n"
            "hint: zeta 2.0 instead of `zeta[fast]==1.0` would do: gives eta 1.0, python 3.12, zeta[fast] 2.0\n"
        )


def test_what_is_chosen_is_explained_where_an_index_of_the_newest_is_out_of_reach(project: Project) -> None:
    project.index.add_wheel("kappa", "1.0")
    project.index.add_wheel("iota", "1.0", requires=["kappa"])
    project.index.add_wheel("iota", "2.0", requires=["lost"])
    project.spec("['iota<2']")
    assert project.run("explain", "iota").code == 0
    project.spec(
        "['iota<2']",
        'indexes: [{name: local, url: "INDEX/simple"}, {name: away, url: "http://127.0.0.1:9/simple", packages: [lost]}]',
    )
    outcome = project.run("explain", "iota")
    assert outcome.code == 3
    assert outcome.out.splitlines()[:2] == [
        "iota 1.0 is chosen",
        "  you require iota<2  (provision.yaml:6)  <- holds it back",
    ]
    assert outcome.out.splitlines()[2].startswith(
        "not iota 2.0: whether it would work cannot be told: index `away` cannot be reached"
    )
    assert project.run("explain", "iota", "--format", "json").json["order"].startswith("whether it would work cannot be told")


def test_a_component_that_the_stack_does_not_have_is_no_misspelled_package(project: Project) -> None:
    project.index.add_wheel("click", "8.0")
    project.spec("[alpha, click]", "image: {}", "runs: host", "outputs: []")
    outcome = project.run("explain", "glibc")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "error: `glibc` is not part of the stack of this spec  [bad-usage]\n\nhint: it has python\n"
    assert project.run("explain", "clik").err.endswith("hint: did you mean `click`?\n")
