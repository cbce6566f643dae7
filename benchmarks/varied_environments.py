"""Environments of a large repository, of which no two are alike: other machines, frameworks, pins, packages and outputs.

Their locks are solved once, with the package indexes of this machine and as of one day, and kept in a folder.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from provisioner.lock.format.file import lock_path

if TYPE_CHECKING:
    from collections.abc import Iterator

DAY = "2026-11-20"
PROVISION = Path(sys.executable).parent / "provision"


class Machine(NamedTuple):
    """A host: its driver, its GPUs as YAML, and further facts."""

    driver: str
    gpus: str
    facts: str = ""
    module: str = "open"

    @property
    def profile(self) -> str:
        """The host profile, as YAML on one line."""
        driver = f'driver: {{version: "{self.driver}", module: {self.module}}}, ' if self.driver else ""
        return f"{{{driver}{self.facts}gpus: [{self.gpus}]}}"


def _gpu(name: str, capability: str, count: int = 1) -> str:
    return f'{{name: {name}, compute_capability: "{capability}", count: {count}}}'


MACHINES = {
    "t4": Machine("535.247.01", _gpu("Tesla T4", "7.5", 4), "container_toolkit: 1.14.6, "),
    "v100": Machine("550.163.01", _gpu("Tesla V100-SXM2-32GB", "7.0", 8), "kernel: 5.15.0-141-generic, ", "proprietary"),
    "a10": Machine("535.183.06", _gpu("NVIDIA A10", "8.6"), 'os: {id: ubuntu, version: "22.04"}, '),
    "a100": Machine("570.133.20", _gpu("NVIDIA A100-SXM4-80GB", "8.0", 8), "fabric_manager: 570.133.20, "),
    "l4": Machine("560.35.05", _gpu("NVIDIA L4", "8.9", 2), 'os: {id: debian, version: "12"}, '),
    "h100": Machine("575.57.08", _gpu("NVIDIA H100 80GB HBM3", "9.0", 8), 'os: {id: rhel, version: "9.5"}, '),
    "h200": Machine("580.95.05", _gpu("NVIDIA H200", "9.0", 8), "fabric_manager: 580.95.05, container_toolkit: 1.18.0, "),
    "rtx4090": Machine("550.120", _gpu("NVIDIA GeForce RTX 4090", "8.9"), "kernel: 6.8.0-60-generic, ", "proprietary"),
    "rtx5090": Machine("580.95.05", _gpu("NVIDIA GeForce RTX 5090", "12.0")),
    "b200": Machine("580.82.07", _gpu("NVIDIA B200", "10.0", 8), "fabric_manager: 580.82.07, "),
    "mixed": Machine("570.172.08", f"{_gpu('NVIDIA A40', '8.6')}, {_gpu('NVIDIA L40S', '8.9', 2)}"),
    "cpu": Machine("", ""),
}


class Wish(NamedTuple):
    """What is wanted on each of some machines; `pytorch` is a range of it, "" for any or none."""

    name: str
    python: str
    packages: str
    outputs: str
    machines: str
    pytorch: str = ""


WISHES = (
    Wish(
        *("train", "3.12", "torch torchvision transformers>=4.50 accelerate datasets", "dockerfile"),
        machines="v100 a10 a100 l4 h100 h200 rtx4090 rtx5090 b200 mixed",
    ),
    Wish(
        *("tune", "3.11", "transformers<5 peft trl safetensors", "dockerfile, compose"),
        machines="t4 v100 a10 a100 l4 h100 h200 rtx4090 mixed",
        pytorch=">=2.6,<2.7",
    ),
    Wish(
        *("diffuse", "3.10", "diffusers torchvision pillow numpy<2", "dockerfile, requirements"),
        machines="t4 v100 a100 l4 h100 rtx4090",
        pytorch=">=2.5,<2.6",
    ),
    Wish(
        *("embed", "3.12", "sentence-transformers faiss-cpu fastapi", "dockerfile, kubernetes"),
        machines="a10 a100 h200 rtx4090 rtx5090",
        pytorch=">=2.7,<2.9",
    ),
    Wish("jax", "3.12", "jax[cuda12] flax optax orbax-checkpoint", "dockerfile", "t4 v100 a100 h100 rtx5090 b200"),
    Wish(
        *("tensorflow", "3.11", "tensorflow[and-cuda]<2.20 tensorboard pandas", "dockerfile, sbom"),
        machines="t4 a10 a100 l4 h100 rtx4090",
    ),
    Wish("serve", "3.12", "vllm", "dockerfile, compose, kubernetes", "h100 h200 b200 a100"),
    Wish("arrays", "3.13", "cupy-cuda12x numba scipy xgboost", "dockerfile, devcontainer", "t4 a10 h100 rtx4090 mixed"),
    Wish(
        *("light", "3.12", "lightning torchmetrics wandb hydra-core", "dockerfile"),
        machines="v100 a10 h100 l4",
        pytorch="==2.4.1",
    ),
    Wish("onnx", "3.12", "onnxruntime fastapi[standard] pydantic<2.12", "dockerfile, requirements", "cpu"),
)


def environments() -> dict[str, str]:
    """Return the spec of each environment by its name; of two that follow each other, each wants something else."""
    return dict(_environments())


def _environments() -> Iterator[tuple[str, str]]:
    machines = {wish: wish.machines.split() for wish in WISHES}
    for turn in range(max(map(len, machines.values()))):
        for wish, names in machines.items():
            if turn < len(names):
                yield f"{wish.name}-{names[turn]}", _spec(wish, names[turn])


def _spec(wish: Wish, machine: str) -> str:
    is_on_cpu = machine == "cpu"
    lines = [
        f"# {wish.packages.split()[0]} on {machine}.",
        f"name: {wish.name}-{machine}",
        "target:",
        f"  platform: {'[linux/amd64, linux/arm64]' if is_on_cpu else 'linux/amd64'}",
        f"  host: {MACHINES[machine].profile}",
        *(["accelerator: cpu"] if is_on_cpu else []),
        "requires:",
        f'  python: "{wish.python}"',
        *([f'  pytorch: "{wish.pytorch}"'] if wish.pytorch else []),
        "packages:",
        *(f'  - "{one}"' for one in wish.packages.split()),
        "policy:",
        "  allow: [minor-version, end-of-life]",
        f"  exclude-newer: {DAY}",
        f"outputs: [{wish.outputs}]",
    ]
    return "\n".join(lines) + "\n"


def solved(folder: Path) -> list[Path]:
    """Return the folder of each environment below `folder`; those that were not solved before are, with the indexes.

    Raises `CalledProcessError` when one has no answer.
    """
    found = []
    for name, spec in environments().items():
        own = folder / name
        file = own / "provision.yaml"
        if not (own / lock_path(name)).is_file() or file.read_text(encoding="utf-8") != spec:
            shutil.rmtree(own, ignore_errors=True)
            own.mkdir(parents=True)
            file.write_text(spec, encoding="utf-8")
            subprocess.run([PROVISION, "solve", str(file)], check=True)
        found.append(own)
    return found
