"""A plan as Markdown, to be posted as a comment on a pull or merge request.

The first line is an invisible mark, by which a job finds its earlier comment and replaces it. Source of escapes: CommonMark
0.31, section 2.4; the text of an HTML block (`summary`) has those of HTML.
"""

from __future__ import annotations

import html
import re
from itertools import count
from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.cli.display import shown
from provisioner.cli.plan_report import COLUMNS, plan_head, plan_lines, plan_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.cli.display import Line
    from provisioner.plan.model import Plan

MARK = "<!-- provision plan -->"

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~&])")
_NUMBER = re.compile(r"\d+\.")
_NOT_IN_FILES = re.compile(r"[^\w.-]+")
_INDENT_OF_STEPS = 2


def plan_markdown(plans: Sequence[Plan], packages: Sequence[tuple[str, str, str]] = ()) -> str:
    """Return the plans of all platforms as Markdown; `packages` are those that differ, as `plan_data` has them."""
    head, *more = plan_head(plans, packages)
    parts = [MARK, f"### {head.label} {_escaped(head.text)}", *(_escaped(line.text) for line in more)]
    if sum(len(one.hosts) for one in plans) > 1:
        parts.append("\n".join(_table(plan_rows(plans))))
    parts += _classes([line for line in plan_lines(plans) if line.text or line.label])
    return "\n\n".join(parts) + "\n"


def host_files(plans: Sequence[Plan]) -> dict[str, str]:
    """Return the plan of each host as Markdown, by the name of its file: that of the host, without what a file cannot have."""
    files: dict[str, str] = {}
    for plan in plans:
        for one in plan.hosts:
            for name in one.hosts:
                alone = replace(plan, hosts=(replace(one, hosts=(name,), count=1),))
                stem = _NOT_IN_FILES.sub("-", name).strip("-.") or "host"
                file = next(file for file in _names(stem) if file not in files)
                files[file] = plan_markdown([alone])
    return files


def _names(stem: str) -> Iterator[str]:
    yield f"{stem}.md"
    yield from (f"{stem}-{number}.md" for number in count(2))


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    for row in (COLUMNS, ("---",) * len(COLUMNS), *rows):
        yield f"| {' | '.join(cell if cell == '---' else _escaped(cell) for cell in row)} |"


def _classes(lines: Sequence[Line]) -> Iterator[str]:
    """Yield a block that unfolds for each class of hosts; its first line has no indent."""
    block: list[Line] = []
    for line in lines:
        if not line.indent and block:
            yield _unfolded(block)
            block = []
        block.append(line)
    if block:
        yield _unfolded(block)


def _unfolded(block: Sequence[Line]) -> str:
    head, *rest = block
    summary = html.escape(f"{shown(head.label)} {shown(head.text)}", quote=False)
    if not rest:
        return f"- {_escaped(head.label)} {_escaped(head.text)}"
    body = "\n".join(_item(line) for line in rest)
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def _item(line: Line) -> str:
    """Return a line as an item of a list; a step keeps its number, and what is below a step is indented by three blanks."""
    label = f"**{_escaped(line.label)}** " if line.label else ""
    if _NUMBER.fullmatch(line.label):
        return f"{line.label} {_escaped(line.text)}"
    return f"{'   ' if line.indent > _INDENT_OF_STEPS else ''}- {label}{_escaped(line.text)}"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", shown(text))
