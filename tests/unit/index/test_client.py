"""`PackageIndex` against an index that serves real wheels over real HTTP."""

from __future__ import annotations

import hashlib
import threading
import time
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from provisioner.errors import ProvisionError, UnavailableError
from provisioner.index.cache import FILE
from provisioner.index.metadata.core_metadata import UnusableMetadataError
from provisioner.index.metadata.reader import HashMismatchError
from provisioner.index.notice import IndexSkipped
from tests.loopback_index import LoopbackIndex

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.index.client import PackageIndex
    from provisioner.index.settings import IndexSettings
    from tests.unit.index.conftest import OpenIndex

DEMO = canonicalize_name("demo")
TORCH = canonicalize_name("torch")
WHEEL = "/files/demo-1.0-py3-none-any.whl"


def versions(client: PackageIndex, name: str = "demo", *, index: str = "") -> list[str]:
    return [str(release.version) for release in client.releases(canonicalize_name(name), index=index)]


def required(client: PackageIndex, name: str = "demo") -> list[str]:
    return [str(requirement) for requirement in client.requirements(client.releases(canonicalize_name(name))[0])]


@pytest.mark.parametrize("is_json", [False, True])
def test_releases_and_requirements_are_read_from_both_kinds_of_page(
    served: LoopbackIndex, open_index: OpenIndex, *, is_json: bool
) -> None:
    served.json = is_json
    served.add_wheel("demo", "1.0", requires=["other>=2", 'extra-thing; extra == "more"'], requires_python=">=3.9")
    served.add_wheel("demo", "2.0", yanked="broken", upload_time="2026-01-02T03:04:05Z")
    client = open_index()
    second, first = client.releases(DEMO)
    assert (str(second.version), second.why_not, second.is_usable) == ("2.0", "yanked: broken", False)
    assert second.file is not None
    assert second.file.upload_time == "2026-01-02T03:04:05Z"
    assert first.file is not None
    assert first.file.url == f"{served.root}{WHEEL}"
    assert first.file.sha256 == served.files[WHEEL].sha256
    assert [str(one) for one in client.requirements(first)] == ["other>=2"]
    assert [str(one) for one in client.requirements(first, ("", "more"))] == ["other>=2", 'extra-thing; extra == "more"']


def test_an_unknown_project_is_no_releases(open_index: OpenIndex) -> None:
    assert open_index().releases(DEMO) == ()


def test_a_name_belongs_to_the_first_index_that_knows_it(served: LoopbackIndex, open_index: OpenIndex) -> None:
    with LoopbackIndex() as extra:
        served.add_wheel("demo", "1.0")
        extra.add_wheel("demo", "99.0")
        extra.add_wheel("private", "1.0")
        client = open_index(indexes={"main": served.url, "extra": extra.url})
        assert versions(client) == ["1.0"]
        assert extra.requests["/simple/demo/"] == 0
        (release,) = client.releases(canonicalize_name("private"))
        assert release.file is not None
        assert release.file.index == "extra"


def test_a_project_without_files_still_keeps_later_indexes_out(served: LoopbackIndex, open_index: OpenIndex) -> None:
    with LoopbackIndex() as extra:
        served.add_project("demo")
        extra.add_wheel("demo", "99.0")
        assert versions(open_index(indexes={"main": served.url, "extra": extra.url})) == []


def test_an_index_out_of_reach_never_lets_a_later_one_answer(served: LoopbackIndex, open_index: OpenIndex) -> None:
    served.add_wheel("demo", "1.0")
    with LoopbackIndex() as gone:
        unreachable = gone.url
    client = open_index(indexes={"gone": unreachable, "main": served.url})
    with pytest.raises(UnavailableError) as caught:
        client.releases(DEMO)
    assert caught.value.message == "index `gone` cannot be reached: connection refused"
    assert caught.value.causes == (f"{unreachable}/demo/",)
    assert caught.value.exit_code == 3


