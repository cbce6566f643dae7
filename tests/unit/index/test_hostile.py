"""An index, or a package on it, that means harm: names that lead elsewhere, answers without end, archives that explode."""

from __future__ import annotations

import gzip
import io
import json
import time
import zipfile
from typing import TYPE_CHECKING

import pytest

from provisioner.errors import ProvisionError, UnavailableError
from provisioner.index.address import as_url
from provisioner.index.http import transport
from provisioner.index.http.session import retries
from provisioner.index.http.transport import Transport
from provisioner.index.metadata import ranged, source_distribution
from provisioner.index.metadata import reader as metadata
from provisioner.index.metadata.core_metadata import UnusableMetadataError, wheel_metadata
from provisioner.index.pages.filename import parse_filename
from provisioner.index.pages.project_page import parse_project_page
from provisioner.index.pages.selection import takes_python
from provisioner.index.settings import IndexSettings
from provisioner.lock.format.artifact import upload_moment
from tests.built_files import build_sdist, metadata_text, static_metadata
from tests.scripted_server import Answer, ScriptedServer

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.index.model import IndexFile
    from tests.loopback_index import LoopbackIndex
    from tests.unit.index.conftest import OpenIndex

JSON = "application/vnd.pypi.simple.v1+json"
PAGE = "https://evil.example/simple/demo/"


def html(text: str) -> tuple[IndexFile, ...]:
    return parse_project_page(text.encode(), content_type="text/html", url=PAGE, index="evil").finished()


def json_files(**entry: object) -> tuple[IndexFile, ...]:
    page = {"meta": {"api-version": "1.1"}, "files": [{"filename": "demo-1.0.tar.gz", "url": "demo-1.0.tar.gz", **entry}]}
    return parse_project_page(json.dumps(page).encode(), content_type=JSON, url=PAGE, index="evil").finished()


def test_a_base_that_is_no_url_is_no_base() -> None:
    (file,) = html('<base href="http://[::1"><a href="demo-1.0-py3-none-any.whl">x</a>')
    assert file == html('<a href="demo-1.0-py3-none-any.whl">x</a>')[0]


@pytest.mark.parametrize("base", ["file:///etc/", "FILE:///etc/", "file://localhost/etc/"])
def test_a_remote_page_cannot_move_its_links_onto_this_machine(base: str) -> None:
    assert html(f'<base href="{base}"><a href="demo-1.0-py3-none-any.whl">x</a>') == ()


@pytest.mark.parametrize("sign", ["\n", "\r\n", "\x1b[2J", "\x00", "\x7f", "\u2028", "\u202e"])
def test_an_address_with_a_control_character_is_not_followed(sign: str) -> None:
    url = f"https://evil.example/a{sign}b/demo-1.0.tar.gz"
    assert json_files(url=url) == ()
    assert html(f'<a href="{url}">x</a>') == ()


@pytest.mark.parametrize("escape", ["%0a", "%00", "%1B", "%7f"])
def test_a_name_with_an_escaped_control_character_is_none(escape: str) -> None:
    assert json_files(url=f"https://evil.example/demo-1.0{escape}.tar.gz") == ()
    assert html(f'<a href="demo-1.0{escape}.tar.gz">x</a>') == ()


def test_white_space_around_an_address_is_no_part_of_it() -> None:
    (file,) = html('<a href="\n  ../files/a b/demo-1.0.tar.gz\n">x</a>')
    assert file.url == "https://evil.example/simple/files/a%20b/demo-1.0.tar.gz"


@pytest.mark.parametrize(
    "filename",
    [
        "demo-1.0-1/../../../x-py3-none-any.whl",
        "demo-1.0-1\\..\\x-py3-none-any.whl",
        "demo-1.0-1\n[tool]-py3-none-any.whl",
        "demo-1.0-1 2-py3-none-any.whl",
        "demo-1.0\n-py3-none-any.whl",
        "demo- 1.0-py3-none-any.whl",
        "demo-1.0\n.tar.gz",
        "demo-1.0 .zip",
        "../demo-1.0-py3-none-any.whl",
        "demo-../1.0-py3-none-any.whl",
    ],
)
def test_a_filename_that_leads_elsewhere_or_ends_a_line_is_none(filename: str) -> None:
    assert parse_filename(filename, "demo") is None


def test_a_build_tag_of_letters_and_digits_is_still_one() -> None:
    found = parse_filename("demo-1.0-3cu12_local.x-py3-none-any.whl", "demo")
    assert found is not None
    assert found.build == (3, "cu12_local.x")


