"""Which file an installer would take on the target, and in which words nothing fits."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from packaging.tags import Tag, parse_tag
from packaging.utils import canonicalize_name
from packaging.version import Version

from provisioner.errors import ProvisionError, UnavailableError
from provisioner.index.model import FIND_LINKS, Environment, IndexFile, PackageRelease
from provisioner.index.pages.filename import Filename, parse_filename
from provisioner.index.pages.selection import Selection, takes_python
from provisioner.index.pages.tags import expanded, glibc_needed, platform_of, tag_ranks

LINUX = Environment(platform="linux/amd64", python="3.12", glibc=(2, 28))
DEMO = canonicalize_name("demo")


def listed(*filenames: str, **fields: str | None) -> list[IndexFile]:
    plain = IndexFile(filename="", url="", index="pypi")
    return [replace(plain, filename=name, url=f"https://f.example/{name}", **fields) for name in filenames]


def select(*filenames: str, environment: Environment = LINUX, **wishes: bool) -> tuple[PackageRelease, ...]:
    return Selection(environment=environment, **wishes).releases(DEMO, listed(*filenames))  # type: ignore[arg-type]


def chosen(*filenames: str, environment: Environment = LINUX) -> str:
    (release,) = select(*filenames, environment=environment)
    assert release.file is not None, release.why_not
    return release.file.filename


def refused(*filenames: str, environment: Environment = LINUX) -> tuple[str, str]:
    (release,) = select(*filenames, environment=environment)
    assert release.file is None
    return release.why_not, release.blocked_by


def test_versions_come_newest_first_in_the_order_of_pep_440() -> None:
    releases = select("demo-1.9-py3-none-any.whl", "demo-1.10-py3-none-any.whl", "demo-1.10.post1-py3-none-any.whl")
    assert [str(release.version) for release in releases] == ["1.10.post1", "1.10", "1.9"]


def test_the_newest_platform_the_target_has_wins_over_older_and_universal_ones() -> None:
    names = (
        "demo-1.0-py3-none-any.whl",
        "demo-1.0-cp312-cp312-manylinux1_x86_64.whl",
        "demo-1.0-cp312-cp312-manylinux_2_34_x86_64.whl",
        "demo-1.0-cp312-cp312-manylinux2014_x86_64.whl",
        "demo-1.0-cp39-abi3-manylinux_2_28_x86_64.whl",
    )
    assert chosen(*names) == "demo-1.0-cp312-cp312-manylinux2014_x86_64.whl"
    newer = replace(LINUX, glibc=(2, 34))
    assert chosen(*names, environment=newer) == "demo-1.0-cp312-cp312-manylinux_2_34_x86_64.whl"


def test_an_unknown_glibc_rules_nothing_out() -> None:
    unknown = replace(LINUX, glibc=None)
    assert chosen("demo-1.0-cp312-cp312-manylinux_2_39_x86_64.whl", environment=unknown)
    assert glibc_needed("demo-1.0-cp312-cp312-manylinux_2_39_x86_64.whl") == (2, 39)


def test_the_higher_build_of_equal_tags_wins() -> None:
    assert chosen("demo-1.0-9-py3-none-any.whl", "demo-1.0-10-py3-none-any.whl") == "demo-1.0-10-py3-none-any.whl"


def test_of_files_that_fit_equally_well_the_first_is_taken() -> None:
    first, second = listed("demo-1.0-py3-none-any.whl", "demo-1.0-py3-none-any.whl")
    (release,) = Selection(environment=LINUX).releases(DEMO, [replace(first, index=FIND_LINKS), second])
    assert release.file is not None
    assert release.file.index == FIND_LINKS


def test_free_threaded_wheels_are_not_for_the_ordinary_interpreter() -> None:
    environment = replace(LINUX, python="3.14")
    assert refused("demo-1.0-cp314-cp314t-manylinux_2_28_x86_64.whl", environment=environment) == (
        "no wheel for cp314 on linux/amd64 (has cp314t)",
        "python",
    )


def test_a_wheel_for_other_pythons_names_them_in_order() -> None:
    names = [f"demo-1.0-cp{python}-cp{python}-manylinux2014_x86_64.whl" for python in ("311", "39", "310")]
    assert refused(*names) == ("no wheel for cp312 on linux/amd64 (has cp39, cp310, cp311)", "python")


def test_a_wheel_for_a_newer_glibc_says_which() -> None:
    assert refused("demo-1.0-cp312-cp312-manylinux_2_34_x86_64.whl", "demo-1.0-cp312-cp312-win_amd64.whl") == (
        "no wheel for glibc 2.28 on linux/amd64 (needs glibc 2.34)",
        "glibc",
    )


def test_a_wheel_for_other_platforms_names_them() -> None:
    names = ("demo-1.0-cp312-cp312-manylinux2014_aarch64.whl", "demo-1.0-cp312-cp312-macosx_11_0_arm64.whl")
    assert refused(*names, "demo-1.0-cp312-cp312-win_amd64.whl", "demo-1.0-cp312-cp312-musllinux_1_2_x86_64.whl") == (
        "no wheel for linux/amd64 (has linux/arm64, macos/arm64, musl linux/amd64, windows)",
        "platform",
    )


def test_no_target_can_be_windows_so_that_another_one_is_no_help() -> None:
    assert refused("demo-1.0-cp312-cp312-win_amd64.whl") == ("no wheel for linux/amd64 (has windows)", "")


def test_a_wheel_for_a_newer_macos_says_which() -> None:
    environment = Environment(platform="macos/x86_64", python="3.11", macos=(10, 13))
    assert refused("demo-1.0-cp311-cp311-macosx_11_0_x86_64.whl", environment=environment) == (
        "no wheel for macOS 10.13 (needs macOS 11.0)",
        "platform",
    )
    assert chosen("demo-1.0-cp311-cp311-macosx_10_9_universal2.whl", environment=environment)


def test_requires_python_is_held_against_the_target() -> None:
    (release,) = Selection(environment=LINUX).releases(DEMO, listed("demo-1.0-py3-none-any.whl", requires_python=">=3.9,<3.12"))
    assert (release.file, release.why_not, release.blocked_by) == (None, "needs python >=3.9,<3.12", "python")
    assert release.requires_python == ">=3.9,<3.12"


@pytest.mark.parametrize(
    ("requires", "python", "takes"),
    [
        (">=3.8.1", "3.8", True),
        ("!=3.9.7,>=3.9", "3.9", True),
        ("<3.13", "3.12", True),
        (">=3.12.5", "3.12.4", False),
        ("==3.12.*", "3.12", True),
        ("~=3.8", "4.0", False),
        ("not a specifier", "3.12", True),
        (None, "3.12", True),
    ],
)
def test_a_series_stands_for_its_newest_patch_release(requires: str | None, python: str, *, takes: bool) -> None:
    assert takes_python(requires, python) is takes


def test_source_distributions_are_taken_only_when_allowed_and_only_without_a_wheel() -> None:
    assert refused("demo-1.0.tar.gz") == ("only a source distribution; policy `allow: [sdist]` would take it", "")
    (release,) = select("demo-1.0.tar.gz", allow_sdist=True)
    assert release.file is not None
    (release,) = select("demo-1.0.tar.gz", "demo-1.0-py3-none-any.whl", allow_sdist=True)
    assert release.file is not None
    assert release.file.filename == "demo-1.0-py3-none-any.whl"


def test_a_source_distribution_beside_wheels_for_others_is_told_where_it_would_be_taken() -> None:
    """As langdetect 1.0.9, whose one wheel is for Python 2, and cdifflib 1.2.6, with one for macOS."""
    told = "; policy `allow: [sdist]` would take its source distribution"
    assert refused("demo-1.0-py2-none-any.whl") == ("no wheel for cp312 on linux/amd64 (has py2)", "python")
    assert refused("demo-1.0-py2-none-any.whl", "demo-1.0.tar.gz") == (
        f"no wheel for cp312 on linux/amd64 (has py2){told}",
        "python",
    )
    mac = "demo-1.0-cp312-cp312-macosx_10_9_x86_64.whl"
    assert refused("demo-1.0.tar.gz", mac) == (f"no wheel for linux/amd64 (has macos/x86_64){told}", "platform")
    (release,) = select("demo-1.0-py2-none-any.whl", "demo-1.0.tar.gz", allow_sdist=True)
    assert release.file is not None
    assert release.file.filename == "demo-1.0.tar.gz"


@pytest.mark.parametrize(
    "stated", [{"yanked": "broken"}, {"requires_python": "<3.12"}, {"upload_time": "2026-02-01T00:00:00Z"}]
)
def test_a_source_distribution_that_would_not_be_taken_either_is_not_told(stated: dict[str, str]) -> None:
    wheel = listed("demo-1.0-py2-none-any.whl", upload_time="2026-01-01T00:00:00Z")
    source = listed("demo-1.0.tar.gz", **({"upload_time": "2026-01-01T00:00:00Z"} | stated))
    (release,) = Selection(environment=LINUX, exclude_newer="2026-01-15").releases(DEMO, [*wheel, *source])
    assert release.why_not == "no wheel for cp312 on linux/amd64 (has py2)"


def test_prereleases_are_listed_when_allowed_or_when_there_is_nothing_else() -> None:
    names = ("demo-2.0rc1-py3-none-any.whl", "demo-1.0-py3-none-any.whl")
    assert [str(release.version) for release in select(*names)] == ["1.0"]
    assert [str(release.version) for release in select(*names, allow_prerelease=True)] == ["2.0rc1", "1.0"]
    assert [str(release.version) for release in select("demo-2.0rc1-py3-none-any.whl")] == ["2.0rc1"]


def test_a_yanked_release_keeps_its_file_and_says_why() -> None:
    (release,) = Selection(environment=LINUX).releases(DEMO, listed("demo-1.0-py3-none-any.whl", yanked="breaks import"))
    assert release.file is not None
    assert release.why_not == "yanked: breaks import"
    assert not release.is_usable


def test_a_file_that_was_not_yanked_wins_over_a_better_one_that_was() -> None:
    good = listed("demo-1.0-py3-none-any.whl")
    bad = listed("demo-1.0-cp312-cp312-manylinux2014_x86_64.whl", yanked="")
    (release,) = Selection(environment=LINUX).releases(DEMO, [*bad, *good])
    assert release.file == good[0]
    assert release.is_usable


def timed(text: str | None, exclude_newer: str, index: str = "pypi") -> PackageRelease:
    files = [replace(file, index=index) for file in listed("demo-1.0-py3-none-any.whl", upload_time=text)]
    (release,) = Selection(environment=LINUX, exclude_newer=exclude_newer).releases(DEMO, files)
    return release


def test_exclude_newer_includes_the_day_and_excludes_the_time() -> None:
    assert timed("2026-09-01T23:59:59.999Z", "2026-09-01").file is not None
    late = timed("2026-09-02T00:00:00Z", "2026-09-01")
    assert (late.file, late.why_not) == (None, "uploaded after 2026-09-01")
    assert timed("2026-09-01T12:00:00+02:00", "2026-09-01T10:00:00Z").file is None
    assert timed("2026-09-01T11:59:59+02:00", "2026-09-01T10:00:00Z").file is not None


def test_an_index_without_upload_times_cannot_honour_exclude_newer() -> None:
    with pytest.raises(UnavailableError) as caught:
        timed(None, "2026-09-01")
    assert caught.value.message == "index `pypi` gives no upload times, so exclude-newer cannot be honoured"
    assert caught.value.causes == ("`demo-1.0-py3-none-any.whl` is listed without one",)
    assert caught.value.exit_code == 3


def test_find_links_files_without_times_are_left_out() -> None:
    assert timed(None, "2026-09-01", index=FIND_LINKS).file is None


def test_a_withdrawn_final_does_not_hide_the_pre_releases() -> None:
    files = [*listed("demo-1.0-py3-none-any.whl", yanked="placeholder"), *listed("demo-2.0b1-py3-none-any.whl")]
    releases = Selection(environment=LINUX).releases(DEMO, files)
    assert [(str(one.version), one.is_usable) for one in releases] == [("2.0b1", True), ("1.0", False)]


def test_a_final_that_came_too_late_does_not_hide_the_pre_releases() -> None:
    files = [
        *listed("demo-1.0-py3-none-any.whl", upload_time="2026-10-01T00:00:00Z"),
        *listed("demo-1.0b1-py3-none-any.whl", upload_time="2026-08-01T00:00:00Z"),
    ]
    releases = Selection(environment=LINUX, exclude_newer="2026-09-01").releases(DEMO, files)
    assert [str(one.version) for one in releases if one.is_usable] == ["1.0b1"]


def test_a_file_without_an_upload_time_is_left_out_where_others_have_one() -> None:
    files = [
        *listed("demo-2.0-py3-none-any.whl", upload_time=None),
        *listed("demo-1.0-py3-none-any.whl", upload_time="2026-08-01T00:00:00Z"),
    ]
    newer, older = Selection(environment=LINUX, exclude_newer="2026-09-01").releases(DEMO, files)
    assert (newer.file, newer.why_not) == (None, "it has no upload time, so it may be newer than 2026-09-01")
    assert older.is_usable


def test_an_exclude_newer_that_is_no_date_is_named() -> None:
    with pytest.raises(ProvisionError, match="exclude-newer `yesterday` is not a date"):
        timed("2026-09-01T00:00:00Z", "yesterday")


@pytest.mark.parametrize(
    "filename",
    [
        "other-1.0-py3-none-any.whl",
        "demo-1.0.whl",
        "demo-1.0-x1-py3-none-any.whl",
        "demo-one-py3-none-any.whl",
        "demo-1.0-py3.8.egg",
        "demo-1.0.exe",
        "demo.tar.gz",
        "demo-1.0.tar.bz2",
        "demo-extra-1.0.tar.gz",
        "",
    ],
)
def test_files_that_are_no_distribution_of_the_project_are_passed_over(filename: str) -> None:
    assert select(filename, allow_sdist=True) == ()


def test_filenames_are_taken_apart_as_packaging_does() -> None:
    assert parse_filename("Demo_Pkg-1.0+cu118-3b-cp310-cp310-linux_x86_64.whl", "demo-pkg") == Filename(
        Version("1.0+cu118"), "cp310-cp310-linux_x86_64", (3, "b")
    )
    assert parse_filename("demo-pkg-1.0-1.zip", "demo-pkg") == Filename(Version("1.0.post1"))
    for tag in ("py2.py3-none-any", "cp310-cp310-manylinux_2_17_x86_64.manylinux2014_x86_64"):
        assert {Tag(*one.split("-")) for one in expanded(tag)} == parse_tag(tag)


def test_the_platforms_of_a_target_are_never_those_of_this_machine() -> None:
    arm = tag_ranks(Environment(platform="linux/arm64", python="3.13", glibc=(2, 35)))
    assert "cp313-cp313-manylinux2014_aarch64" in arm
    assert "cp313-cp313-manylinux_2_36_aarch64" not in arm
    assert not any("x86_64" in tag for tag in arm)
    oldest = tag_ranks(LINUX)
    assert {"cp312-cp312-manylinux_2_5_x86_64", "cp312-cp312-manylinux1_x86_64", "cp312-none-any"} <= set(oldest)
    assert "cp312-cp312-manylinux_2_4_x86_64" not in oldest


@pytest.mark.parametrize(
    ("tag", "name"),
    [
        ("manylinux2014_x86_64", "linux/amd64"),
        ("linux_armv7l", "linux/armv7l"),
        ("macosx_11_0_universal2", "macos/universal2"),
        ("win32", "windows"),
        ("any", "any"),
    ],
)
def test_platform_tags_have_names(tag: str, name: str) -> None:
    assert platform_of(tag) == name


@pytest.mark.parametrize(("python", "abi"), [("3.6", "cp36m"), ("3.7", "cp37m"), ("3.8", "cp38"), ("3.13", "cp313")])
def test_the_abi_of_an_old_python_is_named_as_it_was(python: str, abi: str) -> None:
    """PEP 3149: until 3.7 the ABI said `m`; `torch-1.4.0-cp37-cp37m-manylinux1_x86_64.whl` is for an ordinary 3.7."""
    ranks = tag_ranks(Environment(platform="linux/amd64", python=python, glibc=(2, 35)))
    assert f"cp{python.replace('.', '')}-{abi}-manylinux1_x86_64" in ranks
    assert (f"cp{python.replace('.', '')}-cp{python.replace('.', '')}-manylinux1_x86_64" in ranks) == (not abi.endswith("m"))
