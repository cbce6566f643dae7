"""The bill of materials of a real image beside what its own programs say of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest

from tests.container.image_locks import kept_image
from tests.leaving import leave

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.validate.docker_engine import DockerEngine
    from tests.container.image_locks import Wheelhouse

pytestmark = pytest.mark.docker

IMAGE = "provision-test/listed:1"


@pytest.fixture
def image(engine: DockerEngine, wheelhouse: Wheelhouse, tmp_path: Path) -> Iterator[str]:
    """An application on top of the image of a lock: it has one more package of the distribution, and one more of Python."""
    wheelhouse.add("demo", "4.1")
    lock = wheelhouse.lock()
    built = leave(
        "validate", str(wheelhouse.lock_path), "--build-network", "none", "--keep-image", "--no-record", "--level", "1"
    )
    assert built == 0
    tag = kept_image(lock)
    (tmp_path / "on-top").mkdir()
    fields = ("Package: on-top", "Status: install ok installed", "Version: 1:2.0~rc1-1+b2", "Architecture: all")
    status = "\\n".join((*fields, "Source: top (1:2.0~rc1-1)", ""))
    licence = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\\nLicense: GPL-2+ or Expat\\n"
    (tmp_path / "on-top/Dockerfile").write_text(
        f"FROM {tag}\nUSER root\nRUN printf '\\n{status}' >> /var/lib/dpkg/status && dpkg-query -W on-top\n"
        f"RUN mkdir -p /usr/share/doc/on-top && printf '{licence}' > /usr/share/doc/on-top/copyright\nUSER 10001\n"
    )
    subprocess.run(("docker", "build", "--quiet", "--tag", IMAGE, str(tmp_path / "on-top")), check=True, capture_output=True)
    yield IMAGE
    for one in (IMAGE, tag):
        engine.remove(one)


def printed(image: str, *command: str) -> list[str]:
    program = ("docker", "run", "--rm", "--network", "none", "--entrypoint", command[0], image, *command[1:])
    return subprocess.run(program, capture_output=True, text=True, check=True).stdout.splitlines()


def deb(component: dict[str, Any]) -> tuple[str, str, str, str]:
    """Name, version, architecture and source of a package URL, as another program would read them."""
    match = re.fullmatch(r"pkg:deb/debian/([^@]+)@([^?]+)\?arch=(\w+)&distro=debian-12(?:&upstream=(.+))?", component["purl"])
    assert match, component
    name, version, architecture, upstream = (unquote(one or "") for one in match.groups())
    return name, version, architecture, upstream


def scanned(image: str) -> set[str]:
    """The package URLs that syft, an independent scanner, finds in an image of Docker."""
    scanner = Path(sys.executable).with_name("syft")
    if not scanner.exists():
        pytest.skip("syft is for x86-64 alone")
    command = (str(scanner), "--quiet", f"docker:{image}", "--output", "cyclonedx-json")
    environment = {**os.environ, "SYFT_CHECK_FOR_APP_UPDATE": "false"}
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)
    return {one["purl"] for one in found["components"] if one.get("purl", "").startswith(("pkg:deb/", "pkg:pypi/"))}


def test_the_bill_of_an_image_lists_what_dpkg_and_python_find_in_it(
    image: str, wheelhouse: Wheelhouse, capsys: pytest.CaptureFixture[str]
) -> None:
    file, other = wheelhouse.folder / "image.cdx.json", wheelhouse.folder / "image.spdx.json"
    arguments = ("validate", str(wheelhouse.lock_path), "--image", image, "--level", "2", "--no-record")
    assert leave(*arguments, "--sbom", str(file), "--sbom-spdx", str(other)) == 0
    told = capsys.readouterr().err
    assert "not complete" not in told
    document = json.loads(file.read_text(encoding="utf-8"))
    assert document["compositions"][0]["aggregate"] == "complete"
    components = document["components"]
    listed = {deb(one) for one in components if one["purl"].startswith("pkg:deb/")}

    shown = "${db:Status-Status}\\t${Package}\\t${Version}\\t${Architecture}\\t${source:Package}\\t${source:Version}\\n"
    installed = [line.split("\t") for line in printed(image, "dpkg-query", "--show", "--showformat", shown)]
    expected = set()
    for state, name, version, architecture, source, source_version in installed:
        assert state == "installed"
        upstream = "" if (source, source_version) == (name, version) else source
        expected.add((name, version, architecture, upstream if source_version == version else f"{source}@{source_version}"))
    assert len(expected) > 80
    assert ("on-top", "1:2.0~rc1-1+b2", "all", "top@1:2.0~rc1-1") in expected
    assert listed == expected
    (on_top,) = (one for one in components if one["name"] == "on-top")
    assert on_top["licenses"] == [{"expression": "GPL-2.0-or-later OR MIT", "acknowledgement": "declared"}]

    names = "from importlib.metadata import distributions as d; print(*{f'{x.name}=={x.version}' for x in d()}, sep='\\n')"
    python = {f"{one['name']}=={one['version']}" for one in components if one["purl"].startswith("pkg:pypi/")}
    assert python == set(printed(image, "python", "-c", names)) == {"demo==4.1"}

    assert {one["purl"] for one in components if one["purl"].startswith(("pkg:deb/", "pkg:pypi/"))} == scanned(image)

    packages = json.loads(other.read_text(encoding="utf-8"))["packages"]
    purls = {reference["referenceLocator"] for one in packages for reference in one.get("externalRefs", ())}
    assert purls >= {one["purl"] for one in components}


def test_an_image_without_dpkg_has_an_incomplete_bill_and_says_so(
    image: str, engine: DockerEngine, wheelhouse: Wheelhouse, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = wheelhouse.folder / "no-dpkg"
    folder.mkdir()
    (folder / "Dockerfile").write_text(
        f"FROM {image}\nUSER root\nRUN rm -r /var/lib/dpkg && mkdir -p /lib/apk/db && touch /lib/apk/db/installed\nUSER 10001\n"
    )
    bare = "provision-test/listed:bare"
    subprocess.run(("docker", "build", "--quiet", "--tag", bare, str(folder)), check=True, capture_output=True)
    try:
        arguments = ("validate", str(wheelhouse.lock_path), "--image", bare, "--level", "2", "--no-record", "--sbom", "-")
        assert leave(*arguments) == 0, "the lock is met all the same"
    finally:
        engine.remove(bare)
    out, told = capsys.readouterr()
    assert "the bill of materials is not complete: packages of apk are not listed" in told
    document = json.loads(out)
    assert document["compositions"][0]["aggregate"] == "incomplete"
    assert not [one for one in document["components"] if one["purl"].startswith("pkg:deb/")]
