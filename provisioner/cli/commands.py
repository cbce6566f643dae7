"""The program as a Typer application whose commands are imported only when they are run."""

from __future__ import annotations

from importlib import import_module
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer
from typer.core import TyperGroup
from typer.main import get_command

from provisioner.cli.catalogue import COMMANDS, MATRIX_COMMANDS, Entry
from provisioner.names import nearest

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter

PROGRAM = "provision"

PROGRAM_ENTRY = Entry(
    summary="Solve, lock, render and validate machine-learning environments",
    reads="what its command reads; the matrix that is shipped",
    writes="what its command writes; answers go to stdout, everything else to stderr",
    exits={0: "done, or yes", 1: "the answer is no", 3: "cannot tell: something is out of reach, or a fact is unknown"},
    examples=("provision init", "provision solve --host hosts/a100.yaml", "provision check"),
)
"""What holds of every command."""


class LazyGroup(TyperGroup):
    """A Typer group that lists commands from the catalogue, and imports a command only when it is run.

    So `provision check`, for example, does not import the container client.
    """

    catalogue: ClassVar = COMMANDS
    prefix: ClassVar = ""
    """The text before a command's name in the name of its module, such as `matrix_` for `matrix_show`."""

    def list_commands(self, ctx: object) -> list[str]:
        """Return the names of all commands, in the order of `--help`."""
        del ctx
        return list(self.catalogue)

    def get_command(self, ctx: object, cmd_name: str) -> Command | None:
        """Import and build one command; None when the catalogue does not contain its name."""
        del ctx
        if cmd_name not in self.catalogue:
            return None
        if cmd_name not in self.commands:
            entry = self.catalogue[cmd_name]
            self.commands[cmd_name] = load_command(cmd_name, module=f"{self.prefix}{cmd_name}", entry=entry)
        return self.commands[cmd_name]

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """Return the command named by the first argument; for an unknown name, fail with the most similar one as a hint."""
        name = args[0]
        if name not in self.catalogue and not name.startswith("-"):
            near = nearest(name, self.catalogue)
            ctx.fail(f"`{name}` is not a command" + (f"; did you mean `{near}`?" if near else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: object, formatter: HelpFormatter) -> None:
        """Write the list of commands without importing any of them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in self.catalogue.items()])


class MatrixGroup(LazyGroup):
    """The commands under `provision matrix`."""

    catalogue: ClassVar = MATRIX_COMMANDS
    prefix: ClassVar = "matrix_"


def application() -> typer.Typer:
    """Return the program as a Typer application, without importing any command."""
    app = typer.Typer(
        name=PROGRAM,
        cls=LazyGroup,
        # Plain help: it can be piped, searched and pasted, and it does not wait for the terminal library.
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        epilog=_epilog(PROGRAM_ENTRY),
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_program)
    return app


def load_command(name: str, *, module: str, entry: Entry) -> Command:
    """Import `provisioner.cli.<module>` and build the command `name` from the function or Typer group `module` in it.

    The help of the command ends with what its `entry` says.
    """
    verb = getattr(import_module(f"provisioner.cli.{module}"), module)
    epilog = _epilog(entry)
    if isinstance(verb, typer.Typer):
        verb.rich_markup_mode = None
        command = get_command(verb)
        command.name = name
        command.epilog = epilog
        return command
    holder = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)
    holder.command(name, epilog=epilog)(verb)
    return get_command(holder)


def exit_codes(entry: Entry) -> list[tuple[int, str]]:
    """Return the exit codes of a command in their order, with what each means."""
    return sorted({**entry.exits, 2: "bad input or usage"}.items())


def _epilog(entry: Entry) -> str:
    """Return what ends the help of a command: what it reads and writes, when it leaves with which code, and examples."""
    blocks = (
        (*_hanging("Reads:", entry.reads), *_hanging("Writes:", entry.writes)),
        ("Exit codes:", *(line for code, text in exit_codes(entry) for line in _hanging(f"  {code}", text, width=5))),
        ("Examples:", *(f"  {example}" for example in entry.examples)),
    )
    return "\n\n".join("\n".join(("\b", *block)) for block in blocks)


def _hanging(head: str, text: str, *, width: int = 8) -> list[str]:
    """Return the lines of a text beside its head, which gets `width` columns; they are as long as the rest of the help."""
    return wrap(f"{head:<{width}}{text}", 76, subsequent_indent=" " * width, break_on_hyphens=False, break_long_words=False)


def _show_version(value: bool) -> None:
    if value:
        from provisioner import __version__
        from provisioner.cli.display import data

        data(f"{PROGRAM} {__version__}")
        raise typer.Exit


def _use_cache(context: Context, directory: str) -> None:
    """Use another cache directory until the command has ended."""
    import os

    from provisioner.caches import VARIABLE

    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = directory

    def restore() -> None:
        del os.environ[VARIABLE]
        if before is not None:
            os.environ[VARIABLE] = before

    context.call_on_close(restore)


def _program(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", "-V", is_eager=True, callback=_show_version, help="Show the version and leave.")
    ] = False,
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            show_default=False,
            help="Tell the details too, and more about the work; -vv: everything.",
        ),
    ] = 0,
    cache_dir: Annotated[
        str, typer.Option("--cache-dir", metavar="DIR", show_default=False, help="Keep what indexes said here.")
    ] = "",
) -> None:
    """Solve, lock, render and validate machine-learning environments, from the kernel up to the Python packages."""
    from provisioner.cli.display import show_details

    del version
    if cache_dir:
        _use_cache(context, cache_dir)
    show_details(verbose > 0)
    if verbose:
        talk_more(verbose)


def talk_more(level: int) -> None:
    """Print the program's log to stderr: at level 1 messages of INFO and above, from level 2 on all."""
    import logging

    from provisioner.cli.display import shown

    class Shown(logging.Formatter):
        """Format records without control characters, because they may contain output of other programs, such as of a build."""

        def format(self, record: logging.LogRecord) -> str:
            return shown(super().format(record))

    handler = logging.StreamHandler()
    handler.setFormatter(Shown("%(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler])
    logging.getLogger("provisioner").setLevel(logging.INFO if level == 1 else logging.DEBUG)
