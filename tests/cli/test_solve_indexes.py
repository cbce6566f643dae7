"""`provision solve` where several indexes are configured: whose a name is, what is told of it, and what is asked to know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.loopback_index import LoopbackIndex
from tests.project import LOCK, UV_TAG
from tests.shipped import forget_the_index

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.project import Outcome, Project

HOST = ("runs: host", "image: {}", "outputs: []")
BOTH = 'indexes: [{name: local, url: "INDEX/simple"}, {name: own, url: "INDEX/own"}]'


@pytest.fixture
def other() -> Iterator[LoopbackIndex]:
    """A second index, on a port of its own."""
    with LoopbackIndex() as index:
        yield index


def pip(project: Project, monkeypatch: pytest.MonkeyPatch, *extra: str, packages: str = "[acme]") -> None:
    """A spec without indexes of its own, where pip's main index is the project's and these are its extra ones."""
    project.spec(packages, *HOST, "indexes: []")
    monkeypatch.setenv("PIP_INDEX_URL", project.index.url)
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", " ".join(extra))


def warnings(outcome: Outcome) -> list[str]:
    """What is told beside the facts that no target states here."""
    return [line for line in outcome.err.splitlines() if line.startswith("warning: ") and "unverified: glibc" not in line]


class TestOfPipsConfiguration:
    def test_nobody_takes_a_private_name_over_by_registering_it_at_the_main_index(
        self, project: Project, other: LoopbackIndex, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other.add_wheel("acme", "1.0", requires=["beta"])
        project.index.add_wheel("acme", "99.0")
        pip(project, monkeypatch, other.url)
        outcome = project.run("solve", "--format", "json")
        assert outcome.code == 0, outcome.err
        assert outcome.json["packages"] == {"acme": "1.0", "beta": "2.0"}
        assert outcome.json["indexes"] == {"acme": "extra-1", "beta": "main"}
        told = (
            f"acme: taken from index `extra-1` ({other.url}), and `main` (INDEX/simple) has other files under this name, too; "
            "say whose it is under `indexes:`, by `packages: [acme]`"
        )
        assert outcome.json["warnings"] == [told]
        assert warnings(project.run("solve")) == [f"warning: {told}"]

    def test_what_only_an_extra_index_knows_is_told(
        self, project: Project, other: LoopbackIndex, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other.add_wheel("acme", "1.0", requires=["acme-core", "beta"])
        other.add_wheel("acme-core", "1.0")
        pip(project, monkeypatch, other.url)
        outcome = project.run("solve")
        assert outcome.code == 0, outcome.err
        assert warnings(outcome) == [
            (
                f"warning: from index `extra-1` ({other.url}) and not from `main` (INDEX/simple), which is the default: "
                "acme, acme-core"
            )
        ]

    @pytest.mark.parametrize("in_container", [True, False])
    def test_what_an_earlier_lock_says_is_told_once(
        self, project: Project, other: LoopbackIndex, monkeypatch: pytest.MonkeyPatch, *, in_container: bool
    ) -> None:
        other.add_wheel("acme", "1.0")
        other.add_wheel("uv", "0.9.11", tag=UV_TAG)
        pip(project, monkeypatch, other.url)
        if in_container:
            project.spec("[acme]", "indexes: []")
        line = f"warning: from index `extra-1` ({other.url}) and not from `main` (INDEX/simple), which is the default: "
        names = ("acme", "uv") if in_container else ("acme",)
        assert sorted(warnings(project.run("solve"))) == [f"{line}{name}" for name in names]
        assert warnings(project.run("solve")) == []
        assert warnings(project.run("solve", "--upgrade")) == []
        other.add_wheel("acme", "2.0", requires=["more"])
        other.add_wheel("more", "1.0")
        assert warnings(project.run("solve", "--upgrade")) == [f"{line}more"], "what is new is told, and it alone"
        project.index.add_wheel("acme", "99.0")
        forget_the_index(monkeypatch, project.folder / "empty")  # that a page is not there is kept for a while
        assert [words for words in warnings(project.run("solve")) if "has other files under this name, too" in words]

    def test_another_index_under_the_name_of_the_one_before_is_told(
        self, project: Project, other: LoopbackIndex, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other.add_wheel("acme", "1.0")
        pip(project, monkeypatch, other.url)
        assert project.run("solve").code == 0
        with LoopbackIndex() as third:
            third.add_wheel("acme", "1.0")
            pip(project, monkeypatch, third.url)
            assert warnings(project.run("solve")) == [
                (
                    f"warning: from another index than in the earlier lock: acme from `extra-1` ({third.url}), "
                    f"before from `extra-1` ({other.url})"
                ),
                f"warning: from index `extra-1` ({third.url}) and not from `main` (INDEX/simple), which is the default: acme",
            ]

    def test_what_only_the_main_index_knows_is_no_news(
        self, project: Project, other: LoopbackIndex, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pip(project, monkeypatch, other.url, packages="[alpha]")
        outcome = project.run("solve")
        assert (outcome.code, warnings(outcome)) == (0, [])
        assert other.requests == {"/simple/alpha/": 1, "/simple/beta/": 1}

    def test_a_mirror_is_no_rival(self, project: Project, other: LoopbackIndex, monkeypatch: pytest.MonkeyPatch) -> None:
        for index in (project.index, other):
            index.add_wheel("acme", "1.0")
        project.index.add_wheel("acme", "2.0")
        pip(project, monkeypatch, other.url)
        outcome = project.run("solve")
        assert outcome.code == 0, outcome.err
        assert warnings(outcome) == [
            f"warning: from index `extra-1` ({other.url}) and not from `main` (INDEX/simple), which is the default: acme"
        ]

    @pytest.mark.parametrize("hashes", [True, False])
    def test_the_same_file_name_with_another_content_is_no_mirror(
        self, project: Project, other: LoopbackIndex, monkeypatch: pytest.MonkeyPatch, *, hashes: bool
    ) -> None:
        other.add_wheel("acme", "1.0")
        other.hashes = hashes
        project.index.add_wheel("acme", "1.0", requires=["beta"])
        pip(project, monkeypatch, other.url)
        outcome = project.run("solve")
        assert outcome.code == 0, outcome.err
        assert "has other files under this name, too" in outcome.err

    def test_the_same_file_in_a_folder_is_a_mirror(
        self, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = tmp_path / "part" / "beta"
        folder.mkdir(parents=True)
        wheel = folder / "beta-1.0-py3-none-any.whl"
        wheel.write_bytes(project.index.files[f"/files/{wheel.name}"].content)
        pip(project, monkeypatch, str(tmp_path / "part"), packages="[beta]")
        outcome = project.run("solve")
        assert (outcome.code, warnings(outcome)) == (0, [])
        wheel.write_bytes(b"another file under the same name")
        assert "has other files under this name, too" in project.run("solve").err

    def test_an_extra_index_that_cannot_be_asked_does_not_lack_the_name(
        self, project: Project, other: LoopbackIndex, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        project.index.add_wheel("acme", "99.0")
        other.credentials = "ada:secret"
        pip(project, monkeypatch, other.url)
        outcome = project.run("solve")
        assert (outcome.code, outcome.out) == (3, "")
        assert outcome.err.startswith("error: index `extra-1` answers 401 (Unauthorized)")

    def test_a_folder_of_this_machine_comes_after_the_main_index(
        self, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("beta", "acme"):
            folder = tmp_path / "part" / name
            folder.mkdir(parents=True)
            filename = project.index.add_wheel(name, "0.5", index="elsewhere")
            (folder / filename).write_bytes(project.index.files[f"/files/elsewhere/{filename}"].content)
        pip(project, monkeypatch, str(tmp_path / "part"), packages="[acme, beta]")
        outcome = project.run("solve", "--format", "json")
        assert outcome.code == 0, outcome.err
        assert outcome.json["packages"] == {"acme": "0.5", "beta": "2.0"}
        place = f"`extra-1` (file://{tmp_path}/part)"
        assert outcome.json["warnings"] == [
            (
                f"beta: taken from index `main` (INDEX/simple), and {place} has other files under this name, too; "
                "say whose it is under `indexes:`, by `packages: [beta]`"
            ),
            f"from index {place} and not from `main` (INDEX/simple), which is the default: acme",
        ]

    def test_a_folder_that_is_not_there_does_not_lack_the_name(
        self, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        project.index.add_wheel("acme", "1.0")
        pip(project, monkeypatch, str(tmp_path / "typo"))
        outcome = project.run("solve")
        assert outcome.code == 0, outcome.err
        address = f"file://{tmp_path}/typo"
        assert warnings(outcome) == [
            (
                f"warning: whether index `extra-1` ({address}) has other files under acme is not known: "
                f"index `extra-1` is not a directory: {address}"
            )
        ]


class TestOfASpec:
    def test_the_order_is_the_users_and_the_other_index_is_told(self, project: Project) -> None:
        project.index.add_wheel("acme", "99.0")
        project.index.add_wheel("acme", "1.0", index="own")
        project.spec("[acme]", *HOST, BOTH)
        outcome = project.run("solve")
        assert outcome.code == 0, outcome.err
        assert warnings(outcome) == [
            (
                "warning: acme: taken from index `local` (INDEX/simple), and `own` (INDEX/own) "
                "has other files under this name, too; say whose it is under `indexes:`, by `packages: [acme]`"
            )
        ]

    def test_a_claim_settles_it_and_nobody_else_is_asked(self, project: Project) -> None:
        project.index.add_wheel("acme", "99.0")
        project.index.add_wheel("acme", "1.0", index="own")
        project.spec("[acme]", *HOST, BOTH.replace('own"}', 'own", packages: [acme]}'))
        outcome = project.run("solve")
        assert (outcome.code, warnings(outcome)) == (0, [])
        assert "/simple/acme/" not in project.index.requests

    def test_one_index_is_asked_nothing_more(self, project: Project) -> None:
        project.spec("[alpha]", *HOST)
        outcome = project.run("solve")
        assert (outcome.code, warnings(outcome)) == (0, [])
        assert {path: count for path, count in project.index.requests.items() if path.startswith("/simple/")} == {
            "/simple/alpha/": 1,
            "/simple/beta/": 1,
        }

    def test_a_later_index_out_of_reach_is_told_once_and_asked_once(self, project: Project) -> None:
        project.spec("[alpha]", *HOST, BOTH)
        project.index.statuses = {"/own/alpha/": 500, "/own/beta/": 500}
        outcome = project.run("solve")
        assert outcome.code == 0, outcome.err
        assert warnings(outcome) == [
            (
                "warning: whether index `own` (INDEX/own) has other files under alpha, beta is not known: "
                "index `own` answers 500 (Internal Server Error)"
            )
        ]
        assert "/own/beta/" not in project.index.requests

    def test_offline_the_cache_answers_or_it_is_said(self, project: Project) -> None:
        project.index.add_wheel("beta", "99.0", index="own")
        project.spec("[alpha]", *HOST)
        assert project.run("solve").code == 0
        project.spec("[alpha]", *HOST, BOTH)
        unknown = (
            "warning: whether index `own` (INDEX/own) has other files under alpha, beta is not known: "
            "offline, and not in the cache"
        )
        assert warnings(project.run("solve", "--offline")) == [unknown]
        online = warnings(project.run("solve"))
        assert online == [
            (
                "warning: beta: taken from index `local` (INDEX/simple), and `own` (INDEX/own) "
                "has other files under this name, too; say whose it is under `indexes:`, by `packages: [beta]`"
            )
        ]
        assert warnings(project.run("solve", "--offline")) == online


class TestAnotherIndexThanBefore:
    def test_solve_tells_it(self, project: Project) -> None:
        project.spec("[alpha]", *HOST)
        assert project.run("solve").code == 0
        project.index.add_wheel("alpha", "2.0", index="own", requires=["beta"])
        project.index.add_wheel("beta", "2.0", index="own")
        project.spec("[alpha]", *HOST, 'indexes: [{name: own, url: "INDEX/own"}]')
        outcome = project.run("solve")
        assert outcome.code == 0, outcome.err
        assert warnings(outcome) == [
            (
                "warning: from another index than in the earlier lock: alpha, beta from `own` (INDEX/own), "
                "before from `local` (INDEX/simple)"
            )
        ]
        assert warnings(project.run("solve")) == []

    def test_another_name_for_the_same_address_is_none(self, project: Project) -> None:
        project.spec("[alpha]", *HOST)
        assert project.run("solve").code == 0
        project.spec("[alpha]", *HOST, 'indexes: [{name: renamed, url: "INDEX/simple/"}]')
        outcome = project.run("solve")
        assert (outcome.code, warnings(outcome)) == (0, [])

    def test_a_comparison_tells_it_of_another_version_too(self, project: Project) -> None:
        project.spec("[acme]", *HOST)
        project.index.add_wheel("acme", "1.0")
        assert project.run("solve").code == 0
        (project.folder / LOCK).rename(project.folder / "pylock.before.toml")
        project.index.add_wheel("acme", "99.0", index="own")
        project.spec("[acme]", *HOST, 'indexes: [{name: own, url: "INDEX/own"}]')
        assert project.run("solve").code == 0
        outcome = project.run("explain", "--diff", "pylock.before.toml", LOCK)
        assert outcome.code == 0, outcome.err
        assert "acme 1.0 -> 99.0" in outcome.out
        assert "acme 99.0 comes from index own, it came from local" in outcome.out


def test_the_installer_of_an_image_is_told_of_too(
    project: Project, other: LoopbackIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    other.add_wheel("uv", "0.9.99", tag=UV_TAG, requires=["beta"])
    project.spec("[beta]", "indexes: []")
    monkeypatch.setenv("PIP_INDEX_URL", project.index.url)
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", other.url)
    outcome = project.run("solve")
    assert outcome.code == 0, outcome.err
    assert warnings(outcome) == [
        (
            f"warning: uv: taken from index `extra-1` ({other.url}), and `main` (INDEX/simple) has other files under this "
            "name, too; say whose it is under `indexes:`, by `packages: [uv]`"
        )
    ]
