"""Requirements as people have them: requirement files, constraints, overrides, projects and their groups, upgrades by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.project import LOCK, changed

if TYPE_CHECKING:
    from tests.project import Project

PYPROJECT = """\
[project]
name = "Train.Er"
requires-python = ">=3.11.2,<3.14"
dependencies = ["alpha"]
optional-dependencies.more = ["gamma"]

[dependency-groups]
dev = ["delta", {include-group = "lint"}]
lint = ["delta>=1"]

[tool.provision]
accelerator = "cpu"
requires.python = "==3.12"
indexes = [{name = "local", url = "INDEX/simple"}]
image.base = "IMAGE"
"""


def relaxed(project: Project, *words: str) -> list[str]:
    """The lines of talk about what an answer relaxes, keeps or moves."""
    talk = project.run("solve", *words).err.splitlines()
    return [line for line in talk if line.startswith(("relaxed: override", "moved", "stays", "warning"))]


def test_requirement_files_constraints_and_overrides_are_solved_and_locked(project: Project) -> None:
    project.index.add_wheel("delta", "1.0", requires=["beta<2"])
    project.write("-c bounds.txt\ndelta  # and more\n", name="reqs/all.txt")
    project.write("beta>1\n", name="reqs/bounds.txt")
    project.spec("[alpha]", "packages-from: [reqs/all.txt]", "overrides: ['beta==2.0']")
    outcome = project.run("solve")
    assert outcome.code == 0
    assert "relaxed: override: delta 1.0 needs beta<2, and has beta 2.0: you override it with beta==2.0\n" in outcome.err
    asked = project.read(LOCK).partition("[tool.provision.asked]\n")[2].partition("\n\n")[0].splitlines()
    assert [line for line in asked if line.startswith('"')] == [
        '"constraints.beta" = ">1"',
        '"image.base" = "IMAGE"',
        '"indexes.local" = "INDEX/simple"',
        '"overrides.beta" = "==2.0"',
        '"packages.alpha" = "any version"',
        '"packages.delta" = "any version"',
        '"requires.python" = "==3.12"',
    ]
    assert '"override (beta)",' in project.read(LOCK)
    assert project.run("check").out == f"{LOCK}: yes\n"


def test_check_says_which_line_a_lock_no_longer_meets(project: Project) -> None:
    project.spec("[alpha]", "constraints: [c.txt]")
    project.write("beta<3\n", name="c.txt")
    assert project.run("solve").code == 0
    project.write("# tighter\nbeta<2\n", name="c.txt")
    outcome = project.run("check")
    assert (outcome.code, outcome.out.splitlines()[:2]) == (
        1,
        [f"{LOCK}: no", "  no: beta 2.0 is locked, but you constrain beta<2  (c.txt:2)  [stale-package]"],
    )
    project.spec("[alpha]", "overrides: ['beta==1.0']")
    outcome = project.run("check")
    assert outcome.out.splitlines()[1] == (
        "  no: beta 2.0 is locked, but you override beta with beta==1.0  (provision.yaml:9)  [stale-package]"
    )


def test_a_conflict_names_the_line_of_the_file(project: Project) -> None:
    project.spec("['alpha>=2']", "constraints: [c.txt]")
    project.write("\n\nbeta<2\n", name="c.txt")
    outcome = project.run("solve", "--format", "json")
    assert outcome.code == 1
    assert [(one["kind"], one["text"], one["where"]) for one in outcome.json["conflict"]["members"]] == [
        ("request", "you constrain beta<2", "c.txt:3"),
        ("request", "you require alpha>=2", "provision.yaml:8"),
        ("rule", "alpha 2.0 needs beta>=2", "metadata of alpha 2.0"),
    ]
    assert [hint["changes"] for hint in outcome.json["conflict"]["hints"]] == [
        [{"component": "alpha", "change": "==1.0", "kind": "set-distribution"}],
        [{"component": "constraints.beta", "change": "left out", "kind": "drop-bound"}],
    ]


def test_hashes_of_a_requirement_file_are_those_the_lock_has(project: Project) -> None:
    project.spec("[alpha]", "packages-from: [r.txt]")
    project.write(f"beta --hash=sha256:{'0' * 64}\n", name="r.txt")
    outcome = project.run("solve")
    assert outcome.code == 1
    assert "  you give hashes of beta, and no file for this target has one of them  (r.txt:1)\n" in outcome.err
    project.write("beta\n", name="r.txt")
    assert project.run("solve").code == 0
    known = project.read(LOCK).partition('name = "beta"\nversion')[2].partition('sha256 = "')[2][:64]
    project.write(f"beta --hash=sha256:{known} --hash=sha256:{'0' * 64}\n", name="r.txt")
    assert project.run("solve").code == 0
    assert project.run("check").code == 0
    project.write(f"beta --hash=sha256:{'0' * 64}\n", name="r.txt")
    assert project.run("check").out.splitlines()[1] == (
        "  no: beta 2.0 is locked with a file that has none of your hashes  (r.txt:1)  [stale-package]"
    )


def test_a_project_file_is_a_spec_for_every_command(project: Project) -> None:
    project.index.add_wheel("delta", "1.0")
    project.write(PYPROJECT, name="pyproject.toml")
    outcome = project.run("solve", "pyproject.toml", "--format", "json")
    assert (outcome.code, outcome.json["packages"]) == (0, {"alpha": "2.0", "beta": "2.0"})
    lock = project.read("pylock.Train-Er.toml")
    assert 'spec-file = "pyproject.toml"' in lock
    assert 'requires-python = ">=3.11.2,<3.14"' in lock.partition("[tool.provision.asked]")[2]
    assert project.run("check", "pylock.Train-Er.toml").out == "pylock.Train-Er.toml: yes\n"
    assert project.run("explain", "pyproject.toml", "beta").out.splitlines() == [
        "beta 2.0 is chosen",
        "  alpha 2.0 needs beta>=2  (metadata of alpha 2.0)",
        "nothing newer is known to the index",
    ]


def test_groups_and_extras_join_by_name(project: Project) -> None:
    project.index.add_wheel("delta", "1.0")
    wanted = 'packages-from = [{file = "pyproject.toml", extras = ["More"], groups = ["DEV"]}]\n'
    project.write(PYPROJECT.replace("image.base", f"{wanted}image.base"), name="pyproject.toml")
    outcome = project.run("solve", "pyproject.toml", "--format", "json")
    assert outcome.json["packages"] == {"alpha": "1.0", "beta": "1.0", "delta": "1.0", "gamma": "1.0"}


def test_what_a_project_asks_of_python_is_in_the_conflict(project: Project) -> None:
    project.write(PYPROJECT.replace("<3.14", "<3.12"), name="pyproject.toml")
    outcome = project.run("solve", "pyproject.toml")
    assert (outcome.code, outcome.err.splitlines()[1:4]) == (
        1,
        [
            "  the project requires python >=3.11.2,<3.12  (pyproject.toml:3)",
            "  you require python ==3.12  (pyproject.toml:13)",
            "  so no python ==3.12 is left",
        ],
    )
    assert "hint: leaving out the project's requires-python `>=3.11.2,<3.12` would do" in outcome.err


def test_mistakes_of_a_project_file_are_at_their_place(project: Project) -> None:
    wrong = PYPROJECT.replace('["alpha"]', '["alp ha", 3]').replace("accelerator", "acelerator").replace("3.11.2,", "x")
    project.write(wrong, name="pyproject.toml")
    before = project.files()
    outcome = project.run("solve", "pyproject.toml")
    assert (outcome.code, outcome.err.splitlines()) == (
        2,
        [
            "error: spec has 4 mistakes  [invalid-document]",
            "  pyproject.toml:3:1: project.requires-python: `>=x<3.14` is not a range of Python versions such as >=3.11",
            (
                "  pyproject.toml:4:17: `alp ha` is not a requirement such as numpy>=2: "
                "expected semicolon (after name with no version specifier) or end"
            ),
            "  pyproject.toml:4:27: project.dependencies[1]: must be text such as numpy>=2",
            "  pyproject.toml:12:1: acelerator: unknown key `acelerator`; did you mean `accelerator`?",
        ],
    )
    assert project.files() == before


def test_what_an_upgrade_moves_along_is_told_with_the_reason(project: Project) -> None:
    project.spec("['alpha<2', 'beta<2']")
    assert project.run("solve").code == 0
    project.spec("[alpha, beta]")
    both = [
        "moved: alpha 1.0 -> 2.0: it was asked for",
        "moved: beta 1.0 -> 2.0: alpha 2.0 needs beta>=2  (metadata of alpha 2.0)",
    ]
    assert relaxed(project, "--dry-run") == []
    assert relaxed(project, "--dry-run", "--upgrade-package", "beta") == ["moved: beta 1.0 -> 2.0: it was asked for"]
    assert relaxed(project, "--dry-run", "--upgrade-package", "Alpha") == both
    assert relaxed(project, "--dry-run", "--upgrade-package", "alpha==2.0") == both
    assert relaxed(project, "--dry-run", "--upgrade-package", "alpha", "--upgrade-package", "beta") == [
        "moved: alpha 1.0 -> 2.0: it was asked for",
        "moved: beta 1.0 -> 2.0: it was asked for",
    ]
    outcome = project.run("solve", "--upgrade-package", "alpha>1", "--format", "json")
    assert outcome.json["moves"] == [
        {"name": "alpha", "from": "1.0", "to": "2.0", "because": "it was asked for", "where": ""},
        {
            "name": "beta",
            "from": "1.0",
            "to": "2.0",
            "because": "alpha 2.0 needs beta>=2",
            "where": "metadata of alpha 2.0",
        },
    ]
    assert "constraints" not in project.read(LOCK)


def test_what_needs_the_upgraded_stays_and_is_named(project: Project) -> None:
    project.spec("[gamma, 'alpha<2']")
    assert project.run("solve").code == 0
    project.index.add_wheel("gamma", "2.0")
    assert relaxed(project, "--dry-run", "--upgrade-package", "beta") == [
        "stays: beta 1.0: gamma 1.0 needs beta<2  (metadata of gamma 1.0)"
    ]
    assert relaxed(project, "--dry-run", "--upgrade-package", "beta==2.0") == [
        "moved: beta 1.0 -> 2.0: it was asked for",
        "moved: gamma 1.0 -> 2.0: gamma 1.0 needs beta<2, and it is 2.0  (metadata of gamma 1.0)",
    ]


def test_an_upgrade_takes_names_and_versions_and_nothing_else(project: Project) -> None:
    outcome = project.run("solve", "--upgrade-package", "alph*")
    assert (outcome.code, outcome.err.splitlines()[0]) == (
        2,
        "error: --upgrade-package `alph*` is a pattern; it takes names, and versions behind them  [bad-usage]",
    )
    outcome = project.run("solve", "--upgrade-package", "alpha[x]")
    assert outcome.err.splitlines()[0] == (
        "error: --upgrade-package `alpha[x]` says more than a name and its versions  [bad-usage]"
    )
    assert relaxed(project, "--upgrade-package", "alpa") == [
        "warning: --upgrade-package `alpa` is in no stack; did you mean `alpha`?"
    ]


def test_an_extra_that_nobody_has_is_a_warning(project: Project) -> None:
    project.write(changed("packages: ['alpha[fast]']"))
    outcome = project.run("solve", "--format", "json")
    told = "alpha 2.0 has no extra `fast`; it has none  (you require alpha[fast], provision.yaml:8)"
    assert (outcome.code, outcome.json["warnings"]) == (0, [told])
    assert relaxed(project) == [f"warning: {told}"]


def test_explain_names_the_constraint_that_holds_a_package_back(project: Project) -> None:
    project.spec("[alpha]", "constraints: ['beta<2']")
    outcome = project.run("explain", "beta")
    assert outcome.out.splitlines() == [
        "beta 1.0 is chosen",
        "  you constrain beta<2  (provision.yaml:9)  <- holds it back",
        "  alpha 1.0 needs beta>=1  (metadata of alpha 1.0)",
        "not beta 2.0: only `beta<2`  (provision.yaml:9) holds it back",
        "  beta 2.0 would come with alpha 2.0 instead of 1.0",
        "hint: leaving out the constraint `beta<2` would do: gives alpha 2.0, python 3.12",
    ]


def test_a_difference_of_two_locks_names_the_constraint_or_override_behind_it(project: Project) -> None:
    def locked(*lines: str) -> None:
        project.spec("[alpha]", *lines)
        assert project.run("solve", "--upgrade").code == 0

    locked()
    project.write(project.read(LOCK), name="old.toml")
    for line, told in (
        (
            "constraints: ['beta<2']",
            "beta 2.0 -> 1.0, a downgrade to an older major version: the spec constrains it to `beta<2` now",
        ),
        (
            "overrides: ['beta<2']",
            "beta 2.0 -> 1.0, a downgrade to an older major version: the spec overrides it with `beta<2` now",
        ),
    ):
        locked(line)
        assert f"  - {told}\n" in project.run("explain", "--diff", "old.toml", LOCK).out
    project.write(project.read(LOCK), name="old.toml")
    locked()
    told = project.run("explain", "--diff", "old.toml", LOCK).out
    assert ": the spec overrode it with `beta<2` and does no longer\n" in told


def test_a_file_beside_a_requirement_file_is_found_from_there(project: Project) -> None:
    project.spec("[alpha]", "packages-from: [reqs/r.txt]")
    project.write("./beta-2.0-py3-none-any.whl\n", name="reqs/r.txt")
    outcome = project.run("solve")
    assert outcome.code != 0
    assert "reqs/beta-2.0-py3-none-any.whl" in outcome.err


def test_an_output_never_overwrites_what_the_spec_reads(project: Project) -> None:
    project.spec("[]", "packages-from: [base.in]", "outputs: [requirements]")
    project.write("-r requirements.txt\n", name="base.in")
    project.write("-c c.txt\n", name="requirements.txt")
    project.write("beta<2\n", name="c.txt")
    before = project.files()
    outcome = project.run("solve")
    assert (outcome.code, outcome.err.splitlines()) == (
        2,
        [
            (
                "error: output `requirements` (provision.yaml:10) would overwrite `requirements.txt`, which the spec reads"
                "  [bad-usage]"
            ),
            "",
            "hint: call the file that is read otherwise, such as requirements.in, or write elsewhere with --out",
        ],
    )
    assert project.files() == before
    assert project.run("solve", "--out", "made", "--dry-run").code == 0
