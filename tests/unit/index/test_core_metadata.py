"""Metadata of real and of damaged distributions."""

from __future__ import annotations

import io
import zipfile

import pytest
from packaging.metadata import parse_email
from packaging.requirements import Requirement

from provisioner.index.metadata.core_metadata import (
    CoreMetadata,
    UnusableMetadataError,
    parse_metadata,
    parse_requirement,
    wheel_metadata,
)
from tests.built_files import build_sdist, build_wheel, metadata_text, static_metadata

HEADER = b"""Metadata-Version: 2.4
Name: demo
Version: 1.0
Requires-Python: >=3.9
Provides-Extra: more
requires-dist: other>=2;
        python_version < "3.13"
Requires-Dist: third @ https://x.example/third.whl
Dynamic: License-File
"""


def test_the_fields_are_those_packaging_reads() -> None:
    metadata = parse_metadata(HEADER + b"\nRequires-Dist: not-a-field, this is the description\n")
    assert metadata == CoreMetadata(
        name="demo",
        version="1.0",
        metadata_version="2.4",
        requires_python=">=3.9",
        requires=('other>=2; python_version < "3.13"', "third @ https://x.example/third.whl"),
        dynamic=("license-file",),
        provides_extra=("more",),
    )
    assert len(parse_email(HEADER)[0]["requires_dist"]) == 2


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"no colon here\n continued", b"\xff\xfe\x00", b" continuation of nothing\n"]
)
def test_what_is_no_metadata_says_nothing(content: bytes) -> None:
    assert parse_metadata(content) == CoreMetadata()


def test_windows_line_ends_are_line_ends() -> None:
    windows = HEADER.replace(b"\n", b"\r\n") + b"\r\nRequires-Dist: description\r\n"
    assert parse_metadata(windows).requires == parse_metadata(HEADER).requires


def test_a_wheel_gives_its_own_metadata() -> None:
    filename, content = build_wheel("demo", "1.0", metadata=metadata_text("demo", "1.0", ["other"]))
    assert wheel_metadata(io.BytesIO(content), filename).requires == ("other",)


def test_a_line_that_is_no_field_hides_no_requirement_below_it() -> None:
    """As in wheels of old tools, whose licence texts are not indented."""
    header = b"Metadata-Version: 2.1\nLicense: MIT\nCopyright (c) 2011\nPermission is granted.\nRequires-Dist: other\n"
    assert parse_metadata(header).requires == ("other",)


def test_the_first_requirement_that_is_none_is_kept() -> None:
    assert parse_metadata(b"Metadata-Version: 2.1\nRequires-Dist: fine\nRequires-Dist: a b\n").invalid == "a b"


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a zip", b"<html></html>"])
def test_an_archive_that_is_none_is_named(content: bytes) -> None:
    with pytest.raises(UnusableMetadataError, match=r"`demo-1\.0-py3-none-any\.whl` is not a wheel: "):
        wheel_metadata(io.BytesIO(content), "demo-1.0-py3-none-any.whl")


def test_a_damaged_member_is_named() -> None:
    filename, content = build_wheel("demo", "1.0", metadata=metadata_text("demo", "1.0", ["other"] * 50))
    at = content.index(b"demo-1.0.dist-info/METADATA") + 40
    broken = content[:at] + b"\xff" * 20 + content[at + 20 :]
    with pytest.raises(UnusableMetadataError, match="is not a wheel"):
        wheel_metadata(io.BytesIO(broken), filename)


@pytest.mark.parametrize("members", [[], ["a-1.dist-info/METADATA", "b-1.dist-info/METADATA"], ["deep/a-1.dist-info/METADATA"]])
def test_a_wheel_has_exactly_one_metadata_file(members: list[str]) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for member in members:
            archive.writestr(member, HEADER)
    count = 0 if "deep" in "".join(members) else len(members)
    with pytest.raises(UnusableMetadataError) as caught:
        wheel_metadata(stream, "demo.whl")
    assert caught.value.message == f"`demo.whl` has {count} METADATA files where a wheel has one"


