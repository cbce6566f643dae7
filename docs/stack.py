"""Draw the components of a stack and the families of rows between them: `python docs/stack.py` writes docs/stack.svg anew.

A box is a component that belongs to a family: a pair of components of which a row of the matrix must speak for every release.
An arrow is such a pair, a dot the pair of a component and the GPU. The other components are named beside the boxes of their
row. Rows and colours come from the table of components.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, NamedTuple
from xml.sax.saxutils import escape

from provisioner.components import COMPONENTS, Effort, Supplier
from provisioner.matrix.cache import cached_matrix

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.matrix.model import Matrix

PICTURE = Path(__file__).parent / "stack.svg"

ROWS = {
    "frameworks": (Effort.FRAMEWORK,),
    "libraries": (Effort.PACKAGE,),
    "toolkits, compilers": (Effort.TOOLKIT,),
    "Python, container": (Effort.PYTHON, Effort.CONTAINER),
    "beside the driver": (Effort.BESIDE_DRIVER,),
    "drivers": (Effort.DRIVER,),
    "kernel": (Effort.KERNEL,),
    "operating system": (Effort.SYSTEM,),
    "hardware": (Effort.HARDWARE,),
}
"""The rows of the picture from top to bottom, by the work that a change of their components is."""

COLOURS = {
    "packages and toolkits that are installed": "#2f6feb",
    "what a base image brings, or the host": "#8250df",
    "the host": "#bc4c00",
}
GPU = "gpu"
LEFT, WIDTH, BOX, STEP, LINE = 160, 960, 26, 78, 18
"""Widths, heights and distances in units of the picture; a letter is 7.2 units wide."""


class Box(NamedTuple):
    """The place of a component in the picture."""

    name: str
    x: float
    y: float
    width: float


def picture(matrix: Matrix) -> str:
    """Return the picture of a matrix as SVG."""
    pairs = [(family.subject, family.object) for family in matrix.families if family.object != GPU]
    on_gpus = {family.subject for family in matrix.families if family.object == GPU}
    members = on_gpus.union({GPU}, *pairs)
    boxes, texts, bottom = _places(matrix, members)
    height = bottom + LINE * (len(COLOURS) + 1)
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" aria-labelledby="title"'
    font = 'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12"'
    tip = 'id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>',
        '<title id="title">The components of a stack, and the pairs of which the matrix has a row for every release</title>',
        f'<defs><marker {tip}><path d="M0 0L8 4L0 8z" fill="#57606a"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        *(_arrow(boxes[subject], boxes[wanted]) for subject, wanted in pairs),
        *texts,
        *(part for box in boxes.values() for part in _box(box, has_dot=box.name in on_gpus)),
        *_legend(bottom),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _places(matrix: Matrix, members: set[str]) -> tuple[dict[str, Box], list[str], int]:
    """Return the boxes of the members of families, the words of each row, and how far the rows reach down."""
    boxes: dict[str, Box] = {}
    texts = []
    y = 12
    for title, efforts in ROWS.items():
        names = [name for name in matrix.order if _effort(name) in efforts]
        others = [name for name in names if name not in members]
        boxed = [name for name in names if name in members]
        texts.append(_text(8, y + 17, title, "#57606a"))
        for place, name in enumerate(boxed):
            # Spread over the whole width, so that arrows do not run through boxes.
            width = round(len(name) * 7.2 + 24, 1)
            middle = LEFT + (WIDTH - LEFT) * (place + 0.5) / len(boxed)
            boxes[name] = Box(name, round(middle - width / 2, 1), y, width)
        lines = wrap(", ".join(others), (WIDTH - LEFT) // 7, break_on_hyphens=False)
        texts += [_text(LEFT, y + 17 + LINE * number, line, "#57606a") for number, line in enumerate(lines, 1 if boxed else 0)]
        y += STEP + LINE * max(0, len(lines) - 1) if boxed else BOX + LINE * len(lines)
    return boxes, texts, y


def _effort(name: str) -> Effort:
    """Return the work that a change of a component is; a library that has no row of its own moves like a package."""
    component = COMPONENTS.get(name)
    if component is not None and component.effort is not None:
        return component.effort
    return Effort.PACKAGE if component is None else Effort.BESIDE_DRIVER


def _colour(name: str) -> str:
    installed, either, host = COLOURS.values()
    supplier = COMPONENTS[name].supplier if name in COMPONENTS else Supplier.INSTALLER
    return {Supplier.INSTALLER: installed, Supplier.BASE_IMAGE: either}.get(supplier, host)


def _arrow(above: Box, below: Box) -> str:
    start, end = above.x + above.width / 2, below.x + below.width / 2
    top, bottom = above.y + BOX, below.y - 1
    bend = max((bottom - top) / 2, LINE)
    if above.y == below.y:
        bottom, bend = below.y + BOX + 1, -LINE * 1.5
        path = f"M{start:.1f} {top}C{start:.1f} {top - bend:.1f} {end:.1f} {bottom - bend:.1f} {end:.1f} {bottom}"
    else:
        path = f"M{start:.1f} {top}C{start:.1f} {top + bend:.1f} {end:.1f} {bottom - bend:.1f} {end:.1f} {bottom}"
    return f'<path d="{path}" fill="none" stroke="#57606a" stroke-opacity="0.6" marker-end="url(#tip)"/>'


def _box(box: Box, *, has_dot: bool) -> Iterator[str]:
    """Yield the parts of a box: its frame, its name, and the dot of those that are compiled for GPUs."""
    colour = _colour(box.name)
    frame = f'x="{box.x}" y="{box.y}" width="{box.width}" height="{BOX}" rx="5"'
    yield f'<rect {frame} fill="#ffffff"/><rect {frame} fill="{colour}" fill-opacity="0.12" stroke="{colour}"/>'
    yield f'<text x="{box.x + 8}" y="{box.y + 17}" fill="#1f2328">{escape(box.name)}</text>'
    if has_dot:
        yield f'<circle cx="{box.x + box.width - 8:.1f}" cy="{box.y + 13}" r="3" fill="#1a7f37"/>'


def _legend(y: float) -> Iterator[str]:
    for number, (text, colour) in enumerate(COLOURS.items()):
        frame = f'x="{LEFT}" y="{y + number * LINE}" width="14" height="12" rx="3"'
        yield f'<rect {frame} fill="{colour}" fill-opacity="0.12" stroke="{colour}"/>'
        yield _text(LEFT + 22, y + number * LINE + 11, f"from {text}", "#1f2328")
    right = LEFT + 400
    yield f'<circle cx="{right + 10}" cy="{y + 6}" r="3" fill="#1a7f37"/>'
    yield _text(right + 26, y + 11, "a row for every release says on which GPUs it runs", "#1f2328")
    yield f'<path d="M{right} {y + LINE + 6}h18" stroke="#57606a" marker-end="url(#tip)"/>'
    yield _text(right + 26, y + LINE + 11, "a row for every release says what it goes with", "#1f2328")
    yield _text(right, y + 2 * LINE + 11, "grey: components whose rows state limits alone", "#57606a")


def _text(x: float, y: float, text: str, colour: str) -> str:
    # White around the letters: an arrow that crosses them does not hide them.
    return f'<text x="{x}" y="{y}" fill="{colour}" stroke="#ffffff" stroke-width="3" paint-order="stroke">{escape(text)}</text>'


if __name__ == "__main__":
    PICTURE.write_text(picture(cached_matrix()), encoding="utf-8")
