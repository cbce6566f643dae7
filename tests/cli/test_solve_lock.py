"""What `provision solve` writes into the lock besides versions and hashes: every field of PEP 751 that an index knows."""

from __future__ import annotations

import sqlite3
import time
import tomllib
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from provisioner.caches import cache_directory
from provisioner.index.cache import FILE
from provisioner.lock.format.file import read_lock
from tests.project import LOCK, UV_TAG, changed
from tests.standard_lock import selected

if TYPE_CHECKING:
    from tests.project import Project

PROVENANCE = (Path(__file__).parent.parent / "fixtures" / "provenance.json").read_bytes()
SAMPLE = {"environment": "", "kind": "GitHub", "repository": "pypa/sampleproject", "workflow": "release.yml"}


def packages(project: Project) -> dict[str, dict[str, Any]]:
    return {package["name"]: package for package in tomllib.loads(project.read(LOCK))["packages"]}


def attested(project: Project, name: str = "alpha", version: str = "3.0") -> str:
    """Offer a release with attestations; returns the path where they are served."""
    filename = project.index.add_wheel(
        name, version, requires_python=">=3.9", upload_time="2026-02-03T04:05:06Z", provenance=True
    )
    place = f"/integrity/{filename}/provenance"
    project.index.serve(place, PROVENANCE, content_type="application/vnd.pypi.integrity.v1+json")
    return place


@pytest.mark.parametrize("is_json", [False, True])
def test_every_field_an_index_knows_is_in_the_lock(project: Project, *, is_json: bool) -> None:
    project.index.json = is_json
    attested(project)
    assert project.run("solve").code == 0
    served = project.index.files["/files/alpha-3.0-py3-none-any.whl"]
    assert packages(project) == {
        "alpha": {
            "name": "alpha",
            "version": "3.0",
            "requires-python": ">=3.9",
            "index": "INDEX/simple",
            "wheels": [
                {
                    "name": "alpha-3.0-py3-none-any.whl",
                    "upload-time": tomllib.loads("moment = 2026-02-03T04:05:06Z")["moment"],
                    "url": "INDEX/files/alpha-3.0-py3-none-any.whl",
                    "size": len(served.content),
                    "hashes": {"sha256": served.sha256},
                }
            ],
            "attestation-identities": [SAMPLE],
            "tool": {"provision": {"index": "local", "platforms": ["linux/amd64"]}},
        }
    }


def test_a_lock_is_the_same_whether_pages_or_servers_tell_the_size(project: Project) -> None:
    project.index.json = True
    assert project.run("solve").code == 0
    told = project.read(LOCK)
    project.index.json = False
    (project.folder / LOCK).unlink()
    assert project.run("solve").code == 0
    assert project.read(LOCK) == told
    installer = f"/files/uv-0.9.11-{UV_TAG}.whl"
    assert f"size = {len(project.index.files[installer].content)}" in told


class TestOffline:
    def test_the_lock_is_the_same_as_online(self, project: Project) -> None:
        attested(project)
        assert project.run("solve").code == 0
        online = project.read(LOCK)
        (project.folder / LOCK).unlink()
        outcome = project.run("solve", "--offline")
        assert (outcome.code, project.read(LOCK)) == (0, online)
        assert "goes without" not in outcome.err

    def test_what_no_cache_has_is_kept_from_the_lock_before(self, project: Project) -> None:
        place = attested(project)
        assert project.run("solve").code == 0
        online = project.read(LOCK)
        self.forget(project)
        project.index.statuses[place] = 500
        outcome = project.run("solve", "--offline")
        assert (outcome.code, project.read(LOCK)) == (0, online)
        assert "goes without" not in outcome.err

    def test_what_nobody_knows_is_left_out_and_told(self, project: Project) -> None:
        attested(project)
        assert project.run("solve").code == 0
        (project.folder / LOCK).unlink()
        self.forget(project)
        outcome = project.run("solve", "--offline")
        assert outcome.code == 0
        assert [line for line in outcome.err.splitlines() if "goes without" in line] == [
            "warning: the lock goes without the size of 2 files: offline, and not in the cache",
            "warning: the lock goes without the attestation identities of 1 file: offline, and not in the cache",
        ]
        assert "attestation-identities" not in packages(project)["alpha"]

    def forget(self, project: Project) -> None:
        """Another machine's cache, which has the pages and the metadata and nothing else."""
        with closing(sqlite3.connect(cache_directory() / FILE)) as connection, connection:
            connection.execute("DELETE FROM entry WHERE key GLOB 'size:*' OR key GLOB 'provenance:*'")
        project.index.requests.clear()


