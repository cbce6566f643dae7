"""`provision matrix check` lists the releases of which no row speaks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from provisioner.matrix.families import families_of
from tests.shipped import shipped

if TYPE_CHECKING:
    from tests.project import Project


def test_the_releases_about_which_a_family_is_silent_are_listed_by_family(project: Project) -> None:
    outcome = project.run("matrix", "check")
    assert outcome.code == 0, outcome.err
    judged = [one for one in families_of(shipped()).coverage() if one.family is not None and one.silent]
    assert judged
    for one in judged:
        line = f"  {one.subject} and {one.object}: {len(one.silent)} of {one.releases} releases: {', '.join(one.silent)}"
        assert line in outcome.out.splitlines()


def test_json_has_every_family_and_what_its_silence_means(project: Project) -> None:
    families = json.loads(project.run("matrix", "check", "--format", "json").out)["families"]
    found = {(one["subject"], one["object"]): one for one in families}
    assert found["cuda", "macos"]["silence"] == "unverified"
    assert "8.0.44" in found["cuda", "macos"]["silent"]
    assert found["cuda", "macos"]["because"] == "NVIDIA's installation guide names the macOS for a release"
    assert found["cudnn", "driver"]["silence"] == "no limit"
