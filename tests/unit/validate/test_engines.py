from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.errors import UsageError
from provisioner.evidence.statement import evidence_path
from provisioner.validate.apptainer_command import exec_command
from provisioner.validate.connect import connect
from provisioner.validate.engine import BuildRequest, EngineError, RunRequest
from provisioner.validate.node_class import NodeClass, parse_node_class, parse_node_classes
from provisioner.validate.not_run import NotRun, NotRunError
from provisioner.validate.slurm_engine import SlurmEnvironment, shared_python
from tests.unit.validate.locks import lock_of

if TYPE_CHECKING:
    from provisioner.validate.apptainer_engine import ApptainerEngine


def test_a_class_of_nodes_has_a_name_and_what_selects_its_nodes() -> None:
    assert parse_node_class("h100: partition=gpu constraint=sm_90&driver_550") == NodeClass(
        name="h100", selects={"partition": "gpu", "constraint": "sm_90&driver_550"}
    )
    assert parse_node_class("any:") == NodeClass(name="any")
    label = parse_node_class("nvidia.com/gpu.product=NVIDIA-H100")
    assert (label.name, label.selects) == (
        "nvidia.com-gpu.product-NVIDIA-H100",
        {"nvidia.com/gpu.product": "NVIDIA-H100"},
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("h100", "`h100` in --node-class `h100` is no KEY=VALUE"),
        ("h100: partition=", "`partition=` in --node-class `h100: partition=` is no KEY=VALUE"),
        ("a: mem=1 mem=2", "`mem=2` in --node-class `a: mem=1 mem=2` is given twice"),
        (" ", "--node-class ` ` selects nothing"),
    ],
)
def test_a_class_of_nodes_that_cannot_be_read_is_bad_usage(text: str, message: str) -> None:
    with pytest.raises(UsageError) as wrong:
        parse_node_class(text)
    assert wrong.value.message == message


def test_two_classes_of_one_name_would_share_a_report() -> None:
    with pytest.raises(UsageError, match="two classes of nodes have the name `gpu`"):
        parse_node_classes(["gpu: constraint=a", "gpu: constraint=b"])
    assert parse_node_classes([]) == (NodeClass(),)


def test_each_class_has_a_report_of_its_own_beside_the_lock() -> None:
    lock = Path("locks/pylock.trainer.toml")
    assert evidence_path(lock, "linux/amd64") == Path("locks/pylock.trainer.linux-amd64.evidence.json")
    assert evidence_path(lock, "linux/amd64", "h100") == Path("locks/pylock.trainer.linux-amd64.h100.evidence.json")


@pytest.mark.parametrize(("gpus", "option"), [("", ()), ("all", ("--nv",)), ("0,1", ("--nv",)), ("rocm", ("--rocm",))])
def test_apptainer_gets_the_devices_and_nothing_else_of_the_machine(gpus: str, option: tuple[str, ...]) -> None:
    request = RunRequest(image="sha256:1", command=("python", "-c", "pass"), gpus=gpus)
    start = ("apptainer", "exec", "--cleanenv", "--contain")
    assert exec_command("apptainer", "trial.sif", request) == (*start, *option, "trial.sif", "python", "-c", "pass")


def test_a_batch_script_quotes_what_it_runs_and_leaves_its_exit_code(tmp_path: Path) -> None:
    request = RunRequest(image="", command=("python", "-c", "print('$HOME')"), lock=lock_of({}))
    assert SlurmEnvironment(python="/shared/env/bin/python").script(request, tmp_path).splitlines() == [
        "#!/bin/sh",
        r"'/shared/env/bin/python' '-c' 'print('\''$HOME'\'')'",
        "code=$?",
        f"echo $code > '{tmp_path}/code.part' && mv '{tmp_path}/code.part' '{tmp_path}/code'",
    ]
    with_module = SlurmEnvironment(modules=("torch/2.6",)).script(request, tmp_path).splitlines()
    assert with_module[0] == "#!/bin/bash -l"
    assert with_module[1].startswith("module load 'torch/2.6' || ")
    assert with_module[2].startswith("'python' '-c'")


