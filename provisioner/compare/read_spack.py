"""Read Spack's ranges from `build_systems/cuda.py` and the packages py-torch and cudnn of spack/spack-packages, as Python.

Spack's `@a:b` is closed at both ends, and an end is a series: `@:12.3` contains 12.3.2.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from provisioner.compare.claims import MAJORS, Claim, majors_text
from provisioner.versions import dotted, numbers_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_ARCHITECTURE = re.compile(r"cuda_arch=(\d+[af]?)$")
_REFUSED = re.compile(r"%(gcc|clang)@(\S+)")
_CUDA = re.compile(r"%?\bcuda@(\S+)")
_ELSEWHERE = ("target=ppc64le", "target=aarch64", "platform=darwin")
_NEWEST = 99999


class _Refusal(NamedTuple):
    """A range of compiler versions that a range of CUDA toolkits refuses; `line` is the number of the line that says so."""

    compiler: str
    versions: str
    toolkits: str
    line: int


def is_spack(text: str) -> bool:
    """Return whether a text is one of the three files: the CUDA build system, py-torch or cudnn."""
    return "from spack" in text and any(mark in text for mark in ("cuda_arch=", "class PyTorch(", "class Cudnn("))


def claims(text: str) -> Iterator[Claim]:
    """Yield the GPU targets and host compilers of CUDA toolkits, the Pythons of py-torch, and the CUDA majors of cuDNN."""
    tree = ast.parse(text)
    is_torch = "class PyTorch(" in text
    refused: list[_Refusal] = []
    for call in _calls(tree):
        name, first, when = _spelled(call)
        architecture = _ARCHITECTURE.search(when)
        if name == "depends_on" and architecture and first.startswith("cuda@"):
            subject = f"sm_{architecture[1]}"
            yield Claim(question="nvcc-target", subject=subject, says=_range(first[len("cuda@") :]), line=call.lineno)
        elif name == "conflicts" and (found := _REFUSED.match(first)) and not any(part in when for part in _ELSEWHERE):
            toolkit = _CUDA.search(when)
            if toolkit:
                refused.append(_Refusal(found[1], found[2], toolkit[1], call.lineno))
        elif is_torch and name == "depends_on" and first.startswith("python@") and when.startswith("@"):
            subject, says = f"pytorch {_range(when[1:])}", _range(first[len("python@") :])
            yield Claim(question="pytorch-python", subject=subject, says=says, line=call.lineno)
    yield from _compilers(refused)
    if "class Cudnn(" in text:
        yield from _cudnn(tree)


def _compilers(refused: list[_Refusal]) -> Iterator[Claim]:
    """Yield a claim of the compiler majors that a series of CUDA toolkits does not refuse, for each such series and compiler.

    The series are those at which a range of toolkits in `refused` begins or ends.
    """
    for compiler in ("gcc", "clang"):
        about = [row for row in refused if row.compiler == compiler]
        for toolkit in sorted({numbers_of(end) for row in about for end in _ends(row.toolkits) if end}):
            rows = [row for row in about if _contains(row.toolkits, toolkit)]
            left = [major for major in MAJORS if not any(_covers(row.versions, major) for row in rows)]
            if rows and left:
                subject = "cuda " + dotted(toolkit)
                yield Claim(question=compiler, subject=subject, says=majors_text(left), line=rows[0].line)


def _cudnn(tree: ast.AST) -> Iterator[Claim]:
    """Yield a claim of the CUDA majors of each cuDNN release, from Spack's table of downloads.

    A key of the table such as `9.19.1.2-13` stands for cuDNN 9.19.1.2 for CUDA 13.
    """
    seen: dict[str, tuple[set[str], int]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            for key in node.keys:
                if isinstance(key, ast.Constant) and re.fullmatch(r"\d+(\.\d+){2,3}-\d+(\.\d+)?", str(key.value)):
                    version, _, cuda = str(key.value).partition("-")
                    seen.setdefault(version, (set(), key.lineno))[0].add(cuda)
    for version, (found, line) in seen.items():
        yield Claim(question="cudnn-cuda", subject=f"cudnn {version}", says=" ".join(sorted(found, key=float)), line=line)


def _calls(tree: ast.AST) -> list[ast.Call]:
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return sorted(found, key=lambda call: call.lineno)


def _spelled(call: ast.Call) -> tuple[str, str, str]:
    """Return the name of a directive (a call), its first argument, and its condition (`when`); "" for one that is no text."""
    first = call.args[0] if call.args else None
    when = next((word.value for word in call.keywords if word.arg == "when"), None)
    texts = [node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "" for node in (first, when)]
    return call.func.id if isinstance(call.func, ast.Name) else "", texts[0], texts[1]


def _ends(text: str) -> tuple[str, str]:
    low, colon, high = text.partition(":")
    return (low, high) if colon else (low, low)


def _range(text: str) -> str:
    """Return Spack's range `9.0:12.9` as `>=9.0,<=12.9`, whose upper end is a series, too."""
    low, high = _ends(text)
    return ",".join([*([f">={low}"] if low else []), *([f"<={high}"] if high else [])]) or "any version"


def _contains(text: str, toolkit: tuple[int, ...]) -> bool:
    """Return whether a Spack range contains the newest release of a toolkit series: `:11.4.0` ends before the newest 11.4."""
    low, high = _ends(text)
    newest = (*toolkit, _NEWEST, _NEWEST, _NEWEST)
    below = not high or newest[: len(numbers_of(high))] <= numbers_of(high)
    return below and (not low or newest >= numbers_of(low))


def _covers(text: str, major: int) -> bool:
    """Return whether a range of a compiler contains every minor of a major, so that the whole major is refused."""
    for part in text.split(","):
        low, high = _ends(part)
        starts = not low or major > numbers_of(low)[0] or numbers_of(low) == (major,)
        if starts and (not high or major < numbers_of(high)[0] or numbers_of(high) == (major,)):
            return True
    return False