def test_a_variant_of_a_template_is_an_index_of_its_own(served: LoopbackIndex, open_index: OpenIndex) -> None:
    served.add_wheel("torch", "2.0")
    served.add_wheel("torch", "2.1+cu126", index="whl/cu126")
    client = open_index(indexes={"main": served.url, "pytorch": served.template})
    (release,) = client.releases(TORCH, index="pytorch-cu126")
    assert release.file is not None
    assert (str(release.version), release.file.index) == ("2.1+cu126", "pytorch-cu126")
    assert versions(client, "torch") == ["2.0"]
    assert client.url_of("pytorch-cu126") == f"{served.root}/whl/cu126"


def test_find_links_wheels_of_the_variant_count_and_others_do_not(
    served: LoopbackIndex, open_index: OpenIndex, tmp_path: Path
) -> None:
    links = tmp_path / "wheels"
    links.mkdir()
    for version in ("2.2+cpu", "2.2+cu126", "2.2"):
        filename = served.add_wheel("torch", version, index="unlisted", requires=["filelock"])
        (links / filename).write_bytes(served.files[f"/files/unlisted/{filename}"].content)
    client = open_index(indexes={"main": served.url, "pytorch": served.template}, find_links=(links.as_uri(),))
    assert versions(client, "torch", index="pytorch-cpu") == ["2.2+cpu"]
    assert versions(client, "torch") == ["2.2+cu126", "2.2+cpu", "2.2"]
    release = client.releases(TORCH, index="pytorch-cpu")[0]
    assert release.file is not None
    assert (release.file.index, release.file.url) == ("find-links", "")
    assert [str(one) for one in client.requirements(release)] == ["filelock"]
    content = (links / release.file.filename).read_bytes()
    assert client.hash_and_size(release.file) == (hashlib.sha256(content).hexdigest(), len(content))


def test_find_links_answer_for_a_variant_whose_index_is_out_of_reach_and_say_so(
    served: LoopbackIndex, open_index: OpenIndex, tmp_path: Path
) -> None:
    filename = served.add_wheel("torch", "2.2+cpu", index="unlisted")
    (tmp_path / filename).write_bytes(served.files[f"/files/unlisted/{filename}"].content)
    served.statuses["/whl/cpu/torch/"] = 503
    client = open_index(indexes={"main": served.url, "pytorch": served.template}, find_links=(tmp_path.as_uri(),))
    assert versions(client, "torch", index="pytorch-cpu") == ["2.2+cpu"]
    assert client.skipped == (IndexSkipped("torch", "index `pytorch-cpu` answers 503 (Service Unavailable)"),)
    assert [error.message for error in client.passed_over] == ["index `pytorch-cpu` answers 503 (Service Unavailable)"]


def test_an_index_that_is_not_configured_is_named(open_index: OpenIndex) -> None:
    with pytest.raises(ProvisionError) as caught:
        open_index().releases(DEMO, index="nowhere")
    assert caught.value.message == "index `nowhere` is not configured; configured: `main`"
    assert caught.value.exit_code == 2


def test_directories_are_indexes_too(served: LoopbackIndex, open_index: OpenIndex, tmp_path: Path) -> None:
    filename = served.add_wheel("demo", "1.0", requires=["other"])
    listed, plain = tmp_path / "listed" / "demo", tmp_path / "plain" / "demo"
    for directory in (listed, plain):
        directory.mkdir(parents=True)
        (directory / filename).write_bytes(served.files[WHEEL].content)
    (listed / "index.html").write_text(f'<a href="{filename}">x</a><a href="../../etc/demo-2.0.tar.gz">y</a>')
    (plain / "notes.txt").write_text("no distribution")
    assert versions(open_index(indexes={"local": listed.parent.as_uri()})) == ["2.0", "1.0"]
    client = open_index(indexes={"local": plain.parent.as_uri()})
    assert required(client) == ["other"]
    assert client.releases(canonicalize_name("other")) == ()


def test_a_directory_that_is_not_there_is_named(open_index: OpenIndex, tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="index `local` is not a directory"):
        open_index(indexes={"local": (tmp_path / "none").as_uri()}).releases(DEMO)


