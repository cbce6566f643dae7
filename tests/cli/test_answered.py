"""The answer at hand, from outside: when it is given, when it is not, and that nobody could tell but by the clock."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile
from zlib import crc32

import platformdirs
import pytest

from provisioner.caches import cache_directory
from tests.at_hand import OFFLINE, in_cache, run, settle
from tests.project import LOCK, changed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.project import Project


@pytest.fixture
def settled(project: Project, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project that was solved once."""
    settle(project, tmp_path_factory.mktemp("run"), monkeypatch)
    return project


def test_the_third_run_says_and_writes_what_the_second_did(settled: Project) -> None:
    second = run(settled, *OFFLINE)
    files = settled.files()
    third = run(settled, *OFFLINE)
    assert (second[3], third[3]) == ("solved", "at hand")
    assert second[:3] == third[:3]
    assert "wrote pylock.trainer.toml, Dockerfile\n" in third[2]
    assert settled.files() == files


def test_files_that_are_gone_are_a_question_of_their_own_and_then_written_again(settled: Project) -> None:
    run(settled, *OFFLINE)
    written = settled.files()
    hows = []
    for _ in range(2):
        (settled.folder / LOCK).unlink()
        (settled.folder / "Dockerfile").unlink()
        hows.append(run(settled, *OFFLINE)[3])
        assert settled.files() == written
    assert hows == ["solved", "at hand"]


def test_a_check_is_answered_like_a_solve(settled: Project) -> None:
    first, second = run(settled, "check"), run(settled, "check")
    assert first[:3] == second[:3] == (0, f"{LOCK}: yes\n", "")
    assert (first[3], second[3]) == ("solved", "at hand")


def test_json_is_json_again(settled: Project) -> None:
    first, second = (run(settled, *OFFLINE, "--format", "json") for _ in range(2))
    assert first[:3] == second[:3]
    assert second[3] == "at hand"


def edit_spec(project: Project) -> None:
    project.write(changed("packages: [beta]"))


def edit_lock(project: Project) -> None:
    path = project.folder / LOCK
    path.write_text(path.read_text(encoding="utf-8") + "# a note\n", encoding="utf-8")


def edit_rendered(project: Project) -> None:
    path = project.folder / "Dockerfile"
    path.write_text(path.read_text(encoding="utf-8") + "RUN true\n", encoding="utf-8")


def drop_a_page(project: Project) -> None:
    del project
    in_cache("UPDATE page SET sha256 = 'other' WHERE url LIKE '%beta%'")


