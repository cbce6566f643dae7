"""The entry point of CUDA images in real containers, where devices come by CDI and nobody else checks.

There is no GPU: stubs of the driver's libraries, and a file where the driver's device would be, stand for one.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from provisioner.validate.run import Options, validate_lock
from tests.container.conftest import unavailable
from tests.container.image_locks import kept_image

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.lock.format.model import Lock
    from provisioner.validate.docker_engine import DockerEngine
    from tests.container.image_locks import Wheelhouse

pytestmark = pytest.mark.docker

STUB = Path(__file__).parents[1] / "fixtures" / "nvml" / "fake_nvml.c"
REQUIREMENT = "driver>=525.60.13,arch>=7.5,arch<10.0 brand=tesla,driver>=470,driver<471,arch>=7.5,arch<10.0"
H100 = {"FAKE_NVML_DRIVER": "535.104.05", "FAKE_NVML_GPUS": "NVIDIA H100|9.0|2330"}


@pytest.fixture
def lock(wheelhouse: Wheelhouse) -> Lock:
    wheelhouse.add("demo", "1.2")
    return wheelhouse.lock(accelerator="cuda", require_cuda=REQUIREMENT)


@pytest.fixture
def image(engine: DockerEngine, wheelhouse: Wheelhouse, lock: Lock) -> Iterator[str]:
    """The image of a CUDA lock, built with no network."""
    options = Options(build_network="none", keep_image=True, gpus="none")
    report = validate_lock(lock, wheelhouse.lock_path, engine=engine, options=options, log=lambda _: None)
    assert report.image, report
    yield report.image
    engine.remove(kept_image(lock))


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    """A folder with the management library of a driver, to be mounted."""
    folder = tmp_path / "driver"
    folder.mkdir()
    (folder / "device").touch()
    command = ["gcc", "-shared", "-fPIC", "-o", str(folder / "libnvidia-ml.so.1"), str(STUB)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        unavailable("no C compiler is installed")
    return folder


def start(image: str, *command: str, driver: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """`docker run` as a person types it."""
    options = ["--rm", "--network=none"]
    if driver is not None:
        options += [f"--volume={driver}:/usr/local/driver:ro", f"--volume={driver}/device:/dev/nvidiactl:ro"]
        environment = {"LD_LIBRARY_PATH": "/usr/local/driver", **environment}
    options += [f"--env={name}={value}" for name, value in environment.items()]
    line = ["docker", "run", *options, image, *command]
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=120)


def test_any_user_of_the_group_root_has_a_home_to_write_to(image: str) -> None:
    """OpenShift gives a container a user that no passwd has: its home was `/`, where no cache of a framework can be."""
    line = ["docker", "run", "--rm", "--network=none", "--cap-drop=ALL", "--user=1000680000:0", image]
    program = "import pathlib; home = pathlib.Path.home(); (home / 'x').touch(); pathlib.Path('y').touch(); print(home)"
    done = subprocess.run([*line, "python", "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (0, "/home/provision\n"), done.stderr


def test_without_a_device_it_says_so_and_the_command_runs(image: str) -> None:
    finished = start(image, "python", "-c", "import os, sys; print(os.getpid(), sys.argv[1:], os.getuid())", "a b")
    assert (finished.returncode, finished.stdout) == (0, "1 ['a b'] 10001\n")
    assert finished.stderr == (
        "provision: no NVIDIA device is visible here, so NVIDIA_REQUIRE_CUDA was not checked and nothing will run on a GPU\n"
    )


def test_on_a_host_that_meets_it_nothing_is_said(image: str, driver: Path) -> None:
    finished = start(image, "sh", "-c", "echo out; exit 7", driver=driver, **H100)
    assert (finished.returncode, finished.stdout, finished.stderr) == (7, "out\n", "")


def test_on_a_host_that_does_not_the_exact_clause_is_stated_and_nothing_runs(image: str, driver: Path) -> None:
    finished = start(image, "echo", "ran", driver=driver, FAKE_NVML_DRIVER="510.85.02", FAKE_NVML_GPUS="Tesla T4|7.5|1eb8")
    assert (finished.returncode, finished.stdout) == (78, "")
    assert finished.stderr.splitlines() == [
        "provision: this image cannot run on GPU 0: driver>=525.60.13: the driver is 510.85.02",
        f"provision: NVIDIA_REQUIRE_CUDA={REQUIREMENT}",
        "provision: NVIDIA_DISABLE_REQUIRE=true starts it all the same",
    ]
    lifted = start(
        image,
        "echo",
        "ran",
        driver=driver,
        FAKE_NVML_DRIVER="510.85.02",
        FAKE_NVML_GPUS="Tesla T4|7.5|1eb8",
        NVIDIA_DISABLE_REQUIRE="1",
    )
    assert (lifted.returncode, lifted.stdout, lifted.stderr) == (0, "ran\n", "")


def test_the_default_command_starts_and_a_signal_reaches_it(image: str) -> None:
    finished = subprocess.run(
        ["docker", "run", "--rm", "--interactive", "--network=none", image],
        input="print(6 * 7)\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (finished.returncode, finished.stdout) == (0, "42\n")
    name = f"provision-guard-{time.time_ns()}"
    handler = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))"
    program = f"import signal, sys, time; {handler}; print('up', flush=True); time.sleep(60)"
    line = ["docker", "run", "--rm", "--network=none", f"--name={name}", image, "python", "-c", program]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        subprocess.run(["docker", "stop", name], check=True, capture_output=True, timeout=60)
        assert process.wait(timeout=60) == 9


def test_validating_on_a_host_that_does_not_meet_it_is_a_no_with_the_clause(
    engine: DockerEngine, wheelhouse: Wheelhouse, lock: Lock, monkeypatch: pytest.MonkeyPatch, driver: Path
) -> None:
    """The engine starts what it is told to, without checking; the driver is mounted as a CDI device would bring it."""
    create = engine._client.containers.create

    def with_driver(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - as the library's own
        options["volumes"] = {
            str(driver): {"bind": "/usr/local/driver", "mode": "ro"},
            str(driver / "device"): {"bind": "/dev/nvidiactl", "mode": "ro"},
        }
        options["environment"] = {
            "LD_LIBRARY_PATH": "/usr/local/driver",
            "FAKE_NVML_DRIVER": "510.85.02",
            "FAKE_NVML_GPUS": "NVIDIA A100|8.0|20b0",
        }
        options["device_requests"] = []
        return create(*arguments, **options)

    monkeypatch.setattr(type(engine._client.containers), "create", lambda _, *a, **o: with_driver(*a, **o))
    options = Options(build_network="none")
    report = validate_lock(lock, wheelhouse.lock_path, engine=engine, options=options, log=lambda _: None)
    field = report.fields[-1]
    assert (field.name, field.measured, field.verdict, report.exit_code) == ("host", "refused", "no", 1)
    assert field.note == "this image cannot run on GPU 0: driver>=525.60.13: the driver is 510.85.02"
