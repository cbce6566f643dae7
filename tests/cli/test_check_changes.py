"""`provision check --changes` from outside: what solving again would change and why, and what became of the locked files."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.lock.format.file import read_lock, write_lock
from tests.built_files import build_wheel
from tests.project import LOCK, UV_TAG
from tests.shipped import forget_the_index

if TYPE_CHECKING:
    from tests.loopback_index import ServedFile
    from tests.project import Project

NOTHING = "  solving again would change nothing\n"
NOTHING_NEWER = "  solving again with --upgrade would change nothing\n"
WHEEL = "alpha-2.0-py3-none-any.whl"


@pytest.fixture(autouse=True)
def locked(project: Project) -> None:
    """A project that is solved: alpha 2.0 of 2026-02-01, which brings beta 2.0."""
    dates = {"1.0": "2026-01-01T00:00:00Z", "2.0": "2026-02-01T00:00:00Z"}
    for name in ("alpha", "beta"):
        for served in list(project.index.pages["simple"][name]):
            exchange(project, served, upload_time=dates[served.filename.split("-")[1]])
    assert project.run("solve").code == 0
    project.index.requests.clear()


def exchange(project: Project, served: ServedFile, **fields: object) -> None:
    """What the index says of a file, or the file itself, as something else."""
    page = project.index.pages["simple"][served.filename.partition("-")[0]]
    page[page.index(served)] = replace(served, **fields)


def served(project: Project, filename: str) -> ServedFile:
    return next(one for one in project.index.pages["simple"][filename.partition("-")[0]] if one.filename == filename)


def test_a_fresh_lock_changes_nothing(project: Project) -> None:
    outcome = project.run("check", "--changes")
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{LOCK}: yes\n{NOTHING}{NOTHING_NEWER}", "")
    assert project.files().keys() == {"provision.yaml", LOCK, "Dockerfile", "provision/install.py"}


def test_a_fresh_lock_as_json(project: Project) -> None:
    outcome = project.run("check", "--changes", "--format", "json")
    assert outcome.code == 0
    changes: dict[str, list[object]] = {"least": [], "upgrade": [], "held": [], "offers": [], "inputs": []}
    lock = {"lock": LOCK, "verdict": "yes", "findings": [], "changes": changes}
    assert outcome.json == {"status": "checked", "verdict": "yes", "locks": [lock]}


def test_new_releases_are_news_and_not_staleness(project: Project) -> None:
    project.index.add_wheel("alpha", "3.0", requires=["beta<3"], upload_time="2026-03-01T00:00:00Z")
    project.index.add_wheel("beta", "2.1", upload_time="2026-01-15T00:00:00Z")
    project.index.add_wheel("beta", "3.0", upload_time="2026-03-02T00:00:00Z")
    outcome = project.run("check", "--changes")
    assert outcome.code == 0
    assert outcome.out == (
        f"{LOCK}: yes\n"
        f"{NOTHING}"
        "  solving again with --upgrade would change 2 things:\n"
        "    alpha 2.0 -> 3.0, a new major version\n"
        "      because released since: uploaded 2026-03-01, the newest file of the old lock 2026-02-01\n"
        "    beta 2.0 -> 2.1\n"
        "      because 2.1 is out since 2026-01-15, and nothing recorded rules it out\n"
        "  1 package is held back even so:\n"
        "    beta 2.1, not 3.0, out since 2026-03-02: alpha 3.0 requires `beta<3`\n"
    )


def test_new_releases_as_json(project: Project) -> None:
    project.index.add_wheel("alpha", "3.0", requires=["beta<2.5"], upload_time="2026-03-01T00:00:00Z")
    project.index.add_wheel("beta", "3.0", upload_time="2026-03-02T00:00:00Z")
    outcome = project.run("check", "--changes", "--format", "json")
    assert outcome.code == 0
    assert outcome.json["locks"][0]["changes"] == {
        "least": [],
        "upgrade": [
            {
                "name": "alpha",
                "section": "packages",
                "kind": "upgraded",
                "aspect": "version",
                "from": "2.0",
                "to": "3.0",
                "text": "alpha 2.0 -> 3.0, a new major version",
                "platforms": ["linux/amd64"],
                "breaking": False,
                "reasons": [
                    {
                        "kind": "index",
                        "text": "released since: uploaded 2026-03-01, the newest file of the old lock 2026-02-01",
                        "type": "released-since",
                    }
                ],
            }
        ],
        "held": [
            {
                "name": "beta",
                "version": "2.0",
                "newest": "3.0",
                "uploaded": "2026-03-02",
                "platform": "linux/amd64",
                "reasons": [
                    {
                        "kind": "follows",
                        "text": "alpha 3.0 requires `beta<2.5`",
                        "subject": "alpha",
                        "type": "held-by-package",
                        "object": "beta",
                        "ranges": ["<2.5"],
                        "source": "metadata of alpha 3.0",
                    }
                ],
            }
        ],
        "offers": [],
        "inputs": [],
    }


def test_what_the_newest_release_requires_itself_holds_it_back(project: Project) -> None:
    project.spec("[alpha, gamma]")
    project.index.add_wheel("gamma", "0.9", requires=["alpha"])
    assert project.run("solve", "--upgrade").code == 0
    outcome = project.run("check", "--changes")
    assert outcome.out == (
        f"{LOCK}: yes\n{NOTHING}{NOTHING_NEWER}"
        "  1 package is held back even so:\n"
        "    gamma 0.9, not 1.0: gamma 1.0 requires `beta<2`, and the answer has beta 2.0\n"
    )


def test_a_stale_lock_says_the_least_that_solving_changes(project: Project) -> None:
    project.spec("['alpha<2']")
    project.index.add_wheel("beta", "3.0", upload_time="2026-03-02T00:00:00Z")
    outcome = project.run("check", "--changes")
    assert outcome.code == 1
    assert outcome.out == (
        f"{LOCK}: no\n"
        "  no: alpha 2.0 is locked, but you require alpha<2  (provision.yaml:8)  [stale-package]\n"
        "  solving again would change 1 thing:\n"
        "    alpha 2.0 -> 1.0, a downgrade to an older major version\n"
        "      because the spec asks for `alpha<2`, it asked for `alpha`  (provision.yaml:8)\n"
        "  solving again with --upgrade would change 2 things:\n"
        "    alpha 2.0 -> 1.0, a downgrade to an older major version\n"
        "      because the spec asks for `alpha<2`, it asked for `alpha`  (provision.yaml:8)\n"
        "    beta 2.0 -> 3.0, a new major version\n"
        "      because released since: uploaded 2026-03-02, the newest file of the old lock 2026-02-01\n"
        "  the new lock would record: the spec says `packages.alpha: <2`, it said `any version`\n"
        "  1 package is held back even so:\n"
        "    alpha 1.0, not 2.0, out since 2026-02-01: the spec asks for `alpha<2`  (provision.yaml:8)\n"
        "  next: provision solve\n"
    )


def test_where_least_and_upgrade_are_the_same_it_is_said_once(project: Project) -> None:
    project.spec("[alpha, delta]")
    project.index.add_wheel("delta", "1.0", upload_time="2026-03-02T00:00:00Z")
    outcome = project.run("check", "--changes")
    assert outcome.code == 1
    assert outcome.out == (
        f"{LOCK}: no\n"
        "  no: `delta` is not locked: you require delta  (provision.yaml:8)  [missing-package]\n"
        "  solving again would change 1 thing:\n"
        "    delta 1.0 is new\n"
        "      because the spec asks for `delta` now  (provision.yaml:8)\n"
        "  solving again with --upgrade would change the same\n"
        "  the new lock would record: the spec says `packages.delta: any version` now\n"
        "  next: provision solve\n"
    )


def test_a_yanked_release_is_told_and_the_lock_still_holds(project: Project) -> None:
    exchange(project, served(project, WHEEL), yanked="loses data")
    outcome = project.run("check", "--changes")
    assert outcome.code == 0
    assert outcome.out == (
        f"{LOCK}: yes\n"
        "  news: alpha 2.0 is yanked: loses data  [yanked-file]\n"
        "  solving again would change 1 thing:\n"
        "    alpha 2.0 -> 1.0, a downgrade to an older major version\n"
        "      because alpha 2.0 is yanked: loses data\n"
        "  solving again with --upgrade would change the same\n"
    )


def test_a_file_that_vanished_is_an_alarm(project: Project) -> None:
    project.index.pages["simple"]["alpha"].remove(served(project, WHEEL))
    outcome = project.run("check", "--changes")
    assert outcome.code == 1
    assert outcome.out == (
        f"{LOCK}: no\n"
        f"  no: `{WHEEL}` of alpha 2.0 is no longer listed by index local  [vanished-file]\n"
        "    hint: `provision solve` locks what is offered today\n"
        "  solving again would change 1 thing:\n"
        "    alpha 2.0 -> 1.0, a downgrade to an older major version\n"
        f"      because `{WHEEL}` of alpha 2.0 is no longer listed by index local\n"
        "  solving again with --upgrade would change the same\n"
    )


def test_a_file_exchanged_under_its_name_is_an_alarm(project: Project) -> None:
    before = served(project, WHEEL)
    said = before.sha256
    _, content = build_wheel("alpha", "2.0", metadata=(before.metadata or b"").decode(), padding=7)
    exchange(project, before, content=content)
    project.index.files[before.path] = served(project, WHEEL)
    says = served(project, WHEEL).sha256
    outcome = project.run("check", "--changes")
    assert outcome.code == 1
    assert outcome.out == (
        f"{LOCK}: no\n"
        f"  no: `{WHEEL}` of alpha 2.0 has another sha256 on index local than in the lock: "
        f"{says}, the lock has {said}  [exchanged-file]\n"
        "    hint: do not install it before somebody has said why: an index must never change a file under its name\n"
        "  solving again would change 1 thing:\n"
        f"    alpha 2.0: `{WHEEL}` has other content under the same name: sha256 {said} -> {says}\n"
        "      because index local has another file under this name\n"
        "  solving again with --upgrade would change the same\n"
    )


def test_another_upload_time_is_told(project: Project) -> None:
    exchange(project, served(project, WHEEL), upload_time="2026-02-02T00:00:00Z")
    outcome = project.run("check", "--changes")
    assert outcome.code == 0
    assert outcome.out == (
        f"{LOCK}: yes\n"
        f"  news: `{WHEEL}` of alpha 2.0 was uploaded 2026-02-02T00:00:00+00:00 by its index, "
        f"the lock says 2026-02-01T00:00:00+00:00  [redated-file]\n{NOTHING}{NOTHING_NEWER}"
    )


def test_an_index_out_of_reach_leaves_the_changes_unverified(project: Project) -> None:
    project.index.status = 503
    outcome = project.run("check", "--changes")
    assert outcome.code == 3
    assert outcome.out == (
        f"{LOCK}: unverified\n"
        "  unverified: what solving again would change cannot be told: index `local` answers 503 (Service Unavailable)"
        "  [unverified-changes]\n"
        "    INDEX/simple/alpha/\n"
    )
    report = project.run("check", "--changes", "--format", "json")
    assert (report.code, report.json["verdict"]) == (3, "unverified")
    unknown: dict[str, object] = {"least": None, "upgrade": None, "held": [], "offers": [], "inputs": None}
    assert report.json["locks"][0]["changes"] == unknown


def test_a_no_stays_a_no_where_the_index_is_out_of_reach(project: Project) -> None:
    project.index.status = 503
    project.spec("['alpha<2']")
    assert project.run("check", "--changes").code == 1


def test_offline_the_cache_is_asked(project: Project) -> None:
    project.index.add_wheel("alpha", "3.0", upload_time="2026-03-01T00:00:00Z")
    outcome = project.run("check", "--changes", "--offline")
    assert (outcome.code, outcome.out) == (0, f"{LOCK}: yes\n{NOTHING}{NOTHING_NEWER}")
    assert not project.index.requests


def test_offline_what_the_cache_lacks_is_named(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_the_index(monkeypatch, project.folder / "empty")
    outcome = project.run("check", "--changes", "--offline")
    assert outcome.code == 3
    assert outcome.out == (
        f"{LOCK}: unverified\n"
        "  unverified: what solving again would change cannot be told: offline: `alpha` of index local is not in the cache; "
        "run once without --offline  [unverified-changes]\n"
    )


def test_a_cut_off_day_counts(project: Project) -> None:
    project.index.add_wheel("alpha", "3.0", upload_time="2026-09-01T00:00:00Z")
    late = project.run("check", "--changes", "--exclude-newer", "2026-09-01")
    assert (late.code, "    alpha 2.0 -> 3.0, a new major version\n" in late.out) == (0, True)
    early = project.run("check", "--changes", "--exclude-newer", "2026-08-31")
    assert (early.code, early.out.splitlines()[:3]) == (0, [f"{LOCK}: yes", NOTHING.rstrip(), NOTHING_NEWER.rstrip()])


def test_a_lock_that_could_not_be_made_again_is_no(project: Project) -> None:
    for version in ("1.0", "2.0"):
        project.index.pages["simple"]["beta"].remove(served(project, f"beta-{version}-py3-none-any.whl"))
    outcome = project.run("check", "--changes")
    assert outcome.code == 1
    assert outcome.out == (
        f"{LOCK}: no\n"
        "  no: `beta-2.0-py3-none-any.whl` of beta 2.0 is no longer listed by index local  [vanished-file]\n"
        "    hint: `provision solve` locks what is offered today\n"
        "  no: nothing fits the spec, the matrix and the indexes of today, so this lock could not be made again  "
        "[no-longer-solvable]\n"
        "    you require alpha  (provision.yaml:6)\n"
        "    alpha 2.0 needs beta>=2; alpha 1.0 needs beta>=1  (metadata of alpha 2.0 and 1 more)\n"
        "    so no alpha is left\n"
    )


def test_a_lock_under_another_name_is_its_own_preference(project: Project) -> None:
    project.index.add_wheel("alpha", "2.1", upload_time="2026-03-01T00:00:00Z")
    shutil.move(project.folder / LOCK, project.folder / "pylock.other.toml")
    outcome = project.run("check", "--changes")
    assert outcome.code == 1, "the recipe names the lock it was rendered from"
    assert NOTHING in outcome.out


def test_what_else_the_new_lock_would_record_is_told(project: Project) -> None:
    path = project.folder / LOCK
    matrix = read_lock(path).matrix_digest.removeprefix("sha256:")
    path.write_text(write_lock(replace(read_lock(path), matrix_digest=f"sha256:{'0' * 64}")), encoding="utf-8")
    assert project.run("render", LOCK, "--to", "dockerfile", "--out", "Dockerfile").code == 0
    outcome = project.run("check", "--changes")
    assert outcome.code == 0
    assert outcome.out == (
        f"{LOCK}: yes\n{NOTHING}{NOTHING_NEWER}  the new lock would record: the matrix changed: 000000000000 -> {matrix[:12]}\n"
    )


def test_a_newer_installer_is_the_business_of_an_upgrade(project: Project) -> None:
    project.index.add_wheel("uv", "0.9.12", tag=UV_TAG, upload_time="2025-11-27T10:00:00Z")
    outcome = project.run("check", "--changes")
    assert outcome.code == 0
    assert outcome.out == (
        f"{LOCK}: yes\n{NOTHING}"
        "  solving again with --upgrade would change 1 thing:\n"
        "    installer uv 0.9.11 -> uv 0.9.12\n"
        "      because 0.9.12 is out since 2025-11-27\n"
    )


def test_a_framework_that_packages_brought_along_stays_in_the_system_half(project: Project) -> None:
    project.index.add_wheel("torch", "2.7.1", tag="cp312-cp312-manylinux_2_28_x86_64")
    project.index.add_wheel("model", "1.0", requires=["torch==2.7.1"])
    project.write("driver: {version: 560.35.03, module: open}\ngpus: [{compute_capability: '9.0'}]\n", name="new.yaml")
    lines = ("accelerator: cuda", "target: {host: new.yaml}", "runs: host", "image: {}", "outputs: []")
    project.spec("[model]", *lines)
    assert project.run("solve").code == 0
    project.spec("[model, alpha]", *lines)
    outcome = project.run("check")
    assert outcome.code == 1
    assert "  no: `alpha` is not locked: you require alpha  (provision.yaml:6)  [missing-package]\n" in outcome.out
    assert "  solving the system half again would change nothing\n" in outcome.out
    project.spec("[alpha]", *lines)
    assert "    pytorch 2.7.1+cu126 is gone\n" in project.run("check").out


def offer_hub(project: Project, version: str, uploaded: str, *requires: str) -> None:
    project.index.add_wheel("hub", version, requires=list(requires), upload_time=uploaded)


@pytest.fixture
def hub(project: Project) -> None:
    """A locked project whose one package pins three others and bounds one, of which newer releases are there."""
    for name in ("a1", "a2", "a3", "b1"):
        for version in ("1.0", "2.0", "3.0"):
            project.index.add_wheel(name, version, upload_time="2026-01-01T00:00:00Z")
    offer_hub(project, "1.0", "2026-01-01T00:00:00Z", "a1==1.0", "a2==1.0", "a3==1.0", "b1<2")
    project.spec("[hub]")
    assert project.run("solve").code == 0
    offer_hub(project, "2.0", "2026-02-01T00:00:00Z", "a1==2.0", "a2==2.0", "a3==2.0", "b1>=2")
    offer_hub(project, "3.0", "2026-03-01T00:00:00Z", "c1", "c2", "c3==1.0", "b1>=2")
    for name in ("c1", "c2", "c3"):
        project.index.add_wheel(name, "1.0", upload_time="2026-01-01T00:00:00Z")


@pytest.mark.usefixtures("hub")
def test_packages_that_do_nothing_but_follow_one_other_are_one_line(project: Project) -> None:
    project.spec("['hub==2.0']")
    outcome = project.run("check", "--changes")
    assert outcome.out == (
        f"{LOCK}: no\n"
        "  no: hub 1.0 is locked, but you require hub==2.0  (provision.yaml:8)  [stale-package]\n"
        "  solving again would change 5 things:\n"
        "    4 packages that hub 2.0 requires so: a1 1.0 -> 2.0, a new major version; a2 1.0 -> 2.0, a new major version; "
        "a3 1.0 -> 2.0, a new major version; b1 1.0 -> 3.0, a new major version\n"
        "    hub 1.0 -> 2.0, a new major version\n"
        "      because the spec asks for `hub==2.0`, it asked for `hub`  (provision.yaml:8)\n"
        "  solving again with --upgrade would change the same\n"
        "  the new lock would record: the spec says `packages.hub: ==2.0`, it said `any version`\n"
        "  4 packages are held back even so:\n"
        "    3 packages that hub 2.0 pins: a1 2.0, not 3.0; a2 2.0, not 3.0; a3 2.0, not 3.0\n"
        "    hub 2.0, not 3.0, out since 2026-03-01: the spec asks for `hub==2.0`  (provision.yaml:8)\n"
        "  next: provision solve\n"
    )
    report = project.run("check", "--changes", "--format", "json").json["locks"][0]["changes"]
    assert [change["name"] for change in report["least"]] == ["a1", "a2", "a3", "b1", "hub"]
    assert [held["name"] for held in report["held"]] == ["a1", "a2", "a3", "hub"]


@pytest.mark.usefixtures("hub")
def test_what_comes_and_goes_with_it_is_another_line(project: Project) -> None:
    project.spec("['hub==3.0']")
    lines = project.run("check", "--changes").out.splitlines()
    assert lines[2:10] == [
        "  solving again would change 8 things:",
        "    3 packages that hub 1.0 brought along: a1 1.0 goes; a2 1.0 goes; a3 1.0 goes",
        "    b1 1.0 -> 3.0, a new major version",
        "      because hub 3.0 requires `b1>=2`, which 1.0 is not",
        "    3 packages that hub 3.0 brings along: c1 1.0; c2 1.0; c3 1.0",
        "    hub 1.0 -> 3.0, a new major version",
        "      because the spec asks for `hub==3.0`, it asked for `hub`  (provision.yaml:8)",
        "  solving again with --upgrade would change the same",
    ]