def test_an_index_that_announces_attestations_and_has_none_is_told(project: Project) -> None:
    place = attested(project)
    project.index.bodies.pop(place)
    outcome = project.run("solve")
    assert outcome.code == 0
    assert "warning: the lock goes without the attestation identities of 1 file: their server does not tell\n" in outcome.err


def test_identities_are_asked_for_once_and_again_for_an_upgrade(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    place = attested(project)
    for _ in range(3):
        assert project.run("solve").code == 0
    assert project.index.requests[place] == 1
    project.index.serve(place, PROVENANCE.replace(b"sampleproject", b"other"), content_type="application/json")
    assert project.run("solve").code == 0
    assert packages(project)["alpha"]["attestation-identities"] == [SAMPLE]
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3600)
    assert project.run("solve", "--upgrade").code == 0
    assert packages(project)["alpha"]["attestation-identities"] == [{**SAMPLE, "repository": "pypa/other"}]


def test_credentials_of_an_index_are_not_in_the_url_of_origin(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.index.credentials = "ada:hunter2"
    project.write(changed("indexes: []"))
    monkeypatch.setenv("PIP_INDEX_URL", project.index.url.replace("http://", "http://ada:hunter2@"))
    outcome = project.run("solve")
    assert outcome.code == 0, outcome.err
    assert packages(project)["alpha"]["index"] == "INDEX/simple"
    assert not any(b"hunter2" in content for name, content in project.files().items() if name != "provision.yaml")


def test_platforms_that_need_other_versions_are_locked_in_one_file(project: Project) -> None:
    """The newest release has a wheel for one machine; what each platform takes is asked of the reference implementation."""
    project.index.add_wheel("uv", "0.9.11", tag=UV_TAG.replace("x86_64", "aarch64"), upload_time="2025-11-20T10:00:00Z")
    project.index.add_wheel("alpha", "3.0", tag="cp312-cp312-manylinux_2_17_x86_64")
    for machine in ("x86_64", "aarch64"):
        project.index.add_wheel("delta", "1.0", tag=f"cp312-cp312-manylinux_2_17_{machine}")
    project.write(changed("packages: [alpha, delta]", "target: {platform: [linux/amd64, linux/arm64]}"))
    outcome = project.run("solve")
    assert outcome.code == 0, outcome.err
    lock = read_lock(project.folder / LOCK)
    assert sorted(selected(lock, "linux/amd64", "3.12")) == [
        ("alpha", "3.0", "alpha-3.0-cp312-cp312-manylinux_2_17_x86_64.whl"),
        ("delta", "1.0", "delta-1.0-cp312-cp312-manylinux_2_17_x86_64.whl"),
    ]
    assert sorted(selected(lock, "linux/arm64", "3.12")) == [
        ("alpha", "2.0", "alpha-2.0-py3-none-any.whl"),
        ("beta", "2.0", "beta-2.0-py3-none-any.whl"),
        ("delta", "1.0", "delta-1.0-cp312-cp312-manylinux_2_17_aarch64.whl"),
    ]


def test_an_index_in_a_folder_has_no_url_of_origin(project: Project, tmp_path: Path) -> None:
    """What is true of this machine only is not in a lock: `find-links` and local indexes go by their names."""
    folder = tmp_path / "wheels here" / "alpha"
    folder.mkdir(parents=True)
    for name in ("alpha", "uv"):
        (tmp_path / "wheels here" / name).mkdir(exist_ok=True)
    for path, served in project.index.files.items():
        name = path.rpartition("/")[2].partition("-")[0]
        (tmp_path / "wheels here" / name).mkdir(exist_ok=True)
        (tmp_path / "wheels here" / name / served.filename).write_bytes(served.content)
    project.write(changed(f'indexes: [{{name: shelf, url: "{(tmp_path / "wheels here").as_uri()}"}}]'))
    outcome = project.run("solve")
    assert outcome.code == 0, outcome.err
    alpha = packages(project)["alpha"]
    assert "index" not in alpha
    assert alpha["tool"]["provision"]["index"] == "shelf"
    assert alpha["wheels"][0]["size"] == (project.folder / alpha["wheels"][0]["path"]).stat().st_size
    assert str(tmp_path) not in project.read(LOCK)