def test_a_wheels_metadata_costs_kilobytes_when_there_is_no_metadata_file(served: LoopbackIndex, open_index: OpenIndex) -> None:
    served.metadata = False
    served.add_wheel("demo", "1.0", requires=["other"], padding=3_000_000)
    assert required(open_index()) == ["other"]
    assert served.bytes_sent < 80_000


def test_a_metadata_file_is_used_though_the_page_does_not_announce_it(served: LoopbackIndex, open_index: OpenIndex) -> None:
    served.advertise = False
    served.add_wheel("demo", "1.0", requires=["other"])
    assert required(open_index()) == ["other"]
    assert (served.requests[f"{WHEEL}.metadata"], served.requests[WHEEL]) == (1, 0)


def test_where_metadata_files_are_mostly_not_there_the_wheel_is_asked_first(
    served: LoopbackIndex, open_index: OpenIndex
) -> None:
    served.metadata, served.json = False, True
    for name in ("a", "b", "c", "d", "e"):
        served.add_wheel(name, "1.0", requires=[f"needs-{name}"])
    client = open_index()
    assert [required(client, name) for name in ("a", "b", "c", "d", "e")] == [[f"needs-{name}"] for name in "abcde"]
    asked = [served.requests[f"/files/{name}-1.0-py3-none-any.whl.metadata"] for name in "abcde"]
    assert asked == [1, 1, 1, 0, 0]
    assert [served.requests[f"/files/{name}-1.0-py3-none-any.whl"] for name in "abcde"] == [1] * 5


def test_a_wheel_that_does_not_tell_has_its_metadata_file_asked_for_after_all(
    served: LoopbackIndex, open_index: OpenIndex
) -> None:
    served.advertise, served.json = False, True
    for name in ("a", "b", "c", "d"):
        served.add_wheel(name, "1.0", requires=[f"needs-{name}"])
    for name in ("a", "b", "c"):
        served.statuses[f"/files/{name}-1.0-py3-none-any.whl.metadata"] = 404
    served.statuses["/files/d-1.0-py3-none-any.whl"] = 500
    client = open_index()
    assert [required(client, name) for name in ("a", "b", "c", "d")] == [[f"needs-{name}"] for name in "abcd"]


def test_a_metadata_file_that_is_announced_or_beside_a_wheel_of_unknown_size_is_asked_for_first(
    served: LoopbackIndex, open_index: OpenIndex
) -> None:
    served.json = True
    served.metadata = False
    for name in ("a", "b", "c"):
        served.add_wheel(name, "1.0")
    served.metadata = True
    served.add_wheel("announced", "1.0", requires=["other"])
    client = open_index()
    assert [required(client, name) for name in ("a", "b", "c")] == [[], [], []]
    assert required(client, "announced") == ["other"]
    assert served.requests["/files/announced-1.0-py3-none-any.whl"] == 0
    served.json = served.advertise = False
    served.add_wheel("unsized", "1.0", requires=["other"])
    assert required(client, "unsized") == ["other"]
    assert served.requests["/files/unsized-1.0-py3-none-any.whl"] == 0


def test_a_page_in_place_of_a_metadata_file_is_not_taken_for_one(served: LoopbackIndex, open_index: OpenIndex) -> None:
    served.advertise = False
    served.add_wheel("demo", "1.0", requires=["other"])
    served.serve(f"{WHEEL}.metadata", b"<html>welcome</html>")
    assert required(open_index()) == ["other"]


def test_a_server_without_ranges_sends_small_wheels_whole_and_large_ones_never(
    served: LoopbackIndex, open_index: OpenIndex
) -> None:
    served.metadata = served.ranges = False
    served.add_wheel("demo", "1.0", requires=["other"])
    served.add_wheel("large", "1.0", padding=5_000_000)
    client = open_index()
    assert required(client) == ["other"]
    with pytest.raises(UnavailableError) as caught:
        required(client, "large")
    assert caught.value.message == ("index `main` has neither a metadata file nor byte ranges for `large-1.0-py3-none-any.whl`")


