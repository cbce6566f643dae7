"""Environments of a large repository, of which no two are alike: other machines, frameworks, pins, packages and outputs.

Their locks are solved once, with the package indexes of this machine and as of one day, and kept in `build/benchmarks`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from provisioner.lock.format.file import lock_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

DAY = "2026-11-20"
PROVISION = Path(sys.executable).parent / "provision"

HOSTS = {
    "t4-470": '{driver: {version: 470.256.02, module: proprietary}, gpus: [{name: Tesla T4, compute_capability: "7.5"}]}',
    "t4-535": '{driver: {version: 535.247.01, module: open}, gpus: [{name: Tesla T4, compute_capability: "7.5", count: 4}], container_toolkit: 1.14.6}',
    "v100": "{kernel: 5.15.0-141-generic, driver: {version: 550.163.01, module: proprietary}, "
    'gpus: [{name: Tesla V100-SXM2-32GB, compute_capability: "7.0", count: 8}]}',
    "a10": '{os: {id: ubuntu, version: "22.04"}, glibc: "2.35", driver: {version: 535.183.06, module: open}, '
    'gpus: [{name: NVIDIA A10, compute_capability: "8.6"}]}',
    "a100": "{driver: {version: 570.133.20, module: open}, fabric_manager: 570.133.20, container_toolkit: 1.17.8, "
    'gpus: [{name: NVIDIA A100-SXM4-80GB, compute_capability: "8.0", count: 8}]}',
    "l4": '{os: {id: debian, version: "12"}, driver: {version: 560.35.05, module: open}, '
    'gpus: [{name: NVIDIA L4, compute_capability: "8.9", count: 2}]}',
    "h100": '{os: {id: rhel, version: "9.5"}, driver: {version: 575.57.08, module: open}, fabric_manager: 575.57.08, '
    'gpus: [{name: NVIDIA H100 80GB HBM3, compute_capability: "9.0", count: 8}]}',
    "h200": "{driver: {version: 580.95.05, module: open}, container_toolkit: 1.18.0, fabric_manager: 580.95.05, "
    'gpus: [{name: NVIDIA H200, compute_capability: "9.0", count: 8}]}',
    "rtx4090": '{os: {id: ubuntu, version: "24.04"}, kernel: 6.8.0-60-generic, driver: {version: "550.120", module: proprietary}, '
    'gpus: [{name: NVIDIA GeForce RTX 4090, compute_capability: "8.9"}]}',
    "rtx5090": '{driver: {version: 580.95.05, module: open}, gpus: [{name: NVIDIA GeForce RTX 5090, compute_capability: "12.0"}]}',
    "b200": "{driver: {version: 580.82.07, module: open}, fabric_manager: 580.82.07, "
    'gpus: [{name: NVIDIA B200, compute_capability: "10.0", count: 8}]}',
    "mixed": '{driver: {version: 570.172.08, module: open}, gpus: [{name: NVIDIA A40, compute_capability: "8.6"}, '
    '{name: NVIDIA L40S, compute_capability: "8.9", count: 2}]}',
    "cpu": "{gpus: []}",
}

WISHES: tuple[tuple[str, str, str, Sequence[str], Sequence[str]], ...] = (
    ("train", "3.12", "", ("torch", "torchvision", "transformers>=4.50", "accelerate", "datasets"), ("dockerfile",)),
    ("tune", "3.11", ">=2.6,<2.7", ("transformers<5", "peft", "trl", "safetensors"), ("dockerfile", "compose")),
    ("diffuse", "3.10", ">=2.5,<2.6", ("diffusers", "torchvision", "pillow", "numpy<2"), ("dockerfile", "requirements")),
    ("embed", "3.12", ">=2.7,<2.9", ("sentence-transformers", "faiss-cpu", "fastapi"), ("dockerfile", "kubernetes")),
    ("jax", "3.12", "", ("jax[cuda12]", "flax", "optax", "orbax-checkpoint"), ("dockerfile",)),
    ("tensorflow", "3.11", "", ("tensorflow[and-cuda]<2.20", "tensorboard", "pandas"), ("dockerfile", "sbom")),
    ("serve", "3.12", "", ("vllm",), ("dockerfile", "compose", "kubernetes")),
    ("arrays", "3.13", "", ("cupy-cuda12x", "numba", "scipy", "xgboost"), ("dockerfile", "devcontainer")),
    ("light", "3.12", "==2.4.1", ("lightning", "torchmetrics", "wandb", "hydra-core"), ("dockerfile",)),
    ("onnx", "3.12", "", ("onnxruntime", "fastapi[standard]", "pydantic<2.12"), ("dockerfile", "requirements")),
)
"""Name, Python, range of PyTorch, packages and outputs."""

WANTED = {
    "train": ("v100", "a10", "a100", "l4", "h100", "h200", "rtx4090", "rtx5090", "b200", "mixed", "cpu"),
    "tune": ("t4-535", "v100", "a10", "a100", "l4", "h100", "h200", "rtx4090", "mixed"),
    "diffuse": ("t4-535", "v100", "a100", "l4", "h100", "rtx4090", "cpu"),
    "embed": ("a10", "a100", "h200", "rtx4090", "rtx5090", "cpu"),
    "jax": ("t4-535", "v100", "a100", "h100", "rtx5090", "b200"),
    "tensorflow": ("t4-535", "a10", "a100", "l4", "h100", "rtx4090"),
    "serve": ("h100", "h200", "b200", "a100"),
    "arrays": ("t4-535", "a10", "h100", "rtx4090", "mixed"),
    "light": ("t4-470", "v100", "a10", "h100", "l4"),
    "onnx": ("cpu",),
}


def environments() -> Mapping[str, str]:
    """Return the spec of each environment, by its name; neighbours differ in what they want."""
    return dict(_environments())


def _environments() -> Iterator[tuple[str, str]]:
    for at in range(max(map(len, WANTED.values()))):
        for name, python, pytorch, packages, outputs in WISHES:
            hosts = WANTED[name]
            if at < len(hosts):
                yield f"{name}-{hosts[at]}", _spec(f"{name}-{hosts[at]}", hosts[at], python, pytorch, packages, outputs)


def _spec(name: str, host: str, python: str, pytorch: str, packages: Sequence[str], outputs: Sequence[str]) -> str:
    lines = [
        f"# {packages[0]} on {host}.",
        f"name: {name}",
        "target:",
        f"  platform: {'[linux/amd64, linux/arm64]' if name.startswith('onnx') else 'linux/amd64'}",
        f"  host: {HOSTS[host]}",
        *(["accelerator: cpu"] if host == "cpu" else []),
        "requires:",
        f'  python: "{python}"',
        *([f'  pytorch: "{pytorch}"'] if pytorch else []),
        "packages:",
        *(f'  - "{one}"' for one in packages),
        "policy:",
        "  allow: [minor-version, end-of-life]",
        f"  exclude-newer: {DAY}",
        f"outputs: [{', '.join(outputs)}]",
    ]
    return "\n".join(lines) + "\n"


def solved(folder: Path) -> list[Path]:
    """Solve every environment in a folder of its own below `folder`, unless it was before; return those that have a lock."""
    found = []
    for name, spec in environments().items():
        own = folder / name
        file = own / "provision.yaml"
        if not file.is_file() or file.read_text(encoding="utf-8") != spec:
            shutil.rmtree(own, ignore_errors=True)
            own.mkdir(parents=True)
            file.write_text(spec, encoding="utf-8")
            result = subprocess.run([PROVISION, "solve", str(file)], capture_output=True, text=True, check=False)
            if result.returncode in {1, 2}:
                sys.stderr.write(f"{name}: {result.stderr}{result.stdout}")
        if (own / lock_path(name)).is_file():
            found.append(own)
    return found


if __name__ == "__main__":
    sys.stdout.write("\n".join(one.name for one in solved(Path(sys.argv[1]))) + "\n")
