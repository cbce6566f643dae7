"""English is written in one place and never read back: the program's own syntax tree is searched for readers of our sentences.

Three things are looked for. A function that reads a string (`removeprefix`, `partition`, a regular expression, `in`, `==`) is
given what a function of `provisioner.words` returned. It is given the message, the causes or the hints of an error or finding.
Or it looks for words with a space between them, which no name, version, key or path has: then the text must be somebody else's,
and `FOREIGN` says whose.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1] / "provisioner"

READERS = frozenset(
    {
        "removeprefix", "removesuffix", "startswith", "endswith", "partition", "rpartition", "split", "rsplit", "find", "rfind",
        "index", "rindex", "count", "replace",
    }
)  # fmt: skip
PATTERNS = frozenset({"match", "fullmatch", "search", "sub", "subn", "findall", "finditer", "split", "compile"})
"""Functions of `re`."""

SENTENCES = frozenset({"message", "causes", "hints"})
"""Fields that hold English wherever they stand: those of errors, findings and mistakes."""

WORDS = re.compile(r"[A-Za-z]{2,}[,:;]? [a-z]{2,}")

FOREIGN: dict[tuple[str, str], str] = {}
"""Words a module looks for in a text that is not ours: (module, words) → who writes it."""


def sentences_read(source: str, module: str) -> Iterator[str]:
    """Every place of a module that reads a sentence of ours, as far as its own text shows."""
    tree = ast.parse(source)
    speakers = {
        (alias.asname or alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("provisioner.words")
        for alias in node.names
    }
    for function in [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))]:
        spoken = _names_of_sentences(function, speakers)
        for node in ast.walk(function):
            for read, wanted in _reads(node):
                line = read.lineno
                if _says(read, speakers, spoken):
                    yield f"{module}:{line}: {ast.unparse(node)[:100]} reads what `words` says"
                if isinstance(read, ast.Attribute) and read.attr in SENTENCES and not _is_of_self(read):
                    yield f"{module}:{line}: {ast.unparse(node)[:100]} reads the {read.attr} of an error or finding"
                for text in _texts(wanted):
                    if WORDS.search(text) and (module, text) not in FOREIGN:
                        yield f"{module}:{line}: {ast.unparse(node)[:100]} looks for the words {text!r}"


def _reads(node: ast.AST) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
    """What an expression reads as a string, and what it looks for there."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if isinstance(node.func.value, ast.Name) and node.func.value.id == "re" and node.func.attr in PATTERNS:
            yield node.args[-1], node.args[:1]
        elif node.func.attr in READERS and not isinstance(node.func.value, ast.Constant | ast.JoinedStr):
            yield node.func.value, node.args
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn | ast.Eq | ast.NotEq):
        sides = [node.left, *node.comparators]
        if any(isinstance(side, ast.Constant | ast.JoinedStr) for side in sides):
            for side in sides:
                yield side, [other for other in sides if other is not side]


def _texts(nodes: list[ast.expr]) -> Iterator[str]:
    for node in nodes:
        for part in [node, *(node.elts if isinstance(node, ast.Tuple | ast.Set | ast.List) else [])]:
            for constant in part.values if isinstance(part, ast.JoinedStr) else [part]:
                if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
                    yield constant.value


def _says(node: ast.expr, speakers: set[str], spoken: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in spoken
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in speakers


def _names_of_sentences(function: ast.AST, speakers: set[str]) -> set[str]:
    return {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and _says(node.value, speakers, set())
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _is_of_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def test_no_module_reads_a_sentence_of_ours() -> None:
    found = {
        line
        for path in sorted(ROOT.rglob("*.py"))
        for line in sentences_read(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
    }
    assert sorted(found) == []


def test_every_foreign_text_is_looked_for() -> None:
    looked_for = {
        (path.relative_to(ROOT).as_posix(), text)
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for _, wanted in _reads(node)
        for text in _texts(wanted)
    }
    assert set(FOREIGN) <= looked_for


@pytest.mark.parametrize(
    "code",
    [
        "from provisioner.words.ground import say\ndef f(ground): return say(ground).removeprefix('x')\n",
        "from provisioner.words.ground import say\ndef f(ground):\n    text = say(ground)\n    return text.partition(':')\n",
        "from provisioner.words.ground import say\ndef f(ground): return say(ground) == 'x'\n",
        "def f(error): return error.message.startswith('x')\n",
        "import re\ndef f(error): return re.match('x', error.message)\n",
        "def f(text): return text.endswith(' needs driver')\n",
        "def f(text): return 'you ask for' in text\n",
        "def f(text): return text == 'the host has no GPU'\n",
    ],
)
def test_a_reader_is_found(code: str) -> None:
    assert list(sentences_read(code, "a.py"))


@pytest.mark.parametrize(
    "code",
    [
        "def f(version): return version.partition('.')\n",
        "def f(self): return self.message\n",
        "def f(path): return path.suffix == '.toml'\n",
    ],
)
def test_names_and_versions_may_be_read(code: str) -> None:
    assert not list(sentences_read(code, "a.py"))
