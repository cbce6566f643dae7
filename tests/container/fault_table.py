"""The faults of faults.yaml, and the page that lists them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML

from provisioner.evidence.report import LEVELS


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A row of faults.yaml: one fault, what it breaks, and which fact says no at which level."""

    stack: str
    level: int
    name: str
    fact: str
    run: str = ""
    instruction: str = ""
    beside: str = ""


FAULTS = tuple(
    Fault(stack=group["stack"], level=group["level"], **row)
    for group in YAML(typ="safe").load(Path(__file__).with_name("faults.yaml"))
    for row in group["faults"]
)

STACKS = {
    "guarded": "Two small packages, with the guard",
    "onnx": "ONNX Runtime, NumPy, Protocol Buffers",
    "jax": "JAX",
    "torch": "PyTorch",
    "tensorflow": "TensorFlow",
    "compilers": "Triton, CUDA's NVRTC, CuPy",
    "rapids": "RAPIDS' memory manager, NCCL",
    "rocm": "Triton for AMD's GPUs",
}
"""What each stack is for a reader; but for the first, all are the wheels that the index has."""

_HEAD = """\
# What validate catches

<!-- written by pytest --accept tests/test_fault_table.py, from tests/container/faults.yaml -->

`validate` is tried on {total} faults. Each is put into an image that was a *yes*, built from a lock with real wheels by a real
engine, and has to be a *no* at the lowest level that can see it, by the fact of the report that is about it; a *no* at another
level, or by luck, fails the test. Faults of level 3 are put into a file and into the RECORD of its package alike, so that no
hash tells.

{counts}

Faults of levels 4 and 5 need a GPU: what `validate` says of them is tried with reports as a GPU would give them, and with
stand-ins of the driver's libraries (`tests/unit/validate`). The checks of level 3 of vLLM, cuDF, cuML and cuDNN are tried with
stand-ins, too, because their wheels are too large to be broken again and again; what they compute at level 4 has not run on a
GPU yet. [What was broken once in their wheels](#tried-once) is in the last table.
"""


_TRIED_ONCE = """
## Tried once

By hand on 2026-11-28, in the reference environments `training-v100` (an image of Docker) and `vllm-h100` (`--engine local`),
and in the environment of a lock of cuDF, with the file and its RECORD changed alike. Before that day the two in bold were a yes
at level 3.

| level | fault | the fact that says no |
| --- | --- | --- |
| 3 | an NCCL 2.27.5 that says 2.27.6 | `nccl`, `nvidia-nccl-cu12 release` |
| 3 | **a cuDNN 9.10 without its precompiled engines** | `nvidia-cudnn-cu12 parts` |
| 2 | a cuDNN 9.10 without its graph, which ends the process that loads it | `smoke test` |
| 3 | a PyTorch 2.10 for CUDA without its library for CUDA | `pytorch` |
| 3 | a cuSPARSELt that is gone | `pytorch` |
| 3 | a PyTorch that says another CUDA | `cuda`, `torchvision` |
| 3 | a PyTorch that was compiled for other GPUs | `arch_list` |
| 3 | a vLLM 0.33 with a damaged kernel | `vllm kernels` |
| 3 | **a vLLM 0.33 without its core kernels** | `vllm kernels` |
| 3 | a vLLM 0.33 whose transformers do not import | `vllm engine` |
| 3 | a cuDF 26.10 without its library | `cudf-cu12` |
| 3 | a cuDF that says another release | `cudf-cu12` |
| 3 | a cuDF without a native module of its layer below | `cudf-cu12` |
| 3 | a cuDF that crashes | `cudf-cu12` |
"""


def page() -> str:
    """Return the page of all faults, by stack and level."""
    levels = Counter((fault.stack, fault.level) for fault in FAULTS)
    numbers = sorted({fault.level for fault in FAULTS})
    heads = [f"level {number} ({LEVELS[number]})" for number in numbers]
    counts = [f"| stack | {' | '.join(heads)} | all |", f"| --- |{' ---: |' * (len(numbers) + 1)}"]
    for stack, title in STACKS.items():
        cells = [levels[stack, number] for number in numbers]
        counts.append(f"| {title} | {' | '.join(str(cell or '') for cell in cells)} | {sum(cells)} |")
    parts = [_HEAD.format(total=len(FAULTS), counts="\n".join(counts))]
    for stack, title in STACKS.items():
        parts.append(f"\n## {title}\n\n| level | fault | the fact that says no |\n| --- | --- | --- |\n")
        parts += [f"| {fault.level} | {fault.name} | `{fault.fact}` |\n" for fault in FAULTS if fault.stack == stack]
    return "".join([*parts, _TRIED_ONCE])
