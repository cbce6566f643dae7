"""What is rendered beside a Dockerfile, held to schemas and tools that need no engine; tests/container runs the rest."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from provisioner.document import parse_document
from provisioner.errors import ProvisionError, UsageError
from provisioner.lock.format.file import read_lock
from provisioner.lock.format.model import LockedPackage
from provisioner.outputs import OUTPUTS
from provisioner.render import render
from provisioner.render.container import HOME, USER_ID
from provisioner.render.header import UnrenderableError, rendered_from
from tests.lock_examples import cpu_stack, cuda_stack, for_output, lock_of
from tests.unit.render.test_dockerfile import GOLDEN, of_one_day

if TYPE_CHECKING:
    from collections.abc import Callable

    from provisioner.lock.format.model import Lock

ROOT = Path(__file__).parents[3]
CPU, CUDA = lock_of(cpu_stack()), lock_of(cuda_stack())
ROCM = lock_of(replace(cpu_stack(), accelerator="rocm", host_requirements={"gpu": "gfx942"}))
MIXED = lock_of(cuda_stack(), cpu_stack("linux/arm64"))
HOST = lock_of(replace(cuda_stack(), runs="host", image=None))
REFERENCE = [read_lock(path) for path in sorted(ROOT.glob("dockerfiles/*/pylock.*.toml"))]
NAMES = ("Trainer_GPU", "-x-", "ÄÖ", "n" * 100, "no")
CONTAINERS = [name for name, row in OUTPUTS.items() if row.is_for_containers]


def program(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the development environment."""
    return subprocess.run([str(Path(sys.executable).parent / name), *arguments], capture_output=True, text=True, check=False)


def service(lock: Lock, **options: str) -> dict[str, Any]:
    """The Compose file without its interpolation; YAML is read by the parser of specs."""
    data: dict[str, Any] = parse_document(render(lock, "compose", **options), file="compose.yaml", kind="Compose file").data
    return data


def test_manifests_are_valid_for_kubernetes(tmp_path: Path) -> None:
    named = [replace(CUDA, name=name) for name in NAMES]
    paths = []
    for number, lock in enumerate((CPU, CUDA, ROCM, MIXED, *named, *REFERENCE)):
        for output in ("kubernetes", "kubernetes-deployment"):
            paths.append(tmp_path / f"{number}-{output}.yaml")
            paths[-1].write_text(render(lock, output, lock_file_name="pylock.x.toml"), encoding="utf-8")
    finished = program("kubernetes-validate", "--strict", "--kubernetes-version", "1.34", *map(str, paths))
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert (finished.stdout + finished.stderr).count("passed for resource") == len(paths) + 2  # two of MIXED, in each format


def test_containers_run_as_the_user_of_the_image() -> None:
    lines = render(CPU, "dockerfile").splitlines()
    assert f"USER {USER_ID}:{USER_ID}" in lines
    assert f"WORKDIR {HOME}" in lines


def test_each_accelerator_is_reached_in_its_own_way() -> None:
    (cuda,) = service(CUDA)["services"].values()
    assert [*cuda["deploy"]["resources"]["reservations"]["devices"]] == [
        {"driver": "nvidia", "count": "all", "capabilities": ("gpu",)}
    ]
    (rocm,) = service(ROCM)["services"].values()
    assert rocm["devices"] == ("/dev/kfd:/dev/kfd", "/dev/dri:/dev/dri")
    assert rocm["group_add"] == ("video",)
    (cpu,) = service(CPU)["services"].values()
    assert {"deploy", "devices"}.isdisjoint(cpu)
    assert "amd.com/gpu: 1" in render(ROCM, "kubernetes")
    assert "No label of a node shows that it meets: gpu gfx942." in render(ROCM, "kubernetes")


def test_platforms_of_several_accelerators_are_services_of_their_own() -> None:
    services = service(MIXED)["services"]
    assert {name: one["platform"] for name, one in services.items()} == {
        "trainer-cuda": "linux/amd64",
        "trainer-cpu": "linux/arm64",
    }


@pytest.mark.parametrize("output", CONTAINERS)
def test_a_lock_for_the_host_has_no_container(output: str) -> None:
    with pytest.raises(UnrenderableError) as caught:
        render(HOST, output)
    assert caught.value.message.startswith("lock `trainer` runs on the host (linux/amd64), and a")


@pytest.mark.parametrize("output", ["devcontainer", "apptainer", "slurm"])
def test_a_file_for_one_kind_of_machine_is_refused_for_several(output: str) -> None:
    with pytest.raises(UnrenderableError) as caught:
        render(MIXED, output)
    assert caught.value.hints == ("write a target for each platform in the specification and solve again",)


