"""Validation bites: each fault of an image is seen, by the fact it changes, at the lowest level that can see it."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from packaging.utils import parse_wheel_filename

from provisioner.document import write_text
from provisioner.lock.format.file import write_lock
from provisioner.render import render
from provisioner.render.helper import helper_files
from provisioner.validate.engine import BuildRequest, RunRequest
from provisioner.validate.measurement import check_source
from provisioner.validate.run import Options, validate_lock
from tests.container.conftest import unavailable
from tests.container.fault_table import FAULTS
from tests.container.image_locks import Wheelhouse, kept_image
from tests.unit.validate.locks import failed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.evidence.report import Report
    from provisioner.lock.format.model import Lock
    from provisioner.validate.docker_engine import DockerEngine
    from tests.container.fault_table import Fault

pytestmark = [pytest.mark.docker, pytest.mark.network]

REQUIRED = {
    "onnx": ("onnxruntime==1.32.0", "numpy==2.4.6", "protobuf==7.36.2"),
    "jax": ("jax==0.10.2", "numpy==2.4.6"),
    "torch": ("torch==2.13.0+cpu",),
    "tensorflow": ("tensorflow-cpu==2.21.0",),
    "compilers": ("triton==3.9.0", "nvidia-cuda-nvrtc-cu12==12.9.86", "cupy-cuda12x==14.2.0"),
    "rapids": ("rmm-cu12==26.8.0", "nvidia-nccl-cu12==2.19.3"),
    "rocm": ("triton==3.9.0",),
}
"""The packages of each stack, with versions whose wheels are for Python 3.11."""

NAMED = {"compilers": ("triton", "nvidia-cuda-nvrtc-cu12")}
"""What the spec names where it is not all of `REQUIRED`: CuPy without libraries of CUDA is there for its kernels."""

ACCELERATOR = {"rapids": "cuda", "rocm": "rocm"}
"""What stacks compute on that are not for the CPU; those of `compilers` need none to compile."""

SITE = "/opt/venv/lib/python3.11/site-packages"
HERE = Path(__file__).parent

CPU_INDEX = "https://download.pytorch.org/whl/cpu"


@dataclass(frozen=True)
class Stack:
    """A lock, its folder, and the image that was built from it."""

    lock: Lock
    path: Path
    image: str
    report: Report


@pytest.fixture(scope="module")
def stacks(engine: DockerEngine) -> Iterator[dict[str, Stack]]:
    """The stacks that were built so far; their images are removed in the end."""
    found: dict[str, Stack] = {}
    yield found
    for stack in found.values():
        engine.remove(stack.image)


@pytest.fixture
def stack(
    request: pytest.FixtureRequest, stacks: dict[str, Stack], engine: DockerEngine, base_image: str, installer: Path
) -> Stack:
    """The stack of a fault, built once."""
    name = str(request.param)
    if name not in stacks:
        folder = request.getfixturevalue("tmp_path_factory").mktemp(name)
        house = Wheelhouse(folder=folder, base_image=base_image, installer=installer)
        house.wheels.mkdir()
        shutil.copyfile(installer, house.wheels / installer.name)
        stacks[name] = built(name, house, engine)
    return stacks[name]


def built(name: str, house: Wheelhouse, engine: DockerEngine) -> Stack:
    """Build the image of a stack, and see that it is a yes before anything is broken."""
    if name == "guarded":
        house.add("demo", "1.2")
        house.add("other", "0.3")
        lock = house.lock(accelerator="cuda", require_cuda="driver>=525.60.13")
        (only,) = lock.stacks
        lock = replace(lock, stacks=(replace(only, host_requirements={"driver": ">=525.60.13"}),))
    else:
        download(REQUIRED[name], house)
        components = {"pytorch": "2.13.0", "pytorch_build": "cpu"} if name == "torch" else {}
        lock = house.lock(components=components, accelerator=ACCELERATOR.get(name, "cpu"))
    named = NAMED.get(name) or [one.partition("==")[0] for one in REQUIRED.get(name, ("demo",))]
    lock = replace(lock, asked={f"packages.{one}": "any version" for one in named})
    write_text(house.lock_path, write_lock(lock))
    options = Options(level=3, build_network="none", keep_image=True)
    report = validate_lock(lock, house.lock_path, engine=engine, options=options, log=lambda _: None)
    assert (failed(report.fields), report.verdict) == ((), "yes")
    return Stack(lock=lock, path=house.lock_path, image=kept_image(lock), report=report)


def download(requirements: tuple[str, ...], house: Wheelhouse) -> None:
    """Download the wheels of a stack, and lock them."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(house.wheels), "--only-binary", ":all:"]
    command += ["--python-version", "3.11", *requirements]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        finished = subprocess.run([*command, "--extra-index-url", CPU_INDEX], capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        unavailable(f"{', '.join(requirements)} cannot be downloaded: {finished.stderr[-300:]}")
    for path in sorted(house.wheels.glob("*.whl")):
        if path.name != house.installer.name:
            name, version, _, _ = parse_wheel_filename(path.name)
            house.add_file(str(name), str(version), path.name, sha256=hashlib.sha256(path.read_bytes()).hexdigest())


def broken(fault: Fault, stack: Stack, engine: DockerEngine, folder: Path) -> Report:
    """Break the image of a stack, or what it is built from, and validate what came of it."""
    if fault.beside:
        shutil.copytree(stack.path.parent, folder / "beside")
        path = folder / "beside" / stack.path.name
        recipe = render(stack.lock, "dockerfile", lock_file_name=path.name)
        for name, text in {"Dockerfile": recipe, **helper_files("dockerfile", recipe)}.items():
            write_text(path.parent / name, text)
        subprocess.run(fault.beside, shell=True, check=True, cwd=path.parent)
        options = Options(level=fault.level, build_network="none")
        return validate_lock(stack.lock, path, engine=engine, options=options, log=lambda _: None)
    shutil.copyfile(HERE / "forge.py", folder / "forge.py")
    as_root = ("USER root", "COPY forge.py /srv/forge.py", f"RUN cd {SITE} && {fault.run}", "USER 10001:10001")
    lines = (f"FROM {stack.image}", *(as_root if fault.run else ()), fault.instruction)
    (folder / "Dockerfile").write_text("\n".join(lines), encoding="utf-8")
    tag = f"provision-test/fault:{hashlib.sha256(fault.name.encode()).hexdigest()[:12]}"
    engine.build(BuildRequest(context=folder, dockerfile=folder / "Dockerfile", tag=tag), lambda _: None)
    options = Options(level=fault.level, image=tag)
    try:
        return validate_lock(stack.lock, stack.path, engine=engine, options=options, log=lambda _: None)
    finally:
        engine.remove(tag)


@pytest.mark.parametrize(
    ("stack", "facts"),
    [
        ("guarded", {"files", "other files", "entry point", "variables", "user", "demo"}),
        ("onnx", {"numpy", "numpy matmul", "numpy solve", "onnxruntime", "onnxruntime matmul", "protobuf"}),
        ("jax", {"jax", "jax matmul", "jax gradient"}),
        ("tensorflow", {"tensorflow-cpu", "tensorflow-cpu matmul", "tensorflow-cpu function"}),
        ("compilers", {"triton", "triton compile", "nvidia-cuda-nvrtc-cu12 compile", "cupy-cuda12x compile"}),
        ("rapids", {"rmm-cu12", "rmm-cu12 library", "nvidia-nccl-cu12", "nvidia-nccl-cu12 release"}),
        ("rocm", {"triton", "triton compile"}),
        ("torch", {"pytorch", "pytorch_build", "libraries", "packages", "cpu compute"}),
    ],
    indirect=["stack"],
)
def test_an_image_that_is_as_locked_is_a_yes_with_a_fact_for_each_framework(stack: Stack, facts: set[str]) -> None:
    assert (stack.report.verdict, stack.report.exit_code) == ("yes", 0)
    assert {field.name for field in stack.report.fields} >= facts


IN_THE_IMAGE = """
import json, sys
import torch

health, smoke = {"__name__": "health"}, {"__name__": "smoke"}
exec(sys.argv[1], health)
exec(sys.argv[2], smoke)
loader = health["Loader"](torch, "cpu")
loader.size, loader.elements = 128, 1 << 20
found = loader.run(0.5, amount=1 << 20)
found["attention"] = smoke["attention_is_close"](torch, "cpu")
found["sum"] = smoke["all_reduce"]("gloo", 2)
print(json.dumps(found))
"""
"""The checks of devices, on the CPU: what needs no GPU of them runs as it would on one."""


@pytest.mark.parametrize("stack", ["torch"], indirect=True)
def test_the_load_the_attention_and_the_sum_over_processes_run_on_the_cpu(stack: Stack, engine: DockerEngine) -> None:
    command = ("python", "-c", IN_THE_IMAGE, check_source("health"), check_source("smoke"))
    finished = engine.run(RunRequest(image=stack.image, command=command), lambda _: None)
    assert finished.exit_code == 0, finished.stderr
    found = json.loads(finished.stdout.splitlines()[-1])
    assert (found["stable"], found["memory_held"], found["attention"], found["sum"]) == (True, True, True, True)
    assert min(found["float32"], found["float16"], found["memory_bandwidth"]) > 0


@pytest.mark.parametrize(
    ("stack", "fault"),
    [pytest.param(fault.stack, fault, id=f"{fault.stack}: {fault.name}") for fault in FAULTS],
    indirect=["stack"],
)
def test_a_fault_is_seen_at_the_lowest_level_that_can(stack: Stack, fault: Fault, engine: DockerEngine, tmp_path: Path) -> None:
    report = broken(fault, stack, engine, tmp_path)
    refused = [field for field in report.fields if field.verdict == "no"]
    assert (report.verdict, report.exit_code) == ("no", 1)
    assert min(field.level for field in refused) == fault.level
    assert fault.fact in {field.name for field in refused if field.level == fault.level}
