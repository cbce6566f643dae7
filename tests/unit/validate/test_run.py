from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
import venv
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import force_setattr, replace

from provisioner import __version__
from provisioner.document import FileError
from provisioner.errors import UsageError
from provisioner.evidence.statement import VARYING, evidence_text, read_evidence, write_evidence
from provisioner.lock.format.file import write_lock
from provisioner.lock.format.model import Lock, LockedFile
from provisioner.validate.connect import connect
from provisioner.validate.docker_engine import run_failure
from provisioner.validate.engine import EngineError, HostRefusedError, NoDeviceError, RunRequest
from provisioner.validate.image import build_secrets, copy_context
from provisioner.validate.local_engine import LocalEngine
from provisioner.validate.node_class import parse_node_class
from provisioner.validate.run import Options, validate_lock
from provisioner.validate.where import Where
from tests.built_files import build_wheel
from tests.unit.validate.locks import lock_of

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


def environment(folder: Path, **packages: str) -> tuple[Path, Path]:
    """A virtual environment that holds these packages; its interpreter, and where its packages are."""
    venv.create(folder, with_pip=False, symlinks=True)
    site = next(folder.glob("lib/python*/site-packages"))
    for name, version in packages.items():
        filename, content = build_wheel(name, version)
        wheel = folder.with_name(filename)
        wheel.write_bytes(content)
        shutil.unpack_archive(wheel, site, "zip")
    return folder / "bin/python", site


def on_this_machine(python: Path, packages: dict[str, str], *, accelerator: str = "cpu") -> tuple[Lock, LocalEngine]:
    engine = LocalEngine.connect(python)
    lock = lock_of(packages, components={"python": PYTHON}, accelerator=accelerator, platform=engine.platform)
    return lock, engine


def written(lock: Lock, folder: Path) -> Path:
    """The file of a lock."""
    path = folder / "pylock.trial.toml"
    path.write_text(write_lock(lock), encoding="utf-8")
    return path


def test_the_link_that_python_3_14_makes_is_of_the_environment_and_a_file_of_its_name_is_not(tmp_path: Path) -> None:
    python, _ = environment(tmp_path / "env", demo="1.2")
    pi = python.with_name("\U0001d70bthon")
    pi.unlink(missing_ok=True)
    pi.symlink_to(python.name)
    lock, engine = on_this_machine(python, {"demo": "1.2"})
    file = written(lock, tmp_path)
    assert validate_lock(lock, file, engine=engine, options=Options(), log=lambda _: None).verdict == "yes"
    pi.unlink()
    pi.write_text("another program", encoding="utf-8")
    assert validate_lock(lock, file, engine=engine, options=Options(), log=lambda _: None).verdict == "no"


def test_an_environment_that_is_as_locked_is_a_yes(tmp_path: Path) -> None:
    python, _ = environment(tmp_path / "env", demo="1.2")
    lock, engine = on_this_machine(python, {"demo": "1.2"})
    report = validate_lock(lock, written(lock, tmp_path), engine=engine, options=Options(), log=lambda _: None)
    assert report.verdict == "yes"
    assert (report.engine.name, report.engine.builder, report.image) == ("local", "", "")
    assert report.engine.version.startswith("Python 3.")


def test_a_report_tells_what_was_validated_where_and_when(tmp_path: Path) -> None:
    python, _ = environment(tmp_path / "env", demo="1.2")
    lock, engine = on_this_machine(python, {"demo": "1.2"})
    path = written(lock, tmp_path)
    before = datetime.now(UTC).replace(microsecond=0)
    report = validate_lock(lock, path, engine=engine, options=Options(), log=lambda _: None)
    assert report.lock_sha256 == f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
    assert (report.tool_version, report.matrix_digest) == (__version__, lock.matrix_digest)
    assert (report.host.kernel, report.host.driver, report.host.gpus) == (platform.release(), "", ())
    assert (report.dockerfile, report.image_digests) == ("", ())
    assert before <= datetime.fromisoformat(report.time) <= datetime.now(UTC)


def test_a_file_whose_name_is_no_text_is_named_in_evidence_that_can_be_written(tmp_path: Path) -> None:
    python, site = environment(tmp_path / "env")
    (site / os.fsdecode(b"left\xff.py")).write_text("", encoding="utf-8")
    lock, engine = on_this_machine(python, {})
    report = validate_lock(lock, written(lock, tmp_path), engine=engine, options=Options(), log=lambda _: None)
    (wrong,) = (field for field in report.fields if field.verdict == "no")
    assert (wrong.name, "left\\udcff.py" in wrong.note) == ("other files", True), wrong
    write_evidence(tmp_path / "e.json", report)
    assert read_evidence(tmp_path / "e.json").report == report


