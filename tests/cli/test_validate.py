from __future__ import annotations

import hashlib
import io
import json
import shutil
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from provisioner.browse.validation_page import validation_page
from provisioner.document import write_text
from provisioner.evidence.junit import junit_text
from provisioner.evidence.statement import evidence_path, read_evidence, write_evidence
from provisioner.lock.format.file import write_lock
from provisioner.lock.format.model import LockedFile
from provisioner.validate.local_engine import LocalEngine
from provisioner.validate.measurement import Content, Files
from provisioner.validate.published import Published, as_published
from tests.built_files import build_wheel
from tests.leaving import leave
from tests.unit.validate.locks import lock_of

ROOT = Path(__file__).parents[2]
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The interpreter of an empty environment."""
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    return tmp_path / "env/bin/python"


def written(folder: Path, python: Path, *, accelerator: str = "cpu", **packages: str) -> Path:
    platform = LocalEngine.connect(python).platform
    lock = lock_of(packages, components={"python": PYTHON}, accelerator=accelerator, platform=platform)
    path = folder / "pylock.trial.toml"
    write_text(path, write_lock(lock))
    return path


def test_a_yes_is_a_table_evidence_and_exit_code_0(tmp_path: Path, python: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, python)
    code = leave("validate", str(path), "--engine", "local", "--python", str(python))
    printed = capsys.readouterr()
    assert code == 0, printed
    full = sys.version.split()[0]
    platform = LocalEngine.connect(python).platform
    rows = [(row.partition("  ")[0], row.split()[-1]) for row in printed.out.splitlines()[1:6]]
    assert rows == [(name, "yes") for name in ("python", "architecture", "packages", "files", "other files")]
    assert printed.out.endswith(
        "level 0 (static): nothing to do, no image is built for an environment that is installed\n"
        "level 1 (build): nothing to do, no image is built for an environment that is installed\n"
        "level 2 (files): yes\n"
        f"pylock.trial.toml on {platform}, local Python {full}, level 2: yes\n"
    )
    assert printed.err.startswith(f"validating {path} with local Python {full}\n  smoke: ")
    assert printed.err.endswith(f"evidence: {evidence_path(path, platform)}\n")
    assert read_evidence(evidence_path(path, platform)).report.verdict == "yes"


def test_a_no_is_exit_code_1_and_names_the_package(tmp_path: Path, python: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, python, demo="1.2")
    code = leave("validate", str(path), "--engine", "local", "--python", str(python), "--format", "json", "--no-record")
    answer = json.loads(capsys.readouterr().out)
    assert (code, answer["verdict"]) == (1, "no")
    (report,) = answer["reports"]
    assert {
        "name": "package demo",
        "locked": "1.2",
        "measured": "",
        "verdict": "no",
        "note": "not installed",
        "level": 2,
    } in report["fields"]
    assert not list(tmp_path.glob("*.evidence.json"))


def test_a_gpu_lock_on_a_machine_without_one_is_exit_code_3(
    tmp_path: Path, python: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, python, accelerator="cuda")
    code = leave("validate", str(path), "--engine", "local", "--python", str(python))
    out = capsys.readouterr().out
    assert code == 3, out
    assert out.endswith("level 4: unverified\n")


def test_a_report_of_level_0_names_no_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = ROOT / "dockerfiles/onnx-cpu/pylock.onnx-cpu.toml"
    views = ("--junit", str(tmp_path / "junit.xml"), "--html", str(tmp_path / "report.html"))
    assert leave("validate", str(path), "--level", "0", "--no-record", *views) == 0
    assert capsys.readouterr().out.endswith("pylock.onnx-cpu.toml on linux/amd64, level 0: yes\n")
    assert 'name="engine"' not in (tmp_path / "junit.xml").read_text(encoding="utf-8")
    assert "<dt>Engine</dt>" not in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_level_that_has_nothing_to_do_for_a_lock_is_not_a_yes(
    tmp_path: Path, python: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, python)
    code = leave("validate", str(path), "--engine", "local", "--python", str(python), "--level", "4", "--no-record")
    out = capsys.readouterr().out
    assert code == 3, out
    assert "level 2 (files): yes\n" in out
    assert "level 3 (imports): nothing to do, the lock has no framework, and its spec names no package\n" in out
    assert "level 4 (devices): nothing to do, the stack computes on the CPU (accelerator cpu)\n" in out
    assert out.endswith("level 4: unverified\n")


def test_an_image_is_that_of_one_lock(tmp_path: Path, python: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, python)
    assert leave("validate", str(path), str(path), "--image", "registry/trainer:1") == 2
    assert "error: --image is the image of one lock" in capsys.readouterr().err
    assert leave("validate", str(path), "--image", "registry/trainer:1", "--engine", "local", "--python", str(python)) == 2
    assert "error: --engine local measures an environment, not image `registry/trainer:1`" in capsys.readouterr().err


def installed(folder: Path, python: Path, *, is_misrecorded: bool) -> tuple[Path, Path]:
    """A wheel beside its lock, installed as an installer does it; its RECORD may have another hash than that of the module."""
    filename, content = build_wheel("demo", "1.2")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    if is_misrecorded:
        members["demo.py"] += b"# signed after RECORD was written\n"
    (folder / "wheels").mkdir()
    with zipfile.ZipFile(folder / "wheels" / filename, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    site = next((folder / "env").glob("lib/python*/site-packages"))
    shutil.unpack_archive(folder / "wheels" / filename, site, "zip")
    sha256 = hashlib.sha256((folder / "wheels" / filename).read_bytes()).hexdigest()
    lock = lock_of({"demo": "1.2"}, components={"python": PYTHON}, platform=LocalEngine.connect(python).platform)
    (package,) = lock.packages
    file = LockedFile(filename=filename, sha256=sha256, path=f"wheels/{filename}")
    path = folder / "pylock.trial.toml"
    write_text(path, write_lock(replace(lock, packages=(replace(package, wheels=(file,)),))))
    return path, site / "demo.py"


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_without_an_interpreter_the_active_environment_is_measured(
    tmp_path: Path, python: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """A program that was installed for itself runs in an environment that no lock is about."""
    path, _ = installed(tmp_path, python, is_misrecorded=False)
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(tmp_path / "env"))
    assert leave("validate", str(path), "--engine", "local", "--no-record") == 0


def test_where_none_is_active_the_environment_of_this_folder_is_measured(
    tmp_path: Path, python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is where `uv venv` makes it, which `solve` tells as the next step."""
    path, _ = installed(tmp_path, python, is_misrecorded=False)
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".venv").symlink_to(tmp_path / "env")
    monkeypatch.chdir(tmp_path)
    assert leave("validate", str(path), "--engine", "local", "--no-record") == 0


