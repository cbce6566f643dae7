"""Project pages as real indexes write them, and as broken ones do."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from provisioner.errors import UnavailableError
from provisioner.index.model import IndexFile
from provisioner.index.pages.project_page import parse_project_page

URL = "https://index.example/simple/demo/"
SHA = "a" * 64
JSON = "application/vnd.pypi.simple.v1+json"


def html(text: str, url: str = URL) -> tuple[IndexFile, ...]:
    return parse_project_page(text.encode(), content_type="text/html", url=url, index="main").finished()


def from_json(*files: Any, version: str = "1.1") -> tuple[IndexFile, ...]:  # noqa: ANN401 - malformed entries on purpose
    page = {"meta": {"api-version": version}, "name": "demo", "files": list(files)}
    return parse_project_page(json.dumps(page).encode(), content_type=JSON, url=URL, index="main").finished()


def test_an_anchor_gives_everything_the_simple_api_knows() -> None:
    (file,) = html(
        f'<a href="../../files/demo-1.0-py3-none-any.whl#sha256={SHA}" data-requires-python="&gt;=3.8,&lt;4"'
        f' data-yanked="broken &amp; gone" data-core-metadata="sha256={"b" * 64}" data-upload-time="2024-01-02T03:04:05Z">x</a>'
    )
    assert file == IndexFile(
        filename="demo-1.0-py3-none-any.whl",
        url="https://index.example/files/demo-1.0-py3-none-any.whl",
        index="main",
        sha256=SHA,
        requires_python=">=3.8,<4",
        upload_time="2024-01-02T03:04:05Z",
        yanked="broken & gone",
        has_metadata=True,
        metadata_sha256="b" * 64,
    )


def test_json_gives_the_same_and_sizes() -> None:
    (file,) = from_json(
        {
            "filename": "demo-1.0-py3-none-any.whl",
            "url": "../../files/demo-1.0-py3-none-any.whl",
            "hashes": {"sha256": SHA.upper()},
            "requires-python": ">=3.8",
            "size": 12,
            "upload-time": "2024-01-02T03:04:05.678Z",
            "yanked": True,
            "core-metadata": {"sha256": "b" * 64},
        }
    )
    assert file == IndexFile(
        filename="demo-1.0-py3-none-any.whl",
        url="https://index.example/files/demo-1.0-py3-none-any.whl",
        index="main",
        sha256=SHA,
        size=12,
        requires_python=">=3.8",
        upload_time="2024-01-02T03:04:05.678Z",
        yanked="",
        has_metadata=True,
        metadata_sha256="b" * 64,
    )


def test_characters_that_stand_in_no_url_are_percent_encoded() -> None:
    link, wanted = "{a}/b|c^d`e\\f g/demo-1.0.tar.gz", "%7Ba%7D/b%7Cc%5Ed%60e%5Cf%20g/demo-1.0.tar.gz"
    (file,) = html(f'<a href="{link}">x</a>')
    (same,) = from_json({"filename": "demo-1.0.tar.gz", "url": link})
    assert file.url == same.url == f"{URL}{wanted}"
    (rooted,) = from_json({"filename": "demo-1.0.tar.gz", "url": "https://index.example/<a>/demo-1.0.tar.gz"})
    assert rooted.url == "https://index.example/%3Ca%3E/demo-1.0.tar.gz"


@pytest.mark.parametrize(
    ("attribute", "wanted"), [("", None), (' data-yanked=""', ""), (" data-yanked", ""), (" data-yanked='why'", "why")]
)
def test_yanked_may_have_no_reason(attribute: str, wanted: str | None) -> None:
    (file,) = html(f'<a href="demo-1.0.tar.gz"{attribute}>x</a>')
    assert file.yanked == wanted


@pytest.mark.parametrize("attribute", ["data-core-metadata", "data-dist-info-metadata"])
def test_metadata_is_announced_under_both_names(attribute: str) -> None:
    (file,) = html(f'<a href="demo-1.0-py3-none-any.whl" {attribute}="true">x</a>')
    assert file.has_metadata
    assert file.metadata_sha256 == ""


def test_unescaped_angles_in_an_attribute_do_not_end_the_tag() -> None:
    (file,) = html(f'<a data-requires-python=">=3.8" href="demo-1.0.tar.gz#sha256={SHA}">demo</a>')
    assert (file.requires_python, file.sha256) == (">=3.8", SHA)


def test_a_base_address_moves_relative_links() -> None:
    (file,) = html('<head><base href="https://cdn.example/a/"></head><a href="demo-1.0.tar.gz">x</a>')
    assert file.url == "https://cdn.example/a/demo-1.0.tar.gz"


def test_escaped_filenames_are_unescaped_and_their_urls_kept() -> None:
    (file,) = html('<A HREF="torch-2.0%2Bcu118-cp310-cp310-linux_x86_64.whl">x</A>')
    assert file.filename == "torch-2.0+cu118-cp310-cp310-linux_x86_64.whl"
    assert file.url.endswith("torch-2.0%2Bcu118-cp310-cp310-linux_x86_64.whl")


def test_what_cannot_be_followed_is_skipped_and_the_rest_is_kept() -> None:
    files = html(
        '<a>none</a><a href="">empty</a><a href="../">up</a><a href="mailto:me@example.com">mail</a>'
        '<a href="http://[bad/demo-2.0.tar.gz">bad</a><!-- <a href="demo-3.0.tar.gz">old</a> -->'
        '<a href="file:///etc/demo-4.0.tar.gz">local</a><a href="demo-1.0.tar.gz">good</a>'
    )
    assert [file.filename for file in files] == ["demo-1.0.tar.gz"]


def test_a_local_page_may_point_at_local_files() -> None:
    (file,) = html('<a href="../../files/demo-1.0.tar.gz">x</a>', url="file:///srv/simple/demo/index.html")
    assert (file.path, file.url) == ("/srv/files/demo-1.0.tar.gz", "")


def test_credentials_in_links_are_dropped() -> None:
    (file,) = html('<a href="https://me:secret@files.example/demo-1.0.tar.gz">x</a>')
    assert file.url == "https://files.example/demo-1.0.tar.gz"


def test_a_hash_that_is_no_sha256_is_no_hash() -> None:
    md5, short = html('<a href="demo-1.0.tar.gz#md5=00">x</a><a href="demo-2.0.tar.gz#sha256=00">x</a>')
    assert (md5.sha256, short.sha256) == ("", "")


def test_broken_json_entries_are_skipped() -> None:
    good = {
        "filename": "demo-1.0.tar.gz",
        "url": "https://f.example/demo-1.0.tar.gz",
        "hashes": None,
        "size": "big",
        "yanked": 3,
    }
    (file,) = from_json(None, [], {"filename": "demo-0.1.tar.gz"}, {"url": 7}, good)
    assert (file.filename, file.sha256, file.size, file.yanked) == ("demo-1.0.tar.gz", "", None, None)


@pytest.mark.parametrize("body", [b'{"yanked": "broken\\udfff"}', b'{"yanked": "broken\xff"}', b'{"yanked": "a\nb"}'])
def test_text_that_is_none_makes_a_page_that_is_none(body: bytes) -> None:
    page = b'{"meta": {"api-version": "1.0"}, "files": [%s]}' % body
    with pytest.raises(UnavailableError, match="not a project page"):
        parse_project_page(page, content_type="application/json", url=URL, index="main")


def test_an_unknown_version_of_the_api_is_named() -> None:
    with pytest.raises(UnavailableError) as caught:
        from_json(version="2.0")
    assert caught.value.message == "index `main` speaks version 2.0 of the Simple API; only version 1 is known"


@pytest.mark.parametrize("body", [b"{", b"[]", b"null", b'{"meta": {}, "files": []}', b'{"meta": {"api-version": "1.0"}}'])
def test_json_that_is_no_project_page_is_named(body: bytes) -> None:
    with pytest.raises(UnavailableError) as caught:
        parse_project_page(body, content_type="application/json", url="https://me:pw@index.example/simple/demo/", index="main")
    assert caught.value.message == f"index `main` answers with something that is not a project page: {URL}"


def test_a_page_without_links_lists_nothing() -> None:
    assert html("<html>please log in</html>") == ()
    assert html("") == ()


FILES = "https://files.example/"
WHEEL = "demo-1.0-py3-none-any.whl"
ENTRY = {"filename": WHEEL, "url": f"{FILES}{WHEEL}", "hashes": {}}
PLAIN = IndexFile(filename=WHEEL, url=f"{FILES}{WHEEL}", index="main")


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({}, {}),
        ({"hashes": {"sha256": "A" * 64, "md5": "1" * 32}}, {"sha256": "a" * 64}),
        ({"hashes": {"md5": "1" * 32}}, {}),
        ({"hashes": {"sha256": "not hexadecimal"}}, {}),
        ({"hashes": {"sha256": "g" * 64}}, {}),
        ({"hashes": {"sha256": " " * 2 + "a" * 62}}, {}),
        ({"hashes": {"sha256": 7}}, {}),
        ({"hashes": None}, {}),
        ({"hashes": "a" * 64}, {}),
        (
            {"size": 7, "requires-python": ">=3.9", "upload-time": "2026-01-01T00:00:00.000001Z"},
            {"size": 7, "requires_python": ">=3.9", "upload_time": "2026-01-01T00:00:00.000001Z"},
        ),
        ({"size": None, "requires-python": None, "upload-time": None, "yanked": None}, {}),
        ({"requires-python": ""}, {}),
        ({"requires-python": [">=3"], "upload-time": 7}, {}),
        ({"yanked": True}, {"yanked": ""}),
        ({"yanked": False}, {}),
        ({"yanked": ""}, {"yanked": ""}),
        ({"yanked": "broken"}, {"yanked": "broken"}),
        ({"yanked": ["broken"]}, {}),
        ({"core-metadata": True}, {"has_metadata": True}),
        ({"core-metadata": False, "dist-info-metadata": True}, {}),
        ({"core-metadata": None, "dist-info-metadata": True}, {"has_metadata": True}),
        ({"core-metadata": {"sha256": "b" * 64}}, {"has_metadata": True, "metadata_sha256": "b" * 64}),
        ({"core-metadata": {}}, {"has_metadata": True}),
        ({"dist-info-metadata": {"sha256": "b" * 64}}, {"has_metadata": True, "metadata_sha256": "b" * 64}),
        ({"data-dist-info-metadata": True}, {}),
        ({"provenance": "https://index.example/i/p"}, {"provenance": "https://index.example/i/p"}),
        ({"provenance": "/i/p"}, {"provenance": "https://index.example/i/p"}),
        ({"provenance": "https://me:pw@index.example/i/p"}, {"provenance": "https://index.example/i/p"}),
        ({"provenance": None}, {}),
        ({"provenance": "javascript:alert(1)"}, {}),
        ({"url": f"/files/{WHEEL}"}, {"url": f"https://index.example/files/{WHEEL}"}),
        ({"url": f"//files.example/{WHEEL}"}, {}),
        ({"url": f"/a/../{WHEEL}"}, {"url": f"https://index.example/{WHEEL}"}),
        ({"url": f"../../files/{WHEEL}"}, {"url": f"https://index.example/files/{WHEEL}"}),
        ({"url": WHEEL}, {"url": f"{URL}{WHEEL}"}),
        ({"url": f"http://files.example/{WHEEL}"}, {"url": f"http://files.example/{WHEEL}"}),
        ({"url": f"{FILES}a%2Bb/{WHEEL}"}, {"url": f"{FILES}a%2Bb/{WHEEL}"}),
        ({"url": f"https://me:pw@files.example/{WHEEL}"}, {}),
        ({"url": f"{FILES}{WHEEL}?token=1#sha256=no"}, {"url": f"{FILES}{WHEEL}?token=1#sha256=no"}),
        ({"url": f" {FILES}a b/{WHEEL} "}, {"url": f"{FILES}a%20b/{WHEEL}"}),
        ({"url": f"{FILES}directory/"}, None),
        ({"url": "https://files.example"}, None),
        ({"url": "//files.example"}, None),
        ({"url": f"https:///{WHEEL}"}, {"url": f"https://index.example/{WHEEL}"}),
        ({"url": f"http:///a/{WHEEL}"}, None),
        ({"url": f"ftp://files.example/{WHEEL}"}, None),
        ({"url": f"http://[bad/{WHEEL}"}, None),
        ({"url": "file:///etc/passwd"}, None),
        ({"url": f"{FILES}%00.whl"}, None),
        ({"url": f"{FILES}\x7f.whl"}, None),
        ({"url": f"{FILES}\u202e.whl"}, None),
        ({"url": ""}, None),
        ({"url": None}, None),
        ({"url": 7}, None),
        ({"filename": "", "url": f"{FILES}demo-1.0%2Bcpu-py3-none-any.whl"}, "demo-1.0+cpu-py3-none-any.whl"),
        ({"filename": None}, {}),
        ({"size": "large"}, {}),
        ({"size": True}, {}),
        ({"size": -1}, {}),
        ({"size": 2**63 - 1}, {"size": 2**63 - 1}),
        ({"size": 2**63}, {}),
        ({"gpg-sig": True, "something": {"new": [1, 2]}}, {}),
    ],
    ids=str,
)
def test_an_entry_of_json_gives_what_is_right_in_it(changes: dict[str, object], fields: dict[str, Any] | str | None) -> None:
    before, *found = from_json({**ENTRY, "filename": "demo-0.9-py3-none-any.whl"}, {**ENTRY, **changes}, version="1.4")
    assert before == replace(PLAIN, filename="demo-0.9-py3-none-any.whl")
    if isinstance(fields, str):
        assert [file.filename for file in found] == [fields]
    else:
        assert found == ([] if fields is None else [replace(PLAIN, **fields)])


def test_everything_else_on_a_page_of_json_is_passed_over() -> None:
    extras = {"meta": {"api-version": "1.4", "project-status": "active", "_last-serial": 1}, "versions": ["1.0"]}
    body = json.dumps({**extras, "files": [ENTRY]}).encode()
    assert parse_project_page(body, content_type=JSON, url=URL, index="main").finished() == (PLAIN,)


def test_an_anchor_names_where_its_provenance_is() -> None:
    (found,) = html('<a href="demo-1.0-py3-none-any.whl" data-provenance="https://index.example/p?a=1&amp;b=2">x</a>')
    assert found.provenance == "https://index.example/p?a=1&b=2"
    (found,) = html('<a href="demo-1.0-py3-none-any.whl" data-provenance="javascript:alert(1)">x</a>')
    assert found.provenance == ""


ODDITIES = """<!DOCTYPE html>
<html><head><meta name="pypi:repository-version" content="1.0"><title>Links for demo</title></head>
<body><h1>Links for demo</h1>
<!-- <a href="demo-0.1-py3-none-any.whl">hidden</a> -->
<A HREF='Demo_Pkg-1.0-py3-none-any.whl#md5=d41d8cd98f00b204e9800998ecf8427e'>capitals, an md5, a name of its own</A>
<a data-yanked href="demo-1.1-py3-none-any.whl">no reason</a>
<a data-yanked="" href=demo-1.2-py3-none-any.whl>no quotes</a>
<a rel="internal" href="../../files/demo-1.3.tar.gz#egg=demo-1.3" >an egg</a>
<a href="demo-1.4-py3-none-any.whl#sha512=00&amp;egg=demo">another hash</a>
<a
  href="https://cdn.example/demo-1.5%2Bcpu-py3-none-any.whl#sha256=SHA"
  data-requires-python="&gt;=3.9,&lt;4"
  data-dist-info-metadata="sha256=SHA" >several lines</a>
