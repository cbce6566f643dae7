"""Filenames and requirements as needs; rows as text; what is kept and what counts as lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from provisioner.curate.keep import losses, with_kept_facts
from provisioner.curate.readings import arch_flags, string_abi
from provisioner.curate.rows import WIDTH, file_text
from provisioner.curate.wheel_facts import as_range, cuda_of_runtime, glibc, macos, platforms, pythons, required
from provisioner.curate.wheel_index import Wheel
from provisioner.document import parse_document, parse_model
from provisioner.index.model import IndexFile
from provisioner.matrix.files import ComponentFile
from provisioner.matrix.model import Build, Citation, Release
from provisioner.matrix.need import need_texts, read_needs
from provisioner.versions import Version as Spelled


def wheel(tag: str, requires_python: str | None = None) -> Wheel:
    file = IndexFile(filename=f"demo-1.0-{tag}.whl", url="", index="pypi", requires_python=requires_python)
    return Wheel(project="demo", version=Version("1.0"), text="1.0", tag=tag, build=(0, ""), file=file)


def test_a_tag_list_is_what_has_a_wheel_and_is_welcome() -> None:
    wheels = [wheel(f"cp3{minor}-cp3{minor}-manylinux_2_28_x86_64", ">=3.9") for minor in (8, 9, 13)]
    assert pythons(wheels, newest=(3, 13)) == ("3.9", "3.13")


def test_a_free_threaded_wheel_is_not_for_the_ordinary_python() -> None:
    wheels = [wheel("cp313-cp313t-manylinux_2_28_x86_64"), wheel("cp312-cp312-manylinux_2_28_x86_64")]
    assert pythons(wheels, newest=(3, 13)) == ("3.12",)


def test_a_stable_abi_wheel_serves_up_to_the_newest_python_anybody_built_for() -> None:
    assert pythons([wheel("cp312-abi3-manylinux_2_28_x86_64", "<3.16")], newest=(3, 14)) == ("3.12", "3.13", "3.14")


def test_a_pure_wheel_serves_what_requires_python_allows() -> None:
    assert pythons([wheel("py3-none-any", "<4,>=3.10")], newest=(3, 14)) == ">=3.10,<4"


@pytest.mark.parametrize(("limit", "welcome"), [("!=3.12.1", True), (">=3.12.4", True), ("<3.12", False), ("<3.13", True)])
def test_a_feature_release_counts_when_any_patch_release_does(limit: str, *, welcome: bool) -> None:
    found = pythons([wheel("cp312-cp312-manylinux_2_28_x86_64", limit)], newest=(3, 12))
    assert (found == ("3.12",)) is welcome


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (["manylinux_2_27_x86_64.manylinux_2_28_x86_64"], ">=2.27"),
        (["manylinux2014_x86_64", "manylinux_2_28_x86_64"], ">=2.28"),
        (["manylinux1_x86_64"], ""),
        (["manylinux1_x86_64", "manylinux_2_28_x86_64"], ""),
        (["linux_x86_64"], ""),
    ],
)
def test_the_glibc_floor_is_the_highest_promise_and_unknown_when_one_promises_nothing(tags: list[str], expected: str) -> None:
    assert glibc([wheel(f"cp312-cp312-{tag}") for tag in tags]) == expected


def test_platforms_and_macos_floor() -> None:
    universal = wheel("cp312-cp312-macosx_11_0_universal2")
    assert platforms(universal) == ("macos/x86_64", "macos/arm64")
    assert macos([universal], "macos/arm64") == ">=11.0"
    intel = wheel("cp35-cp35m-macosx_10_6_intel")
    assert (platforms(intel), macos([intel], "macos/x86_64")) == (("macos/x86_64",), ">=10.6")
    assert platforms(wheel("cp312-cp312-win_amd64")) == ()
    assert platforms(wheel("cp312-cp312-musllinux_1_2_x86_64")) == ()


def test_markers_decide_and_two_lines_on_one_name_are_joined() -> None:
    lines = [
        "numpy>=1.22",
        "numpy>=1.26; python_version >= '3.12'",
        "nvidia-nccl-cu12==2.21.5; platform_system == 'Linux' and platform_machine == 'x86_64'",
        "tensorrt==8.5.3; extra == 'and-cuda'",
    ]
    requirements = [Requirement(line) for line in lines]
    new = required(requirements, platform="linux/amd64", python="3.12")
    assert {name: str(one.specifier) for name, one in new.items()} == {
        "numpy": str(SpecifierSet(">=1.22,>=1.26")),
        "nvidia-nccl-cu12": "==2.21.5",
    }
    assert set(required(requirements, platform="linux/arm64", python="3.12", extras=("and-cuda",))) == {"numpy", "tensorrt"}
    assert set(required(requirements, platform="macos/arm64", python="3.9")) == {"numpy"}


@pytest.mark.parametrize(
    ("specifier", "expected"),
    [("==12.6.77", "==12.6.*"), (">=12.5.82,<13.0", ">=12.5,<13"), ("", "==12.*"), (">=13.0.48", ">=13.0,<14")],
)
def test_a_pin_of_the_runtime_is_a_cuda(specifier: str, expected: str) -> None:
    assert cuda_of_runtime(SpecifierSet(specifier), "12") == expected


def test_a_range_starts_with_its_lower_end() -> None:
    assert as_range(SpecifierSet("<10.0,>=9.8,!=9.9")) == ">=9.8,!=9.9,<10.0"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (b"_ZN3c106detail13StripBasenameERKSs", ["before"]),
        (b"_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_RKNSt7__cxx1112basic_stringIcE", ["cxx11"]),
        # libstdc++'s own functions of the new ABI, linked into a library of the old one
        (b"_ZN3c106detail13StripBasenameERKSs\0_ZNKSt7__cxx1112basic_stringIcE4findEc", ["before"]),
        (b"_ZN3c104initEv", []),
    ],
)
def test_the_string_abi_is_that_of_the_librarys_own_functions(names: bytes, expected: list[str]) -> None:
    assert string_abi(b"\x7fELF\0" + names + b"\0rest") == expected


def test_the_longest_list_of_targets_is_the_one_pytorch_shows() -> None:
    assert arch_flags(b"..sm_90\0x sm_75 sm_80 sm_90a compute_90\0sm_50 sm_60\0") == ["sm_75", "sm_80", "sm_90a", "compute_90"]
    assert arch_flags(b"nothing") == []


TEXTS = (
    st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]) | st.just(" "), min_size=1).map(str.strip).filter(bool)
)
BUILDS = st.builds(
    lambda name, values, targets, url: Build(
        name=name,
        requires=read_needs({"python": tuple(values), "glibc": ">=2.28"}),
        sass=tuple(targets),
        artefact=url,
        source=("key",),
    ),
    TEXTS,
    st.lists(st.sampled_from(["3.9", "3.10", "3.15"]), min_size=1, max_size=30),
    st.lists(st.sampled_from(["sm_75", "sm_90a"])),
    TEXTS,
)
FILES = st.builds(
    lambda builds, title: ComponentFile(
        sources={"key": Citation(title=title, measured=True)},
        releases=(Release(version=Spelled.parse("1.0"), builds=tuple(builds)),),
    ),
    st.lists(BUILDS, min_size=1, max_size=3),
    TEXTS,
)


@pytest.mark.property
@given(FILES)
def test_what_is_written_reads_back_as_the_same_rows(content: ComponentFile) -> None:
    text = file_text(content, header="a header")
    document = parse_document(text, file="x.yaml", kind="matrix")
    assert parse_model(document, ComponentFile, kind="matrix") == content


def test_a_row_stands_on_one_line_where_it_fits_and_never_beyond_the_width() -> None:
    short = Release(version=Spelled.parse("1.10"), released="2026-01-01", source=("wheels",))
    versions = tuple(f"3.{minor}" for minor in range(40))
    long = Release(
        version=Spelled.parse("1.9"),
        builds=(Build(name="cu126", requires=read_needs({"python": versions}), sass=()),),
        source=("wheels",),
    )
    lines = file_text(ComponentFile(releases=(short, long)), header="h").splitlines()
    assert lines[:3] == ["# h", "releases:", '  - {version: "1.10", released: "2026-01-01", source: [wheels]}']
    assert "        sass: []" in lines
    assert max(len(line) for line in lines if "python" not in line) <= WIDTH


def table(**build: object) -> ComponentFile:
    fields = {
        "name": "cu126",
        "platforms": ("linux/amd64",),
        "artefact": "a.whl",
        "sha256": "0" * 64,
        "source": ("wheels",),
        **build,
    }
    release = Release(version=Spelled.parse("2.7.0"), builds=(Build(**fields),))  # type: ignore[arg-type]
    sources = {key: Citation(title=key, read="2026-01-01") for key in ("wheels", "fatbin")}
    return ComponentFile(sources=sources, releases=(release,))


def derived(**build: object) -> ComponentFile:
    found = table(**build)
    return replace(found, sources={"wheels": Citation(title="wheels", read="2026-02-02")})


def test_facts_with_a_source_of_their_own_are_kept_for_the_same_artefact() -> None:
    old = table(
        sass=("sm_75",), ptx=(), requires=read_needs({"glibc": ">=2.17", "nccl": "==2.14.3"}), source=("wheels", "fatbin")
    )
    (build,) = with_kept_facts(old, derived(requires=read_needs({"cuda": "==12.6.*", "glibc": ">=2.28"})))[0].releases[0].builds
    assert (build.sass, build.ptx) == (("sm_75",), ())
    assert list(need_texts(build.requires).items()) == [("cuda", "==12.6.*"), ("nccl", "==2.14.3"), ("glibc", ">=2.17")]
    assert build.source == ("wheels", "fatbin")


def test_nothing_is_kept_that_cites_the_index_alone() -> None:
    old = table(sass=("sm_75",), requires=read_needs({"glibc": ">=2.17"}))
    (build,) = with_kept_facts(old, derived(requires=read_needs({"glibc": ">=2.28"})))[0].releases[0].builds
    assert build.sass is None
    assert need_texts(build.requires) == {"glibc": ">=2.28"}


def test_the_day_moves_only_when_a_row_does() -> None:
    same, _ = with_kept_facts(table(), derived())
    assert same.sources["wheels"].read == "2026-01-01"
    moved, _ = with_kept_facts(table(), derived(requires=read_needs({"glibc": ">=2.28"})))
    assert moved.sources["wheels"].read == "2026-02-02"


def test_equal_releases_spelled_differently_are_not_lost() -> None:
    old = ComponentFile(releases=(Release(version=Spelled.parse("13.0.3"), builds=(Build(name="wheel"),)),))
    new = ComponentFile(releases=(Release(version=Spelled.parse("13.0.3.0"), builds=(Build(name="wheel"),)),))
    assert losses(old, new) == ()
    assert losses(new, ComponentFile()) == ("release 13.0.3.0",)


def test_a_build_that_is_split_by_python_is_not_lost() -> None:
    one = Build(name="cu121", platforms=("linux/amd64",), requires=read_needs({"python": ("3.11", "3.12")}))
    parts = tuple(
        Build(name="cu121", platforms=("linux/amd64",), requires=read_needs({"python": (python,)}))
        for python in ("3.11", "3.12")
    )
    whole, split = (
        ComponentFile(releases=(Release(version=Spelled.parse("2.2.1"), builds=builds),)) for builds in ((one,), parts)
    )
    assert losses(whole, split) == ()
    assert losses(split, whole) == ()
    assert losses(whole, ComponentFile(releases=(Release(version=Spelled.parse("2.2.1"), builds=parts[:1]),))) == (
        "build cu121 of 2.2.1 on linux/amd64: python 3.12",
    )