def test_a_metadata_file_with_another_hash_is_refused(served: LoopbackIndex, open_index: OpenIndex) -> None:
    served.add_wheel("demo", "1.0")
    other = b"Metadata-Version: 2.2\nName: demo\nVersion: 1.0\nRequires-Dist: evil\n"
    served.serve(f"{WHEEL}.metadata", other)
    metadata = served.files[WHEEL].metadata
    assert metadata is not None
    with pytest.raises(HashMismatchError) as caught:
        required(open_index())
    assert caught.value.message == "`demo-1.0-py3-none-any.whl.metadata` is not the file its index announced"
    assert caught.value.causes == (
        f"wanted sha256 {hashlib.sha256(metadata).hexdigest()}",
        f"found sha256 {hashlib.sha256(other).hexdigest()}",
    )
    assert caught.value.exit_code == 1


def test_a_source_distribution_is_read_when_its_dependencies_are_fixed(served: LoopbackIndex, open_index: OpenIndex) -> None:
    served.add_sdist("demo", "1.0", requires=["other"])
    served.add_sdist("late", "1.0", dynamic=True)
    client = open_index(allow_sdist=True)
    assert required(client) == ["other"]
    with pytest.raises(UnusableMetadataError) as caught:
        required(client, "late")
    assert caught.value.message == (
        "`late-1.0.tar.gz` is a source distribution whose dependencies are decided when it is built; "
        "policy `allow: [build]` would build it to find out"
    )


def test_a_source_distribution_with_another_hash_is_refused(served: LoopbackIndex, open_index: OpenIndex) -> None:
    served.add_sdist("demo", "1.0")
    served.serve("/files/demo-1.0.tar.gz", b"something else", content_type="application/gzip")
    with pytest.raises(HashMismatchError, match=r"`demo-1\.0\.tar\.gz` is not the file its index announced"):
        required(open_index(allow_sdist=True))


def test_a_requirement_that_cannot_be_read_names_the_file_and_the_requirement(
    served: LoopbackIndex, open_index: OpenIndex
) -> None:
    served.add_wheel("demo", "1.0", requires=["other >=1.0.*,"])
    with pytest.raises(UnusableMetadataError) as caught:
        required(open_index())
    assert caught.value.message == (
        "`demo-1.0-py3-none-any.whl` cannot be used: `other >=1.0.*,` is not a requirement that PEP 508 allows"
    )


def test_a_hash_the_index_does_not_give_is_computed_once(served: LoopbackIndex, open_index: OpenIndex) -> None:
    served.hashes = False
    served.add_wheel("demo", "1.0")
    content = served.files[WHEEL].content
    for _ in range(2):
        client = open_index()
        file = client.releases(DEMO)[0].file
        assert file is not None
        assert client.hash_and_size(file) == (hashlib.sha256(content).hexdigest(), len(content))
    assert served.requests[WHEEL] == 1


def test_an_unchanged_page_is_asked_for_conditionally(served: LoopbackIndex, open_index: OpenIndex) -> None:
    served.add_wheel("demo", "1.0")
    assert versions(open_index()) == ["1.0"]
    sent = served.bytes_sent
    assert versions(open_index()) == ["1.0"]
    assert (served.requests["/simple/demo/"], served.bytes_sent) == (2, sent)
    served.add_wheel("demo", "2.0")
    assert versions(open_index()) == ["2.0", "1.0"]


@pytest.mark.parametrize(("control", "asked"), [("max-age=60", 1), ("", 1), ("no-cache", 2), ("public, max-age=0", 2)])
def test_cache_control_decides_how_long_nobody_asks(
    served: LoopbackIndex, open_index: OpenIndex, control: str, asked: int
) -> None:
    served.cache_control = control
    served.add_wheel("demo", "1.0")
    for _ in range(2):
        assert versions(open_index()) == ["1.0"]
    assert served.requests["/simple/demo/"] == asked


def test_pages_without_cache_control_are_fresh_as_long_as_the_setting_says(
    served: LoopbackIndex, open_index: OpenIndex
) -> None:
    served.cache_control = ""
    served.add_wheel("demo", "1.0")
    for _ in range(2):
        assert versions(open_index(fresh_seconds=0)) == ["1.0"]
    assert served.requests["/simple/demo/"] == 2