MISRECORDED = "misrecorded by their wheel"
UNREAD = "; whether a wheel was published so is not known: `{wheel}` cannot be read: No such file or directory"


@pytest.mark.parametrize(
    ("what", "measured", "verdict", "note"),
    [
        ({""}, "3 compared", "yes", ""),
        ({"edited"}, "3 compared, 1 changed", "no", "changed: {module}"),
        ({"misrecorded"}, f"3 compared, 1 {MISRECORDED}", "yes", f"{MISRECORDED}: {{module}}"),
        ({"misrecorded", "edited"}, "3 compared, 1 changed", "no", "changed: {module}"),
        ({"misrecorded", "out of reach"}, "3 compared, 1 changed", "no", f"changed: {{module}}{UNREAD}"),
    ],
)
def test_a_wheel_that_was_published_with_a_wrong_record_is_not_blamed_on_the_environment(
    tmp_path: Path, what: set[str], measured: str, verdict: str, note: str
) -> None:
    env = tmp_path / "env"
    venv.create(env, with_pip=False, symlinks=True)
    path, module = installed(tmp_path, env / "bin/python", is_misrecorded="misrecorded" in what)
    if "edited" in what:
        module.write_text(module.read_text(encoding="utf-8") + "x = 1\n", encoding="utf-8")
    (wheel,) = (tmp_path / "wheels").iterdir()
    if "out of reach" in what:
        wheel.unlink()
    python = ("--python", str(env / "bin/python"))
    leave("validate", str(path), "--engine", "local", *python, "--level", "2", "--evidence", str(tmp_path / "e"))
    (files,) = (field for field in read_evidence(tmp_path / "e").report.fields if field.name == "files")
    spelled = note.format(module=module.relative_to(env), wheel=wheel)
    assert (files.measured, files.verdict, files.note) == (measured, verdict, spelled)


def test_files_of_many_packages_are_no_publishers_mistake(tmp_path: Path) -> None:
    names = [f"demo{number}" for number in range(5)]
    contents = {f"lib/python3/site-packages/{name}.py": Content(packages=(f"{name}-1.2",), sha256="0" * 64) for name in names}
    none: tuple[str, ...] = ()
    files = Files(
        compared=5,
        changed=tuple(contents),
        missing=none,
        unreadable=none,
        unrecorded=none,
        unowned=none,
        stale=none,
        prefix="",
        path=none,
        contents=contents,
    )

    def read_wheel(file: LockedFile) -> Path:
        raise AssertionError(file)

    found = as_published(lock_of(dict.fromkeys(names, "1.2")), files, read_wheel)
    assert found == Published(paths=frozenset(), unread="5 packages have such files")


def test_what_proves_less_does_not_replace_what_proves_more(
    tmp_path: Path, python: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, python, accelerator="cuda")
    words = ("validate", str(path), "--engine", "local", "--python", str(python))
    leave(*words)
    (evidence,) = tmp_path.glob("*.evidence.json")
    found = read_evidence(evidence).report
    facts = tuple(replace(field, verdict="yes") for field in found.fields)
    levels = tuple(replace(level, verdict="yes") if level.verdict == "unverified" else level for level in found.levels)
    proof = replace(found, verdict="yes", fields=facts, levels=levels)
    write_evidence(evidence, proof)
    capsys.readouterr()
    assert leave(*words) == 3
    assert "already proves more of this lock" in capsys.readouterr().err
    assert read_evidence(evidence).report == proof
    write_evidence(evidence, replace(proof, lock_sha256=f"sha256:{'0' * 64}"))
    assert leave(*words) == 3
    assert read_evidence(evidence).report.verdict == "unverified", "what proves more of another lock proves nothing of this one"


