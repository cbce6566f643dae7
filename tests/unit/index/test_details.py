"""Hashes, sizes and attestation identities of chosen files, read over real HTTP and kept.

`tests/fixtures/provenance.json` is written after "Index hosted attestations" (the provenance object) and the example of the
pylock.toml specification (the keys of a GitHub publisher). The index these tests can reach publishes none.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from packaging.utils import canonicalize_name

from provisioner.index.metadata.details import FileDetails, identities_in
from provisioner.index.model import IndexFile
from tests.built_files import build_wheel, metadata_text

if TYPE_CHECKING:
    from provisioner.index.client import PackageIndex
    from tests.loopback_index import LoopbackIndex
    from tests.unit.index.conftest import OpenIndex

PROVENANCE = (Path(__file__).parents[2] / "fixtures" / "provenance.json").read_bytes()
SAMPLE = {"environment": "", "kind": "GitHub", "repository": "pypa/sampleproject", "workflow": "release.yml"}
WHEEL = "demo-1.0-py3-none-any.whl"
JSON = "application/vnd.pypi.integrity.v1+json"


def provenance(*publishers: dict[str, Any], version: int = 1) -> bytes:
    bundles = [{"publisher": publisher, "attestations": []} for publisher in publishers]
    return json.dumps({"version": version, "attestation_bundles": bundles}).encode()


def chosen(client: PackageIndex) -> IndexFile:
    file = client.releases(canonicalize_name("demo"))[0].file
    assert file is not None
    return file


def details(client: PackageIndex, **options: bool) -> FileDetails:
    (found,) = client.details([chosen(client)], **options)
    return found


class TestSize:
    def test_is_what_the_page_says_and_nobody_is_asked(self, served: LoopbackIndex, open_index: OpenIndex) -> None:
        served.json = True
        served.add_wheel("demo", "1.0")
        assert details(open_index()).size == len(served.files[f"/files/{WHEEL}"].content)
        assert served.requests[f"/files/{WHEEL}"] == 0

    def test_is_asked_of_the_server_once_where_the_page_does_not_say(
        self, served: LoopbackIndex, open_index: OpenIndex
    ) -> None:
        served.add_wheel("demo", "1.0")
        size = len(served.files[f"/files/{WHEEL}"].content)
        assert details(open_index()).size == size
        before = served.bytes_sent
        assert details(open_index()).size == size
        assert details(open_index(offline=True)).size == size
        assert served.requests[f"/files/{WHEEL}"] == 1
        assert served.bytes_sent - before < size, "a HEAD request has no body"

    def test_is_missing_where_the_server_does_not_say(self, served: LoopbackIndex, open_index: OpenIndex) -> None:
        served.add_wheel("demo", "1.0")
        served.statuses[f"/files/{WHEEL}"] = 405
        found = details(open_index())
        assert (found.size, found.missing) == (None, ("size",))

    def test_of_nothing_is_no_size(self, served: LoopbackIndex, open_index: OpenIndex) -> None:
        served.add_wheel("demo", "1.0")
        served.serve(f"/files/{WHEEL}", b"", content_type="application/octet-stream")
        found = details(open_index())
        assert (found.size, found.missing) == (None, ("size",))

    def test_is_missing_offline_where_nobody_asked_before(self, served: LoopbackIndex, open_index: OpenIndex) -> None:
        served.add_wheel("demo", "1.0")
        chosen(open_index())
        found = details(open_index(offline=True))
        assert (found.size, found.missing) == (None, ("size",))
        assert served.requests[f"/files/{WHEEL}"] == 0

    def test_of_a_file_without_a_hash_comes_with_the_hash(self, served: LoopbackIndex, open_index: OpenIndex) -> None:
        served.hashes = False
        served.add_wheel("demo", "1.0")
        file = served.files[f"/files/{WHEEL}"]
        assert details(open_index()) == FileDetails(sha256=file.sha256, size=len(file.content))


class TestIdentities:
    @pytest.mark.parametrize("is_json", [False, True])
    def test_are_the_publishers_of_the_provenance_object(
        self, served: LoopbackIndex, open_index: OpenIndex, *, is_json: bool
    ) -> None:
        served.json = is_json
        served.add_wheel("demo", "1.0", provenance=True)
        served.serve(f"/integrity/{WHEEL}/provenance", PROVENANCE, content_type=JSON)
        assert details(open_index()).identities == (SAMPLE,)

    def test_are_kept_and_asked_for_again_only_when_told(self, served: LoopbackIndex, open_index: OpenIndex) -> None:
        place = f"/integrity/{WHEEL}/provenance"
        served.add_wheel("demo", "1.0", provenance=True)
        served.serve(place, PROVENANCE, content_type=JSON)
        details(open_index())
        served.serve(place, provenance({"kind": "GitLab", "repository": "a/b"}), content_type=JSON)
        assert details(open_index()).identities == (SAMPLE,)
        assert details(open_index(offline=True)).identities == (SAMPLE,)
        assert served.requests[place] == 1
        assert details(open_index(), is_refreshed=True).identities == (SAMPLE,), "as fresh as a page that nobody asks for again"
        assert served.requests[place] == 1
        later = open_index(fresh_seconds=0)
        assert details(later, is_refreshed=True).identities == ({"kind": "GitLab", "repository": "a/b"},)
        assert details(open_index(offline=True), is_refreshed=True).identities == ({"kind": "GitLab", "repository": "a/b"},)
        assert served.requests[place] == 2

    def test_nobody_is_asked_where_none_are_announced(self, served: LoopbackIndex, open_index: OpenIndex) -> None:
        served.json = True
        served.add_wheel("demo", "1.0")
        assert details(open_index()).identities == ()
        assert not any(path.startswith("/integrity") for path in served.requests)

    @pytest.mark.parametrize("answer", [None, b"no", b"{}", provenance({"kind": "GitHub"}, version=2)])
    def test_that_are_announced_and_not_served_are_missing(
        self, served: LoopbackIndex, open_index: OpenIndex, answer: bytes | None
    ) -> None:
        served.json = True
        served.add_wheel("demo", "1.0", provenance=True)
        if answer is not None:
            served.serve(f"/integrity/{WHEEL}/provenance", answer, content_type=JSON)
        found = details(open_index())
        assert (found.identities, found.missing) == ((), ("attestations",))

    def test_what_was_known_stays_when_asking_again_fails(self, served: LoopbackIndex, open_index: OpenIndex) -> None:
        place = f"/integrity/{WHEEL}/provenance"
        served.add_wheel("demo", "1.0", provenance=True)
        served.serve(place, PROVENANCE, content_type=JSON)
        details(open_index())
        served.statuses[place] = 404
        found = details(open_index(fresh_seconds=0), is_refreshed=True)
        assert (found.identities, found.missing) == ((SAMPLE,), ("attestations",))


def nested(depth: int) -> list[object]:
    return [nested(depth - 1)] if depth else []


class TestProvenanceObject:
    def test_an_open_ended_publisher_is_taken_as_it_is_but_for_null(self) -> None:
        said = {
            "kind": "ci",
            "claims": {"b": [1, {"c": None}], "a": "x"},
            "vendor-property": "foo",
            "another-property": 123,
            "no": None,
        }
        assert identities_in(provenance(said)) == (
            {"another-property": 123, "claims": {"a": "x", "b": (1, {})}, "kind": "ci", "vendor-property": "foo"},
        )

    def test_each_publisher_stands_once_in_an_order_of_its_own(self) -> None:
        first, second = {"kind": "GitHub", "repository": "a/a"}, {"kind": "GitHub", "repository": "b/b"}
        assert identities_in(provenance(second, first, second)) == (first, second) == identities_in(provenance(first, second))

    @pytest.mark.parametrize(
        "publisher",
        [
            {},
            {"kind": ""},
            {"kind": 1},
            {"kind": "ci", "n": 2**63},
            {"kind": "ci", "l": [None]},
            {"kind": "ci", "x": float("nan")},
            {"kind": "ci", "x": float("inf")},
            {"kind": "ci", "x": "\ud800"},
            {"kind": "ci", "\udfff": 1},
            {"kind": "ci", "x": nested(9)},
        ],
    )
    def test_what_no_lock_can_hold_is_refused(self, publisher: dict[str, Any]) -> None:
        assert identities_in(provenance(publisher)) is None

    @pytest.mark.parametrize(
        "body", [b"", b"[]", b"null", b'{"version": 1}', b'{"version": 1, "attestation_bundles": 1}', b"[" * 99999]
    )
    def test_anything_else_is_no_provenance_object(self, body: bytes) -> None:
        assert identities_in(body) is None


def test_several_files_are_described_in_their_order(served: LoopbackIndex, open_index: OpenIndex) -> None:
    for number in range(20):
        served.add_wheel(f"demo{number}", "1.0", padding=number)
    client = open_index()
    files = [client.releases(canonicalize_name(f"demo{number}"))[0].file for number in range(20)]
    found = client.details([file for file in files if file is not None])
    assert [one.size for one in found] == [len(served.files[f"/files/demo{n}-1.0-py3-none-any.whl"].content) for n in range(20)]


def test_a_local_wheel_states_the_python_it_needs_itself(open_index: OpenIndex, tmp_path: Path) -> None:
    metadata = metadata_text("demo", "1.0", (), ">=3.9", ())
    filename, content = build_wheel("demo", "1.0", metadata=metadata)
    path = tmp_path / filename
    path.write_bytes(content)
    file = IndexFile(filename=filename, url="", index="find-links", path=str(path))
    (found,) = open_index().details([file])
    assert (found.requires_python, found.size) == (">=3.9", len(content))
    broken = replace(file, path=str(tmp_path / "other.whl"))
    Path(broken.path).write_bytes(b"no wheel")
    (found,) = open_index().details([broken])
    assert found.requires_python is None