def test_offline_answers_from_the_cache_and_names_exactly_what_it_lacks(served: LoopbackIndex, open_index: OpenIndex) -> None:
    served.add_wheel("demo", "1.0", requires=["other"])
    served.add_wheel("demo", "2.0")
    online = open_index()
    online.requirements(online.releases(DEMO)[1])
    served.requests.clear()
    client = open_index(offline=True)
    client.prefetch([DEMO, canonicalize_name("other")])
    newer, older = client.releases(DEMO)
    assert [str(one) for one in client.requirements(older)] == ["other"]
    with pytest.raises(UnavailableError) as caught:
        client.requirements(newer)
    assert caught.value.message == ("offline: 2 things that are needed are not in the cache; run once without --offline")
    assert caught.value.causes == (
        "the metadata of `demo-2.0-py3-none-any.whl` (index main)",
        "`other` of index main",
    )
    assert caught.value.hints == ("what these need in turn shows only when they have been read",)
    assert not served.requests


def test_offline_a_single_thing_that_is_missing_is_named_in_the_first_line(open_index: OpenIndex) -> None:
    with pytest.raises(UnavailableError) as caught:
        open_index(offline=True).releases(canonicalize_name("numpy"))
    assert caught.value.message == "offline: `numpy` of index main is not in the cache; run once without --offline"
    assert caught.value.causes == caught.value.hints == ()


def test_offline_names_what_the_cached_metadata_leads_to_and_nothing_that_does_not_hold_here(
    served: LoopbackIndex, open_index: OpenIndex
) -> None:
    needs = ["near<2", "far[fast]", "windows-only; sys_platform == 'win32'", "asked-for; extra == 'fast'"]
    served.add_wheel("demo", "1.0", requires=needs)
    served.add_wheel("far", "1.0", requires=["faster; extra == 'fast'", "slower; extra == 'slow'"])
    for version in ("1.0", "2.0"):
        served.add_wheel("near", version)
    online = open_index()
    for name in ("demo", "far"):
        online.requirements(online.releases(canonicalize_name(name))[0])
    online.releases(canonicalize_name("near"))
    online.close()
    client = open_index(offline=True)
    client.prefetch([DEMO])
    client.requirements(client.releases(DEMO)[0])
    with pytest.raises(UnavailableError) as caught:
        client.releases(canonicalize_name("faster"))
    assert caught.value.causes == ("`faster` of index main", "the metadata of `near-1.0-py3-none-any.whl` (index main)")


def test_offline_remembers_that_an_index_does_not_know_a_name(served: LoopbackIndex, open_index: OpenIndex) -> None:
    assert versions(open_index()) == []
    assert versions(open_index(offline=True)) == []
    assert served.requests["/simple/demo/"] == 1


@pytest.mark.parametrize("damage", [b"not a database", b""])
def test_a_damaged_cache_is_begun_anew(
    served: LoopbackIndex, open_index: OpenIndex, settings: IndexSettings, damage: bytes
) -> None:
    served.add_wheel("demo", "1.0", requires=["other"])
    settings.cache_directory.mkdir()
    (settings.cache_directory / FILE).write_bytes(damage * 100)
    assert required(open_index()) == ["other"]
    assert required(open_index(offline=True)) == ["other"]


def test_a_cache_that_cannot_be_written_costs_speed_only(served: LoopbackIndex, open_index: OpenIndex, tmp_path: Path) -> None:
    served.add_wheel("demo", "1.0")
    (tmp_path / "file").write_text("in the way")
    assert versions(open_index(cache_directory=tmp_path / "file" / "cache")) == ["1.0"]


def test_another_environment_selects_anew_from_the_same_page(served: LoopbackIndex, open_index: OpenIndex) -> None:
    served.cache_control = "max-age=60"
    served.add_wheel("demo", "1.0", upload_time="2026-01-01T00:00:00Z")
    served.add_wheel("demo", "2.0", upload_time="2026-02-01T00:00:00Z")
    assert [release.is_usable for release in open_index().releases(DEMO)] == [True, True]
    assert [release.is_usable for release in open_index(exclude_newer="2026-01-15").releases(DEMO)] == [False, True]
    assert [release.is_usable for release in open_index().releases(DEMO)] == [True, True]
    assert served.requests["/simple/demo/"] == 1


