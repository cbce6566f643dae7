"""`provision matrix refresh wheels` and `audit wheels`: the GPU code of wheels on a loopback index, measured by ranges."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from provisioner.matrix.load import load_matrix
from tests.built_artefacts import fat_binary, shared_library
from tests.served_wheels import ARM, X86, serve, write_matrix

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.project import Outcome, Project

SURVEYS = "surveys:\n  - {distribution: kernels, most: 6}\n  - {distribution: loader, most: 2}\n"
VERSIONS = ("1.0", "1.1", "1.2", "1.3")


@pytest.fixture
def library(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., bytes]:
    """Compiles libraries with code for GPUs and texts of their own; each is compiled once."""
    made: dict[tuple[str, ...], bytes] = {}

    def compiled(*targets: str, text: bytes = b"") -> bytes:
        if targets not in made:
            made[targets] = shared_library(tmp_path_factory.mktemp("library"), section=fat_binary(*targets))
        return made[targets] + text

    return compiled


@pytest.fixture
def world(
    project: Project,
    library: Callable[..., bytes],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Project:
    """An index with four releases of `kernels`, two without Pascal, and one of `loader`; a matrix that surveys both."""
    for version in VERSIONS:
        offer(project, version, library("sm_75", "sm_90") if version >= "1.2" else library("sm_60", "sm_75"))
    serve(
        project.index,
        "loader",
        "2.0",
        tag=f"py3-none-{X86}",
        members={"loader/core.so": library("sm_90", text=b"\0libcudnn.so.9\0")},
    )
    monkeypatch.setenv("PIP_INDEX_URL", project.index.url)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    folder = write_matrix(project.folder / "rules")
    with (folder / "matrix.yaml").open("a", encoding="utf-8") as file:
        file.write("wheels: wheels.yaml\n")
    (folder / "wheels.yaml").write_text(SURVEYS, encoding="utf-8")
    return project


def offer(world: Project, version: str, content: bytes, *, tag: str = f"cp312-abi3-{X86}", yanked: str | None = None) -> str:
    """List a wheel of `kernels` with one library."""
    return serve(world.index, "kernels", version, tag=tag, members={"kernels/_C.abi3.so": content}, yanked=yanked)


def withdraw(world: Project, *versions: str) -> None:
    """Take releases of `kernels` from the index."""
    page = world.index.pages["simple"]["kernels"]
    page[:] = [file for file in page if not any(f"-{version}-" in file.filename for version in versions)]


def refreshed(world: Project, *words: str) -> Outcome:
    return world.run("matrix", "refresh", "wheels", *words, "--matrix", "rules")


def audited(world: Project, *words: str) -> Outcome:
    return world.run("matrix", "audit", *(words or ("wheels",)), "--matrix", "rules")


def rows(world: Project) -> list[tuple[str, str, tuple[str, ...] | None]]:
    """The rows on disk: distribution, versions, targets."""
    return [(row.distribution, row.versions, row.sass) for row in load_matrix(world.folder / "rules").wheels]


MEASURED = [
    ("kernels", ">=1.2,<=1.3", ("sm_75", "sm_90")),
    ("kernels", ">=1.0,<=1.1", ("sm_60", "sm_75")),
    ("loader", "==2.0", ("sm_90",)),
]


def test_wheels_are_measured_where_their_code_changes(world: Project) -> None:
    outcome = refreshed(world, "--measure")

    assert outcome.code == 0, outcome.err
    assert rows(world) == MEASURED
    assert "+  - distribution: kernels\n" in outcome.out
    assert "+    opens: [libcudnn.so.9]\n" in outcome.out
    assert outcome.err.startswith("1 of 1 files changed: 3 rows of GPU code in 5 wheels; 0.")


def test_a_second_run_changes_nothing_and_reads_no_wheel(world: Project) -> None:
    refreshed(world, "--measure")
    before = world.files()
    world.index.requests.clear()

    for words in ((), ("--measure",), ("--dry-run",), ("--measure", "--dry-run")):
        outcome = refreshed(world, *words)
        assert (outcome.code, outcome.out) == (0, "")
        assert outcome.err.startswith("1 file is as the index says: 3 rows of GPU code in 5 wheels")
    assert world.files() == before
    assert not [path for path in world.index.requests if path.startswith("/files/")]


def test_nothing_is_measured_unless_asked(world: Project) -> None:
    outcome = refreshed(world)

    assert (outcome.code, rows(world)) == (0, [])
    assert not [path for path in world.index.requests if path.startswith("/files/")]


def test_a_dry_run_measures_shows_the_change_and_writes_nothing(world: Project) -> None:
    before = world.files()

    outcome = refreshed(world, "--measure", "--dry-run")

    assert outcome.code == 1
    assert '+    versions: ">=1.2,<=1.3"' in outcome.out
    assert world.files() == before


def test_a_new_release_extends_a_row_and_takes_none_away(world: Project, library: Callable[..., bytes]) -> None:
    refreshed(world, "--measure")
    offer(world, "1.4", library("sm_75", "sm_90"))

    outcome = refreshed(world, "--measure")

    assert outcome.code == 0, outcome.err
    assert rows(world)[0] == ("kernels", ">=1.2,<=1.4", ("sm_75", "sm_90"))
    assert rows(world)[1:] == MEASURED[1:]
    changed = [line for line in outcome.out.splitlines() if line.startswith(("+ ", "- "))]
    assert len(changed) == 4
    assert changed[:2] == ['-    versions: ">=1.2,<=1.3"', '+    versions: ">=1.2,<=1.4"']


def test_each_platform_has_rows_of_its_own(world: Project, library: Callable[..., bytes]) -> None:
    offer(world, "1.3", library("sm_90"), tag=f"cp312-abi3-{ARM}")

    refreshed(world, "--measure")

    found = load_matrix(world.folder / "rules").wheels
    assert [(row.versions, row.sass) for row in found if row.platforms == ("linux/arm64",)] == [("==1.3", ("sm_90",))]


def test_the_newest_wheel_of_arm64_is_measured_however_few_a_survey_asks_for(
    world: Project, library: Callable[..., bytes]
) -> None:
    serve(world.index, "loader", "2.0", tag=f"py3-none-{ARM}", members={"loader/core.so": library("sm_110")})

    refreshed(world, "--measure")
    assert ("loader", "==2.0", ("sm_110",)) in rows(world)


def test_libraries_in_a_wheel_for_any_platform_are_measured_where_the_survey_says_so(
    world: Project, library: Callable[..., bytes]
) -> None:
    for version, members in (("0.9", {"kernels/_C.so": library("sm_50")}), ("0.8", {"kernels/__init__.py": b""})):
        serve(world.index, "kernels", version, tag="py3-none-any", members=members)
    refreshed(world, "--measure")
    assert rows(world) == MEASURED
    surveys = world.folder / "rules" / "wheels.yaml"
    text = surveys.read_text(encoding="utf-8")
    surveys.write_text(
        text.replace("distribution: kernels", "distribution: kernels, of_any_platform: true", 1), encoding="utf-8"
    )

    outcome = refreshed(world, "--measure")

    assert outcome.code == 0, outcome.err
    assert rows(world) == [*MEASURED[:2], ("kernels", "==0.9", ("sm_50",)), MEASURED[2]]
    assert [row.platforms for row in load_matrix(world.folder / "rules").wheels if row.versions == "==0.9"] == [
        ("linux/amd64",)
    ]


def test_rows_whose_wheels_are_gone_are_refused_by_name(world: Project) -> None:
    refreshed(world, "--measure")
    before = world.files()
    withdraw(world, "1.0", "1.1")

    outcome = refreshed(world, "--measure")

    assert outcome.code == 1
    assert "the index lacks 1 row that the matrix has  [shrunken-table]" in outcome.err
    assert "rules/wheels.yaml: kernels >=1.0,<=1.1" in outcome.err
    assert "pass --allow-removals to take them out of the matrix" in outcome.err
    assert world.files() == before


def test_a_row_that_loses_one_end_is_refused_too(world: Project, library: Callable[..., bytes]) -> None:
    refreshed(world, "--measure")
    offer(world, "1.3", library("sm_75", "sm_90"), yanked="broken")

    outcome = refreshed(world)

    assert outcome.code == 1
    assert "rules/wheels.yaml: kernels >=1.2,<=1.3" in outcome.err
    assert rows(world) == MEASURED


def test_rows_go_when_removals_are_allowed(world: Project) -> None:
    refreshed(world, "--measure")
    withdraw(world, "1.0", "1.3")

    outcome = refreshed(world, "--allow-removals")

    assert outcome.code == 0, outcome.err
    assert rows(world) == [
        ("kernels", "==1.2", ("sm_75", "sm_90")),
        ("kernels", "==1.1", ("sm_60", "sm_75")),
        ("loader", "==2.0", ("sm_90",)),
    ]


def test_another_file_under_the_same_name_is_no_row_until_it_is_measured(world: Project, library: Callable[..., bytes]) -> None:
    refreshed(world, "--measure")
    offer(world, "1.3", library("sm_75", "sm_90", "sm_120"))

    assert "rules/wheels.yaml: kernels >=1.2,<=1.3" in refreshed(world).err
    assert refreshed(world, "--measure").code == 0
    assert rows(world)[:2] == [
        ("kernels", "==1.3", ("sm_75", "sm_90", "sm_120")),
        ("kernels", "==1.2", ("sm_75", "sm_90")),
    ]


def test_an_index_that_does_not_answer_changes_nothing(world: Project) -> None:
    refreshed(world, "--measure")
    before = world.files()
    world.index.status = 503

    outcome = refreshed(world, "--measure")

    assert outcome.code == 3
    assert "index `main` answers 503" in outcome.err
    assert world.files() == before


def test_the_rest_is_refreshed_where_a_distribution_cannot_be_read(world: Project, library: Callable[..., bytes]) -> None:
    refreshed(world, "--measure")
    offer(world, "1.4", library("sm_75", "sm_90"))
    serve(world.index, "loader", "2.1", tag=f"py3-none-{X86}", members={"loader/core.so": library("sm_90")})
    world.index.statuses["/simple/loader/"] = 503

    outcome = refreshed(world, "--measure", "--keep-going")

    assert outcome.code == 3
    assert "warning: not refreshed: wheels: loader: index `main` answers 503" in outcome.err
    assert rows(world) == [("kernels", ">=1.2,<=1.4", ("sm_75", "sm_90")), *MEASURED[1:]]


def test_the_rest_is_refreshed_where_rows_would_be_lost(world: Project) -> None:
    refreshed(world, "--measure")
    withdraw(world, "1.0", "1.1")
    serve(world.index, "triton", "3.9.0", tag="cp312-abi3-manylinux_2_27_x86_64")

    outcome = world.run("matrix", "refresh", "triton", "wheels", "--keep-going", "--format", "json", "--matrix", "rules")

    assert outcome.code == 3
    triton, wheels = outcome.json["files"]
    assert (triton["changed"], triton["releases"], wheels["changed"]) == (True, 1, False)
    assert wheels["unread"] == ["wheels: the index lacks kernels >=1.0,<=1.1, so that rules/wheels.yaml is as it was"]
    assert rows(world) == MEASURED


def test_a_component_that_cannot_be_read_stays_as_it_is(world: Project) -> None:
    serve(world.index, "triton", "3.9.0", tag="cp312-abi3-manylinux_2_27_x86_64")
    world.index.statuses["/simple/triton/"] = 503

    outcome = world.run("matrix", "refresh", "triton", "wheels", "--measure", "--keep-going", "--matrix", "rules")

    assert outcome.code == 3
    assert "warning: not refreshed: triton: index `main` answers 503" in outcome.err
    assert rows(world) == MEASURED


def test_a_wheel_that_cannot_be_measured_is_told_and_passed_over(world: Project) -> None:
    serve(world.index, "kernels", "1.4", tag=f"cp312-abi3-{X86}", members={"kernels/_C.abi3.so": b"\x7fELF and no more"})

    outcome = refreshed(world, "--measure")

    assert outcome.code == 0, outcome.err
    assert "`kernels/_C.abi3.so` is not a readable ELF file" in outcome.err
    assert rows(world) == MEASURED


def test_a_distribution_that_no_index_has_gets_no_row(world: Project) -> None:
    path = world.folder / "rules" / "wheels.yaml"
    path.write_text(SURVEYS + "  - {distribution: nowhere}\n", encoding="utf-8")

    assert refreshed(world, "--measure").code == 0
    assert rows(world) == MEASURED


def test_measured_rows_are_confirmed(world: Project) -> None:
    refreshed(world, "--measure")

    outcome = audited(world)

    assert outcome.code == 0, outcome.out
    assert outcome.out.splitlines()[:2] == [
        "component  rows  confirmed  refuted  not measurable  fields read",
        "wheels        5          5        0               0           11",
    ]


def test_what_was_just_measured_is_not_read_again_by_an_audit(world: Project) -> None:
    refreshed(world, "--measure")
    world.index.requests.clear()

    assert audited(world).code == 0
    assert not [path for path in world.index.requests if path.startswith("/files/")]


def falsified(world: Project, old: str, new: str) -> None:
    path = world.folder / "rules" / "wheels.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_a_false_row_is_refuted_with_its_place(world: Project) -> None:
    refreshed(world, "--measure")
    falsified(world, "sass: [sm_60, sm_75]", "sass: [sm_60, sm_75, sm_90]")

    outcome = audited(world, "wheels==kernels")

    assert outcome.code == 1
    line = world.read("rules/wheels.yaml").splitlines().index('    versions: ">=1.0,<=1.1"')
    assert f"wheels.yaml:{line}), kernels-1.1-cp312-abi3-{X86}.whl\n" in outcome.out
    assert "  sass: refuted\n    stated: sm_60, sm_75, sm_90\n    read:   the wheel has sm_60, sm_75\n" in outcome.out
    assert "wheels        4          2        2               0" in outcome.out
    assert audited(world, "wheels==loader").code == 0


def test_a_library_that_a_row_conceals_is_refuted(world: Project) -> None:
    refreshed(world, "--measure")
    falsified(world, "    opens: [libcudnn.so.9]\n", "")

    outcome = audited(world, "wheels==loader")

    assert outcome.code == 1
    assert "  opens: refuted\n    stated: none\n    read:   the wheel has libcudnn.so.9\n" in outcome.out


def test_another_file_under_the_name_of_an_artefact_is_refuted_by_its_hash(
    world: Project, library: Callable[..., bytes]
) -> None:
    refreshed(world, "--measure")
    offer(world, "1.0", library("sm_60", "sm_75", text=b"rebuilt"))

    outcome = audited(world, "wheels==kernels")

    assert outcome.code == 1
    assert "  sha256: refuted" in outcome.out
    assert "the index announces " in outcome.out


def test_an_audit_without_an_index_tells_nothing(world: Project) -> None:
    refreshed(world, "--measure")
    world.index.status = 503

    outcome = audited(world)

    assert outcome.code == 3
    assert "not measurable: index `main` answers 503" in outcome.out
    assert "wheels        5          0        0               5            0" in outcome.out


def test_a_distribution_without_rows_cannot_be_audited(world: Project) -> None:
    refreshed(world, "--measure")

    outcome = audited(world, "wheels==kernel")

    assert outcome.code == 2
    assert "the matrix has no GPU wheels of `kernel`" in outcome.err
    assert "did you mean `kernels`?" in outcome.err


def test_what_is_no_library_is_not_fetched(world: Project, library: Callable[..., bytes]) -> None:
    noise = random.Random(0).randbytes(4 << 20)
    members = {"loader/core.so": library("sm_90"), "loader/weights.bin": noise}
    serve(world.index, "loader", "2.1", tag=f"py3-none-{X86}", members=members)
    before = world.index.bytes_sent

    assert refreshed(world, "--measure").code == 0
    assert ("loader", "==2.1", ("sm_90",)) in rows(world)
    assert world.index.bytes_sent - before < 1 << 20


def test_the_parts_of_an_audit_are_all_rows(world: Project) -> None:
    refreshed(world, "--measure")
    parts = [audited(world, "wheels", "--part", f"{number}/2", "--format", "json").json["rows"] for number in (1, 2)]
    whole = audited(world, "wheels", "--format", "json").json["rows"]

    assert [len(part) for part in parts] == [3, 2]
    assert sorted(row["artefact"] for part in parts for row in part) == sorted(row["artefact"] for row in whole)


@pytest.mark.parametrize("part", ["0/2", "3/2", "2", "a/b", "1/0"])
def test_a_part_that_is_none_is_refused(world: Project, part: str) -> None:
    outcome = audited(world, "wheels", "--part", part)

    assert outcome.code == 2
    assert f"--part {part} is no part of the rows" in outcome.err
    assert "write K/N with K from 1 to N, as 3/52" in outcome.err
