"""A private index from end to end: whatever a run leaves or prints, no login is in it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.project import Project

SECRET, USER = "s3cr3t-t0ken", "ada-lovelace"


def everything(folder: Path) -> bytes:
    """The content of every file below a folder, hidden ones too."""
    return b"\0".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def way(kind: str, project: Project) -> dict[str, Any]:
    """The variables of a process that has the login in one way."""
    host = project.index.root.partition("://")[2]
    if kind == "environment":
        return {"PROVISION_INDEX_LOCAL_USERNAME": USER, "PROVISION_INDEX_LOCAL_PASSWORD": SECRET}
    folder = project.folder.parent / f"{project.folder.name}-{kind}"
    folder.mkdir(exist_ok=True)
    if kind == "netrc":
        (folder / "netrc").write_text(f"machine 127.0.0.1 login {USER} password {SECRET}\n")
        return {"NETRC": str(folder / "netrc")}
    if kind == "keyring":
        program = folder / "keyring"
        program.write_text(f"""#!/bin/sh\necho '{{"username": "{USER}", "password": "{SECRET}"}}'\n""")
        program.chmod(0o755)
        return {"PATH": f"{folder}:{os.environ['PATH']}", "PIP_KEYRING_PROVIDER": "subprocess"}
    (folder / "pip.conf").write_text(f"[global]\nindex-url = http://{USER}:{SECRET}@{host}/simple\n")
    return {"PIP_CONFIG_FILE": str(folder / "pip.conf")}


@pytest.mark.parametrize(
    "kind", ["environment", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("netrc", "keyring", "configuration"))]
)
def test_a_login_is_used_and_is_nowhere_afterwards(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, kind: str
) -> None:
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    project.index.credentials = f"{USER}:{SECRET}"
    url = f"{project.index.root}/files/hidden/{project.index.add_wheel('delta', '1.0', index='hidden')}"
    lines = ["outputs: [dockerfile, requirements]"] + (["indexes: []"] if kind == "configuration" else [])
    project.spec(f"[alpha, delta @ {url}]", *lines)
    variables = way(kind, project)
    words: list[str] = []
    for command in (
        ("-vv", "solve", "--format", "json"),
        ("solve",),
        ("check",),
    ):
        done = project.spawn(*command, **variables)
        out, err = done.communicate(timeout=120)
        assert done.returncode == 0, (command, err)
        words += [out, err]
    assert project.index.requests["/simple/alpha/"] >= 1
    left = everything(project.folder) + everything(cache) + "".join(words).encode()
    assert b"alpha-2.0-py3-none-any.whl" in left, "something was looked at"
    for token in (SECRET, USER):
        assert token.encode() not in left
    assert "--mount=type=secret,id=netrc" in project.read("Dockerfile"), "how the image gets it instead"


@pytest.mark.parametrize("kind", ["environment", "netrc", "keyring", "configuration"])
def test_a_login_that_is_refused_is_not_told_either(project: Project, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    project.index.credentials = "somebody:else"
    project.spec("[alpha]", *(["indexes: []"] if kind == "configuration" else []))
    done = project.spawn("-vv", "solve", "--format", "json", **way(kind, project))
    out, err = done.communicate(timeout=120)
    assert done.returncode == 3
    assert "answers 401 (Unauthorized)" in err
    assert "looked for a login: " in err
    for token in (SECRET, USER):
        assert token not in out + err


def test_without_a_login_the_way_to_give_one_is_told(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.index.credentials = f"{USER}:{SECRET}"
    monkeypatch.setenv("PIP_KEYRING_PROVIDER", "disabled")
    outcome = project.run("solve")
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err == (
        "error: index `local` answers 401 (Unauthorized)  [unavailable]\n"
        "  INDEX/simple/alpha/\n"
        "  looked for a login: its URL and PROVISION_INDEX_LOCAL_PASSWORD: no password\n"
        "  looked for a login: netrc: no login for 127.0.0.1\n"
        "  looked for a login: keyring: disabled\n\n"
        "hint: put its login into ~/.netrc or the keyring, or give PROVISION_INDEX_<NAME>_USERNAME and _PASSWORD\n"
    )


@pytest.mark.parametrize("kind", ["environment", "configuration"])
def test_a_build_has_the_login_and_does_not_tell_it(project: Project, kind: str) -> None:
    """Pip prints the index it asks, and a build that fails is told with its own words."""
    pytest.importorskip("build", reason="PyPA build is not installed")
    project.index.credentials = f"{USER}:{SECRET}"
    from tests.unit.index.test_build import add_sdist

    add_sdist(project.index, requires='"nowhere-to-be-found"')
    lines = ["policy: {allow: [build]}"] + (["indexes: []"] if kind == "configuration" else [])
    project.spec("[demo]", *lines)
    done = project.spawn("-vv", "solve", **way(kind, project))
    out, err = done.communicate(timeout=120)
    assert done.returncode == 1, err
    assert "the build of `demo-1.0.tar.gz` fails" in err
    assert "nowhere-to-be-found" in err
    for token in (SECRET, USER):
        assert token not in out + err