def test_prefetch_reads_pages_and_newest_metadata_once(served: LoopbackIndex, open_index: OpenIndex) -> None:
    served.delay = 0.02
    names = [canonicalize_name(f"demo-{number}") for number in range(20)]
    for name in names:
        served.add_wheel(name, "1.0", requires=["other"])
    client = open_index()
    client.prefetch(names)
    client.prefetch(names)
    client.prefetch([canonicalize_name("unknown")])
    for name in names:
        assert required(client, name) == ["other"]
    client.close()
    assert {served.requests[path] for path in served.requests if path != "/simple/unknown/"} == {1}


def test_prefetch_that_follows_nothing_reads_the_projects_themselves_alone(
    served: LoopbackIndex, open_index: OpenIndex
) -> None:
    served.add_wheel("demo", "1.0", requires=["other"])
    served.add_wheel("other", "1.0")
    client = open_index()
    client.prefetch([DEMO], follows=False)
    assert required(client) == ["other"]
    client.close()
    assert served.requests["/simple/other/"] == 0
    client = open_index()
    client.prefetch([DEMO], follows=False)
    client.prefetch([DEMO])
    until = time.monotonic() + 10
    while not served.requests["/simple/other/"] and time.monotonic() < until:
        time.sleep(0.01)
    client.close()
    assert served.requests["/simple/other/"] == 1


def test_prefetch_guesses_no_version_where_those_tried_before_ask_for_others(
    served: LoopbackIndex, open_index: OpenIndex
) -> None:
    other = canonicalize_name("other")
    for version in ("1.0", "2.0"):
        served.add_wheel("demo", version, requires=[f"other=={version}"])
        served.add_wheel("other", version)
    client = open_index()
    for release in client.releases(DEMO):
        client.requirements(release)
    client.prefetch([other])
    client.releases(other)
    client.close()
    assert not any("other-" in path for path in served.requests)


def test_prefetch_of_older_versions_counts_each_version_once(served: LoopbackIndex, open_index: OpenIndex) -> None:
    for number in range(20):
        served.add_wheel("demo", f"{number}.0")
    client = open_index()
    newest = client.releases(DEMO)[0]
    for _ in range(10):
        client.requirements(newest)
    client.close()
    assert sum(count for path, count in served.requests.items() if path.endswith(".metadata")) == 1


def test_prefetch_never_raises_and_the_error_comes_where_it_matters(served: LoopbackIndex, open_index: OpenIndex) -> None:
    served.status = 500
    client = open_index()
    client.prefetch([DEMO])
    with pytest.raises(UnavailableError) as caught:
        client.releases(DEMO)
    assert caught.value.message == "index `main` answers 500 (Internal Server Error)"


def test_failures_that_pass_are_retried(served: LoopbackIndex, open_index: OpenIndex) -> None:
    served.add_wheel("demo", "1.0")
    served.statuses["/simple/demo/"] = 503
    timer = threading.Timer(0.3, served.statuses.clear)
    timer.start()
    assert versions(open_index(retries=4)) == ["1.0"]
    timer.join()


def test_a_slow_index_is_out_of_reach_after_the_timeout(served: LoopbackIndex, open_index: OpenIndex) -> None:
    served.delay = 1.0
    with pytest.raises(UnavailableError) as caught:
        open_index(timeout=0.1).releases(DEMO)
    assert caught.value.message == "index `main` cannot be reached: no answer within 0.1 s"


def test_an_unknown_host_is_said_to_be_unknown(open_index: OpenIndex) -> None:
    with pytest.raises(UnavailableError) as caught:
        open_index(indexes={"main": "http://index.invalid/simple"}, proxy="").releases(DEMO)
    assert caught.value.message == "index `main` cannot be reached: its host name cannot be resolved"


