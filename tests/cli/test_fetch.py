"""`provision fetch`: a folder of every file of some locks, from which installers need no index."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from uv import find_uv_bin

from tests.project import LOCK, changed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.project import Project

RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
HOST = ("runs: host", "outputs: [requirements]", f"requires: {{python: '=={RUNNING}'}}")
REQUIREMENTS = "trainer.requirements.txt"
FILES = ["alpha-2.0-py3-none-any.whl", "beta-2.0-py3-none-any.whl"]


def locked(project: Project, *lines: str) -> None:
    project.spec("[alpha]", *HOST, *lines)
    assert project.run("solve").code == 0
    project.index.requests.clear()


def house(project: Project) -> list[str]:
    return sorted(str(path.relative_to(project.folder / "house")) for path in (project.folder / "house").rglob("*"))


def asked(project: Project) -> dict[str, int]:
    return {path.rpartition("/")[2]: count for path, count in project.index.requests.items()}


def test_every_file_is_fetched_once_and_listed_with_its_hash(project: Project) -> None:
    locked(project)
    outcome = project.run("fetch", LOCK, "--to", "house")
    assert outcome.code == 0, outcome.err
    size = sum((project.folder / "house" / name).stat().st_size for name in FILES)
    assert outcome.out == f"house: 2 files, {size / 1000:.1f} kB\n"
    assert house(project) == ["SHA256SUMS", *FILES, REQUIREMENTS]
    lines = (line.split("  ") for line in project.read("house/SHA256SUMS").splitlines())
    assert {name: sha256 for sha256, name in lines} == {
        name: hashlib.sha256((project.folder / "house" / name).read_bytes()).hexdigest() for name in FILES
    }
    outcome = project.run("fetch", LOCK, "--to", "house", "--format", "json")
    assert (outcome.code, outcome.json) == (
        0,
        {
            "status": "fetched",
            "folder": "house",
            "files": FILES,
            "fetched": [],
            "size": size,
            "requirements": [REQUIREMENTS],
            "builds": {},
        },
    )
    assert asked(project) == dict.fromkeys(FILES, 1), "what is there is not asked for again"


def test_an_image_gets_its_installer_too_and_a_folder_of_locks_is_one_wheelhouse(project: Project) -> None:
    project.write(changed("name: other", "packages: [gamma]"), name="envs/other.yaml")
    assert project.run("solve", "envs/other.yaml").code == 0
    locked(project)
    outcome = project.run("fetch", ".", "--to", "house")
    assert outcome.code == 0, outcome.err
    assert [name for name in house(project) if name.startswith(("alpha", "beta", "gamma", "uv"))] == [
        "alpha-2.0-py3-none-any.whl",
        "beta-1.0-py3-none-any.whl",
        "beta-2.0-py3-none-any.whl",
        "gamma-1.0-py3-none-any.whl",
        "uv-0.9.11-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    ]


@pytest.mark.parametrize("ranges", [True, False])
def test_half_a_file_goes_on_where_it_ended(project: Project, *, ranges: bool) -> None:
    project.index.add_wheel("alpha", "3.0", padding=400_000)
    locked(project)
    name = "alpha-3.0-py3-none-any.whl"
    content = project.index.files[f"/files/{name}"].content
    part = project.folder / "house" / ".partial" / hashlib.sha256(content).hexdigest()
    part.parent.mkdir(parents=True)
    part.write_bytes(content[: len(content) - 1000])
    project.index.ranges = ranges
    before = project.index.bytes_sent
    assert project.run("fetch", LOCK, "--to", "house").code == 0
    assert house(project) == ["SHA256SUMS", name, REQUIREMENTS]
    assert (project.folder / "house" / name).read_bytes() == content
    assert (project.index.bytes_sent - before == 1000) is ranges


def test_what_is_left_of_another_file_is_read_anew(project: Project) -> None:
    locked(project)
    content = project.index.files[f"/files/{FILES[0]}"].content
    part = project.folder / "house" / ".partial" / hashlib.sha256(content).hexdigest()
    part.parent.mkdir(parents=True)
    part.write_bytes(b"nothing of it")
    assert project.run("fetch", LOCK, "--to", "house").code == 0
    assert (project.folder / "house" / FILES[0]).read_bytes() == content


def test_a_file_with_other_content_is_refused_and_not_left(project: Project) -> None:
    locked(project)
    other = bytearray(project.index.files[f"/files/{FILES[0]}"].content)
    other[10] ^= 2
    project.index.serve(f"/files/{FILES[0]}", bytes(other))
    outcome = project.run("fetch", LOCK, "--to", "house")
    assert (outcome.code, outcome.err.splitlines()[0]) == (
        1,
        f"error: `{FILES[0]}` is not the file that is locked  [hash-mismatch]",
    )
    assert house(project) == ["SHA256SUMS", FILES[1]]


def test_what_is_out_of_reach_is_told_once_all_others_are_there(project: Project) -> None:
    locked(project)
    project.index.statuses[f"/files/{FILES[0]}"] = 404
    outcome = project.run("fetch", LOCK, "--to", "house", "--format", "json")
    assert (outcome.code, outcome.json["status"]) == (3, "error")
    assert f"  `{FILES[0]}` answers 404 (Not Found)\n" in outcome.err
    assert house(project) == ["SHA256SUMS", FILES[1]]
    project.index.statuses.clear()
    outcome = project.run("fetch", LOCK, "--to", "house", "--format", "json")
    assert outcome.json["fetched"] == [FILES[0]]


def test_a_damaged_file_that_nobody_recorded_is_read_again(project: Project) -> None:
    locked(project)
    project.write("damaged", name=f"house/{FILES[1]}")
    assert project.run("fetch", LOCK, "--to", "house").code == 0
    assert (project.folder / "house" / FILES[1]).read_bytes() == project.index.files[f"/files/{FILES[1]}"].content


def test_a_file_that_changed_since_it_was_recorded_is_read_again(project: Project) -> None:
    locked(project)
    assert project.run("fetch", LOCK, "--to", "house").code == 0
    path = project.folder / "house" / FILES[1]
    content = bytearray(path.read_bytes())
    content[10] ^= 2
    path.write_bytes(content)
    outcome = project.run("fetch", LOCK, "--to", "house", "--format", "json")
    assert (outcome.code, outcome.json["fetched"]) == (0, [FILES[1]])
    assert path.read_bytes() == project.index.files[f"/files/{FILES[1]}"].content


def test_a_damaged_file_that_cannot_be_read_again_is_not_recorded(project: Project) -> None:
    locked(project)
    content = project.index.files[f"/files/{FILES[1]}"].content
    project.write("x" * len(content), name=f"house/{FILES[1]}")
    project.index.statuses[f"/files/{FILES[1]}"] = 503
    assert project.run("fetch", LOCK, "--to", "house").code == 3
    assert FILES[1] not in project.read("house/SHA256SUMS")
    project.index.statuses.clear()
    assert project.run("fetch", LOCK, "--to", "house").code == 0
    assert (project.folder / "house" / FILES[1]).read_bytes() == content


@pytest.mark.parametrize("command", ["fetch", "render", "validate"])
def test_a_file_that_is_no_lock_is_named_as_such(project: Project, command: str) -> None:
    locked(project)
    outcome = project.run(command, "provision.yaml", *(["--to", "house"] if command == "fetch" else []))
    assert outcome.code == 2
    assert outcome.err.startswith("error: `provision.yaml` is not a lock: locks are called pylock.<name>.toml  [bad-usage]\n")


def test_a_file_beside_the_lock_is_copied(project: Project) -> None:
    (project.folder / "delta-1.0-py3-none-any.whl").write_bytes(
        project.index.files[f"/files/{project.index.add_wheel('delta', '1.0')}"].content
    )
    project.spec("['delta @ file:./delta-1.0-py3-none-any.whl']", *HOST)
    assert project.run("solve").code == 0
    assert project.run("fetch", LOCK, "--to", "house").code == 0
    assert house(project) == ["SHA256SUMS", "delta-1.0-py3-none-any.whl", REQUIREMENTS]


def test_a_folder_that_cannot_be_made_and_a_missing_lock(project: Project) -> None:
    locked(project)
    project.write("", name="file")
    assert project.run("fetch", LOCK, "--to", "file").code == 2
    assert project.run("fetch", LOCK, "--to", "file/house").code == 2
    assert project.run("fetch", "pylock.none.toml", "--to", "house").code == 2
    assert project.run("fetch", LOCK).code == 2
    outcome = project.run("fetch", LOCK, "--to", "house", "--image", "--engine", "lxc")
    assert (outcome.code, outcome.err.splitlines()[0]) == (2, "error: `lxc` is not an engine that saves images  [bad-usage]")


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_installers_need_no_index_with_it(project: Project, installer: str) -> None:
    index = project.index
    index.add_wheel("delta", "1.0+cu126", index="extra", requires=["beta"])
    named = index.files[f"/files/{index.add_wheel('epsilon', '1.0')}"]
    more = f"indexes: [{{name: extra, url: '{index.root}/extra', packages: [delta]}}, {{name: local, url: '{index.url}'}}]"
    project.spec(f"[alpha, delta, 'epsilon @ {index.root}{named.path}']", *HOST, more)
    assert project.run("solve").code == 0
    assert project.run("fetch", LOCK, "--to", "house").code == 0
    index.status = 503
    index.requests.clear()
    assert installed(project.folder, installer) == ["alpha-2.0", "beta-2.0", "delta-1.0+cu126", "epsilon-1.0"]
    assert not index.requests


def test_an_archive_of_a_commit_has_the_name_that_installers_look_for_and_what_its_build_requires_is_told(
    project: Project,
) -> None:
    index = project.index
    packed = index.files[f"/files/{index.add_sdist('delta-x', '1.0', needs='builder>=1')}"]
    index.serve("/archive/0123abcd.tar.gz", packed.content, content_type="application/gzip")
    project.spec(f"['delta-x @ {index.root}/archive/0123abcd.tar.gz']", *HOST)
    assert project.run("solve").code == 0
    outcome = project.run("fetch", LOCK, "--to", "house")
    assert house(project) == ["0123abcd.tar.gz", "SHA256SUMS", "delta_x-1.0.tar.gz", REQUIREMENTS]
    assert (project.folder / "house" / "delta_x-1.0.tar.gz").read_bytes() == packed.content
    assert project.read(f"house/{REQUIREMENTS}").splitlines()[1].startswith("delta-x==1.0 ")
    assert outcome.err.splitlines()[0] == (
        "warning: delta-x 1.0: built from source where it is installed, and what the build requires is in no lock; "
        "into the folder with it: pip wheel --wheel-dir house 'builder>=1'"
    )
    outcome = project.run("fetch", LOCK, "--to", "house", "--format", "json")
    assert outcome.json["builds"] == {"delta-x 1.0": ["builder>=1"]}


def installed(folder: Path, installer: str) -> list[str]:
    """The distributions that an installer puts into an empty folder, from the folder `house` alone."""
    commands = {
        "pip": [sys.executable, "-m", "pip", "install", "--retries=0", "--no-index", "--find-links=house", "--no-cache-dir"],
        "uv": [find_uv_bin(), "pip", "install", "--python", sys.executable, "--no-index", "--find-links=house", "--no-cache"],
    }
    command = [*commands[installer], "--target=there", "--require-hashes", "-r", f"house/{REQUIREMENTS}"]
    done = subprocess.run(command, cwd=folder, env=os.environ, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return sorted(path.name.removesuffix(".dist-info") for path in (folder / "there").glob("*.dist-info"))


def test_the_next_command_installs_a_lock_from_the_folder(project: Project) -> None:
    project.write(changed("outputs: []", "runs: host", "image: {}"))
    assert project.run("solve").code == 0
    command = f"pip install --no-index --no-deps --find-links house --requirement house/{REQUIREMENTS}"
    assert project.run("fetch", LOCK, "--to", "house").err.endswith(f"next: {command}\n")


def test_locks_of_one_name_have_requirements_of_their_own(project: Project) -> None:
    for folder, package in (("a", "alpha"), ("b", "gamma")):
        project.write(
            changed(f"packages: [{package}]", "runs: host", "outputs: []", "image: {}"), name=f"{folder}/provision.yaml"
        )
        assert project.run("solve", f"{folder}/provision.yaml").code == 0
    assert project.run("fetch", "a", "b", "--to", "house").code == 0
    names = ["a-trainer.requirements.txt", "b-trainer.requirements.txt"]
    assert [name for name in house(project) if name.endswith(".txt")] == names
    assert ["alpha==2.0" in project.read(f"house/{name}") for name in names] == [True, False]
