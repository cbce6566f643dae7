"""`provision matrix refresh` against a real index on loopback: what it writes, refuses, keeps and forgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.matrix.load import load_matrix
from tests.served_wheels import ARM, X86, serve, serve_torch, write_matrix

if TYPE_CHECKING:
    from pathlib import Path

    from tests.project import Outcome, Project

PARTS = ("pytorch", "triton", "cudnn", "nccl")
MEASURED = """
        sass: [sm_75, sm_80]
        ptx: []
"""


@pytest.fixture
def world(project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """An index with a few PyTorch releases, and beside it a matrix whose generated files are still empty."""
    serve_torch(project.index)
    monkeypatch.setenv("PIP_INDEX_URL", project.index.url)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))  # wheels of equal bytes are one to a cache
    write_matrix(project.folder / "rules")
    return project


def refreshed(world: Project, *words: str) -> Outcome:
    return world.run("matrix", "refresh", *(words or PARTS), "--matrix", "rules")


def build(world: Project, key: str, platform: str = "linux/amd64") -> dict[str, str]:
    """The needs of one build of the matrix on disk: `2.7.0+cu126`."""
    version, _, name = key.partition("+")
    releases = load_matrix(world.folder / "rules").components["pytorch"].releases
    found = [
        one
        for each in releases
        if each.version.text == version
        for one in each.builds
        if one.name == name and platform in one.platforms
    ]
    return {need.component: str(need) for one in found[:1] for need in one.requires}


def test_an_empty_table_is_filled_and_the_matrix_loads(world: Project) -> None:
    outcome = refreshed(world)

    assert outcome.code == 0, outcome.err
    assert "+++ b/rules/pytorch.yaml" in outcome.out
    assert "4 of 4 files changed" in outcome.err
    pytorch = load_matrix(world.folder / "rules").components["pytorch"]
    assert [str(release.version) for release in pytorch.releases] == ["2.14.0", "2.7.0", "1.8.0"]
    assert pytorch.releases[0].released == "2026-01-02"


def test_the_three_shapes_of_pins_become_needs(world: Project) -> None:
    refreshed(world)

    assert build(world, "2.14.0+cu130") == {
        "cuda": "==13.0.3",
        "cudnn": "==9.24.0.43",
        "triton": "~=3.8.0",
        "python": "3.12 or 3.13",
        "glibc": ">=2.28",
    }
    # 2.26.2.post1 is another release for pip, so the pin is the one exact version; triton is there for Python 3.12 only
    assert build(world, "2.7.0+cu126") == {
        "cuda": "==12.6.*",
        "cudnn": "==9.5.1.17",
        "nccl": "2.26.2",
        "triton": "==3.3.0",
        "python": "3.12",
        "glibc": ">=2.28",
    }
    assert build(world, "2.7.0+cpu", "linux/arm64") == {"python": "3.12 or 3.13", "glibc": ">=2.28"}
    # torch/version.py is all that tells, and a manylinux1 tag tells nothing
    assert build(world, "1.8.0+cu102") == {"cuda": "==10.2.*", "python": "3.8"}


def test_a_second_run_changes_nothing_and_reads_no_wheel(world: Project) -> None:
    refreshed(world)
    before = world.files()
    world.index.requests.clear()

    outcome = refreshed(world)

    assert outcome.code == 0
    assert outcome.out == ""
    assert "4 files are as the index says" in outcome.err
    assert world.files() == before
    assert not [path for path in world.index.requests if path.startswith("/files/")]


def test_a_dry_run_shows_the_change_writes_nothing_and_says_no(world: Project) -> None:
    before = world.files()

    outcome = refreshed(world, *PARTS, "--dry-run")

    assert outcome.code == 1
    assert '+  - version: "2.14.0"' in outcome.out
    assert world.files() == before
    refreshed(world)
    assert refreshed(world, *PARTS, "--dry-run").code == 0


def test_a_new_release_is_the_only_change(world: Project) -> None:
    refreshed(world)
    serve(world.index, "triton", "3.9.0", tag="cp312-abi3-manylinux_2_27_x86_64")

    outcome = refreshed(world, "triton")

    changed = [line for line in outcome.out.splitlines() if line.startswith(("+", "-")) and not line.startswith(("+++", "---"))]
    assert changed[0] == '+  - version: "3.9.0"'
    assert all(line.startswith("+") for line in changed)


def test_a_table_that_shrank_is_refused_and_every_lost_row_named(world: Project) -> None:
    refreshed(world)
    before = world.files()
    page = world.index.pages["simple"]["torch"]
    page[:] = [file for file in page if "1.8.0" not in file.filename and f"2.7.0-cp313-cp313-{ARM}" not in file.filename]
    serve(world.index, "triton", "3.3.0", tag="cp312-abi3-manylinux_2_27_x86_64.manylinux_2_28_x86_64", yanked="broken")

    outcome = refreshed(world)

    assert outcome.code == 1
    assert "the index lacks 3 rows that the matrix has  [shrunken-table]" in outcome.err
    assert "rules/pytorch.yaml: release 1.8.0" in outcome.err
    assert "rules/pytorch.yaml: build cpu of 2.7.0 on linux/arm64: python 3.13" in outcome.err
    assert "rules/triton.yaml: release 3.3.0" in outcome.err
    assert world.files() == before


def test_of_many_yanked_releases_five_are_named_and_the_others_counted(world: Project) -> None:
    for number in range(7):
        serve(world.index, "triton", f"3.9.{number}", tag="cp312-abi3-manylinux_2_27_x86_64", yanked="broken")

    outcome = refreshed(world, *PARTS)

    (line,) = (line for line in outcome.err.splitlines() if line.startswith("left out because they were yanked: "))
    assert line.count("triton 3.9.") == 5
    assert line.endswith(" and 2 more, which --format json names")


def test_rows_go_when_removals_are_allowed(world: Project) -> None:
    refreshed(world)
    page = world.index.pages["simple"]["torch"]
    page[:] = [file for file in page if "1.8.0" not in file.filename]

    outcome = refreshed(world, *PARTS, "--allow-removals")

    assert outcome.code == 0
    assert '-  - version: "1.8.0"' in outcome.out
    assert build(world, "1.8.0+cu102") == {}


def test_a_pin_to_a_release_that_no_table_has_is_named(world: Project) -> None:
    serve(world.index, "torch", "2.16.0", requires=["cuda-toolkit==13.9.0; platform_system == 'Linux'"])
    before = world.files()

    outcome = refreshed(world)

    assert outcome.code == 1
    assert "[unloadable-matrix]" in outcome.err
    assert "no release of `cuda` in this matrix is ==13.9.0" in outcome.err
    assert world.files() == before


def test_two_spellings_of_one_release_are_one(world: Project) -> None:
    serve(world.index, "triton", "3.8", tag=f"cp313-cp313-{X86}")

    assert refreshed(world).code == 0
    triton = load_matrix(world.folder / "rules").components["triton"]
    assert len(triton.releases) == 2


def with_measurement(world: Project) -> None:
    """Write into the generated file what somebody measured inside the wheel of 2.14.0."""
    path = world.folder / "rules" / "pytorch.yaml"
    text = path.read_text(encoding="utf-8")
    first = text.index("        artefact:")
    text = text[:first] + MEASURED.strip("\n") + "\n" + text[first:]
    text = text.replace("source: [torch-wheels]", "source: [torch-wheels, fatbin]", 1)
    source = '  fatbin:\n    title: "fat-binary records"\n    read: "2026-01-01"\n    measured: true\n'
    path.write_text(text.replace("sources:\n", f"sources:\n{source}", 1), encoding="utf-8")


def test_what_was_measured_inside_an_artefact_survives_while_it_is_the_same(world: Project) -> None:
    refreshed(world)
    with_measurement(world)
    measured = world.read("rules/pytorch.yaml")

    assert refreshed(world).code == 0
    assert world.read("rules/pytorch.yaml") == measured
    serve(world.index, "torch", "2.14.0", tag=f"cp311-cp311-{X86}")  # another wheel of the release changes no artefact
    outcome = refreshed(world)
    assert "sass: [sm_75, sm_80]" in world.read("rules/pytorch.yaml")
    assert "dropped" not in outcome.err


def test_what_was_measured_is_dropped_aloud_when_the_artefact_changes(world: Project) -> None:
    refreshed(world)
    with_measurement(world)
    artefact = f"torch-2.14.0-cp313-cp313-{X86}.whl"
    serve(
        world.index,
        "torch",
        "2.14.0",
        tag=f"cp313-cp313-{X86}",
        requires=["cuda-toolkit==13.0.3; platform_system == 'Linux'"],
        members={"new.txt": b"another file"},
    )

    outcome = refreshed(world)

    assert outcome.code == 0, outcome.err
    assert f"`{artefact}` is gone or has another hash; dropped: sass, ptx, need of glibc (of fatbin)" in outcome.err
    assert "sass:" not in world.read("rules/pytorch.yaml")


def test_a_higher_build_number_is_another_artefact(world: Project) -> None:
    refreshed(world)
    serve(world.index, "torch", "2.14.0", tag=f"cp313-cp313-{X86}", build="3", requires=["cuda-toolkit==13.0.3"])

    refreshed(world)

    text = world.read("rules/pytorch.yaml")
    assert f"torch-2.14.0-3-cp313-cp313-{X86}.whl" in text
    assert f"torch-2.14.0-cp313-cp313-{X86}.whl" not in text


def test_new_targets_are_measured_when_asked(world: Project) -> None:
    library = b"\0junk\0sm_75 sm_80 compute_90\0more"
    serve(
        world.index,
        "torch",
        "2.14.0",
        tag=f"cp313-cp313-{X86}",
        requires=["cuda-toolkit==13.0.3"],
        members={"torch/lib/libtorch_python.so": library, "torch/lib/libc10.so": b"\0_ZN3c104testERKSs\0"},
    )

    assert refreshed(world, *PARTS, "--measure").code == 0

    text = world.read("rules/pytorch.yaml")
    assert "sass: [sm_75, sm_80]\n        ptx: [compute_90]\n        cxx11_abi: false" in text
    assert "source: [torch-wheels, torch-arch-flags, torch-cxx11-abi]" in text
    assert refreshed(world).out == ""


def test_an_interrupted_run_goes_on_where_it_stopped(world: Project) -> None:
    last = "/files/torch-1.8.0-cp38-cp38-manylinux1_x86_64.whl.metadata"
    world.index.statuses[last] = 503
    world.index.statuses[last.removesuffix(".metadata")] = 503
    before = world.files()

    outcome = refreshed(world, *PARTS, "--jobs", "1")

    assert outcome.code == 3
    assert world.files() == before
    assert world.index.requests[f"/files/torch-2.14.0-cp313-cp313-{X86}.whl.metadata"] == 1
    world.index.statuses.clear()
    assert refreshed(world).code == 0
    assert world.index.requests[f"/files/torch-2.14.0-cp313-cp313-{X86}.whl.metadata"] == 1


def test_offline_says_what_was_never_read(world: Project) -> None:
    outcome = refreshed(world, "triton", "--offline")

    assert outcome.code == 3
    assert "offline: `triton` of index main is not in the cache" in outcome.err


def test_offline_works_from_what_was_read(world: Project) -> None:
    refreshed(world)
    world.index.requests.clear()

    assert refreshed(world, *PARTS, "--offline").code == 0
    assert not world.index.requests


def test_what_no_index_tells_of_is_refused_with_its_place(world: Project) -> None:
    outcome = refreshed(world, "kernel")

    assert outcome.code == 2
    assert "`kernel` is curated by hand: rules/kernel.yaml" in outcome.err
    assert "did you mean `pytorch`?" in refreshed(world, "pytroch").err
    assert "did you mean `images`?" in refreshed(world, "imagez").err


def test_a_file_written_by_hand_is_never_overwritten(world: Project) -> None:
    text = 'sources: {hand: {title: by hand}}\nreleases:\n  - {version: "3.3.0", source: [hand]}\n'
    (world.folder / "rules" / "triton.yaml").write_text(text, encoding="utf-8")

    outcome = refreshed(world, "triton")

    assert outcome.code == 2
    assert "rules/triton.yaml was not generated, and would be overwritten" in outcome.err
    assert world.read("rules/triton.yaml") == text


def test_a_generated_file_that_cannot_be_read_is_not_replaced(world: Project) -> None:
    refreshed(world)
    path = world.folder / "rules" / "triton.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("released:", "relaesed:"), encoding="utf-8")

    outcome = refreshed(world)

    assert outcome.code == 1
    assert "rules/triton.yaml cannot be read, so nothing of it could be kept" in outcome.err
    assert "unknown key `relaesed`; did you mean `released`?" in outcome.err
    assert "relaesed" in world.read("rules/triton.yaml")


def test_an_index_without_hashes_is_no_basis(world: Project) -> None:
    world.index.hashes = False

    outcome = refreshed(world)

    assert outcome.code == 3
    assert "gives no sha256 of `" in outcome.err


def test_the_report_for_programs(world: Project) -> None:
    outcome = refreshed(world, "triton", "--format", "json")

    assert outcome.code == 0
    report = outcome.json
    assert report["status"] == "changed"
    assert report["written"] is True
    assert report["fetched_bytes"] > 0
    (file,) = report["files"]
    assert (file["component"], file["path"], file["releases"], file["builds"]) == ("triton", "rules/triton.yaml", 2, 2)
    assert file["diff"].startswith("--- a/rules/triton.yaml")


@pytest.mark.network
def test_the_real_index_has_what_the_shipped_table_of_triton_says(
    tmp_path: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Freshness is the business of CI; here only that nothing the matrix says of Triton has become untrue."""
    import shutil

    from provisioner.matrix.location import default_directory

    monkeypatch.undo()
    rules = tmp_path / "shipped"
    shutil.copytree(default_directory(), rules)
    outcome = project.run("matrix", "refresh", "triton", "--matrix", str(rules))
    assert outcome.code == 0, outcome.err
    assert not [
        line for line in outcome.out.splitlines() if line.startswith("-") and not line.startswith("---") and "read:" not in line
    ]
