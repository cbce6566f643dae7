"""`provision check --changes` names the line that a cause stands on, in whichever file of the project that is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.project import LOCK, changed

if TYPE_CHECKING:
    from tests.project import Project


@pytest.fixture(autouse=True)
def locked(project: Project) -> None:
    """A project whose requirements and constraints stand in files of their own, solved."""
    project.write("# pinned by hand\nalpha<3\n", name="requirements.in")
    project.write("# limits\n\nbeta<3\n", name="limits.txt")
    project.write(changed("packages-from: [requirements.in]", "packages: []", "constraints: [limits.txt]"))
    assert project.run("solve").code == 0


def told(project: Project) -> list[str]:
    """The lines of causes, each once."""
    lines = project.run("check", "--changes").out.splitlines()
    return list(
        dict.fromkeys(line.strip() for line in lines if "the spec " in line and "no: " not in line and "record" not in line)
    )


def test_a_line_of_a_requirement_file(project: Project) -> None:
    project.write("# pinned by hand\n\nalpha<2\n", name="requirements.in")
    assert told(project) == [
        "because the spec asks for `alpha<2`, it asked for `alpha<3`  (requirements.in:3)",
        "alpha 1.0, not 2.0: the spec asks for `alpha<2`  (requirements.in:3)",
    ]


def test_a_line_of_a_constraints_file(project: Project) -> None:
    project.write("beta<2\n", name="limits.txt")
    assert told(project) == [
        "because the spec constrains it to `beta<2`, before `beta<3`  (limits.txt:1)",
        "beta 1.0, not 2.0: the spec constrains it to `beta<2`  (limits.txt:1)",
    ]


def test_a_constraint_that_is_gone_stood_in_the_spec_of_then(project: Project) -> None:
    project.write("beta<2\n", name="limits.txt")
    assert project.run("solve").code == 0
    project.write("\n", name="limits.txt")
    assert told(project) == [
        "because alpha 2.0 requires `beta>=2`, and the spec constrained it to `beta<2`",
        "because the spec constrained it to `beta<2` and does no longer  (provision.yaml)",
    ]


def test_the_cut_off_day(project: Project) -> None:
    project.index.add_wheel("dated", "1.0", upload_time="2026-01-01T00:00:00Z")
    project.write(changed("packages: [dated]", "policy: {exclude-newer: 2026-02-15}"))
    assert project.run("solve").code == 0
    project.index.add_wheel("dated", "2.0", upload_time="2026-03-01T00:00:00Z")
    project.write(changed("packages: [dated]", "policy: {exclude-newer: 2026-03-15}"))
    says = "the spec says `policy.exclude-newer: 2026-03-15`, it said `2026-02-15`"
    assert told(project) == [f"because {says}; it was uploaded 2026-03-01  (provision.yaml:9)"]


def test_another_image(project: Project) -> None:
    image = f"python:3.12-slim-trixie@sha256:{'e' * 64}"
    project.write(changed("packages: [alpha]", f"image: {{base: '{image}'}}"))
    assert f"{LOCK}: no\n" in project.run("check").out
    assert told(project)[0].endswith("  (provision.yaml:8)")


def test_what_a_line_kept_away_comes_when_it_is_gone(project: Project) -> None:
    project.index.add_wheel("tools", "1.0")
    project.index.add_wheel("tools", "2.0")
    project.index.add_wheel("core", "1.0")
    project.index.add_wheel("core", "2.0", requires=["tools>=2"])
    project.spec("[core, 'tools<2']")
    assert project.run("solve").code == 0
    project.spec("[core, tools]")
    assert project.run("check", "--changes").out.splitlines()[2:8] == [
        "  solving again with --upgrade would change 2 things:",
        "    core 1.0 -> 2.0, a new major version",
        "      because core 2.0 requires `tools>=2`, and the spec asked for `tools<2`",
        "    tools 1.0 -> 2.0, a new major version",
        "      because the spec asks for `tools`, it asked for `tools<2`  (provision.yaml:8)",
        "      because core 2.0 requires `tools>=2`, which 1.0 is not",
    ]
