"""`provision matrix refresh python-builds` against a server with the layout of the releases of python-build-standalone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provisioner.matrix.load import load_matrix
from provisioner.matrix.location import default_directory
from tests.scripted_server import Answer, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.project import Outcome, Project

TLS = Path(__file__).parents[1] / "fixtures" / "tls"
RELEASES = "https://github.com/astral-sh/python-build-standalone/releases/download"
LATEST = "https://raw.githubusercontent.com/astral-sh/python-build-standalone/latest-release/latest-release.json"
NAME = "python_builds.yaml"
MATRIX = """\
order: [python]
components:
  python: {title: CPython, file: python.yaml}
python_builds: python_builds.yaml
"""
# listed in the release 20260901, and other files that are listed with them
OF_2026_09 = """\
64427febea27864d136db46c8efe968eb6fa5ca2813ce1dca4bb95aec31cb2e4  cpython-3.11.16+20260901-x86_64-unknown-linux-gnu-install_only_stripped.tar.gz
72748da13197c1fb161e3afeef20a6a385ff24f2165e6e2758e47008e7faba4c  cpython-3.12.14+20260901-x86_64-unknown-linux-gnu-install_only_stripped.tar.gz
"""  # noqa: E501 - as it is listed
OTHERS = "".join(
    f"{number:064x}  cpython-{name}\n"
    for number, name in enumerate(
        (
            "3.14.99+20261201-x86_64-unknown-linux-gnu-install_only.tar.gz",
            "3.14.99+20261201-x86_64-unknown-linux-gnu-freethreaded+pgo+lto-full.tar.zst",
            "3.14.99+20261201-x86_64_v3-unknown-linux-gnu-install_only_stripped.tar.gz",
            "3.14.99+20261201-aarch64-apple-darwin-install_only_stripped.tar.gz",
            "3.16.0a3+20261201-x86_64-unknown-linux-gnu-install_only_stripped.tar.gz",
        )
    )
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    monkeypatch.setenv("PIP_CERT", str(TLS / "authority.pem"))
    with ScriptedServer(certificate=TLS / "server.pem") as opened:
        yield opened


@pytest.fixture
def world(project: Project, server: ScriptedServer) -> Project:
    """A small matrix with the shipped file of archives, whose addresses are those of the server."""
    folder = project.folder / "rules"
    folder.mkdir()
    (folder / "matrix.yaml").write_text(MATRIX, encoding="utf-8")
    (folder / "python.yaml").write_text("{}\n", encoding="utf-8")
    path = folder / NAME
    shipped = (default_directory() / NAME).read_text(encoding="utf-8")
    assert LATEST in shipped
    path.write_text(shipped.replace(RELEASES, server.url("/download")).replace(LATEST, server.url("/latest.json")), "utf-8")
    return project


def text(world: Project) -> str:
    return (world.folder / "rules" / NAME).read_text(encoding="utf-8")


def release(server: ScriptedServer, tag: str, sums: str) -> None:
    prefix = server.url(f"/download/{tag}")
    body = json.dumps({"version": 1, "tag": tag, "release_url": server.url(f"/tag/{tag}"), "asset_url_prefix": prefix})
    server.script["/latest.json"] = [Answer(body=body.encode())]
    server.script[f"/download/{tag}/SHA256SUMS"] = [Answer(body=sums.encode())]


def refreshed(world: Project, *words: str) -> Outcome:
    return world.run("matrix", "refresh", "python-builds", "--matrix", "rules", *words)


def test_the_release_that_the_file_has_changes_nothing(world: Project, server: ScriptedServer) -> None:
    rows = load_matrix(world.folder / "rules").python_builds
    (tag,) = {row.url.rpartition("/")[0].rpartition("/")[2] for row in rows if str(row.version).startswith("3.14.")}
    names = [(row.sha256, row.url.rpartition("/")) for row in rows]
    sums = "".join(f"{sha}  {name.replace('%2B', '+')}\n" for sha, (place, _, name) in names if place.endswith(tag))
    assert sums.count("3.14.") == 2
    release(server, tag, sums + OTHERS)
    before = text(world)

    outcome = refreshed(world)

    assert outcome.code == 0, outcome.err
    assert f"1 file is as the index says: {len(rows)} archives of CPython" in outcome.err
    assert text(world) == before


def test_a_newer_archive_replaces_that_of_its_series_and_an_older_one_does_not(world: Project, server: ScriptedServer) -> None:
    new = f"{'a' * 64}  cpython-3.14.99+20261201-aarch64-unknown-linux-gnu-install_only_stripped.tar.gz\n"
    series = f"{'b' * 64}  cpython-3.16.0+20261201-x86_64-unknown-linux-gnu-install_only_stripped.tar.gz\n"
    release(server, "20261201", OF_2026_09 + OTHERS + new + series)
    before = {(str(row.version), row.platforms): row for row in load_matrix(world.folder / "rules").python_builds}

    assert refreshed(world).code == 0

    matrix = load_matrix(world.folder / "rules")
    after = {(str(row.version), row.platforms): row for row in matrix.python_builds}
    assert sorted(after.keys() - before.keys()) == [("3.14.99", ("linux/arm64",)), ("3.16.0", ("linux/amd64",))]
    assert [version[:5] for version, _ in before.keys() - after.keys()] == ["3.14."]
    row = after["3.14.99", ("linux/arm64",)]
    assert row.sha256 == "a" * 64
    assert row.url.endswith(
        "/download/20261201/cpython-3.14.99%2B20261201-aarch64-unknown-linux-gnu-install_only_stripped.tar.gz"
    )
    assert row.source == ("python-build-standalone-sums", "python-build-standalone")
    assert next(iter(after)) == ("3.16.0", ("linux/amd64",))
    once = text(world)
    assert refreshed(world).code == 0
    assert text(world) == once


@pytest.mark.parametrize(
    ("latest", "sums", "told"),
    [
        (b"<html>", b"", "/latest.json names no release"),
        (b'{"asset_url_prefix": "ftp://x"}', b"", "/latest.json names no release"),
        (None, b"no sums", "/SHA256SUMS lists no archive of cpython for Linux"),
    ],
)
def test_a_release_that_cannot_be_read_is_named(
    world: Project, server: ScriptedServer, latest: bytes | None, sums: bytes, told: str
) -> None:
    release(server, "20261201", sums.decode())
    if latest is not None:
        server.script["/latest.json"] = [Answer(body=latest)]
    before = text(world)
    outcome = refreshed(world)
    assert (outcome.code, told in outcome.err) == (3, True), outcome.err
    kept = refreshed(world, "--keep-going")
    assert (kept.code, text(world)) == (3, before)
    assert "not refreshed: python-builds: " in kept.err