def test_why_a_release_was_withdrawn_is_said_in_one_line() -> None:
    words = "broken\n\nerror: run this\tscript"
    assert [file.yanked for file in (*json_files(yanked=words), *json_files(url="a b/demo-1.0.tar.gz", yanked=words))] == [
        "broken error: run this script"
    ] * 2
    (file,) = html(f'<a data-yanked="{words}" href="demo-1.0.tar.gz">x</a>')
    assert file.yanked == "broken error: run this script"


@pytest.mark.parametrize("unit", ["<!--", "<base ", "<a ", '<a "<a ', "<a '\"", "<base href <base ", "<a href=", '<a href="'])
def test_a_page_of_openings_is_read_in_time(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    began = time.process_time()
    html(text)
    assert time.process_time() - began < 3


def test_numbers_beyond_all_bounds_are_none() -> None:
    digits = "9" * 5000
    assert takes_python(f">={digits}", "3.12")
    assert upload_moment("0001-01-01T00:00:00+23:59") is None
    assert parse_filename(f"demo-{digits}-py3-none-any.whl", "demo") is None
    assert transport.length_in({"Content-Length": digits}) is None
    assert transport.length_in({"Content-Length": "\u00b2"}) is None
    assert transport.length_in({"Content-Length": "12"}) == 12


@pytest.fixture
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> IndexSettings:
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    return IndexSettings(indexes=(), retries=0, timeout=5, cache_directory=tmp_path / "cache", keyring_provider="disabled")


@pytest.mark.parametrize("headers", [{}, {"Content-Encoding": "gzip"}, {"Content-Encoding": "deflate"}])
def test_a_body_without_end_is_given_up(quiet: IndexSettings, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str]) -> None:
    monkeypatch.setattr(transport, "LARGEST_BODY", 1 << 20)
    body = bytes(2 << 20)
    if headers.get("Content-Encoding") == "deflate":
        import zlib

        body = zlib.compress(bytes(64 << 20))  # 64 kB on the wire
    with ScriptedServer({"/x": [Answer(headers=headers, body=body)]}) as server:
        with pytest.raises(UnavailableError) as raised:
            Transport(quiet).request(server.url("/x"), source="index `evil`")
        assert raised.value.message == "index `evil` sends more than 1 MiB, which is no answer"
        assert raised.value.causes == (server.url("/x"),)
        assert server.paths() == ["/x"]


def test_what_unpacks_to_more_than_any_page_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "LARGEST_BODY", 1 << 20)
    assert transport.unpacked(gzip.compress(bytes(1 << 20)), "gzip") == bytes(1 << 20)
    assert transport.unpacked(gzip.compress(bytes((1 << 20) + 1)), "gzip") is None
    assert transport.unpacked(gzip.compress(bytes(600_000)) * 2, "gzip") is None
    assert transport.unpacked(gzip.compress(b"a") * 3, "gzip") == b"aaa"


def test_a_body_of_a_million_parts_is_given_up_at_once() -> None:
    began = time.process_time()
    assert transport.unpacked(gzip.compress(b"") * 1_000_000, "gzip") is None
    assert time.process_time() - began < 2


def test_a_pause_of_years_or_of_nonsense_is_not_waited_for(quiet: IndexSettings) -> None:
    from urllib3 import HTTPResponse

    for wanted in ("9" * 5000, "Thu, 99 Foo 99999 00:00:00 GMT", "Fri, 31 Dec 999999999 23:59:59 GMT"):
        assert retries(quiet).get_retry_after(HTTPResponse(headers={"Retry-After": wanted})) in {None, 30.0}


def wheel(content: bytes, *, method: int) -> io.BytesIO:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        archive.writestr("demo-1.0.dist-info/METADATA", content)
    return stream


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_metadata_that_is_unpacked_in_one_go_is_not_unpacked(method: int) -> None:
    text = metadata_text("demo", "1.0").encode()
    with pytest.raises(UnusableMetadataError, match=r"^`demo\.whl` has a METADATA file that is neither stored nor deflated$"):
        wheel_metadata(wheel(text, method=method), "demo.whl")
    assert wheel_metadata(wheel(text, method=zipfile.ZIP_DEFLATED), "demo.whl").name == "demo"


def test_metadata_of_gigabytes_is_not_read() -> None:
    stream = wheel(bytes(17 << 20), method=zipfile.ZIP_DEFLATED)
    assert len(stream.getvalue()) < 100_000
    with pytest.raises(UnusableMetadataError, match=r"^`demo\.whl` has a METADATA file of 17825792 bytes$"):
        wheel_metadata(stream, "demo.whl")


def test_a_source_distribution_is_not_unpacked_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    filename, content = build_sdist("demo", "1.0", metadata=metadata_text("demo", "1.0"))
    assert static_metadata(content, filename).name == "demo"
    monkeypatch.setattr(source_distribution, "LARGEST_UNPACKED", 10)
    with pytest.raises(UnusableMetadataError, match="is not a source distribution: it unpacks to more than 0 GiB"):
        static_metadata(content, filename)