def test_credentials_are_used_for_their_host_and_shown_nowhere(
    served: LoopbackIndex, open_index: OpenIndex, settings: IndexSettings
) -> None:
    served.credentials = "me:s3cret"
    served.add_wheel("demo", "1.0", requires=["other"])
    client = open_index(indexes={"main": served.url.replace("//", "//me:s3cret@")})
    assert required(client) == ["other"]
    file = client.releases(DEMO)[0].file
    assert file is not None
    assert "s3cret" not in repr(file)
    assert client.url_of("main") == served.url
    client.close()
    assert not [path for path in settings.cache_directory.rglob("*") if path.is_file() and b"s3cret" in path.read_bytes()]
    with pytest.raises(UnavailableError) as caught:
        open_index(indexes={"main": served.url.replace("//", "//me:wr0ng@")}, fresh_seconds=0).releases(DEMO)
    assert caught.value.message == "index `main` answers 401 (Unauthorized)"
    assert caught.value.causes == (
        f"{served.url}/demo/",
        "looked for a login: its URL and PROVISION_INDEX_MAIN_PASSWORD: a password, which it does not take",
    )


def test_a_certificate_bundle_that_is_not_there_is_named(open_index: OpenIndex) -> None:
    client = open_index(indexes={"main": "https://127.0.0.1:9/simple"}, ca_bundle="/no/such/bundle.pem")
    with pytest.raises(ProvisionError) as caught:
        client.releases(DEMO)
    assert caught.value.message == "the certificate file `/no/such/bundle.pem` cannot be used: it does not exist"
    assert caught.value.exit_code == 2


