"""The bill of materials of an image: what was measured in it, and what could not be listed."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.render import cyclonedx, render, spdx
from provisioner.validate.bill import bill_of_image
from provisioner.validate.measurement import System, SystemPackage, check_source
from tests.unit.render.test_siblings import VALIDATE_CYCLONEDX, VALIDATE_SPDX
from tests.unit.validate.locks import CPU, lock_of, measured

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from provisioner.render.bill_of_materials import Bill

STATUS = """\
Package: libgcc-s1
Status: install ok installed
Architecture: amd64
Multi-Arch: same
Source: gcc-12 (12.2.0-14+deb12u1)
Version: 12.2.0-14+deb12u1
Description: GCC support library
 Shared version of the support library.
 .
 Package: of a description

Package: libc6
Status: install ok installed
Architecture: amd64
Source: glibc
Version: 2.36-9+deb12u10

Package: libc6
Status: install ok installed
Architecture: i386
Source: glibc
Version: 2.36-9+deb12u10

Package: zlib1g
Status: hold ok unpacked
Architecture: amd64
Source: zlib (1:1.2.13.dfsg-1)
Version: 1:1.2.13.dfsg-1+b1

Package: nano
Status: deinstall ok config-files
Architecture: amd64
Version: 7.2-1
"""
DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_ID="12"\nID=debian\n'


def read(root: Path) -> Any:  # noqa: ANN401 - JSON
    """What the check prints of the file system at `root`."""
    command = (sys.executable, "-c", check_source("system"), str(root))
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def written(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def rows(found: Any) -> list[tuple[str, ...]]:  # noqa: ANN401 - JSON
    return [tuple(package.values()) for package in found["packages"]]


def test_what_dpkg_has_unpacked_is_listed_with_its_source_and_what_it_has_removed_is_not(tmp_path: Path) -> None:
    found = read(written(tmp_path, var__lib__dpkg__status=STATUS, **{"etc__os-release": DEBIAN}))
    assert (found["id"], found["version"], found["unread"]) == ("debian", "12", [])
    assert rows(found) == [
        ("amd64", "libc6", "glibc", "", "2.36-9+deb12u10"),
        ("i386", "libc6", "glibc", "", "2.36-9+deb12u10"),
        ("amd64", "libgcc-s1", "gcc-12", "", "12.2.0-14+deb12u1"),
        ("amd64", "zlib1g", "zlib", "1:1.2.13.dfsg-1", "1:1.2.13.dfsg-1+b1"),
    ]


def test_a_distroless_image_has_a_file_for_each_package(tmp_path: Path) -> None:
    status = {
        "var__lib__dpkg__status.d__tzdata": "Package: tzdata\nVersion: 2024a-0+deb12u1\nArchitecture: all\n",
        "var__lib__dpkg__status.d__tzdata.md5sums": "d41d8cd98f00b204e9800998ecf8427e  usr/share/zoneinfo/UTC\n",
        "usr__lib__os-release": DEBIAN,
    }
    found = read(written(tmp_path, **status))
    assert (found["id"], rows(found)) == ("debian", [("all", "tzdata", "", "", "2024a-0+deb12u1")])


@pytest.mark.parametrize(
    ("file", "manager"),
    [
        ("usr__lib__sysimage__rpm__rpmdb.sqlite", "rpm"),
        ("var__lib__rpm__Packages", "rpm"),
        ("lib__apk__db__installed", "apk"),
        ("var__lib__pacman__local__ALPM_DB_VERSION", "pacman"),
    ],
)
def test_another_package_manager_is_told_and_not_read(tmp_path: Path, file: str, manager: str) -> None:
    found = read(written(tmp_path, **{file: "", "etc__os-release": "ID=other\n"}))
    assert (found["packages"], found["unread"], found["id"]) == (None, [manager], "other")


def package(
    name: str, version: str, *, architecture: str = "amd64", source: str = "", source_version: str = ""
) -> SystemPackage:
    return SystemPackage(name=name, version=version, architecture=architecture, source=source, source_version=source_version)


BOOKWORM = System(
    identifier="debian",
    version="12",
    packages=(
        package("apt", "2.6.1"),
        package("libc6", "2.36-9+deb12u10", source="glibc"),
        package("libc6", "2.36-9+deb12u10", architecture="i386", source="glibc"),
        package("zlib1g", "1:1.2.13.dfsg-1+b1", source="zlib", source_version="1:1.2.13.dfsg-1"),
        package("libfaketime", "0.9.10-2.1+b1", source_version="0.9.10-2.1"),
    ),
    unread=(),
)
LOCK = lock_of({"numpy": "2.5.1", "absent": "1.0"})


def bill(system: System | None = BOOKWORM, distributions: dict[str, str] | None = None) -> Bill:
    found = replace(measured(CPU), distributions=distributions or {"numpy": "2.5.1", "pip": "24.0"}, system=system)
    return bill_of_image(LOCK, found, lock_file_name="pylock.trial.toml", image=f"sha256:{'4' * 64}")


def test_package_urls_name_distribution_architecture_and_source() -> None:
    assert [part.purl for part in bill().parts if part.kind == "system"] == [
        "pkg:deb/debian/apt@2.6.1?arch=amd64&distro=debian-12",
        "pkg:deb/debian/libc6@2.36-9%2Bdeb12u10?arch=amd64&distro=debian-12&upstream=glibc",
        "pkg:deb/debian/libc6@2.36-9%2Bdeb12u10?arch=i386&distro=debian-12&upstream=glibc",
        "pkg:deb/debian/zlib1g@1:1.2.13.dfsg-1%2Bb1?arch=amd64&distro=debian-12&upstream=zlib%401:1.2.13.dfsg-1",
        "pkg:deb/debian/libfaketime@0.9.10-2.1%2Bb1?arch=amd64&distro=debian-12&upstream=libfaketime%400.9.10-2.1",
    ]


def test_python_packages_are_those_of_the_image_with_what_the_lock_knows_of_them() -> None:
    found = {part.name: part for part in bill().parts if part.kind == "package"}
    assert set(found) == {"numpy", "pip"}, "locked and absent is no part of the image, installed and not locked is one"
    (locked,) = (one for one in LOCK.packages if one.name == "numpy")
    assert found["numpy"].files == locked.files
    assert (found["pip"].purl, found["pip"].files) == ("pkg:pypi/pip@24.0", ())
    other = {part.name: part for part in bill(distributions={"numpy": "2.4.0"}).parts if part.kind == "package"}
    assert (other["numpy"].version, other["numpy"].files) == ("2.4.0", ())


@pytest.mark.parametrize(
    ("system", "unread"),
    [
        (BOOKWORM, ()),
        (None, ("packages of the distribution",)),
        (replace(BOOKWORM, packages=None), ("packages of the distribution",)),
        (replace(BOOKWORM, identifier="rhel", packages=None, unread=("rpm",)), ("packages of rpm",)),
        (replace(BOOKWORM, unread=("rpm",)), ("packages of rpm",)),
    ],
)
def test_a_bill_says_whether_it_lists_all(system: System | None, unread: tuple[str, ...]) -> None:
    found = bill(system)
    assert found.unread == unread
    document = json.loads(cyclonedx.bill_text(found))
    (composition,) = document["compositions"]
    assert composition == {"aggregate": "incomplete" if unread else "complete", "assemblies": ["environment"]}
    stated = [one["value"] for one in document["metadata"]["properties"] if one["name"] == "dev.provision.unread"]
    assert stated == list(unread)
    comment = json.loads(spdx.bill_text(found))["comment"].splitlines()
    assert [line for line in comment if line.startswith("Not listed")] == [f"Not listed: {one}" for one in unread]


@pytest.mark.parametrize(
    ("code", "text"), [(VALIDATE_CYCLONEDX, cyclonedx.bill_text), (VALIDATE_SPDX, spdx.bill_text)], ids=["cyclonedx", "spdx"]
)
def test_bills_of_images_are_valid(code: str, text: Any) -> None:  # noqa: ANN401 - a function
    given = json.dumps([text(bill()), text(bill(None))])
    finished = subprocess.run((sys.executable, "-c", code), input=given, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert set(finished.stdout.split()) <= {"None", "[]"}


def test_a_bill_of_an_image_is_another_document_than_that_of_its_lock_and_is_not_a_rendered_file() -> None:
    assert bill().identifier != json.loads(render(LOCK, "sbom"))["serialNumber"]
    assert "Generated by provision render" not in cyclonedx.bill_text(bill())
    assert cyclonedx.bill_text(bill()) == cyclonedx.bill_text(bill()), "no time, no random number"
