"""Same input, same bytes: whatever the hash seed, locale, time zone, umask, working directory, cache or Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.loopback_index import LoopbackIndex
from tests.other_pythons import OWN, ROOT, interpreters, packages_for
from tests.project import LOCK, changed
from tests.same_bytes import SPEC, offer, outputs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.project import Project

pytestmark = pytest.mark.slow

MACHINES: dict[str, dict[str, str]] = {
    "another hash seed": {"PYTHONHASHSEED": "4711"},
    "no locale, ASCII files": {
        "LC_ALL": "C",
        "LANG": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONHASHSEED": "1",
    },
    "east of the date line": {"TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "2"},
    "a comma for a decimal point": {"LC_ALL": "de_DE.UTF-8", "LANGUAGE": "de", "PYTHONHASHSEED": "3"},
    "optimized": {"PYTHONOPTIMIZE": "2", "PYTHONHASHSEED": "0"},
}


@pytest.fixture(scope="module")
def index() -> Iterator[LoopbackIndex]:
    with LoopbackIndex(json=True) as served:
        offer(served)
        yield served


@pytest.fixture(scope="module")
def first(index: LoopbackIndex, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return locked(index, tmp_path_factory.mktemp("first"), sys.executable)


def locked(
    index: LoopbackIndex,
    folder: Path,
    python: str,
    *,
    cwd: Path | None = None,
    variables: Mapping[str, str] | None = None,
    umask: int = 0o022,
) -> dict[str, bytes]:
    """What `provision solve` writes in a folder of its own, with a cache of its own."""
    project = folder / "project"
    project.mkdir(parents=True)
    spec = project / "provision.yaml"
    spec.write_text(SPEC.replace("INDEX", index.url), encoding="utf-8")
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "PYTHONPATH": str(ROOT), **(variables or {})}
    command = [python, "-m", "provisioner", "solve", str(spec)]
    done = subprocess.run(
        command, cwd=cwd or project, env=environment, capture_output=True, text=True, check=False, umask=umask
    )
    assert done.returncode == 0, done.stderr
    return outputs(project)


def test_there_is_something_to_compare(first: dict[str, bytes]) -> None:
    assert sorted(first) == ["Dockerfile", "provision/install.py", "pylock.trial.toml", "requirements.txt"]
    lock = first["pylock.trial.toml"].decode()
    for text in (
        "attestation-identities",
        "upload-time = 2026-02-03 04:05:06+00:00",
        'platform_machine == \\"aarch64\\"',
        "Grüße.yml",
    ):
        assert text in lock


@pytest.mark.parametrize("variables", MACHINES.values(), ids=MACHINES)
def test_the_environment_does_not_show(
    index: LoopbackIndex, first: dict[str, bytes], tmp_path: Path, variables: dict[str, str]
) -> None:
    assert locked(index, tmp_path, sys.executable, variables=variables) == first


def test_neither_the_folder_nor_the_mask_of_new_files_shows(
    index: LoopbackIndex, first: dict[str, bytes], tmp_path: Path
) -> None:
    place = tmp_path / "elsewhere with a space and ü"
    assert locked(index, place, sys.executable, cwd=Path("/"), umask=0o077) == first


def test_how_the_spec_and_its_hosts_are_named_does_not_show(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock of a repository is the same from its root, from the folder of the spec and by an absolute path."""
    here, spec, profile = project.folder, "team/service/provision.yaml", "team/hosts/worker.yaml"
    asked = 'requires: {python: "==3.12", cuda: "12.6"}'
    project.write(changed(asked, "accelerator: cuda", "target: {host: ../hosts/worker.yaml}"), name=spec)
    project.write("driver: {version: 570.86.15}\n", name=profile)
    found = []
    for folder, words in (
        (".", (spec,)),
        (".", (f"./team/../{spec}",)),
        (".", (str(here / spec), "--host", profile)),
        ("team", ("service/provision.yaml", "--host", str(here / profile))),
        ("team/service", ()),
    ):
        monkeypatch.chdir(here / folder)
        assert project.run("solve", *words).code == 0
        found.append((here / "team" / "service" / LOCK).read_bytes())
        (here / "team" / "service" / LOCK).unlink()
    assert b"../hosts/worker.yaml does not state" in found[0]
    assert b'where = "provision.yaml:' in found[0]
    assert found == [found[0]] * len(found)


def test_a_filled_cache_does_not_show(index: LoopbackIndex, first: dict[str, bytes], tmp_path: Path) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert locked(index, tmp_path / "cold", sys.executable, variables=cache) == first
    assert locked(index, tmp_path / "warm", sys.executable, variables=cache) == first


@pytest.mark.network
@pytest.mark.parametrize("series", [OWN, *interpreters()])
def test_the_python_does_not_show(index: LoopbackIndex, first: dict[str, bytes], tmp_path: Path, series: str) -> None:
    python = interpreters().get(series, sys.executable)
    missing = packages_for(series, tmp_path / "packages")
    assert not missing, missing
    paths = os.pathsep.join([str(ROOT), str(tmp_path / "packages")])
    assert locked(index, tmp_path / "run", python, variables={"PYTHONPATH": paths}) == first
