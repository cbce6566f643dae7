"""The entry point of CUDA images, run as a process: what it says, what it lets through, and that the command notices nothing.

The machine has no NVIDIA driver; stubs of its libraries describe one, and the script is told other paths than /proc and /opt.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from provisioner.render.entry_guard import REFUSED, entrypoint, has_guard, refusal
from provisioner.render.helper import helper_text
from tests.lock_examples import cuda_stack, lock_of

FIXTURES = Path(__file__).parents[2] / "fixtures" / "nvml"
OPEN_MODULE = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  535.104.05  Release Build  (dvs@U16)  Sat Aug 19\n"
SHOW = "import sys; print(sys.argv[1:])"


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A folder that stands for a container: its libraries, its /proc file and the script."""

    folder: Path

    @property
    def script(self) -> Path:
        return self.folder / "guard.py"

    def drive(self, text: str = OPEN_MODULE) -> Machine:
        (self.folder / "version").write_text(text, encoding="utf-8")
        (self.folder / "nvidiactl").touch()
        return self

    def start(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        given = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": str(self.folder / "lib"), **environment}
        line = [sys.executable, "-I", "-S", str(self.script), *command]
        return subprocess.run(line, env=given, capture_output=True, text=True, check=False, timeout=30)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    text = helper_text("guard.py")
    for path in ("/proc/driver/nvidia/version", "/opt/nvidia/nvidia_entrypoint.sh", "/dev/nvidiactl"):
        assert path in text
        text = text.replace(path, str(tmp_path / Path(path).name))
    (tmp_path / "guard.py").write_text(text, encoding="utf-8")
    (tmp_path / "lib").mkdir()
    return Machine(folder=tmp_path)


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler is installed")
    folder = tmp_path_factory.mktemp("libraries")
    for source, name in (("fake_nvml.c", "libnvidia-ml.so.1"), ("fake_cuda.c", "libcuda.so.1")):
        command = [compiler, "-shared", "-fPIC", "-o", str(folder / name), str(FIXTURES / source)]
        subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture
def with_nvml(machine: Machine, libraries: Path) -> Machine:
    shutil.copy(libraries / "libnvidia-ml.so.1", machine.folder / "lib")
    return machine.drive()


@pytest.fixture
def with_libcuda(machine: Machine, libraries: Path) -> Machine:
    shutil.copy(libraries / "libcuda.so.1", machine.folder / "lib")
    return machine.drive()


def echo(machine: Machine, requirement: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return machine.start(sys.executable, "-c", SHOW, "a b", "", "$HOME", NVIDIA_REQUIRE_CUDA=requirement, **environment)


H100 = {"FAKE_NVML_DRIVER": "535.104.05", "FAKE_NVML_CUDA": "12020", "FAKE_NVML_GPUS": "NVIDIA H100|9.0|2330"}


def test_a_host_that_meets_it_runs_the_command_and_hears_nothing(with_nvml: Machine) -> None:
    finished = echo(with_nvml, "driver>=525.60.13,arch>=7.5,arch<10.0,arch!=8.7,brand=nvidia", **H100)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "['a b', '', '$HOME']\n", "")


def test_a_host_that_does_not_meet_it_is_told_the_exact_clauses_and_nothing_is_run(with_nvml: Machine) -> None:
    text = "cuda>=12.6 brand=tesla,driver>=535,driver<536 driver>=580,arch>=10.0"
    finished = echo(with_nvml, text, **H100)
    assert (finished.returncode, finished.stdout) == (REFUSED, "")
    assert finished.stderr == (
        "provision: this image cannot run on GPU 0:"
        " cuda>=12.6: the CUDA of the driver is 12.2; brand=tesla: the brand is nvidia\n"
        f"provision: NVIDIA_REQUIRE_CUDA={text}\n"
        "provision: NVIDIA_DISABLE_REQUIRE=true starts it all the same\n"
    )
    assert refusal(finished.returncode, finished.stderr) == (
        "this image cannot run on GPU 0: cuda>=12.6: the CUDA of the driver is 12.2; brand=tesla: the brand is nvidia"
    )


def test_every_visible_gpu_must_do(with_nvml: Machine) -> None:
    finished = echo(with_nvml, "arch>=8.0", FAKE_NVML_GPUS="NVIDIA A100|8.0|20b0;Tesla T4|7.5|1eb8")
    assert finished.returncode == REFUSED
    first = finished.stderr.splitlines()[0]
    assert first == "provision: this image cannot run on GPU 1: arch>=8.0: the compute capability is 7.5"


def test_every_requirement_of_the_image_counts(with_nvml: Machine) -> None:
    finished = echo(with_nvml, "cuda>=12.0", NVIDIA_REQUIRE_DRIVER="driver>=550", **H100)
    assert finished.returncode == REFUSED
    assert "provision: NVIDIA_REQUIRE_DRIVER=driver>=550\n" in finished.stderr


@pytest.mark.parametrize("text", ["brand=tesla brand=grid brand=vws brand=vpc brand=vcs"])
def test_many_clauses_on_one_fact_are_counted(with_nvml: Machine, text: str) -> None:
    (first, *_) = echo(with_nvml, text, **H100, FAKE_NVML_BRAND="5").stderr.splitlines()
    assert (
        first
        == "provision: this image cannot run on GPU 0: brand=tesla or brand=grid or brand=vws or 2 more: the brand is geforce"
    )


def test_a_brand_nvml_has_no_name_for_is_unknown_as_the_runtime_calls_it(with_nvml: Machine) -> None:
    assert echo(with_nvml, "brand=unknown", **H100, FAKE_NVML_BRAND="99").returncode == 0


@pytest.mark.parametrize("value", ["true", "1"])
def test_the_switch_of_the_runtime_is_honoured(with_nvml: Machine, value: str) -> None:
    finished = echo(with_nvml, "cuda>=99", **H100, NVIDIA_DISABLE_REQUIRE=value)
    assert (finished.returncode, finished.stderr) == (0, "")


@pytest.mark.parametrize("is_gpu_machine", [False, True])
def test_without_a_device_it_says_so_and_starts(machine: Machine, *, is_gpu_machine: bool) -> None:
    """The file of the kernel module is seen in every container of a GPU machine, whatever it was given."""
    if is_gpu_machine:
        machine.drive()
        (machine.folder / "nvidiactl").unlink()
    finished = echo(machine, "cuda>=99")
    assert (finished.returncode, finished.stdout) == (0, "['a b', '', '$HOME']\n")
    assert finished.stderr == (
        "provision: no NVIDIA device is visible here, so NVIDIA_REQUIRE_CUDA was not checked and nothing will run on a GPU\n"
    )


def test_without_the_management_library_the_driver_library_is_asked(with_libcuda: Machine) -> None:
    facts = {"FAKE_CUDA_VERSION": "12020", "FAKE_CUDA_GPUS": "9.0;7.5"}
    assert echo(with_libcuda, "driver>=535.104.05,driver<535.104.6,cuda=12.2,arch>=7.5", **facts).stderr == ""
    (first, *_) = echo(with_libcuda, "arch>=8.0", **facts).stderr.splitlines()
    assert first == "provision: this image cannot run on GPU 1: arch>=8.0: the compute capability is 7.5"


def test_what_cannot_be_read_is_said_and_refuses_nothing(with_libcuda: Machine) -> None:
    finished = echo(with_libcuda, "brand=tesla,driver>=535", FAKE_CUDA_GPUS="9.0")
    assert (finished.returncode, finished.stdout) == (0, "['a b', '', '$HOME']\n")
    assert finished.stderr == "provision: NVIDIA_REQUIRE_CUDA was not decided: the brand cannot be read\n"
    assert echo(with_libcuda, "brand=tesla,driver>=550", FAKE_CUDA_GPUS="9.0").returncode == REFUSED


def test_with_the_file_of_the_kernel_module_alone_the_driver_is_known(machine: Machine) -> None:
    machine.drive("NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  Thu May  2 14:37:44 UTC 2024\n")
    assert echo(machine, "driver>=525.60.13").returncode == REFUSED
    assert echo(machine, "driver>=470").stderr == ""
    assert "was not decided: the compute capability cannot be read" in echo(machine, "driver>=470,arch>=8.0").stderr


def test_a_requirement_nobody_can_read_refuses_nothing(with_nvml: Machine) -> None:
    finished = echo(with_nvml, "cuda>=twelve", **H100)
    assert (finished.returncode, finished.stderr) == (
        0,
        "provision: NVIDIA_REQUIRE_CUDA was not decided: part of its text cannot be read\n",
    )


def test_an_older_management_library_leaves_the_driver(with_nvml: Machine) -> None:
    compiler = shutil.which("gcc") or "cc"
    source = with_nvml.folder / "old.c"
    source.write_text("int nvmlInit_v2(void) { return 0; }\n", encoding="utf-8")
    command = [compiler, "-shared", "-fPIC", "-o", str(with_nvml.folder / "lib/libnvidia-ml.so.1"), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    assert echo(with_nvml, "driver>=550").returncode == REFUSED
    assert "was not decided: the compute capability cannot be read" in echo(with_nvml, "driver>=535,arch>=8.0").stderr


def test_a_management_library_that_does_not_start_gives_way_to_the_driver_library(with_nvml: Machine, libraries: Path) -> None:
    shutil.copy(libraries / "libcuda.so.1", with_nvml.folder / "lib")
    assert echo(with_nvml, "arch=7.5,driver=535.104.05", FAKE_NVML_CODE="9", FAKE_CUDA_GPUS="7.5").stderr == ""


@pytest.mark.parametrize("code", [0, 1, 3, 143])
def test_the_exit_code_is_the_commands(machine: Machine, code: int) -> None:
    assert machine.start("sh", "-c", f"exit {code}").returncode == code


def test_a_command_killed_by_a_signal_is_seen_to_be(machine: Machine) -> None:
    assert machine.start("sh", "-c", "kill -TERM $$").returncode == -15


def test_there_is_one_process_and_it_is_the_command(machine: Machine) -> None:
    process = subprocess.Popen([sys.executable, "-I", "-S", machine.script, "sh", "-c", "echo $$"], stdout=subprocess.PIPE)
    out, _ = process.communicate(timeout=30)
    assert int(out) == process.pid


def test_environment_and_signals_are_as_they_would_be_without_it(machine: Machine) -> None:
    finished = machine.start("env", GIVEN="x")
    assert sorted(line.partition("=")[0] for line in finished.stdout.splitlines()) == ["GIVEN", "LD_LIBRARY_PATH", "PATH"]
    # Python ignores SIGPIPE, and a command that inherits that complains instead of ending.
    piped = subprocess.run(
        ["sh", "-c", f"{sys.executable} -I -S {machine.script} yes | head -n 1"], capture_output=True, text=True, check=True
    )
    assert (piped.stdout, piped.stderr) == ("y\n", "")


def test_the_devices_the_drivers_libraries_open_stay_with_the_script(with_nvml: Machine) -> None:
    show = ("sh", "-c", "echo /proc/self/fd/*")
    alone = subprocess.run(show, capture_output=True, text=True, check=True)
    assert with_nvml.start(*show, **H100, NVIDIA_REQUIRE_CUDA="driver>=535").stdout == alone.stdout


def test_a_locale_that_was_given_is_kept(machine: Machine) -> None:
    assert "LC_CTYPE=C\n" in machine.start("env", LC_CTYPE="C").stdout


@pytest.mark.parametrize(
    ("name", "code", "words"), [("no-such-command", 127, "No such file"), ("/etc", 126, "Permission denied")]
)
def test_a_command_that_cannot_start_is_named_with_the_code_of_a_shell(
    machine: Machine, name: str, code: int, words: str
) -> None:
    finished = machine.start(name)
    assert finished.returncode == code
    assert finished.stderr.startswith(f"provision: {name}: {words}")


def test_nothing_to_do_is_done(machine: Machine) -> None:
    assert machine.start().returncode == 0


def test_the_entry_point_of_nvidias_own_images_is_kept(machine: Machine) -> None:
    inner = machine.folder / "nvidia_entrypoint.sh"
    inner.write_text('#!/bin/sh\necho banner\nexec "$@"\n', encoding="utf-8")
    inner.chmod(0o755)
    assert machine.start("echo", "a b").stdout == "banner\na b\n"


def test_what_is_for_tools_stays_out_of_the_image() -> None:
    script = helper_text("guard.py")
    assert not any(word in script for word in ("ruff", "mypy", "fmt:"))
    compile(script, "guard.py", "exec")


def test_only_stacks_with_a_requirement_have_it() -> None:
    (stack,) = lock_of(cuda_stack()).stacks
    assert has_guard(stack)
    assert not has_guard(replace(stack, require_cuda=""))
    assert not has_guard(replace(stack, accelerator="cpu"))
    assert str(entrypoint("/opt/venv")) == 'ENTRYPOINT ["/opt/venv/bin/python", "-I", "-S", "/opt/provision/guard.py"]'


@pytest.mark.parametrize(
    ("code", "stderr"), [(1, "provision: this image cannot run on GPU 0: x\n"), (REFUSED, "killed\n"), (0, "")]
)
def test_other_endings_are_no_refusal(code: int, stderr: str) -> None:
    assert refusal(code, stderr) == ""