def test_the_same_lock_and_environment_give_the_same_evidence_but_for_time_and_timing(tmp_path: Path) -> None:
    python, _ = environment(tmp_path / "env", demo="1.2")
    lock, engine = on_this_machine(python, {"demo": "1.2"})
    path = written(lock, tmp_path)
    first, second = (validate_lock(lock, path, engine=engine, options=Options(), log=lambda _: None) for _ in range(2))
    still = {"time": first.time, "timing": first.timing, "load": first.load}
    assert evidence_text(first) == evidence_text(replace(second, **still))
    assert still.keys() == set(VARYING)


def test_an_environment_that_differs_is_a_no(tmp_path: Path) -> None:
    python, _ = environment(tmp_path / "env", demo="1.3")
    lock, engine = on_this_machine(python, {"demo": "1.2"})
    report = validate_lock(lock, written(lock, tmp_path), engine=engine, options=Options(), log=lambda _: None)
    assert (report.verdict, report.exit_code) == ("no", 1)


def test_a_framework_that_crashes_the_interpreter_is_a_no_with_its_signal(tmp_path: Path) -> None:
    python, site = environment(tmp_path / "env", torch="2.4.1")
    (site / "torch.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    lock, engine = on_this_machine(python, {"torch": "2.4.1"})
    report = validate_lock(lock, written(lock, tmp_path), engine=engine, options=Options(), log=lambda _: None)
    (field,) = report.fields
    assert (field.name, field.measured, field.verdict) == ("smoke test", "signal 11", "no")
    assert field.note == "the last line was: smoke: import torch"


@pytest.mark.slow
def test_a_framework_that_hangs_is_unverified_after_the_time_given(tmp_path: Path) -> None:
    python, site = environment(tmp_path / "env", torch="2.4.1")
    (site / "torch.py").write_text("import time\ntime.sleep(600)\n")
    lock, engine = on_this_machine(python, {"torch": "2.4.1"})
    options = Options(timeout=6.0)
    report = validate_lock(lock, written(lock, tmp_path), engine=engine, options=options, log=lambda _: None)
    (field,) = report.fields
    assert (field.measured, field.verdict, report.exit_code) == ("time ran out", "unverified", 3)
    assert field.note == "stopped after 6 s; the last line was: smoke: import torch"


def test_a_framework_killed_from_outside_is_unverified(tmp_path: Path) -> None:
    python, site = environment(tmp_path / "env", torch="2.4.1")
    (site / "torch.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    lock, engine = on_this_machine(python, {"torch": "2.4.1"})
    report = validate_lock(lock, written(lock, tmp_path), engine=engine, options=Options(), log=lambda _: None)
    (field,) = report.fields
    assert (field.measured, field.verdict) == ("killed", "unverified")


def test_a_lock_for_another_platform_is_not_validated_here(tmp_path: Path) -> None:
    python, _ = environment(tmp_path / "env")
    engine = LocalEngine.connect(python)
    lock = lock_of({}, platform="linux/riscv64")
    with pytest.raises(EngineError) as refused:
        validate_lock(lock, written(lock, tmp_path), engine=engine, options=Options(), log=lambda _: None)
    assert refused.value.message == f"lock `trial` is for linux/riscv64, and this local engine runs {engine.platform}"
    assert refused.value.exit_code == 3


def test_a_level_or_platform_that_does_not_exist_is_bad_usage(tmp_path: Path) -> None:
    python, _ = environment(tmp_path / "env")
    lock, engine = on_this_machine(python, {})
    path = tmp_path / "pylock.trial.toml"
    with pytest.raises(UsageError, match="level 6 does not exist"):
        validate_lock(lock, path, engine=engine, options=Options(level=6), log=lambda _: None)
    with pytest.raises(UsageError, match="no platform `linux/s390x`"):
        validate_lock(lock, path, engine=engine, options=Options(platform="linux/s390x"), log=lambda _: None)


def test_the_context_holds_the_lock_and_the_files_it_names_and_nothing_else(tmp_path: Path) -> None:
    source, context = tmp_path / "source", tmp_path / "context"
    (source / "wheels").mkdir(parents=True)
    context.mkdir()
    for name in ("pylock.trial.toml", "wheels/demo.whl", "wheels/stray.whl", "secrets.env"):
        (source / name).write_text(name)
    lock = lock_of({"demo": "1.2"})
    local = LockedFile(filename="demo.whl", sha256="3" * 64, path="wheels/demo.whl")
    (package,) = lock.packages
    force_setattr(package, "wheels", (local,))
    copy_context(lock, source / "pylock.trial.toml", context)
    found = sorted(path.relative_to(context).as_posix() for path in context.rglob("*") if path.is_file())
    assert found == ["pylock.trial.toml", "wheels/demo.whl"]
    (source / "wheels/demo.whl").unlink()
    with pytest.raises(FileError, match=r"`wheels/demo.whl`, which lock `trial` names, cannot be read: No such file"):
        copy_context(lock, source / "pylock.trial.toml", context)


def test_the_context_holds_the_fetched_files_of_the_lock_so_that_a_build_needs_no_network(tmp_path: Path) -> None:
    source, context = tmp_path / "source", tmp_path / "context"
    (source / "wheelhouse").mkdir(parents=True)
    context.mkdir()
    for name in ("pylock.trial.toml", "wheelhouse/demo.whl", "wheelhouse/stray.whl"):
        (source / name).write_text(name)
    lock = lock_of({"demo": "1.2"})
    (package,) = lock.packages
    published = (
        LockedFile(filename=name, sha256="3" * 64, url=f"https://index.invalid/{name}") for name in ("demo.whl", "b.whl")
    )
    force_setattr(package, "wheels", tuple(published))
    copy_context(lock, source / "pylock.trial.toml", context)
    found = sorted(path.relative_to(context).as_posix() for path in context.rglob("*") if path.is_file())
    assert found == ["pylock.trial.toml", "wheelhouse/demo.whl"]


def test_secrets_are_handed_over_only_where_they_exist_and_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    dockerfile = "RUN --mount=type=secret,id=ca --mount=type=secret,id=netrc true"
    assert build_secrets(dockerfile) == {}
    bundle, credentials = tmp_path / "bundle.pem", tmp_path / ".netrc"
    bundle.touch()
    credentials.touch()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "gone.pem"))
    monkeypatch.setenv("PIP_CERT", str(bundle))
    assert build_secrets(dockerfile) == {"ca": bundle, "netrc": credentials}
    assert build_secrets("RUN true") == {}


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ('could not select device driver "" with capabilities: [[gpu compute utility]]', NoDeviceError),
        ('could not select device driver "cdi" with capabilities: []', NoDeviceError),
        ("nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1", NoDeviceError),
        ('error gathering device information while adding custom device "/dev/kfd": no such file', NoDeviceError),
        ("nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.6", HostRefusedError),
        ("No such image: trial:1", EngineError),
    ],
)
def test_a_container_that_does_not_start_is_told_apart_by_the_engines_words(reason: str, kind: type[Exception]) -> None:
    error = run_failure(RunRequest(image="trial:1", command=("python",), gpus="all"), reason)
    assert type(error) is kind
    assert error.causes == (reason,)


