"""Blocks of the documents that show what a program prints, made again by running it."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
from functools import partial
from typing import TYPE_CHECKING

from provisioner.cli.app import main

if TYPE_CHECKING:
    from collections.abc import Callable

CONSOLE = re.compile(r"(?<=```console\n)(.*?)(?=```\n)", re.DOTALL)
PYTHON = re.compile(r"(?<=```pycon\n)(.*?)(?=```\n)", re.DOTALL)
PROMPT = "$ provision "


def commands_again(page: str) -> str:
    """Return a page with what its commands print today; a block without any output only lists commands and stays as it is.

    Paths are those of the current directory.
    """
    return CONSOLE.sub(lambda match: _commands_again(match[1]), page)


def _commands_again(block: str) -> str:
    lines = block.splitlines()
    if all(line.startswith("$ ") for line in lines):
        return block
    commands = [line for line in lines if line.startswith(PROMPT)]
    words = [shlex.split(line.removeprefix(PROMPT), comments=True) for line in commands]
    return "".join(f"{line}\n{_printed(partial(main, argv))}" for line, argv in zip(commands, words, strict=True))


def python_again(page: str) -> str:
    """Return a page with what its Python sessions print today; they share their names, from the first to the last."""
    names: dict[str, object] = {"__name__": "page"}
    return PYTHON.sub(lambda match: _python_again(match[1], names), page)


def _python_again(block: str, names: dict[str, object]) -> str:
    again = []
    for example in doctest.DocTestParser().get_examples(block):
        first, *others = example.source.splitlines()
        shown = "\n".join((f">>> {first}", *(f"... {line}" for line in others)))
        again.append(f"{shown}\n{_printed(partial(exec, compile(example.source, 'page', 'single'), names))}")
    return "".join(again)


def _printed(run: Callable[[], object]) -> str:
    """Return what a function prints to stdout and stderr, in its order."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), contextlib.suppress(SystemExit):
        run()
    return printed.getvalue()