@pytest.mark.parametrize("name", NAMES)
def test_any_name_of_a_lock_gives_names_that_tools_take(name: str) -> None:
    (service_name,) = service(replace(CUDA, name=name), lock_file_name="pylock.x.toml")["services"]
    assert re.fullmatch(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?", service_name)


@pytest.mark.parametrize("output", [name for name in OUTPUTS if name != "environment"])  # it quotes the name whole
def test_a_name_with_a_line_break_stays_in_the_header(output: str) -> None:
    name = "pylock.a.toml\nrm -rf /\n#SBATCH --wrap=evil"
    try:
        text = render(for_output(CUDA, output), output, lock_file_name=name)
    except UsageError:
        return
    assert all(
        "evil" not in line or line.lstrip().startswith(("#", "//", '"', "lock=", "puts", "printf"))
        for line in text.splitlines()
    )
    assert "\nrm -rf" not in text.replace("# ", "")


@pytest.mark.parametrize("lock", [CPU, CUDA, HOST, REFERENCE[-1]], ids=["cpu", "cuda", "host", "reference"])
def test_a_batch_script_is_sound_for_shellcheck(lock: Lock, tmp_path: Path) -> None:
    (tmp_path / "job.slurm").write_text(render(lock, "slurm"), encoding="utf-8")
    finished = program("shellcheck", "--shell=sh", str(tmp_path / "job.slurm"))
    assert (finished.returncode, finished.stdout) == (0, "")


@pytest.mark.parametrize(
    ("gpus", "code", "told"),
    [
        ("8.0, 535.104.05", 0, ""),
        ("9.0, 525.60.13\\n9.0, 525.60.13", 0, ""),
        ("9.0, 525.60.11", 78, "it needs driver >=525.60.13, and the driver is 525.60.11"),
        ("9.0, 470.82.01", 78, "it needs driver >=525.60.13, and the driver is 470.82.01"),
        ("9.0, 580.65.06\\n12.0, 580.65.06", 78, "it needs compute capability 7.5, 8.0, 9.0, and a GPU has 12.0"),
    ],
)
def test_a_batch_script_refuses_a_node_that_the_stack_does_not_run_on(gpus: str, code: int, told: str, tmp_path: Path) -> None:
    for name, text in {"nvidia-smi": f"printf '{gpus}\\n'", "apptainer": 'echo "$@"'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "job.slurm").write_text(render(CUDA, "slurm"), encoding="utf-8")
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = ["sh", "job.slurm", "python", "train.py"]
    finished = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert finished.returncode == code, finished.stderr
    assert finished.stdout == ("run --nv trainer.sif python train.py\n" if code == 0 else "")
    assert finished.stderr.rstrip("\n").endswith(told)


def test_a_node_without_gpus_is_refused(tmp_path: Path) -> None:
    (tmp_path / "job.slurm").write_text(render(CUDA, "slurm"), encoding="utf-8")
    finished = subprocess.run(["sh", "job.slurm"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert finished.returncode == 78
    assert finished.stderr.rstrip("\n").endswith("nvidia-smi lists no GPU")


def on_a_node(folder: Path, script: str, python: str) -> subprocess.CompletedProcess[str]:
    """Run a batch script with `python` on a node that has this Python for everybody, and GPUs as the lock wants them."""
    (folder / "bin").mkdir()
    for name, text in {"nvidia-smi": "echo 9.0, 550.54.14", "python": python}.items():
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / "bin" / name).chmod(0o755)
    (folder / "job.slurm").write_text(script, encoding="utf-8")
    environment = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}"}
    command = ["sh", "job.slurm", "python", "train.py"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("environment", "code", "written", "told"),
    [
        ("echo 3.12", 0, "3.12\n", ""),
        ("echo 3.11", 1, "", "{folder}/.venv has Python 3.11, not 3.12"),
        ("exit 127", 1, "", "{folder}/.venv has no Python that runs on {node}"),
        (None, 1, "", "{folder}/.venv has no Python that runs on {node}"),
    ],
    ids=["as locked", "another Python", "a Python that does not run", "no environment"],
)
def test_a_batch_script_does_not_take_the_python_of_its_node(
    environment: str | None, code: int, written: str, told: str, tmp_path: Path
) -> None:
    """Without the environment, `python` is the node's own, with whatever packages that has."""
    if environment is not None:
        (tmp_path / ".venv/bin").mkdir(parents=True)
        (tmp_path / ".venv/bin/python").write_text(f"#!/bin/sh\n{environment}\n")
        (tmp_path / ".venv/bin/python").chmod(0o755)
    finished = on_a_node(tmp_path, render(HOST, "slurm"), "echo the Python of the node")
    assert (finished.returncode, finished.stdout) == (code, written)
    said = told.format(folder=tmp_path, node=platform.node())
    advice = "uv venv --python 3.12 && uv pip install -r pylock.trainer.toml"
    assert finished.stderr == (f"pylock.trainer.toml: {said}: {advice}\n" if told else "")


@pytest.mark.parametrize("name", ["snapshot", "snapshot-wheels"])
def test_a_definition_file_with_packages_of_one_day_is_the_golden_one(name: str, golden: Callable[[Path, str], None]) -> None:
    """With a source distribution both stages install packages; with wheels alone there is one stage."""
    built = replace(of_one_day(), name=name)
    (package,) = (one for one in built.packages if one.sdist is not None)
    wheels = replace(built, packages=tuple(one for one in built.packages if one is not package))
    lock = built if name == "snapshot" else wheels
    golden(GOLDEN / f"{name}.apptainer.def", render(lock, "apptainer", lock_file_name=f"pylock.{name}.toml"))


def test_a_template_in_a_value_is_refused_for_apptainer() -> None:
    lock = lock_of(replace(cuda_stack(), environment={"A": "{{ name }}"}))
    with pytest.raises(UnrenderableError) as caught:
        render(lock, "apptainer")
    assert caught.value.message == "a value of lock `trainer` holds `{{`, with which a template of a definition file begins"


def test_a_single_quote_is_refused_for_apptainer() -> None:
    with pytest.raises(UnrenderableError) as caught:
        render(lock_of(replace(cuda_stack(), environment={"A": "it's"})), "apptainer")
    assert caught.value.message == ('variable `A` holds a single quote, which Apptainer does not hand on as it is: "it\'s"')


@pytest.mark.parametrize("output", ["apptainer", "slurm", "module"])
def test_a_value_with_a_line_break_is_refused(output: str) -> None:
    stack = replace(
        cuda_stack(), environment={"A": "1\n%post\ntouch made"}, runs="host" if output != "apptainer" else "container"
    )
    with pytest.raises(ProvisionError) as caught:
        render(lock_of(stack), output)
    assert "holds a control character" in caught.value.message


VALIDATE_CYCLONEDX = """
import json, sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
for text in json.load(sys.stdin):
    print(JsonStrictValidator(SchemaVersion.V1_6).validate_str(text))
    purls = [one["purl"] for one in json.loads(text)["components"]]
    print([one for one in purls if PackageURL.from_string(one).to_string() != one])
"""
VALIDATE_SPDX = """
import json, pathlib, sys, tempfile
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
path = pathlib.Path(tempfile.mkdtemp()) / "sbom.spdx.json"
for text in json.load(sys.stdin):
    path.write_text(text, encoding="utf-8")
    print(validate_full_spdx_document(parse_file(str(path))))
"""


def validated(code: str, output: str, *locks: Lock) -> list[str]:
    texts = [render(lock, output) for lock in locks]
    command = [sys.executable, "-c", code]
    finished = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    lines = finished.stdout.splitlines()
    assert len(lines) % len(texts) == 0
    return sorted(set(lines))


# The validator of CycloneDX takes minutes for a hundred packages, so only small locks are given to it.
def test_bills_of_materials_are_valid_cyclonedx_and_their_package_urls_canonical() -> None:
    assert validated(VALIDATE_CYCLONEDX, "sbom", CPU, CUDA, MIXED, HOST) == ["None", "[]"]


def test_bills_of_materials_are_valid_spdx() -> None:
    assert validated(VALIDATE_SPDX, "sbom-spdx", CPU, CUDA, MIXED, HOST) == ["[]"]


@pytest.mark.parametrize("lock", [CPU, CUDA, MIXED, HOST, *REFERENCE], ids=lambda lock: lock.name)
def test_a_bill_of_materials_names_every_package(lock: Lock) -> None:
    components = json.loads(render(lock, "sbom"))["components"]
    found = [one["purl"].partition("?")[0] for one in components if one["purl"].startswith("pkg:pypi/")]
    assert set(found) == {f"pkg:pypi/{one.name}@{one.version.replace('+', '%2B')}" for one in lock.packages}
    assert len({one["bom-ref"] for one in components}) == len(components)


def test_both_bills_name_the_same_packages_with_the_same_hashes() -> None:
    for lock in REFERENCE:
        ours = {file.sha256 for package in lock.packages for file in package.files}
        cyclonedx = json.loads(render(lock, "sbom"))["components"]
        spdx = json.loads(render(lock, "sbom-spdx"))["packages"]
        references = [one for part in cyclonedx for one in part.get("externalReferences", ())]
        assert {one["hashes"][0]["content"] for one in references} == ours
        assert {one["checksums"][0]["checksumValue"] for one in spdx if "checksums" in one} == ours


def test_cuda_and_python_are_parts_of_a_bill_and_facts_of_the_host_are_not() -> None:
    names = {one["name"] for one in json.loads(render(CUDA, "sbom"))["components"]}
    assert {"cuda", "python", "torch", "nvidia/cuda:12.6.3-base-ubuntu24.04"} <= names
    assert {"driver", "kernel", "gpu", "pytorch_build", "glibc"}.isdisjoint(names)


def test_a_bill_names_what_requires_what() -> None:
    document = json.loads(render(CPU, "sbom"))
    edges = {one["ref"]: one["dependsOn"] for one in document["dependencies"]}
    assert edges["pkg:pypi/python-dateutil@2.9.0.post0"] == ["pkg:pypi/six@1.17.0"]
    assert "pkg:pypi/six@1.17.0" not in edges["environment"]
    assert "pkg:pypi/python-dateutil@2.9.0.post0" in edges["environment"]


def test_a_package_of_another_index_is_told_by_its_url() -> None:
    package = LockedPackage(
        name="torch", version="2.7.1+cu126", platforms=("linux/amd64",), index="x", index_url="https://x.y/whl"
    )
    components = json.loads(render(replace(CPU, packages=(package,)), "sbom"))["components"]
    assert components[-1]["purl"] == "pkg:pypi/torch@2.7.1%2Bcu126?repository_url=https://x.y/whl"


def licensed(*licenses: str) -> Lock:
    package = LockedPackage(name="demo", version="1.0", platforms=("linux/amd64",), licenses=licenses)
    return replace(CPU, packages=(package,))


@pytest.mark.parametrize(
    ("licenses", "cyclonedx", "spdx"),
    [
        (("MIT OR Apache-2.0",), [{"expression": "MIT OR Apache-2.0"}], "MIT OR Apache-2.0"),
        (("LicenseRef-Own",), [{"expression": "LicenseRef-Own"}], "LicenseRef-Own"),
        (
            ("BSD License", "Other/Proprietary License"),
            [{"license": {"name": "BSD License"}}, {"license": {"name": "Other/Proprietary License"}}],
            "LicenseRef-BSD-License AND LicenseRef-Other-Proprietary-License",
        ),
        (("许可",), [{"license": {"name": "许可"}}], f"LicenseRef-{hashlib.sha256('许可'.encode()).hexdigest()[:12]}"),
        ((), None, "NOASSERTION"),
    ],
)
def test_declared_licences_are_stated_as_they_are(licenses: tuple[str, ...], cyclonedx: object, spdx: str) -> None:
    lock = licensed(*licenses)
    component = json.loads(render(lock, "sbom"))["components"][-1]
    stated = [
        {**one, **({"license": {"name": one["license"]["name"]}} if "license" in one else {})}
        for one in component.get("licenses", ())
    ]
    assert [{key: value for key, value in one.items() if key != "acknowledgement"} for one in stated] == (cyclonedx or [])
    document = json.loads(render(lock, "sbom-spdx"))
    assert document["packages"][-1]["licenseDeclared"] == spdx
    references = {one["licenseId"] for one in document.get("hasExtractedLicensingInfos", ())}
    assert references == {word for word in spdx.split() if word.startswith("LicenseRef-")}


def test_bills_with_licences_are_valid() -> None:
    locks = (licensed("MIT OR Apache-2.0"), licensed("LicenseRef-Own"), licensed("BSD License", "Other/Proprietary License"))
    assert validated(VALIDATE_CYCLONEDX, "sbom", *locks) == ["None", "[]"]
    assert validated(VALIDATE_SPDX, "sbom-spdx", *locks) == ["[]"]


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("line", ["rendered", "hand-written"])
def test_a_rendered_file_is_told_from_one_written_by_hand(output: str, line: str, tmp_path: Path) -> None:
    text = render(for_output(CUDA, output), output)
    if line == "hand-written":
        text = text.replace("Generated by provision render from", "Written by")
    (tmp_path / "file").write_text(text, encoding="utf-8")
    assert rendered_from(tmp_path / "file") == ("pylock.trainer.toml" if line == "rendered" else "")
