"""Read the commands that install things (`pip`, `uv pip`, `conda`, `apt-get`) as parts of a spec.

Sources: pip documentation, "pip install"; uv documentation, "uv pip install"; conda documentation, "conda install"; apt-get(8);
read 2026-11-23.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.document import Position, is_file
from provisioner.grounds.omission import (
    Conditional,
    CopiedStage,
    Installer,
    MissingFile,
    Redirected,
    UnreadCommand,
    UnsetVariable,
)
from provisioner.importers.conda import MatchSpecs
from provisioner.importers.dockerfile_syntax import unset_variable
from provisioner.importers.requirement_lines import record_lines, record_reading
from provisioner.importers.requirements import read_requirements
from provisioner.importers.shell import Command, commands
from provisioner.spec.requirement_file import LONG_OPTIONS, read_requirement_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from provisioner.importers.importing import Importing
    from provisioner.matrix.model import Matrix

_PIP = re.compile(r"pip(?:\d(?:\.\d+)?)?")
_PYTHON = re.compile(r"python(?:\d(?:\.\d+)?)?")
_LINES = frozenset({"--index-url", "--extra-index-url", "--find-links", "--editable", "--no-binary", "--only-binary"})
"""Options that a requirement file may have too, where they mean the same."""

_OF_UV = {"--default-index": "--index-url", "--index": "--extra-index-url"}
"""Options of uv with the options of pip that mean the same."""

_VALUED = frozenset(
    {
        "-t", "--target", "--prefix", "--root", "--platform", "--python-version", "--implementation", "--abi",
        "--cache-dir", "--timeout", "--default-timeout", "--retries", "--trusted-host", "--proxy", "--cert",
        "--client-cert", "--log", "--progress-bar", "--upgrade-strategy", "--src", "-C", "--config-settings",
        "--config-setting", "--global-option", "--report", "--use-feature", "--use-deprecated", "--exists-action",
        "--python", "-p", "--python-platform", "--resolution", "--exclude-newer", "--extra", "--group",
        "--index-strategy", "--keyring-provider", "--link-mode", "--prerelease", "--torch-backend", "--upgrade-package",
        "-P", "--allow-insecure-host", "--build-constraint", "--override",
    }
)  # fmt: skip
"""Other options with a value, which may be the next word."""

_MEANT = frozenset({"--no-deps", "--no-build-isolation", "--no-index", "--group", "--extra", "--override", "--config-settings"})
"""Options without a counterpart that change what is installed, so that they are told."""

_APT_VALUED = frozenset({"-o", "--option", "-t", "--target-release", "--default-release", "-c", "--config-file"})
_CONDA_VALUED = frozenset({"-n", "--name", "-p", "--prefix", "--solver", "--revision"})

_WITHOUT_EFFECT = frozenset(
    {
        "[", ":", "alias", "cd", "chmod", "chown", "cp", "echo", "exit", "export", "false", "ldconfig", "ln", "ls",
        "mkdir", "mv", "nvidia-smi", "printf", "pwd", "rm", "rmdir", "set", "shift", "source", "test", "touch", "true",
        "umask", "unset", "which",
    }
)  # fmt: skip
"""Commands that bring no package into an image."""


class ScriptPlace(Struct, frozen=True):
    """Where a script stands: its position, and how a path in the image is found as a file here (None if it is not).

    `copied_from` is the line of its stage if the last one only copies from it.
    """

    position: Position
    find: Callable[[str], Path | None]
    copied_from: tuple[str, Position] | None = None


class InstallCommands:
    """Records what scripts install."""

    def __init__(self, importing: Importing, matrix: Matrix) -> None:
        self._importing = importing
        self._match_specs = MatchSpecs(importing, matrix)

    def script(self, text: str, place: ScriptPlace, *, takes_system: bool = True) -> None:
        """Record what the commands of a script install; `takes_system` is False to leave out packages of the system."""
        try:
            found = list(commands(text))
        except ValueError:
            self._importing.omit(_first_words(text.split()), place.position, UnreadCommand())
            return
        for command in found:
            self.command(command, place, takes_system=takes_system)

    def command(self, command: Command, place: ScriptPlace, *, takes_system: bool = True) -> None:
        """Record what one command installs; one that installs nothing that is known is an omission."""
        words = command.words
        name = PurePosixPath(words[0]).name
        if name in {"conda", "mamba", "micromamba"} and "run" in words[1:2]:
            name, words = _behind_conda_run(words)
        if pip := _pip_arguments(name, words):
            self._pip(pip, command.redirected, place)
            self._tell_doubts("pip", pip, None, command, place)
        elif name in {"apt-get", "apt", "aptitude"}:
            if takes_system:
                self._apt(words[1:], place)
                self._tell_doubts(name, words[1:], _APT_VALUED, command, place)
        elif name in {"conda", "mamba", "micromamba"}:
            self._conda(words[1:], place)
            self._tell_doubts(name, words[1:], _CONDA_VALUED, command, place)
        elif name in {"bash", "sh"} and len(words) > 2 and words[1].startswith("-") and "c" in words[1]:
            self.script(words[2], place, takes_system=takes_system)
        elif name not in _WITHOUT_EFFECT and takes_system:
            self._importing.omit(_first_words(words), place.position, UnreadCommand())

    def _tell_doubts(
        self, name: str, words: Sequence[str], valued: frozenset[str] | None, command: Command, place: ScriptPlace
    ) -> None:
        """Record why what a command installs may not be in the image: a condition, or a stage that is only copied from."""
        options = list(_options(words, valued=valued))
        named = [value for option, value in options if not option]
        if named[:1] not in (["install"], ["create"], ["env"]):
            return
        if command.condition:
            files = (f"-r {value}" for option, value in options if option in {"-r", "--requirement", "--requirements"})
            self._importing.omit(" ".join((name, *named, *files)), place.position, Conditional(command.condition))
        if place.copied_from is not None:
            self._importing.omit(*place.copied_from, CopiedStage())

    def _pip(self, words: Sequence[str], redirected: Sequence[tuple[str, str]], place: ScriptPlace) -> None:
        """Record the arguments of pip: its options, a subcommand, its options and requirements."""
        options = list(_options(words))
        names = [value for name, value in options if not name]
        if names[:1] == ["config"]:
            if names[1:2] == ["set"] and names[2:3] and names[2].endswith("index-url") and len(names) > 3:
                option = "--extra-index-url" if "extra" in names[2] else "--index-url"
                self._lines([f"{option} {names[3]}"], place)
            return
        if names[:1] != ["install"]:
            if names[:1] not in (["cache"], ["check"], ["list"], ["freeze"], ["show"], ["--version"], []):
                self._importing.omit(f"pip {names[0]} …", place.position, Installer())
            return
        for word, target in redirected:
            if target.startswith("="):
                self._importing.omit(f"{word}>{target}", place.position, Redirected(word))
        lines: list[str] = []
        is_first = True
        for name, value in options:
            if name:
                lines += self._pip_option(name, value, place)
            elif is_first:
                is_first = False  # the word `install`
            else:
                lines.append(value)
        self._lines(lines, place)

    def _pip_option(self, name: str, value: str, place: ScriptPlace) -> Iterator[str]:
        """Yield an option as a line of a requirement file; record those that are no such line."""
        name = _OF_UV.get(LONG_OPTIONS.get(name, name), LONG_OPTIONS.get(name, name))
        if name in {"--requirement", "--requirements"}:
            self._requirement_file(value, place)
        elif name in {"--constraint", "--constraints"}:
            self._constraint_file(value, place)
        elif name in _LINES:
            yield f"{name} {value}"
        elif name == "--pre" or (name == "--prerelease" and value == "allow"):
            self._importing.allow("prerelease", place.position)
        elif name == "--torch-backend" and value not in {"", "auto"}:
            yield f"--index-url https://download.pytorch.org/whl/{value}"
        elif name in _MEANT:
            self._importing.omit(f"{name} {value}".strip(), place.position, Installer())

    def _requirement_file(self, value: str, place: ScriptPlace) -> None:
        path = self._found(value, place, "-r")
        if path is not None:
            read_requirements(path, self._importing)

    def _constraint_file(self, value: str, place: ScriptPlace) -> None:
        path = self._found(value, place, "-c")
        if path is not None:
            named_at = Position(1, 1, str(path))
            reading = read_requirement_file(path, named_at=named_at, is_constraint=True, reads_environment=False)
            record_reading(reading, self._importing)

    def _found(self, value: str, place: ScriptPlace, option: str) -> Path | None:
        """Return the file here that is at a path in the image; None, with an omission, if there is none."""
        if name := unset_variable(value):
            self._importing.omit(f"{option} {value}", place.position, UnsetVariable(name))
            return None
        path = place.find(value)
        if path is None or not is_file(path):
            self._importing.omit(f"{option} {value}", place.position, MissingFile(value))
            return None
        return path

    def _lines(self, lines: Sequence[str], place: ScriptPlace) -> None:
        known = []
        for line in dict.fromkeys(lines):
            if name := unset_variable(line):
                self._importing.omit(line, place.position, UnsetVariable(name))
            elif "`" in line or "$(" in line:
                self._importing.omit(line, place.position, UnreadCommand())
            else:
                known.append((line, place.position))
        record_lines(known, self._importing)

    def _apt(self, words: Sequence[str], place: ScriptPlace) -> None:
        """Record the packages behind `apt-get install`; other subcommands bring none."""
        names = [value for name, value in _options(words, valued=_APT_VALUED) if not name]
        if names[:1] != ["install"]:
            return
        for name in names[1:]:
            if variable := unset_variable(name):
                self._importing.omit(name, place.position, UnsetVariable(variable))
            else:
                self._importing.apt(name, place.position)

    def _conda(self, words: Sequence[str], place: ScriptPlace) -> None:
        """Record the match specs behind `conda install`, `conda create` and `conda env update --file`."""
        from provisioner.importers.conda import read_conda_file

        options = list(_options(words, valued=_CONDA_VALUED | {"-c", "--channel", "-f", "--file"}))
        names = [value for name, value in options if not name]
        for name, value in options:
            if name in {"-c", "--channel"}:
                self._match_specs.named_channel(value, place.position)
            elif name in {"-f", "--file"} and value.endswith((".yml", ".yaml")):
                path = self._found(value, place, "--file")
                if path is not None:
                    read_conda_file(path, self._importing, self._match_specs)
        if names[:1] not in (["install"], ["create"]):
            return
        for text in names[1:]:
            if variable := unset_variable(text):
                self._importing.omit(text, place.position, UnsetVariable(variable))
                continue
            try:
                self._match_specs.read(text, place.position)
            except ValueError:
                self._importing.omit(text, place.position, UnreadCommand())


def _first_words(words: Sequence[str]) -> str:
    """Return the first words of a command, which tell what it is; the others may hold secrets."""
    shown = [word for word in words[:2] if re.fullmatch(r"[\w./+-]+", word)]
    return " ".join([*shown, *(["…"] if len(words) > len(shown) else [])])


def _behind_conda_run(words: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return the command behind `conda run -n NAME`, with its name."""
    rest = list(words[2:])
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in {"-n", "--name", "-p", "--prefix"} else rest[1:]
    return (PurePosixPath(rest[0]).name, tuple(rest)) if rest else ("true", ("true",))


def _pip_arguments(name: str, words: Sequence[str]) -> tuple[str, ...]:
    """Return the words behind `pip`, `python -m pip` or `uv pip`; () for another command."""
    if _PIP.fullmatch(name):
        return tuple(words[1:]) or ("--version",)
    if _PYTHON.fullmatch(name) and "-m" in words[1:]:
        at = list(words).index("-m")
        if words[at + 1 : at + 2] == ("pip",):
            return tuple(words[at + 2 :]) or ("--version",)
    if name == "uv" and words[1:2] == ("pip",):
        return tuple(words[2:]) or ("--version",)
    return ()


def _options(words: Sequence[str], *, valued: frozenset[str] | None = None) -> Iterator[tuple[str, str]]:
    """Yield each option as its name and value, and each other word as ("", word)."""
    takes = (
        valued
        if valued is not None
        else _VALUED | _LINES | frozenset(LONG_OPTIONS) | frozenset(LONG_OPTIONS.values()) | frozenset(_OF_UV)
    )
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            yield "", word
            continue
        name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if not equals and word[:2] in takes and not word.startswith("--") and len(word) > 2:
            name, value, equals = word[:2], word[2:], "="
        if not equals and name in takes and rest:
            value = rest.pop(0)
        yield name, value
