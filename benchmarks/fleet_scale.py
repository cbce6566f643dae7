"""How `provision fleet` grows with nodes and with different nodes: `python benchmarks/fleet_scale.py`.

Writes inventories of random machines (GPUs, drivers, module flavours, kernels, container toolkits; always the same ones) as CSV
and as what `kubectl get nodes -o json` prints, and times the whole command in fresh processes. No two profiles are alike, which
is harder than most fleets: kernels, drivers and toolkits are drawn independently of each other.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import statistics
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build" / "benchmarks" / "fleet"

GPUS = (
    ("Tesla V100-SXM2-16GB", "7.0"), ("Tesla T4", "7.5"), ("NVIDIA A100-SXM4-80GB", "8.0"), ("NVIDIA A10G", "8.6"),
    ("NVIDIA L4", "8.9"), ("NVIDIA L40S", "8.9"), ("NVIDIA H100 80GB HBM3", "9.0"), ("NVIDIA B200", "10.0"),
)  # fmt: skip
DRIVERS = {
    "7.0": ("470.256.02", "525.147.05", "535.183.06", "550.90.07", "570.172.08", "580.65.06"),
    "10.0": ("570.172.08", "575.57.08", "580.65.06", "580.95.05"),
    "": (
        "525.147.05",
        "535.104.05",
        "535.183.06",
        "550.54.15",
        "550.90.07",
        "560.35.03",
        "570.86.15",
        "570.172.08",
        "580.65.06",
    ),
}
"""Drivers that run such a GPU, and those of every other one."""

KERNELS = tuple(f"5.15.0-{number}-generic" for number in range(91, 131)) + tuple(f"6.8.0-{n}-generic" for n in range(31, 71))
TOOLKITS = ("1.14.6", "1.16.2", "1.17.4", "1.17.8")

SPEC = """\
name: fleet
accelerator: cuda
target: {platform: linux/amd64}
requires: {python: ">=3.10", pytorch: ">=2.0"}
"""

Machine = tuple[str, str, str, str, str, str]
"""GPU, compute capability, driver, module flavour, kernel, toolkit."""


def main() -> None:
    """Write the inventories, time the command on each, and write the table."""
    options = _options()
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "provision.yaml").write_text(SPEC, encoding="utf-8")
    rows = []
    for nodes, profiles, form in options.sizes:
        inventory = _inventory(nodes, profiles, form=form)
        runs = [_run(inventory) for _ in range(options.rounds)]
        wall, cpu, peak = (statistics.median(column) for column in zip(*(run[:3] for run in runs), strict=True))
        answer = runs[0][3]
        rows.append((nodes, profiles, form, inventory.stat().st_size / 1e6, answer, (wall, cpu, peak)))
        sys.stdout.write(
            f"{nodes:,} nodes of {profiles:,} profiles ({form}): {wall:.1f} s, {cpu:.1f} s of one processor, {peak:.0f} MiB\n"
        )
    options.output.write_text("\n".join(_page(rows, options.rounds)) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = ["1000:20:csv", "10000:200:csv", "10000:200:json", "10000:1000:csv", "100000:200:csv", "100000:2000:csv"]
    parser.add_argument(
        "--sizes", type=_size, nargs="+", default=[_size(text) for text in sizes], metavar="NODES:PROFILES:FORM"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "fleet.md", metavar="FILE")
    return parser.parse_args()


def _size(text: str) -> tuple[int, int, str]:
    nodes, profiles, form = text.split(":")
    return int(nodes), int(profiles), form


def machines(profiles: int) -> list[Machine]:
    """So many machines, no two alike; drawn as they are found, GPUs and drivers of a kind that go together."""
    dice = random.Random(profiles)
    found: dict[Machine, None] = {}
    while len(found) < profiles:
        name, capability = dice.choice(GPUS)
        driver = dice.choice(DRIVERS.get(capability, DRIVERS[""]))
        old = capability == "7.0" or driver.startswith("470")
        module = "proprietary" if old else "open" if capability == "10.0" else dice.choice(("open", "proprietary"))
        found[name, capability, driver, module, dice.choice(KERNELS), dice.choice(TOOLKITS)] = None
    return list(found)


def _inventory(nodes: int, profiles: int, *, form: str) -> Path:
    kinds = machines(profiles)
    path = FOLDER / f"{nodes}-{profiles}.{form}"
    named = [(f"node-{index:06d}", kinds[index % profiles]) for index in range(nodes)]
    if form == "csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("name", "platform", "gpu", "driver", "driver.module", "kernel", "container_toolkit"))
            for name, (gpu, capability, driver, module, kernel, toolkit) in named:
                writer.writerow((name, "linux/amd64", f"8x {gpu} ({capability})", driver, module, kernel, toolkit))
    else:
        path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [_node(*one) for one in named]}), "utf-8")
    return path


def _node(name: str, machine: Machine) -> dict[str, Any]:
    """A node with the labels that tell something, of feature discovery and of kubelet; module and toolkit no label tells."""
    gpu, capability, driver, _, kernel, _ = machine
    major, minor = capability.split(".")
    parts = driver.split(".")
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": gpu.replace(" ", "-"),
        "nvidia.com/gpu.count": "8",
        "nvidia.com/gpu.compute.major": major,
        "nvidia.com/gpu.compute.minor": minor,
        **{
            f"nvidia.com/cuda.driver-version.{part}": text
            for part, text in zip(("major", "minor", "revision"), parts, strict=True)
        },
        "feature.node.kubernetes.io/kernel-version.full": kernel,
    }
    info = {"architecture": "amd64", "kernelVersion": kernel, "operatingSystem": "linux", "osImage": "Ubuntu 22.04.4 LTS"}
    status = {"nodeInfo": info, "capacity": {"nvidia.com/gpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {}, "status": status}


def _run(inventory: Path) -> tuple[float, float, float, dict[str, Any]]:
    """Wall and processor seconds and peak MiB of a whole run, and its answer."""
    output = inventory.with_suffix(".out")
    command = [str(Path(sys.executable).parent / "provision"), "fleet", str(FOLDER / "provision.yaml")]
    command += ["--hosts", str(inventory), "--format", "json"]
    quiet = ["sh", "-c", 'exec "$0" "$@" 2> /dev/null', *command]
    measure = [sys.executable, "-I", "-S", str(ROOT / "benchmarks/measure.py"), str(output), *quiet]
    wall, cpu, peak, code = subprocess.run(measure, capture_output=True, text=True, check=True).stdout.split()
    answer = json.loads(output.read_text(encoding="utf-8"))
    assert code in {"0", "1"}, f"{' '.join(command)} exited with {code}"
    return float(wall), float(cpu), float(peak), answer


def _page(rows: Sequence[tuple[int, int, str, float, dict[str, Any], tuple[float, float, float]]], rounds: int) -> list[str]:
    return [
        "# How a fleet scales",
        "",
        "Written by `python benchmarks/fleet_scale.py`; not edited by hand. The whole command, `provision fleet --hosts FILE",
        "--format json`, in a fresh process: reading the inventory, covering it, verifying every stack on every profile, the",
        f"affinities, and writing the answer. Medians of {rounds}; peak memory of the process. *Profiles* are machines, no two",
        "of them alike (8 kinds of GPU, 4 to 9 drivers each, both module flavours, 80 kernels, 4 toolkits). A JSON",
        "inventory tells neither modules nor toolkit, so that fewer profiles are left and their facts are unverified.",
        "",
        "| nodes | profiles | inventory | MB | stacks | proved | seconds | of one processor | peak MiB |",
        "| --: | --: | --- | --: | --: | --- | --: | --: | --: |",
        *(
            f"| {nodes:,} | {profiles:,} | {form} | {size:.1f} | {answer['bound']['found']} "
            f"| {'yes' if answer['bound']['optimal'] else 'no'} | {wall:.1f} | {cpu:.1f} | {peak:.0f} |"
            for nodes, profiles, form, size, answer, (wall, cpu, peak) in rows
        ),
    ]


if __name__ == "__main__":
    main()
