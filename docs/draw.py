"""Draw the parts of the package from its imports: `python docs/draw.py` draws the pictures of ARCHITECTURE.md anew."""

from __future__ import annotations

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "ARCHITECTURE.md"
PICTURE = re.compile(r"(<!-- drawn by docs/draw\.py: (?P<package>[\w.]+) -->\n)```mermaid\n.*?```\n", re.DOTALL)

Graph = dict[str, set[str]]


def drawn(page: str) -> str:
    """Return a page with a picture of today's imports below each marker that names a package."""
    return PICTURE.sub(lambda match: f"{match[1]}```mermaid\n{picture(match['package'])}```\n", page)


def picture(package: str) -> str:
    """Return a flowchart of the parts of a package, in Mermaid: an arrow leads from a part to a part that it imports.

    An arrow is left out where a chain of others leads to the same part. Raises `graphlib.CycleError` for a circle.
    """
    graph = parts_of(package)
    order = list(TopologicalSorter({part: sorted(graph[part]) for part in sorted(graph)}).static_order())
    reached: Graph = {}
    for part in order:
        reached[part] = graph[part].union(*(reached[needed] for needed in graph[part]))
    arrows = [
        f"  {part} --> {needed}"
        for part in reversed(order)
        for needed in sorted(graph[part])
        if not any(needed in reached[other] for other in graph[part])
    ]
    return "\n".join(["flowchart BT", *arrows, ""])


def parts_of(package: str) -> Graph:
    """Return what each part of a package imports of the other parts, types included.

    Parts are the folders, and the modules beside them that need a folder; the other modules are the base.
    """
    folder = ROOT / package.replace(".", "/")
    files: dict[str, list[Path]] = {}
    for module in sorted(folder.rglob("*.py")):
        part = module.relative_to(folder).with_suffix("").parts[0]
        if not part.startswith("__"):
            files.setdefault(part, []).append(module)
    graph = {
        part: {name for module in modules for name in _imported(module, package)} & files.keys() - {part}
        for part, modules in files.items()
    }
    parts = {part for part in graph if (folder / part).is_dir()}
    while above := {part for part in graph.keys() - parts if graph[part] & parts}:
        parts |= above
    return {part: graph[part] & parts for part in parts}


def _imported(module: Path, package: str) -> set[str]:
    """Return the parts of a package that a module imports something of."""
    names = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name.removeprefix(f"{package}.").partition(".")[0] for name in names if name.startswith(f"{package}.")}


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
