"""`provision solve` where the C library is musl: wheels for glibc do not load there, and others are not looked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.project import Project

HOST = "target: {host: {os: {id: SYSTEM}, driver: {version: 550.163.01}, gpus: [{name: A100}]MORE}}"
SPEC = f"name: trainer\n{HOST}\nrequires: {{pytorch: '*'}}\n"


@pytest.mark.parametrize("system", ["alpine, version: '3.20'", "postmarketos, version: v24.06, like: alpine 3.20"])
@pytest.mark.parametrize("place", ["runs: host", "runs: [host, container]", "outputs: [requirements]"])
def test_packages_on_a_host_with_musl_are_refused(project: Project, system: str, place: str) -> None:
    project.write(SPEC.replace("SYSTEM", system).replace("MORE", "") + f"{place}\n")
    found = project.run("solve", "--stack-only")
    assert found.code == 2
    assert "whose C library is musl, and wheels are solved for glibc alone" in found.err


@pytest.mark.parametrize(("more", "place"), [("", "runs: container"), (", glibc: '2.39'", "runs: host")])
def test_a_container_and_a_glibc_beside_it_are_good(project: Project, more: str, place: str) -> None:
    project.write(SPEC.replace("SYSTEM", "alpine, version: '3.20'").replace("MORE", more) + f"{place}\n")
    assert project.run("solve", "--stack-only").code == 0


@pytest.mark.parametrize(
    ("base", "code"),
    [
        ("alpine:3.20", 2),
        ("python:3.12-alpine3.20", 2),
        ("registry.example/mirror/alpine", 2),
        ("frolvlad/alpine-glibc:alpine-3.20", 0),
        ("alpinesoft/base:1", 0),
    ],
)
def test_an_image_with_musl_is_refused_at_its_line(project: Project, base: str, code: int) -> None:
    spec = SPEC.replace("SYSTEM", "ubuntu, version: '22.04'").replace("MORE", "")
    project.write(f"{spec}image: {{base: '{base}'}}\n")
    found = project.run("solve", "--stack-only")
    assert found.code == code, found.err
    assert (f"provision.yaml:4:9: image.base: the C library of {base} is musl" in found.err) is (code == 2)
