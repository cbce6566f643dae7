"""What a spec asks for and nobody can have is told from the pages of the named projects, and nothing else is solved for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.resolver import refutation

if TYPE_CHECKING:
    from tests.project import Project

REST = "hint: the rest of the spec was not solved: solve again when this is mended\n"


def test_all_that_cannot_be_had_is_told_at_once_and_nothing_is_solved_for_it(project: Project) -> None:
    project.index.add_sdist("source", "1.0")
    project.index.add_wheel("beta", "1.0", requires=["deep"])
    project.index.add_wheel("deep", "1.0", requires=["deeper"])
    project.index.add_wheel("deeper", "1.0")
    project.spec("[beta, numpyy, source, 'alpha>=99']")
    outcome = project.run("solve")
    assert (outcome.code, outcome.err) == (
        1,
        "error: 3 conflicts: numpyy cannot be had; source cannot be had from wheels alone; alpha>=99 cannot be had  "
        "[no-stack]\n"
        "  1. numpyy cannot be had\n"
        "    you require numpyy: no index offers `numpyy`  (provision.yaml:8)\n"
        "    so no numpyy is left\n"
        "  2. source cannot be had from wheels alone\n"
        "    you require source  (provision.yaml:8)\n"
        "    source 1.0: only a source distribution; policy `allow: [sdist]` would take it  (the package index)\n"
        "    so no source is left\n"
        "  3. alpha>=99 cannot be had\n"
        "    you require alpha>=99: the index has 2.0, 1.0  (provision.yaml:8)\n"
        "    so no alpha>=99 is left\n"
        "\n"
        "hint: 1. check how `numpyy` is spelled: did you mean `numpy`? Or name the index that has it under `indexes:`\n"
        "hint: 2. not tried: `allow: [sdist]` in policy would read the source distributions too\n"
        "hint: 2. `source @ https://…` in packages would name a wheel from elsewhere; without one, leave `source` out\n" + REST,
    )
    assert "/simple/deeper/" not in project.index.requests
    told = project.run("solve", "--format", "json").json
    assert [one.get("is_rest_unsolved", False) for one in told["conflicts"]] == [True, False, False]


def test_nothing_is_said_of_a_rest_that_there_is_not(project: Project) -> None:
    project.spec("[numpyy]")
    outcome = project.run("solve")
    assert outcome.code == 1
    hint = "check how `numpyy` is spelled: did you mean `numpy`? Or name the index that has it under `indexes:`"
    assert outcome.err.endswith(f"\n\nhint: {hint}\n")


@pytest.mark.parametrize("python", ["==3.12", ">=3.10"])
def test_a_pin_that_nothing_meets_has_its_fix_and_what_else_contradicts_itself_is_told(project: Project, python: str) -> None:
    for name, number in (("one", 1), ("two", 2)):
        project.index.add_wheel(name, "1.0", requires=[f"shared=={number}"])
    for number in (1, 2):
        project.index.add_wheel("shared", f"{number}.0")
    project.spec("['alpha>=99', one, two]", f'requires: {{python: "{python}"}}')
    outcome = project.run("solve")
    assert outcome.code == 1
    assert outcome.err.startswith("error: 2 conflicts: alpha>=99 cannot be had; one and two exclude each other  [no-stack]\n")
    assert "hint: 1. alpha 2.0 instead of `alpha>=99` would do" in outcome.err
    assert "hint: 2. leaving out `one` would do" in outcome.err
    assert "the rest of the spec was not solved" not in outcome.err


def test_wheels_for_windows_alone_are_no_reason_to_look_for_another_platform(project: Project) -> None:
    project.index.add_sdist("source", "2.0")
    project.index.add_sdist("source", "1.0")
    project.index.add_wheel("source", "1.0", tag="cp312-cp312-win_amd64")
    project.index.add_wheel("beta", "1.0", requires=["deep"])
    project.index.add_wheel("deep", "1.0")
    project.spec("[beta, source]")
    outcome = project.run("solve")
    assert (outcome.code, outcome.err) == (
        1,
        "error: source cannot be had from wheels alone  [no-stack]\n"
        "  you require source  (provision.yaml:8)\n"
        "  source 2.0: only a source distribution; policy `allow: [sdist]` would take it; source 1.0: no wheel for linux/amd64 "
        "(has windows); policy `allow: [sdist]` would take its source distribution  (the package index)\n"
        "  so no source is left\n"
        "\n"
        "hint: not tried: `allow: [sdist]` in policy would read the source distributions too\n"
        "hint: `source @ https://…` in packages would name a wheel from elsewhere; without one, leave `source` out\n" + REST,
    )
    assert "/simple/deep/" not in project.index.requests


def test_that_there_are_files_for_others_alone_is_told_once_whichever_pythons_the_source_is_for(project: Project) -> None:
    project.index.add_sdist("source", "1.0", requires_python=">=3.11")
    project.index.add_wheel("source", "1.0", tag="cp312-cp312-macosx_11_0_arm64")
    project.spec("[source]", 'requires: {python: ">=3.10"}')
    outcome = project.run("solve")
    assert outcome.code == 1
    assert outcome.err.count("source 1.0: no wheel for linux/amd64 (has macos/arm64)") == 1, outcome.err


def test_a_python_that_has_files_is_offered(project: Project) -> None:
    project.index.add_wheel("earlier", "1.0", tag="cp311-cp311-manylinux_2_17_x86_64")
    project.spec("[earlier, alpha]", "image: {base: auto}")
    outcome = project.run("solve")
    assert outcome.code == 1
    assert "hint: python 3.11 instead of `==3.12` would do" in outcome.err


def test_a_name_that_only_metadata_gives_a_file_is_not_missing(project: Project) -> None:
    filename = project.index.add_wheel("numpyy", "1.0", index="hidden")
    project.index.add_wheel("holder", "1.0", requires=[f"numpyy @ {project.index.root}/files/hidden/{filename}"])
    project.spec("[numpyy, holder]")
    outcome = project.run("solve")
    assert outcome.code == 0, outcome.err


def test_no_other_conflict_is_looked_for_where_one_change_of_a_request_mends_all(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refutation, "_independent", lambda *_: pytest.fail("the rest of the spec was solved"))
    project.index.add_wheel("narrow", "1.0", requires=["alpha<2"])
    project.spec("[narrow, 'alpha>=2']")
    outcome = project.run("solve")
    assert outcome.code == 1
    assert "hint: alpha 1.0 instead of `alpha>=2` would do" in outcome.err


def test_a_hint_on_several_conflicts_is_told_once(project: Project) -> None:
    for name in ("kappa", "lambda-one"):
        project.index.add_sdist(name, "1.0")
    project.spec("['kappa==1.0', 'lambda-one==1.0']")
    hints = [line for line in project.run("solve").err.splitlines() if line.startswith("hint: ")]
    assert any(line.startswith("hint: 1 and 2. not tried: `allow: [") for line in hints), hints
    assert not any("no way out was found" in line for line in hints)


def test_a_hint_on_the_policy_says_for_a_requirement_file_what_has_one(project: Project) -> None:
    project.index.add_sdist("source", "1.0")
    project.write("source\n", name="needs.txt")
    outcome = project.run("solve", "needs.txt")
    assert outcome.code == 1
    assert outcome.err.endswith("\nnext: `provision init --from needs.txt` writes a spec, which has the keys of these hints\n")
    (project.folder / "provision.yaml").unlink()
    without = project.run("solve", "--with", "source")
    assert without.err.endswith("\nnext: `provision init` writes a spec, which has the keys of these hints\n")
    project.spec("[source]")
    assert "next:" not in project.run("solve").err


def test_a_hint_on_packages_alone_needs_no_spec(project: Project) -> None:
    project.index.add_wheel("plain", "1.0")
    project.write("plain==2.0\n", name="needs.txt")
    outcome = project.run("solve", "needs.txt")
    assert outcome.code == 1
    assert "next:" not in outcome.err


def test_what_one_python_has_no_file_for_is_not_told_where_another_has_one_that_fails_alike(project: Project) -> None:
    project.index.add_wheel("app", "1.0", requires=["shared==1"], tag="cp311-cp311-manylinux_2_17_x86_64")
    project.index.add_wheel("app", "2.0", requires=["shared==1"], tag="cp312-cp312-manylinux_2_17_x86_64")
    project.index.add_wheel("other", "1.0", requires=["shared==2"])
    for number in (1, 2):
        project.index.add_wheel("shared", f"{number}.0")
    project.spec("[app, other]", 'requires: {python: ">=3.11,<3.13"}')
    outcome = project.run("solve")
    assert outcome.code == 1
    assert outcome.err.splitlines()[:6] == [
        "error: app and other exclude each other  [no-stack]",
        "  you require app  (provision.yaml:6)",
        "  you require other  (provision.yaml:6)",
        "  app 1.0 and 2.0 need shared==1  (metadata of app 2.0 and 1 more)",
        "  other 1.0 needs shared==2  (metadata of other 1.0)",
        "  so no app is left that goes with other",
    ]
    project.spec("[app, other]", 'requires: {python: "==3.12"}')
    assert "app 1.0: no wheel for cp312 on linux/amd64 (has cp311)" in project.run("solve").err


def test_a_request_that_others_require_as_well_is_no_part_of_a_conflict(project: Project) -> None:
    project.index.add_wheel("extension", "1.0", requires=["base<3", "helper"])
    project.index.add_wheel("helper", "1.0", requires=["base>=2"])
    project.index.add_wheel("base", "2.0", requires=["shared==1"])
    for number in (1, 3):
        project.index.add_wheel("base", f"{number}.0")
    for number in (1, 2):
        project.index.add_wheel("shared", f"{number}.0")
    project.spec("['base>=2', extension, 'shared==2']")
    outcome = project.run("solve")
    assert outcome.code == 1
    assert outcome.err.splitlines()[:8] == [
        "error: extension and shared==2 exclude each other  [no-stack]",
        "  you require extension  (provision.yaml:8)",
        "  you require shared==2  (provision.yaml:8)",
        "  extension 1.0 needs base<3  (metadata of extension 1.0)",
        "  extension 1.0 needs helper  (metadata of extension 1.0)",
        "  base 2.0 needs shared==1  (metadata of base 2.0)",
        "  helper 1.0 needs base>=2  (metadata of helper 1.0)",
        "  so no extension is left that goes with shared==2",
    ]


def test_what_excludes_a_request_itself_is_told_before_what_its_requirements_exclude(project: Project) -> None:
    """The matrix knows that ml-dtypes 0.3 was compiled against NumPy 1, which is known before any metadata is read."""
    project.index.add_wheel("app", "1.0", requires=["ml-dtypes==0.3.1", "numpy<2"])
    project.index.add_wheel("ml-dtypes", "0.3.1", requires=["numpy>1.20"])
    for number in ("1.26.4", "2.2.0"):
        project.index.add_wheel("numpy", number)
    project.spec("[app, 'numpy>=2']")
    outcome = project.run("solve")
    assert outcome.code == 1
    assert "app 1.0 needs numpy<2  (metadata of app 1.0)" in outcome.err
    assert "ml-dtypes" not in outcome.err


def test_a_hint_names_a_request_for_a_compiler_once(project: Project) -> None:
    """Triton is requested to be used, which needs a GPU: that is no second request."""
    project.index.add_wheel("app", "1.0", requires=["triton==3.3.1"])
    for number in ("3.2.0", "3.3.1"):
        project.index.add_wheel("triton", number)
    host = "{driver: {version: '580.95.05', module: open}, gpus: [{compute_capability: '8.0'}]}"
    project.spec("[app, 'triton==3.2.0']", f"target: {{platform: linux/amd64, host: {host}}}", "accelerator: cuda")
    outcome = project.run("solve")
    assert outcome.code == 1
    assert "hint: triton 3.3.1 instead of `triton==3.2.0` would do: gives " in outcome.err, outcome.err
