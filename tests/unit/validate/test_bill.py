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
from provisioner.validate.debian_licenses import spdx_expression
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
MACHINE_READABLE = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: zlib

Files: *
Copyright: 1995-2013 Jean-loup Gailly and Mark Adler
License: Zlib

Files: contrib/*
License: GPL-2+ or Artistic-2.0, and BSD-3-clause
 You may choose.
 .
 License: of a text

License: Zlib
 This software is provided 'as-is'.
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
    return [tuple(value for key, value in package.items() if key not in {"licenses", "texts"}) for package in found["packages"]]


def test_what_dpkg_has_unpacked_is_listed_with_its_source_and_what_it_has_removed_is_not(tmp_path: Path) -> None:
    found = read(written(tmp_path, var__lib__dpkg__status=STATUS, **{"etc__os-release": DEBIAN}))
    assert (found["id"], found["version"], found["unread"]) == ("debian", "12", [])
    assert rows(found) == [
        ("amd64", "libc6", "glibc", "", "2.36-9+deb12u10"),
        ("i386", "libc6", "glibc", "", "2.36-9+deb12u10"),
        ("amd64", "libgcc-s1", "gcc-12", "", "12.2.0-14+deb12u1"),
        ("amd64", "zlib1g", "zlib", "1:1.2.13.dfsg-1", "1:1.2.13.dfsg-1+b1"),
    ]


def test_licences_are_those_that_the_copyright_file_of_a_package_names(tmp_path: Path) -> None:
    texts = "On Debian systems the texts are in\n/usr/share/common-licenses/GPL-3, `/usr/share/common-licenses/LGPL-2.1'."
    files = {
        "usr__share__doc__zlib1g__copyright": MACHINE_READABLE,
        "usr__share__doc__gcc-12-base__copyright": f"{texts}\nNo License: at all. See /usr/share/common-licenses/GPL-3.\n",
    }
    root = written(tmp_path, var__lib__dpkg__status=STATUS, **files)
    (root / "usr/share/doc/libgcc-s1").symlink_to("gcc-12-base")
    licences = {one["name"]: (one["licenses"], one["texts"]) for one in read(root)["packages"]}
    assert licences == {
        "libc6": ([], []),
        "libgcc-s1": ([], ["GPL-3", "LGPL-2.1"]),
        "zlib1g": (["Zlib", "GPL-2+ or Artistic-2.0, and BSD-3-clause"], []),
    }


def test_the_name_of_a_package_leads_to_no_file_elsewhere(tmp_path: Path) -> None:
    status = "Package: ../../secret\nStatus: install ok installed\nArchitecture: all\nVersion: 1\n"
    found = read(written(tmp_path, var__lib__dpkg__status=status, usr__secret__copyright=MACHINE_READABLE))
    assert [(one["name"], one["licenses"]) for one in found["packages"]] == [("../../secret", [])]


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
    name: str, version: str, *, licenses: tuple[str, ...] = (), texts: tuple[str, ...] = (), **stated: str
) -> SystemPackage:
    fields = {"architecture": "amd64", "source": "", "source_version": "", **stated}
    return SystemPackage(name=name, version=version, licenses=licenses, texts=texts, **fields)


BOOKWORM = System(
    identifier="debian",
    version="12",
    packages=(
        package("apt", "2.6.1", licenses=("GPL-2+", "Expat", "GPL-2+")),
        package("libc6", "2.36-9+deb12u10", source="glibc", texts=("GPL-2", "Apache-2.0")),
        package("libc6", "2.36-9+deb12u10", architecture="i386", source="glibc"),
        package("zlib1g", "1:1.2.13.dfsg-1+b1", source="zlib", source_version="1:1.2.13.dfsg-1"),
        package(
            "libfaketime", "0.9.10-2.1+b1", source_version="0.9.10-2.1", licenses=("GPL-2", "GPL-2+ with OpenSSL exception")
        ),
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


@pytest.mark.parametrize(
    ("name", "expression"),
    [
        ("GPL-2+", "GPL-2.0-or-later"),
        ("gpl-3", "GPL-3.0-only"),
        ("GPL", "GPL-1.0-only"),
        ("LGPL-2.1+", "LGPL-2.1-or-later"),
        ("LGPL-2.0.0+", "LGPL-2.0-or-later"),
        ("GFDL-NIV-1.3+", "GFDL-1.3-no-invariants-or-later"),
        ("Expat", "MIT"),
        ("MIT", ""),
        ("BSD-3-clause", "BSD-3-Clause"),
        ("BSD", ""),
        ("Apache-2", "Apache-2.0"),
        ("Apache-2.0", "Apache-2.0"),
        ("Artistic", ""),
        ("Perl", ""),
        ("Zlib", "Zlib"),
        ("public-domain", ""),
        ("A or B and C", ""),
        ("ISC or Zlib and X11", "ISC OR (Zlib AND X11)"),
        ("GPL-2+ or Artistic-2.0, and BSD-3-clause", "(GPL-2.0-or-later OR Artistic-2.0) AND BSD-3-Clause"),
        ("GPL-2+ with OpenSSL exception", ""),
        ("GPL-2+ or", ""),
        ("", ""),
    ],
)
def test_names_of_debian_are_those_of_spdx_where_they_mean_the_same(name: str, expression: str) -> None:
    assert spdx_expression(name) == expression


def test_a_package_with_names_that_spdx_knows_has_an_expression_and_others_have_their_names() -> None:
    found = {part.name: part.licenses for part in bill().parts if part.kind == "system" and part.licenses}
    assert found == {
        "apt": ("GPL-2.0-or-later AND MIT",),
        "libc6": ("GPL-2", "Apache-2.0"),
        "libfaketime": ("GPL-2.0-only", "GPL-2+ with OpenSSL exception"),
    }
    declared = {one["name"]: one["licenseDeclared"] for one in json.loads(spdx.bill_text(bill()))["packages"]}
    assert declared["apt"] == "GPL-2.0-or-later AND MIT"
    assert declared["libfaketime"] == "GPL-2.0-only AND LicenseRef-GPL-2-or-later-with-OpenSSL-exception"
    components = {one["name"]: one.get("licenses") for one in json.loads(cyclonedx.bill_text(bill()))["components"]}
    assert components["libfaketime"] == [
        {"license": {"name": "GPL-2.0-only", "acknowledgement": "declared"}},
        {"license": {"name": "GPL-2+ with OpenSSL exception", "acknowledgement": "declared"}},
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