def test_threads_that_ask_for_the_same_project_share_one_request(served: LoopbackIndex, open_index: OpenIndex) -> None:
    served.delay = 0.05
    served.add_wheel("demo", "1.0")
    client = open_index()
    threads = [threading.Thread(target=client.releases, args=(DEMO,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert served.requests["/simple/demo/"] == 1


def test_two_clients_of_one_cache_do_not_disturb_each_other(served: LoopbackIndex, open_index: OpenIndex) -> None:
    names = [canonicalize_name(f"demo-{number}") for number in range(30)]
    for name in names:
        served.add_wheel(name, "1.0", requires=["other"])
    clients = [open_index(), open_index()]
    threads = [threading.Thread(target=lambda one=one: [required(one, name) for name in names]) for one in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    offline = open_index(offline=True)
    assert [required(offline, name) for name in names] == [["other"]] * 30


def test_exclude_newer_names_the_one_index_of_several_that_gives_no_times(served: LoopbackIndex, open_index: OpenIndex) -> None:
    served.add_wheel("demo", "1.0", upload_time="2026-01-01T00:00:00Z")
    served.add_wheel("demo", "2.0", upload_time="2026-03-01T00:00:00Z")
    served.add_wheel("torch", "2.7.1", upload_time="2026-01-01T00:00:00Z")
    served.add_wheel("torch", "2.7.1+cu126", index="whl/cu126")
    client = open_index(indexes={"main": served.url, "pytorch": served.template}, exclude_newer="2026-02-01")
    assert versions(client) == ["2.0", "1.0"]
    newer, older = client.releases(DEMO)
    assert (newer.file, newer.why_not) == (None, "uploaded after 2026-02-01")
    assert older.is_usable
    torch = canonicalize_name("torch")
    assert [str(one.version) for one in client.releases(torch)] == ["2.7.1"]
    with pytest.raises(UnavailableError) as caught:
        client.releases(torch, index="pytorch-cu126")
    assert caught.value.message == "index `pytorch-cu126` gives no upload times, so exclude-newer cannot be honoured"
    assert caught.value.causes == ("`torch-2.7.1+cu126-py3-none-any.whl` is listed without one",)
    assert caught.value.hints == ("leave exclude-newer out, or use an index that gives upload times",)


def test_where_some_files_have_no_time_only_those_that_were_there_for_sure_are_taken(
    served: LoopbackIndex, open_index: OpenIndex
) -> None:
    served.add_wheel("demo", "1.0", upload_time="2026-01-01T00:00:00Z")
    served.add_wheel("demo", "2.0")
    undated, dated = open_index(exclude_newer="2026-02-01").releases(DEMO)
    assert (str(undated.version), undated.file) == ("2.0", None)
    assert undated.why_not == "it has no upload time, so it may be newer than 2026-02-01"
    assert dated.is_usable


@pytest.mark.slow
@pytest.mark.parametrize("status", [200, 400, 405, 416, 501])
def test_no_server_makes_us_read_a_whole_wheel_for_its_metadata(
    served: LoopbackIndex, open_index: OpenIndex, status: int
) -> None:
    served.metadata = served.ranges = False
    filename = served.add_wheel("demo", "1.0", requires=["other"], padding=30_000_000)
    if status != 200:
        served.statuses[f"/files/{filename}"] = status
    client = open_index()
    with pytest.raises(UnavailableError) as caught:
        client.requirements(client.releases(DEMO)[0])
    assert caught.value.message == f"index `main` has neither a metadata file nor byte ranges for `{filename}`"
    client.close()
    assert client.activity.received < 100_000


def test_versions_behind_several_that_failed_are_read_at_once(served: LoopbackIndex, open_index: OpenIndex) -> None:
    for number in range(30):
        served.add_wheel("demo", f"1.{number}", requires=["other"])
    client = open_index()
    releases = client.releases(DEMO)
    for release in releases[:4]:
        client.requirements(release)
    ahead = [f"/files/demo-1.{number}-py3-none-any.whl.metadata" for number in range(22, 26)]
    until = time.monotonic() + 10
    while not all(served.requests[path] for path in ahead) and time.monotonic() < until:
        time.sleep(0.01)
    assert all(served.requests[path] == 1 for path in ahead)
    client.close()
    assert not served.requests["/files/demo-1.0-py3-none-any.whl.metadata"]


def test_reading_ahead_follows_what_is_required_and_what_was_required_before(
    served: LoopbackIndex, open_index: OpenIndex
) -> None:
    served.add_wheel("demo", "1.0", requires=["near<2", "far[fast]", "windows-only; sys_platform == 'win32'", "torch"])
    served.add_wheel("demo", "2.0", requires=["wrong-turn"])
    for version in ("1.0", "2.0"):
        served.add_wheel("near", version)
    served.add_wheel("far", "1.0", requires=["faster; extra == 'fast'", "slower; extra == 'slow'"])
    for name in ("faster", "slower", "windows-only", "wrong-turn", "torch"):
        served.add_wheel(name, "1.0")
    client = open_index()
    client.expect([Requirement("demo==1.0")])
    client.prefetch([DEMO])
    wanted = {f"/files/{one}-py3-none-any.whl.metadata" for one in ("demo-1.0", "near-1.0", "far-1.0", "faster-1.0")}
    until = time.monotonic() + 10
    while not wanted <= served.requests.keys() and time.monotonic() < until:
        time.sleep(0.01)
    client.close()
    pages = {f"/simple/{name}/" for name in ("demo", "near", "far", "faster")}
    assert set(served.requests) == wanted | pages


def test_the_python_a_file_needs_counts_where_its_page_does_not_state_it(served: LoopbackIndex, open_index: OpenIndex) -> None:
    """PEP 503: an index may state it and need not; pip and uv then go by the metadata. The target has 3.12."""
    newer, older = (
        served.add_wheel("demo", version, requires_python=python) for version, python in (("2.0", ">=3.13"), ("1.0", ">=3.8"))
    )
    links = (f'<a href="/files/{name}#sha256={served.files[f"/files/{name}"].sha256}">x</a>' for name in (newer, older))
    served.serve("/simple/demo/", "".join(links).encode())
    for client in (open_index(), open_index(), open_index(offline=True)):
        second, first = client.releases(DEMO)
        with pytest.raises(UnusableMetadataError) as caught:
            client.requirements(second)
        assert caught.value.message == f"`{newer}` cannot be used: it needs python >=3.13"
        assert client.requirements(first) == ()
    assert served.requests[f"/files/{newer}.metadata"] == 1
