"""Read a Dockerfile: the base image of its last stage, and what the commands of the stages in it install.

The last stage is read with the stages that it builds on (`FROM builder`), and the Python packages of those that it copies from
(`COPY --from=builder`), as an environment is often built in one stage and copied into the next.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import TYPE_CHECKING

from msgspec import Struct, field

from provisioner.document import is_folder
from provisioner.gate.grammar import PREFIX, GateError, parse
from provisioner.grounds.omission import Application, OtherStage, PlatformOfImage, Refused, UnreadCommand, UnsetVariable
from provisioner.importers.base_image import read_base_image
from provisioner.importers.dockerfile_syntax import Instruction, load_dockerfile, substitute, unset_variable
from provisioner.importers.install_commands import InstallCommands, ScriptPlace
from provisioner.importers.shell import Command, commands

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.document import Position
    from provisioner.importers.importing import Importing
    from provisioner.matrix.model import Matrix

_DISABLE = "NVIDIA_DISABLE_REQUIRE"
_REQUIRE_CUDA = f"{PREFIX}CUDA"
_TRUE = frozenset({"1", "t", "true"})
_QUIET = frozenset({"ARG", "SHELL", "WORKDIR"})
"""Instructions that change nothing by themselves but how others are read."""


class _Stage(Struct):
    """One stage: its name (`FROM … AS name`), its FROM with variables replaced, and the instructions behind it."""

    name: str
    base: str
    start: Instruction
    instructions: list[Instruction] = field(default_factory=list)


class _Copy(Struct, frozen=True):
    """One file or folder beside the Dockerfile that is in the image, under a path there."""

    source: str
    target: str


def read_dockerfile(path: Path, importing: Importing, matrix: Matrix) -> None:
    """Read a Dockerfile; raises `FileError`, or `InvalidDocumentError` with every mistake at its line and column."""
    _Dockerfile(load_dockerfile(path), path.parent, importing, matrix).read()


class _Dockerfile:
    """Reads one Dockerfile; `folder`, that of the file, is taken for the context of the build."""

    def __init__(self, instructions: Sequence[Instruction], folder: Path, importing: Importing, matrix: Matrix) -> None:
        self._folder = folder
        self._importing = importing
        self._matrix = matrix
        self._install = InstallCommands(importing, matrix)
        self._global: dict[str, str] = {}
        self._stages = self._split(instructions)

    def _split(self, instructions: Sequence[Instruction]) -> list[_Stage]:
        stages: list[_Stage] = []
        for one in instructions:
            if one.word == "FROM":
                words = one.value.split()
                is_named = len(words) > 2 and words[1].upper() == "AS"
                stages.append(_Stage(words[2].lower() if is_named else "", substitute(words[0], self._global), one))
            elif stages:
                stages[-1].instructions.append(one)
            else:  # ARG, for the FROM lines
                for name, value in _pairs(one.value):
                    self._global[name] = substitute(value, self._global)
        return stages

    def read(self) -> None:
        """Record the last stage, and tell which stages are no part of it."""
        last = len(self._stages) - 1
        built_on = self._chain(last)
        copied = self._copied(built_on)
        for number in sorted({*built_on, *copied}):
            self._read_stage(number, built_on)
        for number, stage in enumerate(self._stages):
            if number not in built_on and number not in copied:
                self._importing.omit(f"FROM {stage.start.value}", stage.start.position, OtherStage())

    def _chain(self, number: int) -> list[int]:
        """Return a stage and those that it builds on."""
        found = [number]
        while (base := self._named(self._stages[found[-1]].base, before=found[-1])) is not None:
            found.append(base)
        return found

    def _copied(self, built_on: Sequence[int]) -> set[int]:
        """Return the stages from which stages are copied, and from which those are."""
        found: set[int] = set()
        todo = list(built_on)
        while todo:
            number = todo.pop()
            for one in self._stages[number].instructions:
                source = self._named(one.flag("from"), before=number) if one.word in {"COPY", "ADD"} else None
                if source is not None and source not in found and source not in built_on:
                    found.add(source)
                    todo += self._chain(source)
                    found.update(self._chain(source))
        return found - set(built_on)

    def _named(self, name: str, *, before: int) -> int | None:
        """Return the number of the stage with a name or number, among those before another; None if there is none."""
        if name in map(str, range(before)):
            return int(name)
        numbers = (number for number in range(before - 1, -1, -1) if name and self._stages[number].name == name.lower())
        return next(numbers, None)

    def _read_stage(self, number: int, built_on: Sequence[int]) -> None:
        stage, is_last = self._stages[number], number in built_on
        position = stage.start.position
        if is_last and self._named(stage.base, before=number) is None:
            if name := unset_variable(stage.base):
                self._importing.omit(f"FROM {stage.base}", position, UnsetVariable(name))
            else:
                read_base_image(stage.base, position, importing=self._importing, matrix=self._matrix)
            if stage.start.flag("platform"):
                self._importing.omit(f"--platform={stage.start.flag('platform')}", position, PlatformOfImage())
        copied_from = None if is_last else (f"FROM {stage.start.value}", position)
        _StageReader(self._importing, self._install, self._folder, self._global, copied_from).read(stage.instructions)


class _StageReader:
    """Reads the instructions of one stage in their order, with the variables and the copied files that there are so far.

    Of a stage that another one only copies from (`copied_from`, its first line), the Python packages count, and nothing else.
    """

    def __init__(
        self,
        importing: Importing,
        install: InstallCommands,
        folder: Path,
        variables: Mapping[str, str],
        copied_from: tuple[str, Position] | None,
    ) -> None:
        self._importing = importing
        self._install = install
        self._folder = folder
        self._global = variables
        self._copied_from = copied_from
        self._is_last = copied_from is None
        self._variables: dict[str, str] = {}
        self._copies: list[_Copy] = []
        self._workdir = "/"

    def read(self, instructions: Sequence[Instruction]) -> None:
        for one in instructions:
            if one.word == "RUN":
                self._run(one)
            elif one.word == "ARG":
                for name, value in _pairs(one.value):
                    given = substitute(value, self._variables) if "=" in one.value else self._global.get(name, "")
                    if given:
                        self._variables.setdefault(name, given)
            elif one.word == "ENV":
                self._environment(one)
            elif one.word == "WORKDIR":
                self._workdir = normpath(PurePosixPath(self._workdir, substitute(one.value, self._variables)).as_posix())
            elif one.word in {"COPY", "ADD"}:
                self._copy(one)
            elif one.word not in _QUIET and self._is_last:
                self._importing.omit(f"{one.word} …", one.position, Application())

    def _run(self, one: Instruction) -> None:
        mounted = [mount for name, value in one.flags if name == "mount" for mount in _mounts(value)]
        place = ScriptPlace(one.position, lambda path: self._found(path, (*self._copies, *mounted)), self._copied_from)
        takes_system = self._is_last
        if (arguments := one.arguments) is not None:
            if arguments:
                self._install.command(Command(arguments), place, takes_system=takes_system)
            return
        script = one.value
        if one.heredocs:
            head = script[: script.index("<<")].strip()
            shell = head.split()[:1]
            if shell and PurePosixPath(shell[0]).name not in {"bash", "sh"}:
                if takes_system:
                    self._importing.omit(f"RUN {shell[0]} …", one.position, UnreadCommand())
                return
            script = "\n".join(one.heredocs)
        self._script(script, place, takes_system=takes_system)

    def _script(self, script: str, place: ScriptPlace, *, takes_system: bool) -> None:
        """Record what a script installs, with the values of variables outside of single quotes."""
        parts = script.split("'")
        known = "'".join(part if at % 2 else substitute(part, self._variables) for at, part in enumerate(parts))
        self._install.script(known, place, takes_system=takes_system)

    def _environment(self, one: Instruction) -> None:
        """Record variables: those of NVIDIA's container runtime mean something to a spec."""
        for name, value in _pairs(one.value):
            known = substitute(value, self._variables)
            self._variables[name] = known
            if not self._is_last:
                continue
            if name == _REQUIRE_CUDA:
                self._require(name, known, one)
            elif name == _DISABLE and known.lower() in _TRUE:
                self._importing.allow("image-gate", one.position)
            else:
                self._importing.omit(f"ENV {name}", one.position, Application())

    def _require(self, name: str, text: str, one: Instruction) -> None:
        try:
            parse(text, name)
        except GateError as error:
            self._importing.omit(f"ENV {name}", one.position, Refused(error.reason))
            return
        self._importing.image("require", text, one.position)

    def _copy(self, one: Instruction) -> None:
        if one.flag("from"):
            return
        words = one.arguments or tuple(substitute(one.value, self._variables).split())
        *sources, target = words if len(words) > 1 else ("", "")
        into_folder = target.endswith("/") or target in {".", ".."} or len(sources) > 1
        path = normpath(PurePosixPath(self._workdir, target).as_posix())
        for source in sources:
            into = into_folder and not is_folder(self._folder / source)
            self._copies.append(_Copy(source, (PurePosixPath(path) / PurePosixPath(source).name).as_posix() if into else path))
        if self._is_last and not all(source.endswith((".txt", ".in", ".toml", ".yml", ".yaml")) for source in sources):
            self._importing.omit(f"{one.word} …", one.position, Application())

    def _found(self, path: str, copies: Sequence[_Copy]) -> Path | None:
        """Return the file beside the Dockerfile that is in the image at a path; None if no line copies one there."""
        full = PurePosixPath(normpath(PurePosixPath(self._workdir, path).as_posix()))
        for copy in reversed(copies):
            if full.is_relative_to(copy.target):
                found = self._folder / copy.source / full.relative_to(copy.target)
                inside = Path(normpath(found.as_posix()))
                if ".." not in inside.relative_to(self._folder).parts if inside.is_relative_to(self._folder) else False:
                    return inside
        return None


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values of ARG and ENV: `NAME=value …`, `NAME` alone, or the old `ENV NAME value`."""
    try:
        words = next(iter(commands(f"env {text}")), Command(("env",))).words[1:]
    except ValueError:
        words = tuple(text.split())
    if len(words) > 1 and "=" not in words[0]:
        yield words[0], text.partition(" ")[2].strip()
        return
    for word in words:
        name, _, value = word.partition("=")
        yield name, value


def _mounts(text: str) -> Iterator[_Copy]:
    """Yield the file or folder of a `--mount=type=bind`, which is in the image while the command runs."""
    options = dict(part.partition("=")[::2] for part in text.split(","))
    target = options.get("target") or options.get("dst") or options.get("destination")
    if options.get("type", "bind") == "bind" and target and "from" not in options:
        yield _Copy(options.get("source") or options.get("src") or ".", normpath(target))
