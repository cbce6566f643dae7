"""What is rendered beside a Dockerfile, read and run by the programs it is for."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.document import write_text
from provisioner.lock.format.model import LockedFile, LockedPackage
from provisioner.outputs import OUTPUTS
from provisioner.render import render
from provisioner.render.container import tag
from provisioner.render.helper import helper_files
from provisioner.render.module import DRIVER_FILE
from provisioner.resolver.stack import RuntimeImage
from tests.container.conftest import push, unavailable
from tests.container.image_locks import source_distribution
from tests.container.siblings import Tools
from tests.lock_examples import cuda_stack, lock_of

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.lock.format.model import Lock
    from provisioner.validate.docker_engine import DockerEngine
    from tests.container.image_locks import Wheelhouse

pytestmark = pytest.mark.docker

CUDA = lock_of(cuda_stack(), name="trial")
HOSTILE = "".join(map(chr, range(32, 127))) + " $(touch made) `touch made` ${HOME} [exec touch made] } { é 日本"


@pytest.fixture
def tools(tools_image: None, tmp_path: Path) -> Tools:
    return Tools(tmp_path)


def written(lock: Lock, folder: Path, *formats: str) -> None:
    for name in formats:
        text = render(lock, name, lock_file_name="pylock.trial.toml")
        for path, content in {OUTPUTS[name].file_name: text, **helper_files(name, text)}.items():
            write_text(folder / path, content)


def demo(wheelhouse: Wheelhouse, *, base: str = "") -> Lock:
    """A lock of one small package, on disk, with its Dockerfile."""
    wheelhouse.add("demo", "1.2")
    lock = wheelhouse.lock(base=base)
    written(lock, wheelhouse.folder, "dockerfile")
    return lock


BUILD = (
    "export APPTAINER_TMPDIR=$PWD APPTAINER_NOHTTPS=1; unset APPTAINER_USERNS; "
    "apptainer build --fakeroot trial.sif apptainer.def 2>&1"
)
PRINT = "from importlib.metadata import version; print(version('demo'))"


def test_compose_builds_the_image_and_runs_a_program(wheelhouse: Wheelhouse, tools: Tools) -> None:
    lock = demo(wheelhouse)
    written(lock, wheelhouse.folder, "compose")
    found = json.loads(tools.output("docker compose config --format json"))
    assert found["services"]["trial"]["image"] == f"trial:{tag(lock)}"
    pushed = json.loads(tools.output("docker compose config --format json", {"REGISTRY": "localhost:5000/team/"}))
    assert pushed["services"]["trial"]["image"] == f"localhost:5000/team/trial:{tag(lock)}"
    try:
        assert tools.output(f'docker compose run --build --rm trial python -c "{PRINT}"').strip().endswith("1.2")
    finally:
        tools.run(f"docker compose down; docker image rm trial:{tag(lock)}")


def test_compose_asks_for_the_gpus_of_the_host(tools: Tools) -> None:
    written(CUDA, tools.folder, "compose")
    device = json.loads(tools.output("docker compose config --format json"))["services"]["trial"]["deploy"]
    assert device["resources"]["reservations"]["devices"] == [{"capabilities": ["gpu"], "count": -1, "driver": "nvidia"}]


def test_bake_builds_the_image(wheelhouse: Wheelhouse, tools: Tools) -> None:
    lock = demo(wheelhouse)
    written(lock, wheelhouse.folder, "bake", "compose")  # bake reads a Compose file, too, and joins targets of one name
    plan = json.loads(tools.output("docker buildx bake --print 2>/dev/null"))
    assert plan["group"]["default"]["targets"] == ["trial"]
    assert plan["target"]["trial"]["tags"] == [f"trial:{tag(lock)}"]
    assert plan["target"]["trial"]["platforms"] == ["linux/amd64"]
    try:
        tools.output("docker buildx bake --load 2>&1")
        assert tools.output(f'docker run --rm trial:{tag(lock)} python -c "{PRINT}"').strip() == "1.2"
    finally:
        tools.run(f"docker image rm trial:{tag(lock)}")


@pytest.fixture
def devcontainer(tools: Tools) -> str:
    """The command line of the reference implementation of development containers, from the registry of npm."""
    if shutil.which("npm") is None:
        unavailable("npm is not here, which has the devcontainer CLI")
    command = ("npm", "install", "--silent", "--no-audit", "--prefix", str(tools.folder / "npm"), "@devcontainers/cli@0.89.0")
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        unavailable(f"the devcontainer CLI cannot be installed: {finished.stderr[-300:]}")
    return "node npm/node_modules/@devcontainers/cli/devcontainer.js"


@pytest.mark.network
def test_a_development_container_starts_as_the_user_of_the_image(
    wheelhouse: Wheelhouse, tools: Tools, devcontainer: str
) -> None:
    written(demo(wheelhouse), wheelhouse.folder, "devcontainer")
    started = json.loads(tools.output(f"{devcontainer} up --workspace-folder $PWD 2>log || (cat log; false)").splitlines()[-1])
    try:
        assert (started["outcome"], started["remoteUser"]) == ("success", "provision")
        inside = f"{devcontainer} exec --workspace-folder $PWD"
        assert tools.output(f'{inside} python -c "{PRINT}" 2>/dev/null').split() == ["1.2"]
        assert tools.output(f"{inside} id -un 2>/dev/null").split() == ["provision"]
        assert tools.output(f"{inside} test -w /opt/venv 2>&1 || echo read-only").split()[-1] == "read-only"
    finally:
        made = f"$(docker image ls --quiet --filter 'reference=vsc-{tools.folder.name}-*')"
        tools.run(f"docker rm --force {started.get('containerId', '')}; docker image rm --force {made}")


def test_apptainer_builds_the_definition_and_runs_a_program(
    engine: DockerEngine, wheelhouse: Wheelhouse, registry: str, tools: Tools
) -> None:
    base = f"{registry}/provision-test/apptainer:1"
    digest = push(engine, wheelhouse.base_image, base)
    wheelhouse.add("demo", "1.2")
    lock = wheelhouse.lock(base=base, digest=digest)
    stacks = tuple(
        replace(stack, environment={"HOSTILE": HOSTILE.translate({ord("{"): "", ord("'"): ""})}) for stack in lock.stacks
    )
    lock = replace(lock, stacks=stacks)
    written(lock, wheelhouse.folder, "apptainer", "slurm")
    tools.output(BUILD)
    assert tools.output(f'apptainer run trial.sif python -c "{PRINT}"').strip() == "1.2"
    assert (
        tools.output("apptainer exec trial.sif python -c 'import os; print(os.environ[\"HOSTILE\"])'").strip("\n")
        == (stacks[0].environment["HOSTILE"])
    )
    tools.output("apptainer test trial.sif")
    assert "dev.provision.lock.digest: sha256:" in tools.output("apptainer inspect --labels trial.sif")
    # The batch script starts this image; sbatch is not needed for that.
    assert tools.output(f'sh job.slurm python -c "{PRINT}"').strip() == "1.2"
    assert not (tools.folder / "made").exists()


def test_apptainer_ships_another_image_than_the_one_that_builds(
    engine: DockerEngine, wheelhouse: Wheelhouse, registry: str, tools: Tools
) -> None:
    bases = [f"{registry}/provision-test/apptainer-{name}:1" for name in ("devel", "runtime")]
    for base in bases:
        made = f"FROM {wheelhouse.base_image}\nRUN touch /opt/{base.rpartition('-')[2][:-2]}\n"
        command = ("docker", "build", "--quiet", "--tag", base, "-")
        environment = {**os.environ, "DOCKER_BUILDKIT": "0"}
        subprocess.run(command, input=made.encode(), env=environment, check=True, capture_output=True)
    digests = [push(engine, base, base) for base in bases]
    (wheelhouse.wheels / "compiled-3.0.tar.gz").write_bytes(source_distribution())
    sdist = LockedFile(
        filename="compiled-3.0.tar.gz",
        sha256=hashlib.sha256(source_distribution()).hexdigest(),
        path="wheels/compiled-3.0.tar.gz",
    )
    wheelhouse.packages.append(LockedPackage(name="compiled", version="3.0", platforms=("linux/amd64",), sdist=sdist))
    lock = wheelhouse.lock(base=bases[0], digest=digests[0])
    (stack,) = lock.stacks
    assert stack.image is not None
    image = replace(stack.image, runtime=RuntimeImage(reference=bases[1], digest=digests[1]))
    lock = replace(lock, stacks=(replace(stack, image=image),))
    try:
        written(lock, wheelhouse.folder, "apptainer")
        tools.output(BUILD)
        print_it = "import compiled, os, sys; print(compiled.built, sorted(os.listdir('/opt')), sys.prefix)"
        assert tools.output(f'apptainer run trial.sif python -c "{print_it}"').strip() == (
            "from source ['runtime', 'venv'] /opt/venv"
        )
        # Python takes the bytecode that was compiled where the environment was made: times are kept.
        read = "import compiled; d = open(compiled.__cached__, 'rb').read(16); "
        read += "import os; print(int.from_bytes(d[8:12], 'little') == int(os.stat(compiled.__file__).st_mtime))"
        assert tools.output(f'apptainer run trial.sif python -c "{read}"').strip() == "True"
        tools.output("apptainer test trial.sif")
    finally:
        tools.run(f"docker image rm {' '.join(bases)}")


MODULES = pytest.mark.parametrize(
    "load",
    [
        "source /etc/profile.d/modules.sh; module use $PWD; module load modulefile",
        "source /usr/share/lmod/lmod/init/bash; module use $PWD; module load modulefile",
    ],
    ids=["environment-modules", "lmod"],
)


@MODULES
def test_a_module_sets_what_the_stack_needs(tools: Tools, load: str) -> None:
    stack = replace(CUDA.stacks[0], environment={"HOSTILE": HOSTILE}, runs="host")
    written(replace(CUDA, stacks=(stack,)), tools.folder, "module")
    (tools.folder / ".venv/bin").mkdir(parents=True)
    (tools.folder / ".venv/bin/python").symlink_to("/usr/bin/python3")
    show = "python3 -c 'import json, os; print(json.dumps(dict(os.environ)))'"
    found = json.loads(tools.output(f"{load}; {show}").splitlines()[-1])
    assert found["HOSTILE"] == HOSTILE
    assert found["VIRTUAL_ENV"] == f"{tools.folder}/.venv"
    assert found["PATH"].split(":")[0] == f"{tools.folder}/.venv/bin"
    after = json.loads(tools.output(f"{load}; module unload modulefile; {show}").splitlines()[-1])
    assert {"HOSTILE", "VIRTUAL_ENV"}.isdisjoint(after)
    assert not (tools.folder / "made").exists()


@MODULES
def test_a_module_without_its_environment_is_not_loaded(tools: Tools, load: str) -> None:
    stack = replace(CUDA.stacks[0], runs="host")
    written(replace(CUDA, stacks=(stack,)), tools.folder, "module")
    found = tools.output(f'{load} 2>&1; python3 -c \'import os; print(os.environ.get("VIRTUAL_ENV"), os.environ["PATH"])\'')
    assert f"pylock.trial.toml is not installed: there is no bin/python in {tools.folder}/.venv\n" in found
    assert found.splitlines()[-1].startswith("None ")
    assert ".venv" not in found.splitlines()[-1]


@MODULES
def test_a_module_is_not_loaded_beside_a_driver_that_the_lock_excludes(tools: Tools, load: str) -> None:
    required = {**CUDA.stacks[0].host_requirements, "driver": ">=525.60.13,==580.*"}
    written(replace(CUDA, stacks=(replace(CUDA.stacks[0], host_requirements=required, runs="host"),)), tools.folder, "module")
    (tools.folder / ".venv/bin").mkdir(parents=True)
    (tools.folder / ".venv/bin/python").symlink_to("/usr/bin/python3")
    path = tools.folder / "modulefile"
    assert DRIVER_FILE in path.read_text()
    path.write_text(path.read_text().replace(DRIVER_FILE, f"{tools.folder}/driver"))
    loaded = {}
    for driver in ("580.65.06", "581.08", "575.57.08"):
        kind = "x86_64 Kernel Module" if driver < "580" else "Open Kernel Module for x86_64"
        lines = (
            f"NVRM version: NVIDIA UNIX {kind}  {driver}  Thu May  2 14:37:44 UTC 2024",
            "GCC version:  gcc version 12.2.0 ",
        )
        (tools.folder / "driver").write_text("\n".join(lines))
        *said, prefix = tools.output(
            f"{load} 2>&1; python3 -c 'import os; print(os.environ.get(\"VIRTUAL_ENV\"))'"
        ).splitlines()
        loaded[driver] = prefix != "None"
        line = f"pylock.trial.toml needs driver >=525.60.13,==580.*; this node has {driver}"
        assert (line in said) != loaded[driver]
    assert loaded == {"580.65.06": True, "581.08": False, "575.57.08": False}