def test_a_job_keeps_the_gpus_that_slurm_chose_inside_a_container(tmp_path: Path) -> None:
    request = RunRequest(image="sha256:1", command=("python",), gpus="all")
    script = SlurmEnvironment(image=Path("/shared/trial.sif")).script(request, tmp_path)
    kept = '[ -z "${CUDA_VISIBLE_DEVICES+set}" ] || export APPTAINERENV_CUDA_VISIBLE_DEVICES="$CUDA_VISIBLE_DEVICES"'
    assert kept in script.splitlines()
    assert "'apptainer' 'exec' '--cleanenv' '--contain' '--nv' '/shared/trial.sif' 'python'" in script.splitlines()


def test_a_link_to_an_interpreter_stays_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter of a virtual environment is a link, and its target is that of no environment."""
    monkeypatch.chdir(tmp_path)
    Path("python").symlink_to("/usr/bin/env")
    assert shared_python(Path("python"), ()).python == f"{tmp_path}/python"
    assert shared_python(None, ("torch",)).python == ""


def test_why_a_job_did_not_run_is_a_value_and_one_sentence() -> None:
    error = NotRunError(NotRun(kind="pending", reason="Resources, after 600 s"))
    assert (error.message, error.exit_code, error.cause.kind) == (
        "the job has not started: Resources, after 600 s",
        3,
        "pending",
    )
    assert str(NotRun(kind="cancelled")) == "the job was cancelled"


def stubbed(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> ApptainerEngine:
    """The engine with a program in place of Apptainer; tests/container has the real one."""
    from provisioner.validate.apptainer_engine import ApptainerEngine

    program = folder / "bin/apptainer"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n[ "$1" != version ] || {{ echo 1.4.5; exit; }}\n{script}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return ApptainerEngine.connect()


def test_what_apptainer_cannot_do_is_said_and_not_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = stubbed(tmp_path, "exit 0", monkeypatch)
    request = BuildRequest(context=tmp_path, dockerfile=tmp_path / "apptainer.def", tag="trial:1")
    for wrong in (replace(request, platform="linux/riscv64"), replace(request, network="none")):
        with pytest.raises(UsageError, match="Apptainer builds"):
            engine.build(wrong, lambda _: None)


def test_a_container_that_apptainer_cannot_start_says_nothing_about_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = stubbed(tmp_path, "echo 'FATAL:   container creation failed: mount hook failure' >&2; exit 255", monkeypatch)
    (tmp_path / "trial.sif").write_bytes(b"image")
    image = engine.find(str(tmp_path / "trial.sif"), lambda _: None).image
    with pytest.raises(EngineError) as failed:
        engine.run(RunRequest(image=image, command=("python",)), lambda _: None)
    assert failed.value.causes == ("FATAL:   container creation failed: mount hook failure",)


def test_devices_by_number_reach_the_container_as_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = stubbed(tmp_path, 'echo "$APPTAINERENV_CUDA_VISIBLE_DEVICES"', monkeypatch)
    (tmp_path / "trial.sif").write_bytes(b"image")
    image = engine.find(str(tmp_path / "trial.sif"), lambda _: None).image
    assert engine.run(RunRequest(image=image, command=("python",), gpus="0,1"), lambda _: None).stdout == "0,1\n"


def test_an_image_that_is_pulled_is_removed_with_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = stubbed(tmp_path, '[ "$1" = pull ] && echo image > "$2"', monkeypatch)
    image = engine.find("docker://registry.example/team/trial:1", lambda _: None).image
    file = engine._files[image]
    assert file.read_text() == "image\n"
    assert engine._pulled is not None
    engine._pulled.cleanup()
    assert not file.exists()


def test_a_machine_without_apptainer_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError, match="no Apptainer answers: `apptainer` cannot be started"):
        connect("apptainer")
