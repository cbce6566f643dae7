"""What is seen of a run: what it reads, lists, looks for and writes; and when it cannot be known."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from provisioner.cli.observed import ABSENT, Observation, file_digest, folder_digest
from provisioner.document import write_together

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one file that is old enough."""
    made = tmp_path / "work"
    made.mkdir()
    (made / "spec.yaml").write_text("name: demo\n", encoding="utf-8")
    time.sleep(0.06)
    return made


def seen(folder: Path, run: Callable[[], object]) -> tuple[Observation, dict[str, Any] | None]:
    observation = Observation(str(folder.parent / "cache"))
    observation.begin()
    try:
        run()
    finally:
        observation.end()
    return observation, observation.inputs()


def sees_nothing(inputs: dict[str, Any] | None) -> bool:
    return inputs is not None and not any(inputs[what] for what in ("files", "folders", "pages", "records"))


def test_a_file_that_is_read_is_an_input_with_its_hash(folder: Path) -> None:
    path = folder / "spec.yaml"
    _, inputs = seen(folder, path.read_text)
    assert inputs is not None
    assert inputs == {
        "files": {str(path): file_digest(str(path))},
        "folders": {},
        "pages": [],
        "records": [],
        "since": inputs["since"],
        "until": sys.float_info.max,
    }
    assert 0 < time.time() - inputs["since"] < 60


def test_so_is_one_that_is_not_there(folder: Path) -> None:
    def run() -> None:
        with pytest.raises(FileNotFoundError):
            (folder / "absent").read_text()
        sys.audit("provision.looked_for", str(folder / "other"))

    _, inputs = seen(folder, run)
    assert inputs is not None
    assert inputs["files"] == {str(folder / "absent"): ABSENT, str(folder / "other"): ABSENT}


def test_a_folder_that_is_listed_changes_with_what_is_in_it(folder: Path) -> None:
    _, inputs = seen(folder, lambda: list(folder.iterdir()))
    assert inputs is not None
    assert inputs["folders"] == {str(folder): folder_digest(str(folder))}
    (folder / "spec.yaml").write_text("name: other\n", encoding="utf-8")
    changed = folder_digest(str(folder))
    (folder / "new").mkdir()
    assert len({inputs["folders"][str(folder)], changed, folder_digest(str(folder))}) == 3


def test_what_is_written_is_known_with_what_was_there_before(folder: Path) -> None:
    path, new = folder / "spec.yaml", folder / "new" / "lock.toml"
    before = file_digest(str(path))
    observation, inputs = seen(folder, lambda: write_together({path: b"name: other\n", new: b"x = 1\n"}))
    assert observation.written == (str(path), str(new))
    assert inputs is not None
    assert inputs["files"] == {str(path): before, str(new): ABSENT}


def test_a_file_that_changed_since_the_run_began_may_not_be_what_it_read(folder: Path) -> None:
    assert seen(folder, (folder / "spec.yaml").read_text)[1] is not None
    (folder / "spec.yaml").touch()
    assert seen(folder, (folder / "spec.yaml").read_text)[1] is None


@pytest.mark.parametrize(
    "run",
    [
        lambda: subprocess.run(["true"], check=True),
        lambda: socket.getaddrinfo("127.0.0.1", 80),
        lambda: os.system("true"),
    ],
    ids=["a program", "a name", "a shell"],
)
def test_what_others_say_cannot_be_looked_up_again(folder: Path, run: Callable[[], object]) -> None:
    assert seen(folder, run)[1] is None


def test_a_file_that_is_written_in_place_is_not_known_whole(folder: Path) -> None:
    assert seen(folder, lambda: (folder / "log").write_text("", encoding="utf-8"))[1] is None


def test_what_cannot_be_understood_disturbs_nobody(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = folder / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    def run() -> None:
        with pytest.raises(FileNotFoundError):
            open("relative", "rb")  # noqa: PTH123, SIM115 - nothing is opened

    assert seen(folder, run)[1] is None


def test_a_large_file_is_not_read_and_yet_known(folder: Path) -> None:
    path = folder / "large.whl"
    with path.open("wb") as stream:
        stream.truncate(17 << 20)
    before = file_digest(str(path))
    status = path.stat()
    time.sleep(0.06)
    with path.open("r+b") as stream:
        stream.write(b"x")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert before != file_digest(str(path))
    assert len(before) != 64


def test_a_pipe_is_no_input(folder: Path) -> None:
    os.mkfifo(folder / "pipe")

    def run() -> None:
        descriptor = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        os.close(descriptor)

    assert seen(folder, run)[1] is None


def test_nothing_is_seen_after_the_end(folder: Path) -> None:
    observation, _ = seen(folder, lambda: None)
    (folder / "spec.yaml").read_text()
    assert sees_nothing(observation.inputs())


def test_the_first_moment_at_which_something_is_asked_again_counts(folder: Path) -> None:
    def run() -> None:
        for moment in (300.0, 100.0, 200.0):
            sys.audit("provision.until", moment)

    _, inputs = seen(folder, run)
    assert inputs is not None
    assert inputs["until"] == 100.0


def test_code_that_is_imported_belongs_to_the_program(folder: Path) -> None:
    def run() -> None:
        sys.modules.pop("this_is_never_imported", None)
        import colorsys

        assert colorsys.__name__ == "colorsys"

    sys.modules.pop("colorsys", None)
    _, inputs = seen(folder, run)
    assert sees_nothing(inputs)


def test_what_comes_into_a_folder_after_it_was_listed_is_a_change(folder: Path) -> None:
    def run() -> None:
        assert os.listdir(folder) == ["spec.yaml"]  # noqa: PTH208 - the event of this very function
        os.mkdir(folder / "new")  # noqa: PTH102

    before = folder_digest(str(folder))
    _, inputs = seen(folder, run)
    assert inputs is not None
    assert inputs["folders"] == {str(folder): before}
    assert before != folder_digest(str(folder))


def test_a_folder_below_the_environment_is_listed_like_any_other(folder: Path) -> None:
    prefix = Path(sys.prefix)
    _, inputs = seen(folder, lambda: list(prefix.iterdir()))
    assert inputs is not None
    assert list(inputs["folders"]) == [str(prefix)]


def test_of_a_link_what_it_leads_to_belongs_to_the_folder(folder: Path) -> None:
    wheels = folder / "wheels"
    wheels.mkdir()
    (wheels / "one.whl").symlink_to("../one.whl")
    digests = [folder_digest(str(wheels))]
    for text in ("x", "yy"):
        (folder / "one.whl").write_text(text, encoding="utf-8")
        digests.append(folder_digest(str(wheels)))
    assert len({*digests}) == 3


def test_only_its_own_writing_is_what_a_run_wrote(folder: Path) -> None:
    path = folder / "lock.toml"
    observation, _ = seen(folder, lambda: write_together({path: b"x = 1\n"}))
    assert observation.wrote({str(path): b"x = 1\n"})
    assert not observation.wrote({str(path): b"x = 2\n"})


def test_what_a_run_takes_away_cannot_be_said_again(folder: Path) -> None:
    assert seen(folder, (folder / "spec.yaml").unlink)[1] is None


def test_a_machine_cannot_be_looked_up_again(folder: Path) -> None:
    assert seen(folder, lambda: sys.audit("provision.unrepeatable"))[1] is None
