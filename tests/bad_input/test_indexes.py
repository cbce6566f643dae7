"""Indexes that are down, lie or send rubbish: said in words, and nothing is written."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from tests.project import LOCK, changed

if TYPE_CHECKING:
    from tests.project import Project

NETWORK = "\nhint: check the network, the proxy and the installer's configuration; --offline uses what is cached\n"
PROXY = "\nhint: write the proxy's login into its address: https_proxy, or `proxy` in pip's configuration\n"
CREDENTIALS = (
    "  looked for a login: its URL and PROVISION_INDEX_LOCAL_PASSWORD: no password\n"
    "  looked for a login: netrc: no login for 127.0.0.1\n"
    "  looked for a login: keyring: disabled\n"
    "\nhint: put its login into ~/.netrc or the keyring, or give PROVISION_INDEX_<NAME>_USERNAME and _PASSWORD\n"
)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch, project: Project) -> None:
    """Ask once: what is tested is what is said in the end."""
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_KEYRING_PROVIDER", "disabled")


def refused(project: Project, code: int) -> str:
    """The words of a run that must write nothing."""
    before = project.files()
    outcome = project.run("solve")
    assert (outcome.code, outcome.out) == (code, ""), outcome
    assert project.files() == before
    return outcome.err


@pytest.mark.parametrize(
    ("status", "reason", "end"),
    [
        (500, "500 (Internal Server Error)", ""),
        (503, "503 (Service Unavailable)", ""),
        (429, "429 (Too Many Requests)", ""),
        (407, "407 (Proxy Authentication Required)", PROXY),
        (401, "401 (Unauthorized)", CREDENTIALS),
        (403, "403 (Forbidden)", CREDENTIALS),
    ],
)
def test_an_index_that_refuses_cannot_be_judged(project: Project, status: int, reason: str, end: str) -> None:
    project.index.status = status
    assert refused(project, 3) == f"error: index `local` answers {reason}  [unavailable]\n  INDEX/simple/alpha/\n{end}"


def test_an_index_that_is_down_cannot_be_judged(project: Project) -> None:
    project.write(changed('indexes: [{name: local, url: "http://127.0.0.1:9/simple"}]'))
    assert refused(project, 3) == (
        "error: index `local` cannot be reached: connection refused  [unavailable]\n"
        f"  http://127.0.0.1:9/simple/alpha/\n{NETWORK}"
    )


def test_an_index_whose_name_nobody_knows_cannot_be_judged(project: Project) -> None:
    project.write(changed('indexes: [{name: local, url: "http://index.invalid/simple"}]'))
    assert refused(project, 3) == (
        "error: index `local` cannot be reached: its host name cannot be resolved  [unavailable]\n"
        f"  http://index.invalid/simple/alpha/\n{NETWORK}"
    )


def test_a_folder_that_is_no_index_cannot_be_judged(project: Project) -> None:
    project.write(changed('indexes: [{name: local, url: "file:///nowhere"}]'))
    assert refused(project, 3) == (
        "error: index `local` is not a directory: file:///nowhere  [unavailable]\n"
        "\nhint: correct index-url or extra-index-url in the installer's configuration\n"
    )


def test_an_index_that_is_down_as_json(project: Project) -> None:
    project.index.status = 500
    outcome = project.run("solve", "--format", "json")
    assert outcome.code == 3
    assert outcome.json == {
        "status": "error",
        "code": "unavailable",
        "message": "index `local` answers 500 (Internal Server Error)",
        "causes": ["http://127.0.0.1/simple/alpha/".replace("http://127.0.0.1", "INDEX")],
        "hints": [],
    }


def test_a_dependency_that_is_not_served_leaves_an_older_version_that_needs_it_not(project: Project) -> None:
    project.index.add_wheel("alpha", "3.0", requires=["nowhere"])
    assert project.run("solve").code == 0
    assert 'name = "alpha-2.0-py3-none-any.whl"' in project.read(LOCK)


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/vnd.pypi.simple.v1+json", b"{nope"),
        ("application/vnd.pypi.simple.v1+json", b"[]"),
        ("application/vnd.pypi.simple.v1+json", b'{"meta": {"api-version": "1.0"}}'),
        ("application/vnd.pypi.simple.v1+json", b'{"files": "alpha"}'),
        ("application/vnd.pypi.simple.v1+json", b"\xff\xfe\x00"),
        ("application/vnd.pypi.simple.v1+json", b"[" * 100_000),
        ("image/png", b"\x89PNG"),
        ("text/html", b"<html><body><form action='/login'><input name='password'></form></body></html>"),
        ("text/html; charset=utf-8", b"<html><script src='sso.js'></script><a href='/help'>help</a></html>"),
    ],
)
def test_what_is_no_project_page_cannot_be_judged(project: Project, content_type: str, body: bytes) -> None:
    project.index.serve("/simple/alpha/", body, content_type=content_type)
    assert refused(project, 3) == (
        "error: index `local` answers with something that is not a project page: INDEX/simple/alpha/  [unavailable]\n"
    )


@pytest.mark.parametrize(
    "body",
    [b"", b"\x00\xff<<<<>>>", "<a href='x'>café</a>".encode("latin-1"), b"<html><body>Please log in</body></html>"],
    ids=["nothing", "bytes", "latin-1", "words"],
)
def test_a_page_that_lists_no_file_offers_nothing(project: Project, body: bytes) -> None:
    project.index.serve("/simple/alpha/", body)
    assert refused(project, 1) == (
        "error: alpha cannot be had  [no-stack]\n"
        "  you require alpha: no index offers `alpha`  (provision.yaml:6)\n"
        "  so no alpha is left\n"
        "\n"
        "hint: check how `alpha` is spelled, or name the index that has it under `indexes:`\n"
    )


def test_broken_entries_are_passed_over_for_the_good_ones(project: Project) -> None:
    page = project.index.page("simple", "alpha")
    assert page is not None
    entries = (
        b"<a>no link</a><a href=''>nothing</a><a href='alpha-x!y-py3-none-any.whl'>alpha-x!y-py3-none-any.whl</a>"
        b"<a href='http://[bad/alpha-9.0-py3-none-any.whl'>alpha-9.0-py3-none-any.whl</a>"
        b"<a href='alpha-" + b"9" * 5000 + b"-py3-none-any.whl'>alpha-" + b"9" * 5000 + b"-py3-none-any.whl</a>"
        b"<a href='alpha-9.0-" + b"9" * 5000 + b"-py3-none-any.whl'>alpha-9.0-" + b"9" * 5000 + b"-py3-none-any.whl</a>"
        b"<a href='other-7.0-py3-none-any.whl'>other-7.0-py3-none-any.whl</a>"
    )
    project.index.serve("/simple/alpha/", page[1].replace(b"<body>", b"<body>" + entries))
    assert project.run("solve").code == 0
    assert 'name = "alpha-2.0-py3-none-any.whl"' in project.read(LOCK)


def test_metadata_with_another_hash_than_its_index_says_is_refused(project: Project) -> None:
    filename = project.index.add_wheel("tampered", "1.0")
    body = b"Metadata-Version: 2.1\nName: tampered\nVersion: 1.0\nRequires-Dist: evil\n"
    project.index.serve(f"/files/{filename}.metadata", body)
    metadata = project.index.files[f"/files/{filename}"].metadata
    assert metadata is not None
    project.spec("[tampered]")
    assert refused(project, 1) == (
        f"error: `{filename}.metadata` is not the file its index announced  [hash-mismatch]\n"
        f"  wanted sha256 {hashlib.sha256(metadata).hexdigest()}\n"
        f"  found sha256 {hashlib.sha256(body).hexdigest()}\n"
        "\nhint: do not use it; tell the operator of the index, and remove what proxies may have cached\n"
    )


def test_metadata_that_cannot_be_read_is_held_against_its_version(project: Project) -> None:
    project.index.add_wheel("alpha", "3.0", requires=["beta >= 1 or so"])
    project.index.add_wheel("alpha", "4.0", requires=[f"beta>={'9' * 5000}"])
    project.index.add_wheel("alpha", "5.0", requires=[f"beta; {'(' * 5000}os_name == 'posix'{')' * 5000}"])
    assert project.run("solve").code == 0
    assert 'name = "alpha-2.0-py3-none-any.whl"' in project.read(LOCK)


def test_an_index_that_does_not_serve_the_installer_is_named(project: Project) -> None:
    del project.index.pages["simple"]["uv"]
    assert refused(project, 3) == (
        "error: no index offers `uv` for linux/amd64, which installs the lock inside the image  [unavailable]\n"
        "\nhint: serve it from your index, or set `runs: host` and outputs without an image\n"
    )


def test_a_cache_that_cannot_be_written_costs_time_and_nothing_else(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("a file", name="cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(project.folder / "cache"))
    assert project.run("solve").code == 0
    assert project.read("cache") == "a file"


def test_a_configuration_of_the_installer_that_is_broken_is_named(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("not = [ini\n", name="pip.conf")
    monkeypatch.setenv("PIP_CONFIG_FILE", "pip.conf")
    err = refused(project, 2)
    assert err.startswith("error: pip's configuration `pip.conf` cannot be read: ")
    assert err.endswith("[installer-configuration]\n")
