"""Count what the matrix rests on, and the machines that are asked about: `python docs/truth.py` writes docs/truth.md anew."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML

from provisioner.matrix.cache import cached_matrix
from provisioner.matrix.lint import rows
from provisioner.names import DISTRIBUTION_OF_COMPONENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from provisioner.matrix.model import GpuWheel, Matrix

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/truth.md"
PROFILES = ROOT / "tests/facts/ordinary"
POPULAR = ROOT / "tests/facts/gpu_packages.yaml"

KINDS = {
    "clouds": "instance types of clouds",
    "workstations": "workstations and servers",
    "nodes": "nodes of Kubernetes",
    "amd": "GPUs of AMD",
    "wsl": "WSL 2",
    "jetson": "Jetsons",
    "macs": "Macs",
    "cpu": "without a GPU",
}
"""What the files of ordinary machines hold, in the order of the page."""

HEAD = """\
# What the answers rest on

Made by `python docs/truth.py` from the matrix and from `tests/facts/ordinary`. A test
holds it to them.
"""

ROWS = """\
## Rows of the matrix

A row is a release, a build of one, a rule, or another entry with a source. It is cited if it names its source, and measured if
one of its sources is the published artefact itself.
"""

PACKAGES = """\
## Packages with GPU code

The wheels of Python packages that were opened and read: machine code (`sm_90`, `gfx942`), PTX (`compute_90`), and the CUDA
runtime that is linked or packed into the wheel. The builds of PyTorch, TensorFlow and JAX are rows of the matrix, counted
above.
"""

COVERAGE = """\
## How many popular packages were read

Of {known} popular packages with GPU code in published wheels (`tests/facts/gpu_packages.yaml`), the GPU code of **{read}** was
read ({share} %), in one release at least.

- not read, on the package index: {index}
- not read, published only elsewhere, with the targets that its project's recipe declares: {declared}
- not read, published only elsewhere, and no recipe known: {elsewhere}
- not counted, code that another package does without on other GPUs: {beside}
"""

DECLARED = """\
## Wheels that nobody has read

For which GPUs projects say that they compile wheels that no package index has: in `setup.py`, or the workflow of a release.
That is no measurement: a GPU that a recipe leaves out makes an answer *unverified*, never a no.
"""

MACHINES = """\
## Ordinary machines

Machines as people have them, with what a cloud, `nvidia-smi` or the labels of a node tell of them and nothing more. Each must
get the verdict it is written with, and none may end *unverified*. Of each yes, a second and independent reading checks that the
chosen build has code for every GPU and that the driver is new enough for its CUDA.

Not among them, because they are rightly *unverified*: nodes whose labels tell no version of the driver, TensorFlow on Jetsons,
whose wheels nobody has measured, and JAX on GPUs of AMD in an image of which nobody says that it has ROCm.
"""


def page(matrix: Matrix) -> str:
    """Return the whole page for a matrix."""
    parts = [HEAD, ROWS, table(("family", "rows", "cited", "measured"), families(matrix))]
    parts += [PACKAGES, table(("package", "versions", "platforms", "compiled for", "CUDA runtime"), packages(matrix.wheels))]
    parts += [coverage(matrix), DECLARED, table(("package", "versions", "build", "declared targets"), recipes(matrix))]
    return "\n".join([*parts, MACHINES, table(("machines", "profiles", "yes", "no"), machines())])


def families(matrix: Matrix) -> Iterable[Sequence[object]]:
    """Yield each component and type of row with its rows, those with a source, and those measured; at last their sums."""
    counted: dict[str, Counter[str]] = {}
    for kind, sources in rows(matrix):
        is_measured = any(matrix.citations[source].measured for source in sources)
        counted.setdefault(kind, Counter()).update(rows=1, cited=int(bool(sources)), measured=int(is_measured))
    for kind, counts in counted.items():
        yield f"`{kind}`" if kind in matrix.components else kind, counts["rows"], counts["cited"], counts["measured"]
    total = sum(counted.values(), Counter[str]())
    yield "**all**", total["rows"], total["cited"], total["measured"]


def packages(wheels: Sequence[GpuWheel]) -> Iterable[Sequence[object]]:
    """Yield each range of versions of a package whose wheels have GPU code, with its targets and its CUDA runtime."""
    for wheel in wheels:
        targets = [*(wheel.sass or ()), *(wheel.ptx or ()), *(wheel.gfx or ())]
        if targets:
            platforms = ", ".join(wheel.platforms)
            yield f"`{wheel.distribution}`", f"`{wheel.versions}`", platforms, " ".join(targets), wheel.runtime


def recipes(matrix: Matrix) -> Iterable[Sequence[object]]:
    """Yield each range of versions of a package and each build of it with the targets that its recipe declares."""
    for row in matrix.declared:
        names = ", ".join(f"`{name}`" for name in row.distributions)
        for build, code in row.builds.items():
            yield names, f"`{row.versions}`", build, " ".join((*code.sass, *code.ptx))


def coverage(matrix: Matrix) -> str:
    """Return how many of the popular packages with GPU code were read, and the names of the others."""
    popular: dict[str, list[str]] = YAML(typ="safe").load(POPULAR.read_text(encoding="utf-8"))
    read = {wheel.distribution for wheel in matrix.wheels if wheel.sass or wheel.ptx or wheel.gfx}
    for name, component in matrix.components.items():
        if any(build.sass for release in component.releases for build in release.builds):
            read.add(DISTRIBUTION_OF_COMPONENT.get(name, name))
    beside = sorted(popular.pop("beside"))
    known = sum(map(len, popular.values()))
    others = {place: sorted(set(names) - read) for place, names in popular.items()}
    count = known - sum(map(len, others.values()))
    declared = {name for row in matrix.declared for name in row.distributions}
    others["declared"] = [name for name in others["elsewhere"] if name in declared]
    others["elsewhere"] = [name for name in others["elsewhere"] if name not in declared]
    others["beside"] = beside
    lists = {place: ", ".join(f"`{name}`" for name in names) or "none" for place, names in others.items()}
    return COVERAGE.format(known=known, read=count, share=100 * count // known, **lists)


def machines() -> Iterable[Sequence[object]]:
    """Yield each kind of ordinary machine with the number of its profiles and of their verdicts; at last their sums."""
    counted = {kind: Counter[str](one["verdict"] for one in profiles(kind)) for kind in KINDS}
    for kind, counts in counted.items():
        yield KINDS[kind], counts.total(), counts["yes"], counts["no"]
    total = sum(counted.values(), Counter[str]())
    yield "**all**", total.total(), total["yes"], total["no"]


def profiles(kind: str) -> list[dict[str, Any]]:
    """Return the profiles of one kind of ordinary machine."""
    found: list[dict[str, Any]] = YAML(typ="safe").load((PROFILES / f"{kind}.yaml").read_text(encoding="utf-8"))["profiles"]
    return found


def table(head: Sequence[str], body: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown; columns of numbers stand at the right."""
    lines = [[str(cell) for cell in row] for row in body]
    marks = ["---:" if all(re.fullmatch(r"\d+", cell) for cell in column) else "---" for column in zip(*lines, strict=True)]
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, marks, *lines])


if __name__ == "__main__":
    PAGE.write_text(page(cached_matrix()), encoding="utf-8")