def test_a_zip_of_sources_is_not_unpacked_in_one_go() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("demo-1.0/PKG-INFO", metadata_text("demo", "1.0"))
    with pytest.raises(UnusableMetadataError, match=r"has no PKG-INFO file"):
        static_metadata(stream.getvalue(), "demo-1.0.zip")


def test_a_metadata_file_of_gigabytes_rules_its_release_out(
    open_index: OpenIndex, served: LoopbackIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "LARGEST_METADATA", 1 << 16)
    served.advertise = False
    filename = served.add_wheel("demo", "1.0")
    served.serve(f"/files/{filename}.metadata", b"Metadata-Version: 2.1\n" + bytes(1 << 16))
    index = open_index()
    (release,) = index.releases("demo")  # type: ignore[arg-type]
    with pytest.raises(UnusableMetadataError) as raised:
        index.requirements(release)
    assert raised.value.message == f"`{filename}.metadata` has {22 + (1 << 16)} bytes, and no metadata has"


def test_a_source_distribution_of_gigabytes_is_not_read_to_its_end(
    open_index: OpenIndex, served: LoopbackIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "LARGEST_SOURCE", 10)
    filename = served.add_sdist("demo", "1.0", dynamic=True)
    index = open_index(allow_sdist=True, allow_build=True)
    (release,) = index.releases("demo")  # type: ignore[arg-type]
    with pytest.raises(UnusableMetadataError, match=f"^`{filename}` has more than 0 MiB, and is not read$"):
        index.requirements(release)


def test_a_list_of_members_of_gigabytes_is_not_fetched(
    open_index: OpenIndex, served: LoopbackIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranged, "TAIL", 64)
    monkeypatch.setattr(ranged, "_LONGEST", 100)
    served.metadata = False
    filename = served.add_wheel("demo", "1.0", padding=100_000)
    index = open_index()
    (release,) = index.releases("demo")  # type: ignore[arg-type]
    with pytest.raises(UnusableMetadataError, match=f"^`{filename}` has a list of members of [0-9]+ bytes, and no wheel has$"):
        index.requirements(release)


def test_a_range_of_nonsense_is_an_answer_that_cannot_be_used(quiet: IndexSettings) -> None:
    span = f"bytes 0-0/{'9' * 5000}"
    answer = Answer(status=206, headers={"Content-Range": span}, body=b"x")
    with ScriptedServer({"/x.whl": [answer]}) as server, pytest.raises(ProvisionError, match="answers 206"):
        ranged.RangedFile(Transport(quiet), server.url("/x.whl"), source="index `evil`")


@pytest.mark.parametrize("place", ["file:///etc/passwd", "ftp://evil.example/x", "data:text/html,x"])
def test_a_redirect_leads_to_no_file_of_this_machine(quiet: IndexSettings, place: str) -> None:
    with ScriptedServer({"/x": [Answer(status=302, headers={"Location": place})]}) as server:
        with pytest.raises(UnavailableError) as raised:
            Transport(quiet).request(server.url("/x"), source="index `evil`")
        assert raised.value.message == "index `evil` cannot be reached: its address is not a usable URL"


@pytest.mark.parametrize("body", [b"[" * 200_000, b'{"meta":' * 100_000, b'{"files":[' + b"{" * 100_000])
def test_json_of_any_depth_is_no_page(body: bytes) -> None:
    with pytest.raises(UnavailableError, match="not a project page"):
        parse_project_page(body, content_type=JSON, url=PAGE, index="evil").finished()


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("htps://me:s3cret@acme.example/simple", "htps://acme.example/simple"),
        ("ht!tp://me:s3cret@acme.example/simple", "ht!tp://acme.example/simple"),
        ("https://me:s3cret@[::1/simple", "https://[::1/simple"),
        ("git+ssh://me:s3@cret@acme.example/simple", "git+ssh://acme.example/simple"),
        ("https://me:s3/cr3t@acme.example/simple", "https://acme.example/simple"),
        ("https://me:s3#cr3t@acme.example/simple", "https://acme.example/simple"),
    ],
)
def test_an_address_with_a_slip_of_the_pen_does_not_tell_its_login(written: str, shown: str) -> None:
    with pytest.raises(ProvisionError) as raised:
        as_url(written)
    assert raised.value.message == (
        f"`{shown}` is not an address that is read; an index is named by https://, http://, file:// or a path"
    )
    assert raised.value.hints[1:] == ("in a login `/` is written %2F, `?` %3F and `#` %23",)
