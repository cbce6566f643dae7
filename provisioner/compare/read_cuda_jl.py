"""Read CUDA.jl's measured tables, `CUDACore/src/compatibility.jl` of JuliaGPU/CUDA.jl, as text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.compare.claims import Claim

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "ptxas_cap_db"

_ROW = re.compile(r'^\s*v"(\d+)\.(\d+)"\s*=>\s*between\((?:v"([\d.]+)"|lowest),\s*(?:v"([\d.]+)"|highest)\)')
_TABLES = {"ptxas_cap_db": "nvcc-target", "ptxas_ptx_db": "ptx-isa"}


def claims(text: str) -> Iterator[Claim]:
    """Yield the CUDA toolkits that compile for each compute capability, and the first toolkit that knows each PTX version."""
    question = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith(("const ", "function ", "end")):
            name = line.split()[1] if line.startswith("const ") else ""
            question = _TABLES.get(name, "")
        row = _ROW.match(line)
        if row is None or not question:
            continue
        major, minor, first, last = row.groups()
        if question == "ptx-isa":
            yield Claim(question=question, subject=f"ptx {major}.{minor}", says=f"cuda {first}", line=number)
        else:
            bounds = [*([f">={first}"] if first else []), *([f"<={last}"] if last else [])]
            yield Claim(question=question, subject=f"sm_{major}{minor}", says=",".join(bounds), line=number)