def test_engines_that_do_not_exist_are_named() -> None:
    with pytest.raises(UsageError) as unknown:
        connect("dokcer")
    assert unknown.value.message == "`dokcer` is not an engine"
    assert unknown.value.hints[0] == "did you mean `docker`?"
    with pytest.raises(UsageError, match="--node-class is for --engine slurm and kubernetes, not for --engine podman"):
        connect("podman", Where(nodes=parse_node_class("h100: partition=gpu")))
    with pytest.raises(UsageError, match="--module is for --engine slurm, not for --engine local"):
        connect("local", Where(modules=("cuda",)))
    with pytest.raises(UsageError, match="--python names the interpreter of --engine local and slurm"):
        connect("docker", Where(python=Path("/usr/bin/python3")))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/bin/false", "`/bin/false` is not a Python interpreter"),
        ("/nowhere/python", "`/nowhere/python` is no program that can be started"),
    ],
)
def test_an_interpreter_that_is_none_is_named(path: str, message: str) -> None:
    with pytest.raises(UsageError) as wrong:
        connect("local", Where(python=Path(path)))
    assert wrong.value.message == message
    assert wrong.value.hints == ("name the interpreter of the environment: --python .venv/bin/python",)
    assert wrong.value.exit_code == 2


def test_an_engine_that_does_not_answer_is_named_by_its_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(EngineError) as silent:
        connect("docker")
    assert silent.value.message == f"no Docker engine answers at `unix://{tmp_path}/none.sock`"
    assert silent.value.exit_code == 3
    assert silent.value.hints


def test_podman_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError) as missing:
        connect("podman")
    assert missing.value.message == "no Podman answers: `podman` cannot be started: No such file or directory"
