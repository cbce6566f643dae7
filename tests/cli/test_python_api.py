"""The public Python API: the example of docs/python.md, and what its functions raise and leave alone."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import provisioner
from provisioner import (
    NoStackError,
    ProvisionError,
    check,
    compare_locks,
    diagnose_log,
    examine_machine,
    explain,
    read_lock,
    render_lock,
    solve,
    solve_system,
)
from provisioner.workflow.inputs import read_inputs
from tests.leaving import leave
from tests.project import LOCK

if TYPE_CHECKING:
    from tests.project import Project

EXAMPLE = Path(__file__).parents[2] / "docs" / "python.md"
FIXTURES = Path(__file__).parents[1] / "fixtures"

T4 = """\
platform: linux/amd64
os: {id: ubuntu, version: "20.04"}
kernel: 5.4.0-182-generic
driver: {version: 470.256.02, module: proprietary}
gpus: [{name: Tesla T4, compute_capability: "7.5"}]
container_toolkit: 1.17.4
"""
OLD_DRIVER = (
    "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver by "
    "downloading and installing a new version"
)


def examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", EXAMPLE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_example_of_the_documents_runs(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    code, _ = examples()
    exec(compile(code, "docs/python.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == [
        "linux/amd64 yes 3.12",
        "{'alpha': '2.0', 'beta': '2.0'}",
        "[]",
        f"['{LOCK}', 'Dockerfile', 'install.py']",
        "yes []",
        "alpha 2.0 None",
    ]


def test_the_example_with_a_machine_and_a_log_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(FIXTURES / "locks/pylock.cuda-12.toml", LOCK)
    Path("hosts").mkdir()
    Path("hosts/t4.yaml").write_text(T4)
    Path("train.log").write_text(f"Epoch 1\n{OLD_DRIVER}\n")
    _, code = examples()
    exec(compile(code, "docs/python.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == [
        "no [('driver', 'no')]",
        "driver sudo ubuntu-drivers install nvidia:615-open && sudo reboot",
        "driver-too-old-for-runtime 2",
        "['DriverRuns', 'CudaNeeds', 'ChangeHost', 'RunsHere', 'Advice']",
    ]


def test_a_machine_is_examined_as_the_command_does(capsys: pytest.CaptureFixture[str]) -> None:
    lock, tree = FIXTURES / "locks/pylock.cuda-12.toml", FIXTURES / "hosts/ubuntu-20.04-t4-proprietary"
    examination = examine_machine(lock, root=tree)
    assert capsys.readouterr() == ("", "")
    assert leave("doctor", str(lock), "--root", str(tree), "--format", "json") == 1
    told = json.loads(capsys.readouterr().out)
    assert [(one.name, one.verdict) for one in examination.layers] == [(one["layer"], one["verdict"]) for one in told["layers"]]
    assert examination.first is not None
    assert (examination.verdict, examination.first.name) == (told["verdict"], told["mend_first"])


def test_a_recorded_machine_is_not_read_as_well(tmp_path: Path) -> None:
    with pytest.raises(ProvisionError, match="--host names a recorded profile, and --root a part of a machine"):
        examine_machine(host=tmp_path / "host.yaml", root=tmp_path)


def test_a_log_may_be_a_stream(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(OLD_DRIVER)
    by_path, by_stream = diagnose_log(str(tmp_path / "train.log")), diagnose_log(io.BytesIO(OLD_DRIVER.encode()))
    assert by_path == by_stream
    assert by_path.verdict == "cause"


def test_what_is_to_run_is_a_lock_or_a_spec(tmp_path: Path) -> None:
    with pytest.raises(ProvisionError, match="--lock and --spec cannot be given together"):
        diagnose_log(io.BytesIO(b""), lock=tmp_path / LOCK, spec=tmp_path / "provision.yaml")


def test_solving_writes_nothing_and_prints_nothing(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(project.folder.iterdir())
    solution = solve(project.folder / "provision.yaml")
    assert sorted(project.folder.iterdir()) == before
    assert (solution.verdict, solution.names) == ("yes", (LOCK, "Dockerfile", "provision/install.py"))
    assert capsys.readouterr() == ("", "")


def test_what_the_functions_write_is_what_the_command_writes(project: Project) -> None:
    assert project.run("solve").code == 0
    by_command = project.files()
    (project.folder / LOCK).unlink()
    (project.folder / "Dockerfile").unlink()
    solve().write()
    assert project.files() == by_command
    assert render_lock(LOCK) == by_command["Dockerfile"].decode()
    assert read_lock(LOCK).name == "trainer"


def test_packages_move_only_where_that_is_asked_for(project: Project) -> None:
    project.spec("[alpha<2]")
    solve().write()
    project.spec("[alpha]")
    versions = [solve(upgrade=wanted).stacks[0].packages[0].version for wanted in (False, True, ["alpha"])]
    assert versions == ["1.0", "2.0", "2.0"]


def test_two_locks_are_compared(project: Project) -> None:
    project.spec("[alpha<2]")
    solve().write()
    old = Path(LOCK).rename("old.toml")
    project.spec("[alpha]")
    solve().write()
    (change,) = (one for one in compare_locks(old, LOCK).changes if one.subject == "alpha")
    assert (change.old, change.new) == ("1.0", "2.0")


def test_a_conflict_is_raised_with_fixes_that_are_values(project: Project) -> None:
    project.spec("[alpha>=3]")
    with pytest.raises(NoStackError) as raised:
        solve()
    asked = read_inputs(project.folder / "provision.yaml").request("linux/amd64")
    changed = [edit.apply(asked) for fix in raised.value.conflict.fixes for edit in fix.edits]
    assert [one.spec.packages for one in changed] == [("alpha==2.0",)]


def test_the_system_stack_alone_asks_no_index(project: Project) -> None:
    (stack,) = solve_system()
    assert stack.components["python"] == "3.12"
    assert not project.index.requests


def test_strictly_nothing_is_assumed(project: Project) -> None:
    project.write(
        "name: t\nrequires: {python: '3.12', pytorch: '2.6.0'}\noutputs: [dockerfile]\n"
        "target: {host: {gpus: [{name: A100}], driver: {version: 550.54.15}}}\n"
    )
    (stack,) = solve_system()
    assert (stack.verdict, [doubt.component for doubt in stack.assumes]) == ("yes", ["container_toolkit"])
    (strict,) = solve_system(is_strict=True)
    assert (strict.verdict, [doubt.component for doubt in strict.doubts]) == ("unverified", ["container_toolkit"])


def test_mistakes_are_errors_of_ours(project: Project) -> None:
    project.write("name: trainer\nrequires: {pythn: '3.12'}\n")
    for ask in (solve, solve_system, lambda: explain("provision.yaml", "python")):
        with pytest.raises(ProvisionError) as raised:
            ask()
        assert raised.value.code == "invalid-document"
    (project.folder / "empty").mkdir()
    with pytest.raises(ProvisionError, match="there is no lock"):
        check("empty")


def test_a_traceback_shows_the_causes_and_hints(project: Project) -> None:
    project.spec("[alpha>=3]")
    with pytest.raises(NoStackError) as raised:
        solve()
    shown = "".join(traceback.format_exception_only(raised.value)).splitlines()
    error = raised.value
    assert str(error) == error.message
    assert shown[1:] == [*error.causes, *(f"hint: {hint}" for hint in error.hints)]
    assert error.causes
    assert error.hints


def test_no_name_is_that_of_a_module() -> None:
    """Importing a module would put it in the place of the function."""
    modules = {path.stem for path in Path(provisioner.__file__).parent.iterdir()}
    assert modules.isdisjoint(provisioner.__all__)


def test_every_name_is_there_and_loaded_only_when_it_is_used() -> None:
    assert all(getattr(provisioner, name) is not None for name in provisioner.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'solv'"):
        provisioner.solv  # noqa: B018
    code = "import sys, provisioner; print([name for name in sys.modules if name.startswith('provisioner.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