def test_a_source_distribution_of_metadata_2_2_has_fixed_dependencies() -> None:
    filename, content = build_sdist("demo", "1.0", metadata=metadata_text("demo", "1.0", ["other"]))
    assert static_metadata(content, filename).requires == ("other",)


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ("Metadata-Version: 2.2", "Metadata-Version: 2.1", "Metadata-Version 2.1, Dynamic: none"),
        ("Metadata-Version: 2.2\n", "", "Metadata-Version missing, Dynamic: none"),
        ("Name: demo", "Name: demo\nDynamic: requires-dist", "Metadata-Version 2.2, Dynamic: requires-dist"),
    ],
)
def test_any_other_is_refused_with_the_reason(old: str, new: str, cause: str) -> None:
    filename, content = build_sdist("demo", "1.0", metadata=metadata_text("demo", "1.0").replace(old, new))
    with pytest.raises(UnusableMetadataError) as caught:
        static_metadata(content, filename)
    assert caught.value.causes == (cause,)
    assert caught.value.exit_code == 1


@pytest.mark.parametrize("filename", ["demo-1.0.tar.gz", "demo-1.0.zip"])
def test_a_source_distribution_that_is_none_is_named(filename: str) -> None:
    with pytest.raises(UnusableMetadataError, match="is not a source distribution"):
        static_metadata(b"nothing of the kind", filename)


def test_a_zipped_source_distribution_is_read_too() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("demo-1.0/src/demo.egg-info/PKG-INFO", "Metadata-Version: 1.0\n")
        archive.writestr("demo-1.0/PKG-INFO", metadata_text("demo", "1.0", ["other"]))
    assert static_metadata(stream.getvalue(), "demo-1.0.zip").requires == ("other",)


@pytest.mark.parametrize(
    "text",
    [
        "other",
        "Other[a,b]>=1,<2",
        'other>=1; extra == "Dev_Tools"',
        "other (>=1.0) ; python_version<'3.9' and sys_platform==\"linux\"",
        "third @ https://x.example/third.whl;a=b ; python_version < '4'",
        "third @ https://x.example/third.whl",
    ],
)
def test_requirements_equal_those_packaging_parses_in_one_piece(text: str) -> None:
    ours, whole = parse_requirement(text), Requirement(text)
    assert (ours, str(ours), hash(ours)) == (whole, str(whole), hash(whole))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "other >=",
        "other; python_version",
        "-r file",
        "a b",
        "other; extra === 'x'",
        "other; os_name ~= 'posix'",
        "other; 'a' == 'b'",
    ],
)
def test_a_requirement_that_is_none_is_named(text: str) -> None:
    with pytest.raises(UnusableMetadataError) as caught:
        parse_requirement(text)
    assert caught.value.message == f"`{text}` is not a requirement that PEP 508 allows"


@pytest.mark.parametrize(
    ("lines", "licenses"),
    [
        (("License-Expression: mit or apache-2.0", "License: see LICENSE"), ("MIT OR Apache-2.0",)),
        (("License: BSD-3-Clause", "Classifier: License :: OSI Approved :: BSD License"), ("BSD-3-Clause",)),
        (("License: BSD", "Classifier: License :: OSI Approved :: BSD License"), ("BSD License",)),
        (("License: Modified BSD",), ("Modified BSD",)),
        (("License: UNKNOWN", "Classifier: License :: OSI Approved"), ()),
        (("License: " + "Permission is hereby granted, free of charge, " * 9,), ()),
        (("Classifier: License :: Public Domain", "Classifier: License :: Freeware"), ("Freeware", "Public Domain")),
        (("Classifier: Programming Language :: Python",), ()),
    ],
)  # fmt: skip
def test_licences_are_those_that_are_declared(lines: tuple[str, ...], licenses: tuple[str, ...]) -> None:
    assert parse_metadata("\n".join(("Name: demo", *lines)).encode()).licenses == licenses