def test_evidence_that_nobody_can_read_is_replaced(tmp_path: Path, python: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, python)
    evidence = evidence_path(path, LocalEngine.connect(python).platform)
    evidence.write_text("{", encoding="utf-8")
    assert leave("validate", str(path), "--engine", "local", "--python", str(python)) == 0
    assert read_evidence(evidence).report.verdict == "yes"
    assert "warning" not in capsys.readouterr().err


def test_reports_for_a_dashboard_and_for_a_reader_are_files_beside_the_evidence(
    tmp_path: Path, python: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, python)
    files = {name: tmp_path / "out" / f"trial.{name}" for name in ("evidence", "junit", "html")}
    options = [word for name, file in files.items() for word in (f"--{name}", str(file))]
    assert leave("validate", str(path), "--engine", "local", "--python", str(python), *options) == 0
    printed = capsys.readouterr()
    assert printed.out.endswith("level 2: yes\n")
    assert printed.err.endswith("".join(f"wrote {file}\n" for file in files.values()))
    report = read_evidence(files["evidence"]).report
    assert files["junit"].read_text(encoding="utf-8") == junit_text([report])
    assert files["html"].read_text(encoding="utf-8") == validation_page([report])
    assert not list(tmp_path.glob("*.evidence.json")), "--evidence is in place of the file beside the lock"


@pytest.mark.parametrize("name", ["evidence", "junit", "html"])
def test_a_view_on_stdout_is_all_there_is_on_stdout(
    tmp_path: Path, python: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = written(tmp_path, python)
    assert leave("validate", str(path), "--engine", "local", "--python", str(python), f"--{name}", "-") == 0
    out = capsys.readouterr().out
    if name == "evidence":
        (tmp_path / "piped.json").write_text(out, encoding="utf-8")
        assert not read_evidence(tmp_path / "piped.json").is_edited
    else:
        assert out.startswith({"junit": "<?xml", "html": "<!doctype html>"}[name])
        assert out.endswith({"junit": "</testsuites>\n", "html": "</html>\n"}[name])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--junit", "-", "--html", "-"), "--junit and --html cannot share stdout"),
        (("--evidence", "-", "--format", "json"), "--evidence and --format json cannot share stdout"),
        (("--evidence", "x", "--no-record"), "--no-record writes no evidence, and --evidence says where to"),
        (("other.toml", "--evidence", "x"), "--evidence is the file of one report"),
    ],
)
def test_views_that_exclude_each_other_are_bad_usage_before_anything_is_built(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    assert leave("validate", str(tmp_path / "pylock.trial.toml"), *words) == 2
    assert f"error: {message}" in capsys.readouterr().err


def test_an_engine_out_of_reach_is_exit_code_3_and_says_where_it_was_looked_for(
    tmp_path: Path, python: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, python)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    assert leave("validate", str(path)) == 3
    error = capsys.readouterr().err
    assert error.startswith(f"error: no Docker engine answers at `unix://{tmp_path}/none.sock`  [engine]\n")
    assert "hint: start Docker, or name another engine with DOCKER_HOST or --engine podman\n" in error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--engine", "kubernetes"), "--engine kubernetes runs an image that a registry has"),
        (("--engine", "rkt"), "`rkt` is not an engine"),
        (("--level", "9"), "invalid value for '--level': "),
    ],
)
def test_bad_usage_is_exit_code_2(
    tmp_path: Path, python: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    path = written(tmp_path, python)
    assert leave("validate", str(path), *words) == 2
    assert capsys.readouterr().err.startswith(f"error: {message}")


def test_a_lock_that_does_not_exist_is_exit_code_2(tmp_path: Path, python: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "pylock.gone.toml"
    assert leave("validate", str(missing), "--engine", "local", "--python", str(python)) == 2
    assert f"`{missing}` does not exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--engine", "local"), "a bill of materials lists what an image holds, and this environment is none"),
        (("--level", "1"), "level 1 does not look into the image"),
        (("--format", "json"), "--sbom and --format json cannot share stdout"),
        (("--sbom-spdx", "-"), "--sbom and --sbom-spdx cannot share stdout"),
    ],
)
def test_a_bill_of_materials_is_that_of_one_image_that_is_looked_into(
    arguments: tuple[str, ...], message: str, tmp_path: Path, python: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, python)
    assert leave("validate", str(path), "--sbom", "-", *arguments) == 2
    assert message in capsys.readouterr().err


def test_the_bill_of_materials_of_two_locks_is_no_file(
    tmp_path: Path, python: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, python)
    assert leave("validate", str(path), str(path), "--sbom", "image.json") == 2
    assert "--sbom is the file of one report" in capsys.readouterr().err