<a href="mailto:someone@example.org">no file</a> <a href="">nothing</a> <a name="top">no link</a>
<a href="https://index.example/simple/">Index</a>
<a href='demo-1.6-py3-none-any.whl' data-requires-python='>=3.10'>unescaped</a>
""".replace("SHA", "c" * 64)


def test_pages_of_old_and_careless_indexes_are_read_as_installers_read_them() -> None:
    found = html(ODDITIES)
    assert [(file.filename, file.sha256[:1], file.yanked, file.requires_python, file.has_metadata) for file in found] == [
        ("Demo_Pkg-1.0-py3-none-any.whl", "", None, None, False),
        ("demo-1.1-py3-none-any.whl", "", "", None, False),
        ("demo-1.2-py3-none-any.whl", "", "", None, False),
        ("demo-1.3.tar.gz", "", None, None, False),
        ("demo-1.4-py3-none-any.whl", "", None, None, False),
        ("demo-1.5+cpu-py3-none-any.whl", "c", None, ">=3.9,<4", True),
        ("demo-1.6-py3-none-any.whl", "", None, ">=3.10", False),
    ]
    assert [file.url for file in found[3:6]] == [
        "https://index.example/files/demo-1.3.tar.gz",
        "https://index.example/simple/demo/demo-1.4-py3-none-any.whl",
        "https://cdn.example/demo-1.5%2Bcpu-py3-none-any.whl",
    ]
