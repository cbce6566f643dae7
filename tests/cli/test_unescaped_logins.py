"""An address whose login has a character that ends the host: what follows it reads as port, path or query, and is secret.

`http://ada:123/SeCret@host/simple` is, to every reader of URLs, port 123 of host `ada`. It is refused wherever somebody writes
one, without a part of what may be the login in any message, file or record.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provisioner.index.address import hides_login
from tests.project import changed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.project import Project

SECRET = "SeCret"
LOGINS = ("ada:777/SeCret", "ada:777?SeCret", "ada:777#SeCret", "ada:7x/SeCret", "ada:/SeCret", "SeCret/777", "a.b:777/SeCret")
ESCAPES = "in a login `/` is written %2F, `?` %3F and `#` %23; in a path `@` is written %40"


def of_spec(project: Project, address: str, patch: pytest.MonkeyPatch) -> str:
    del patch
    project.write(changed(f'indexes: [{{name: local, url: "http://{address}/simple"}}]'))
    return "provision.yaml:8:25: indexes[0].url: "


def of_index(project: Project, address: str, patch: pytest.MonkeyPatch) -> str:
    project.write(changed("indexes: []"))
    patch.setenv("PIP_INDEX_URL", f"http://{address}/simple")
    return "pip's `index-url`: "


def of_extra_index(project: Project, address: str, patch: pytest.MonkeyPatch) -> str:
    project.write(changed("indexes: []"))
    patch.setenv("PIP_INDEX_URL", f"{project.index.root}/simple")
    patch.setenv("PIP_EXTRA_INDEX_URL", f"http://{address}/simple")
    return "pip's `extra-index-url`: "


def of_find_links(project: Project, address: str, patch: pytest.MonkeyPatch) -> str:
    patch.setenv("PIP_FIND_LINKS", f"http://{address}/wheels.html")
    return "pip's `find-links`: "


def of_proxy(project: Project, address: str, patch: pytest.MonkeyPatch) -> str:
    del project
    patch.setenv("PIP_PROXY", f"http://{address}")
    return "pip's `proxy`: "


def of_proxy_variable(project: Project, address: str, patch: pytest.MonkeyPatch) -> str:
    del project
    patch.setenv("HTTP_PROXY", f"http://{address}")
    patch.setenv("NO_PROXY", "")
    patch.setenv("no_proxy", "")
    return "HTTP_PROXY: "


def of_requirement(project: Project, address: str, patch: pytest.MonkeyPatch) -> str:
    del patch
    project.spec(f'["alpha @ http://{address}/alpha-1.0-py3-none-any.whl"]')
    return "provision.yaml:8:12: packages[0]: "


def of_requirement_file(project: Project, address: str, patch: pytest.MonkeyPatch) -> str:
    del patch
    project.write(f"alpha @ http://{address}/alpha-1.0-py3-none-any.whl\n", name="more.txt")
    project.spec("[]", "packages-from: [more.txt]")
    return "more.txt:1:1: "


PLACES = (of_spec, of_index, of_extra_index, of_find_links, of_proxy, of_proxy_variable, of_requirement, of_requirement_file)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("login", LOGINS)
def test_no_part_of_it_is_told_or_kept(
    project: Project, login: str, place: Callable[[Project, str, pytest.MonkeyPatch], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(project.files())
    where = place(project, f"{login}@localhost:9", monkeypatch)
    before |= set(project.files())
    for words in (("solve",), ("solve", "--format", "json", "-v"), ("explain",)):
        outcome = project.run(*words)
        assert outcome.code == 2, outcome.err
        told = outcome.out + outcome.err
        assert SECRET not in told
        assert "777" not in told
        assert "7x" not in told
        assert where in told
        assert ("written %40" if place is of_spec else ESCAPES) in told
    assert set(project.files()) == before
    kept = [path.read_bytes() for path in Path(os.environ["XDG_CACHE_HOME"]).rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in content for content in kept)


@pytest.mark.parametrize("login", ["ada:777/SeCret", "ada:SeCret"])
@pytest.mark.parametrize(
    "before", ["--index-url ", "--extra-index-url= ", "--indexurl ", "-f", "-r ", "alpha @@ ", "al pha ", ""]
)
def test_nor_is_a_line_of_a_requirement_file_that_is_wrong(project: Project, before: str, login: str) -> None:
    project.write(f"{before}http://{login}@localhost:9/simple\n", name="more.txt")
    project.spec("[alpha]", "packages-from: [more.txt]")
    outcome = project.run("solve")
    assert outcome.code == 2
    assert "more.txt:1:1: " in outcome.err
    assert SECRET not in outcome.err
    assert "777" not in outcome.err


@pytest.mark.parametrize("key", ["indexes", "packages", "constraints", "overrides", "image", "http"])
def test_nor_is_a_value_of_the_spec_that_is_wrong(project: Project, key: str) -> None:
    project.write(changed(f"{key}: 'http://ada:777/{SECRET}@localhost:9/simple'"))
    assert SECRET not in project.run("solve").err
    project.write(changed(f"{key}: ['alpha @ alpha @ http://ada:{SECRET}@localhost:9/simple']"))
    outcome = project.run("solve")
    assert outcome.code == 2
    assert SECRET not in outcome.err


@pytest.mark.parametrize(
    "address",
    [
        "https://cdn.example.com/gh/ada/wheels@1.0/demo-1.0-py3-none-any.whl",
        "https://localhost/gh/ada/wheels@1.0/demo-1.0-py3-none-any.whl",
        "https://cdn.example.com:8443/wheels%401.0/demo-1.0-py3-none-any.whl",
        "https://ada@cdn.example.com:8443/simple",
        "https://ada:s%2Fcret@cdn.example.com:8443/simple",
        "file:///home/ada@work/simple",
    ],
)
def test_addresses_that_only_look_a_little_like_it_are_read(address: str) -> None:
    assert not hides_login(address)
