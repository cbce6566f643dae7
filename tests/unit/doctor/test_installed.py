"""An installed environment beside a lock, and beside what its own distributions require."""

from __future__ import annotations

from provisioner.doctor.environment import differences_from, requires_of, unmet_requirements
from provisioner.grounds.fault import CpuBuild, Difference, NotAsLocked, OtherPython, Unlisted
from provisioner.grounds.requirement import Subject
from provisioner.host.environment import Distribution, PythonEnvironment
from provisioner.host.model import Host, HostGpu, Libraries
from provisioner.host.parse import TorchBuild
from tests.lock_examples import cuda_stack, lock_of
from tests.shipped import shipped

LOCK = lock_of(cuda_stack())
H100 = Host(platform="linux/amd64", gpus=(HostGpu(compute_capability="9.0"),))
AS_LOCKED = {"six": "1.17.0", "python-dateutil": "2.9.0.post0", "torch": "2.7.1"}


def environment(python: str = "3.12.4", cuda: str = "12.6", **versions: str) -> PythonEnvironment:
    distributions = {name.replace("_", "-"): Distribution(version=version) for name, version in versions.items()}
    torch = TorchBuild(version=distributions["torch"].version, cuda=cuda) if "torch" in distributions else None
    return PythonEnvironment(name="venv", found_by="--python", python=python, distributions=distributions, torch=torch)


def test_an_environment_as_locked_has_no_fault() -> None:
    assert list(differences_from(LOCK, environment(**AS_LOCKED))) == []


def test_the_cpu_wheel_of_the_locked_release_is_another_build() -> None:
    assert list(differences_from(LOCK, environment(cuda="", **AS_LOCKED))) == [
        NotAsLocked(
            layer="framework",
            differences=(Difference(name="torch", needed="2.7.1+cu126", installed="2.7.1+cpu"),),
            count=1,
        )
    ]


def test_what_is_missing_and_what_is_older_is_told_by_layer() -> None:
    (found,) = differences_from(LOCK, environment(torch="2.7.1", six="1.16.0"))
    assert found == NotAsLocked(
        layer="packages",
        differences=(
            Difference(name="python-dateutil", needed="2.9.0.post0", installed=""),
            Difference(name="six", needed="1.17.0", installed="1.16.0"),
        ),
        count=2,
    )


def test_another_python_is_a_fault_of_its_own() -> None:
    assert list(differences_from(LOCK, environment("3.11.9", **AS_LOCKED))) == [
        OtherPython(layer="python", locked="3.12", installed="3.11.9")
    ]


def test_what_is_installed_is_required_as_the_build_it_says_it_is() -> None:
    found, faults = requires_of(environment(torch="2.7.1"), shipped(), host=H100, accelerator="cuda")
    assert found == {"pytorch": "==2.7.1", "pytorch_build": "cu126", "python": "==3.12"}
    assert faults == []


def test_a_build_for_the_cpu_is_right_on_a_machine_without_gpus() -> None:
    without = Host(platform="linux/amd64", gpus=())
    found, faults = requires_of(environment(cuda="", torch="2.7.1"), shipped(), host=without, accelerator="cpu")
    assert found["pytorch_build"] == "cpu"
    assert faults == []
    _, faults = requires_of(environment(cuda="", torch="2.7.1"), shipped(), host=H100, accelerator="cuda")
    assert [type(fault) for fault in faults] == [CpuBuild]


def test_tensorflow_computes_on_the_cpu_without_a_cudnn() -> None:
    bare = environment(tensorflow="2.18.0")
    _, (fault,) = requires_of(bare, shipped(), host=H100, accelerator="cuda")
    assert fault == CpuBuild(
        layer="framework", subject=Subject("tensorflow", "2.18.0"), accelerator="cuda", lacks="nvidia-cudnn-"
    )
    of_system = Host(platform="linux/amd64", gpus=H100.gpus, libraries=Libraries(cudnn="9.3.0"))
    assert requires_of(bare, shipped(), host=of_system, accelerator="cuda")[1] == []
    whole = environment(tensorflow="2.18.0", nvidia_cudnn_cu12="9.3.0.75")
    assert requires_of(whole, shipped(), host=H100, accelerator="cuda")[1] == []


def test_a_release_that_the_matrix_does_not_list_is_not_required() -> None:
    found, faults = requires_of(environment(torch="99.1"), shipped(), host=H100, accelerator="cuda")
    assert found == {}
    assert faults == [Unlisted(layer="framework", subject=Subject("pytorch", "99.1+cu126"))]


def test_requirements_are_met_by_version_marker_and_without_extras() -> None:
    needs = ("six>=1.17", "tomli; python_version < '3.11'", "rich>=13; extra == 'cli'", "not a requirement", "torch")
    distributions = {
        "app": Distribution(version="1", requires=needs),
        "six": Distribution(version="1.16.0"),
        "torch": Distribution(version="2.7.1+cu126"),
    }
    found = PythonEnvironment(name="venv", found_by="--python", python="3.12.4", distributions=distributions)
    assert list(unmet_requirements(found, "linux/amd64")) == [
        Difference(name="six", needed="six>=1.17", installed="1.16.0", by="app")
    ]