def damage_the_answer(project: Project) -> None:
    del project
    path = next(Path(os.environ["XDG_CACHE_HOME"]).rglob("answers/*.json"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def shorten_the_answer(project: Project) -> None:
    del project
    path = next(Path(os.environ["XDG_CACHE_HOME"]).rglob("answers/*.json"))
    path.write_bytes(path.read_bytes()[:1000])


def empty_the_answer(project: Project) -> None:
    del project
    next(Path(os.environ["XDG_CACHE_HOME"]).rglob("answers/*.json")).write_bytes(b"")


@pytest.mark.parametrize(
    "change",
    [edit_spec, edit_lock, edit_rendered, drop_a_page, damage_the_answer, shorten_the_answer, empty_the_answer],
)
def test_anything_that_is_not_as_it_was_is_solved_anew(settled: Project, change: Callable[[Project], None]) -> None:
    run(settled, *OFFLINE)
    assert run(settled, *OFFLINE)[3] == "at hand"
    change(settled)
    assert run(settled, *OFFLINE)[3] == "solved"


@pytest.mark.parametrize("variables", [{"PROVISION_NO_ANSWER_CACHE": "1"}, {"PIP_PRE": "1"}])
def test_other_variables_are_another_question(settled: Project, variables: dict[str, str]) -> None:
    run(settled, *OFFLINE)
    assert run(settled, *OFFLINE, **variables)[3] == "solved"


def test_a_page_that_must_be_asked_for_again_is(settled: Project) -> None:
    run(settled, "solve")
    assert run(settled, "solve")[3] == "at hand"
    in_cache("UPDATE page SET fetched = 0.0")
    asked = settled.index.requests["/simple/alpha/"]
    assert run(settled, "solve")[3] == "solved"
    assert settled.index.requests["/simple/alpha/"] == asked + 1


@pytest.mark.parametrize("stated", [None, "", "/elsewhere", "/else where/", " /elsewhere", "elsewhere", "~/elsewhere"])
@pytest.mark.parametrize("home", ["/home/ada", "/home/ada/", "ada", ""])
def test_the_cache_is_where_everybody_else_finds_it(stated: str | None, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", home)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if stated is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", stated)
    assert Path(cache_directory()) == Path(platformdirs.user_cache_dir("provision"))


def test_help_and_the_log_are_never_kept(settled: Project) -> None:
    for words in (("solve", "--help"), ("solve", "--offline", "-v")):
        assert run(settled, *words)[:2] == run(settled, *words)[:2]
        assert run(settled, *words)[1].startswith(("Usage:", "component"))
    assert not list(Path(os.environ["XDG_CACHE_HOME"]).rglob("answers/*.json"))


def test_a_failure_is_found_anew_each_time(settled: Project) -> None:
    settled.write(changed('packages: ["alpha>3"]'))
    first, second = (run(settled, *OFFLINE) for _ in range(2))
    assert first == second
    assert (first[0], first[3]) == (1, "solved")


@pytest.mark.parametrize("name", ["Dockerfile", LOCK])
def test_no_answer_at_hand_writes_over_the_work_of_others(settled: Project, name: str) -> None:
    path = settled.folder / name
    for how in ("solved", "at hand"):  # with nothing in its place, which is what somebody else's file comes into
        path.unlink()
        assert run(settled, *OFFLINE)[::3] == (0, how)
    path.write_text("# by hand\n", encoding="utf-8")
    code, out, err, how = run(settled, *OFFLINE)
    assert (code, out, how) == (2, "", "solved")
    assert f"would overwrite `{name}`, which " in err
    assert settled.read(name) == "# by hand\n"


def test_a_target_whose_lock_is_gone_is_missed(settled: Project) -> None:
    settled.write(changed("targets: {one: {}, two: {}}"))
    assert run(settled, "solve")[0] == 0
    one, two = (settled.folder / name / LOCK for name in ("one", "two"))
    assert [run(settled, "check", f"one/{LOCK}")[::3] for _ in range(2)] == [(0, "solved"), (0, "at hand")]
    two.unlink()
    code, out, _, how = run(settled, "check", str(one.relative_to(settled.folder)))
    assert (code, how) == (1, "solved")
    assert "the spec wants target two, which has no lock beside this one" in out


def test_the_machine_itself_is_looked_at_in_every_run(settled: Project) -> None:
    settled.write(changed("target: {host: auto}"))
    found = [run(settled, *OFFLINE) for _ in range(4)]
    assert [(code, how) for code, _, _, how in found] == [(0, "solved")] * 4


def test_a_clock_that_was_set_back_ends_an_answer(settled: Project) -> None:
    run(settled, *OFFLINE)
    assert run(settled, *OFFLINE)[3] == "at hand"
    path = next(Path(os.environ["XDG_CACHE_HOME"]).rglob("answers/*.json"))
    body = json.loads(path.read_bytes().partition(b"\n")[2])
    body["inputs"]["since"] += 3600
    text = json.dumps(body).encode()
    path.write_bytes(b"%d\n" % crc32(text) + text)
    assert run(settled, *OFFLINE)[3] == "solved"


def test_a_library_that_lies_elsewhere_may_change(settled: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    libraries = tmp_path_factory.mktemp("libraries")
    path = os.pathsep.join([str(libraries), os.environ.get("PYTHONPATH", "")])
    hows = []
    for name in ("", "one-1.dist-info"):
        (libraries / name).mkdir(exist_ok=True)
        hows.append([run(settled, *OFFLINE, PYTHONPATH=path)[3] for _ in range(2)])
    assert hows == [["solved", "at hand"], ["solved", "at hand"]]


def test_a_wheel_that_was_rebuilt_within_its_times_has_its_new_hash(settled: Project) -> None:
    """What `cp -p` and `rsync -t` do: other bytes, as many of them, and the time of before."""
    wheel = built_wheel(settled.folder, "delta", "1.0", b"x = 1\n")
    settled.write(changed("packages: ['delta @ file:./delta-1.0-py3-none-any.whl']"))
    before = run(settled, "solve")
    status = wheel.stat()
    old = settled.read(LOCK)
    built_wheel(settled.folder, "delta", "1.0", b"x = 2\n")
    os.utime(wheel, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert wheel.stat().st_size == status.st_size
    assert (before[0], run(settled, "solve")[0]) == (0, 0)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert digest not in old
    assert digest in settled.read(LOCK)


def built_wheel(folder: Path, name: str, version: str, code: bytes) -> Path:
    """A wheel with one module, stored uncompressed, so that equally long modules make equally large wheels."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.py", code)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    return path
