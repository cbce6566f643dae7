"""The program from outside: what it prints where, its exit codes, and what it does not import."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import pytest
import typer

from provisioner import __version__
from provisioner.cli.app import main
from provisioner.cli.catalogue import COMMANDS, MATRIX_COMMANDS, Entry
from provisioner.cli.commands import load_command
from provisioner.cli.options import FormatOption, OutputFormat
from provisioner.errors import RefusedError, UnavailableError
from tests.leaving import leave

if TYPE_CHECKING:
    from collections.abc import Callable

MODULES = """
import sys
from provisioner.cli.app import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""
HEAVY = ("docker", "pysat", "requests", "resolvelib", "rich", "ruamel")


@pytest.fixture
def trial(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., object]], None]:
    """Add a command named `trial` to the program."""

    def register(function: Callable[..., object]) -> None:
        module = ModuleType("provisioner.cli.trial")
        module.__dict__["trial"] = function
        monkeypatch.setitem(sys.modules, "provisioner.cli.trial", module)
        monkeypatch.setitem(COMMANDS, "trial", Entry("Try something", "nothing", "nothing", {0: "tried"}, ("provision trial",)))

    return register


def refuse(output_format: FormatOption = OutputFormat.TEXT) -> None:
    """Refuse."""
    del output_format
    raise RefusedError(
        "no stack satisfies provision.yaml",
        causes=("you require pytorch >=2.6   provision.yaml:4", "this host has driver 470.256.02"),
        hints=("a driver >=525.60.13 would do", "pytorch <2.1 would do"),
    )


def test_the_version_is_one_line_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("--version") == 0
    assert capsys.readouterr() == (f"provision {__version__}\n", "")


def test_the_version_is_shown_also_where_other_words_follow(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("--version", "solve") == 0
    assert capsys.readouterr() == (f"provision {__version__}\n", "")


def test_the_version_imports_no_library() -> None:
    result = subprocess.run([sys.executable, "-I", "-c", MODULES, "--version"], capture_output=True, text=True, check=True)
    imported = {name.partition(".")[0] for name in result.stderr.split()}
    assert result.stdout == f"provision {__version__}\n"
    assert imported.isdisjoint({*HEAVY, "typer", "click", "dataclasses", "typing", "re", "logging", "argparse"})


def test_help_lists_every_command_without_importing_one() -> None:
    code = (
        "import sys; from provisioner.cli.app import main\ntry: main(['--help'])\nfinally: print(*sys.modules, file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    imported = set(result.stderr.split())
    assert imported.isdisjoint({f"provisioner.cli.{name}" for name in COMMANDS})
    assert imported.isdisjoint(HEAVY)
    for name, entry in COMMANDS.items():
        assert f"  {name:<10}{entry.summary}\n" in result.stdout
    codes = (
        "0  done, or yes",
        "1  the answer is no",
        "2  bad input or usage",
        "3  cannot tell: something is out of reach, or a fact",
    )
    assert result.stdout.partition("Exit codes:\n")[2].startswith("    " + "\n    ".join(codes))


def test_no_command_at_all_is_a_mistake_that_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave() == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Usage: provision [OPTIONS] COMMAND [ARGS]...\n")


def test_an_unknown_command_names_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("sovle", "provision.yaml") == 2
    assert capsys.readouterr() == (
        "",
        (
            "error: `sovle` is not a command; did you mean `solve`?  [bad-usage]\n"
            "\n"
            "hint: `provision --help` shows what can be given\n"
        ),
    )


def test_a_command_unlike_any_other_gets_no_far_fetched_advice(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("zzz") == 2
    assert capsys.readouterr().err.startswith("error: `zzz` is not a command  [bad-usage]\n")


def test_an_unknown_option_of_a_command_points_at_its_help(
    trial: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    trial(refuse)
    assert leave("trial", "--formt", "json") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: no such option: --formt")
    assert err.endswith("[bad-usage]\n\nhint: `provision trial --help` shows what can be given\n")


def test_an_option_in_front_of_the_command_points_at_the_help_of_the_program(
    trial: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    trial(refuse)
    assert leave("--frmat", "json", "trial") == 2
    assert capsys.readouterr().err == (
        "error: no such option: --frmat  [bad-usage]\n\nhint: `provision --help` shows what can be given\n"
    )


def test_a_value_that_is_not_a_choice_is_named_beside_the_choices(
    trial: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    trial(refuse)
    assert leave("trial", "--format", "xml") == 2
    assert capsys.readouterr() == (
        "",
        (
            "error: invalid value for '--format': 'xml' is not one of 'text', 'json'  [bad-usage]\n"
            "\n"
            "hint: `provision trial --help` shows what can be given\n"
        ),
    )


def test_an_error_is_words_on_stderr_and_nothing_on_stdout(
    trial: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    trial(refuse)
    assert leave("trial") == 1
    assert capsys.readouterr() == (
        "",
        (
            "error: no stack satisfies provision.yaml  [refused]\n"
            "  you require pytorch >=2.6   provision.yaml:4\n"
            "  this host has driver 470.256.02\n"
            "\n"
            "hint: a driver >=525.60.13 would do\n"
            "hint: pytorch <2.1 would do\n"
        ),
    )


@pytest.mark.parametrize("words", [("--format", "json"), ("--format=json",)])
def test_an_error_is_also_json_on_stdout_where_json_was_asked_for(
    trial: Callable[..., None], capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    trial(refuse)
    assert leave("trial", *words) == 1
    out, err = capsys.readouterr()
    assert json.loads(out) == {
        "status": "error",
        "code": "refused",
        "message": "no stack satisfies provision.yaml",
        "causes": ["you require pytorch >=2.6   provision.yaml:4", "this host has driver 470.256.02"],
        "hints": ["a driver >=525.60.13 would do", "pytorch <2.1 would do"],
    }
    assert err.startswith("error: no stack satisfies provision.yaml  [refused]\n")


def test_a_line_that_cannot_be_read_is_json_too_where_json_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("zzz", "--format", "json") == 2
    assert json.loads(capsys.readouterr().out)["code"] == "bad-usage"


def test_what_is_out_of_reach_exits_with_three(trial: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    def trial_command() -> None:
        """Reach out."""
        raise UnavailableError("no container engine answers")

    trial(trial_command)
    assert leave("trial") == 3
    assert capsys.readouterr() == ("", "error: no container engine answers  [unavailable]\n")


def test_a_command_may_leave_with_its_own_exit_code(trial: Callable[..., None]) -> None:
    def trial_command() -> None:
        """Answer no."""
        raise typer.Exit(1)

    trial(trial_command)
    assert leave("trial") == 1


def test_a_command_with_commands_of_its_own_is_a_typer(trial: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    group = typer.Typer(help="Try groups.")

    @group.command()
    def show(word: Annotated[str, typer.Argument()]) -> None:
        """Show a word."""
        typer.echo(word)

    @group.command("list")
    def list_all() -> None:
        """List nothing."""

    trial(group)
    assert leave("trial", "show", "matrix") == 0
    assert capsys.readouterr() == ("matrix\n", "")


def test_a_bug_is_a_traceback_and_not_a_message(trial: Callable[..., None]) -> None:
    def trial_command() -> None:
        """Fall over."""
        raise RuntimeError("a bug")

    trial(trial_command)
    with pytest.raises(RuntimeError, match="a bug"):
        main(["trial"])


@pytest.mark.parametrize("words", [("-v", "trial"), ("trial", "-v"), ("trial", "--verbose"), ("-vv", "trial")])
def test_verbose_means_the_same_wherever_it_stands(words: tuple[str, ...]) -> None:
    script = TRIAL.format(body="import logging; logging.getLogger('provisioner.index').info('asked the index')")
    result = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("", "provisioner.index: asked the index\n")


def test_without_verbose_the_log_is_silent() -> None:
    script = TRIAL.format(body="import logging; logging.getLogger('provisioner.index').info('asked the index')")
    result = subprocess.run([sys.executable, "-c", script, "trial"], capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("", "")


TRIAL = """
import sys
from types import ModuleType
from provisioner.cli.app import main
from provisioner.cli.catalogue import COMMANDS, Entry
def trial():
    "Try."
    {body}
module = sys.modules["provisioner.cli.trial"] = ModuleType("provisioner.cli.trial")
module.trial = trial
COMMANDS["trial"] = Entry("Try", "", "", {{}}, ("provision trial",))
main()
"""


def test_a_bug_is_no_answer_and_its_traceback_holds_no_login_and_obeys_no_text() -> None:
    body = "raise RuntimeError('at https://me:hunter2@index.example/simple \\x1b]0;x\\x07')"
    result = subprocess.run(
        [sys.executable, "-c", TRIAL.format(body=body), "trial"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 3
    assert result.stdout == ""
    assert result.stderr.startswith("Traceback (most recent call last):\n")
    assert "RuntimeError: at https://…@index.example/simple \\x1b]0;x\\x07\n" in result.stderr
    assert result.stderr.endswith("error: this is a fault of provision itself; it tells nothing of the stack  [bug]\n")
    assert "hunter2" not in result.stderr


def test_an_interrupt_is_quiet_and_exits_with_130() -> None:
    script = TRIAL.format(body="import time; print('working', flush=True); time.sleep(60)")
    with subprocess.Popen(
        [sys.executable, "-c", script, "trial"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (130, "")


@pytest.mark.parametrize("words", [["trial"], ["--version"]])
def test_a_reader_that_went_away_is_no_error(words: list[str]) -> None:
    script = TRIAL.format(body="[print('x' * 80) for _ in range(10_000)]")
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        result = subprocess.run(
            [sys.executable, "-c", script, *words], stdout=closed, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (result.returncode, result.stderr) == (141, "")


def test_the_module_is_the_same_program() -> None:
    result = subprocess.run([sys.executable, "-m", "provisioner", "--version"], capture_output=True, text=True, check=True)
    assert result.stdout == f"provision {__version__}\n"


ENTRIES = {**COMMANDS, **{f"matrix {name}": entry for name, entry in MATRIX_COMMANDS.items()}}


@pytest.mark.parametrize("name", ENTRIES)
def test_every_command_shows_its_summary_options_and_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave(*name.split(), "--help") == 0
    out, err = capsys.readouterr()
    entry = ENTRIES[name]
    command = load_command(name.rsplit(maxsplit=1)[-1], module=name.replace(" ", "_"), entry=entry)
    described = " ".join((command.help or "").split("\n\n")[0].split()).removesuffix(".")
    if name in COMMANDS:
        assert described.startswith(entry.summary), f"cli/{name}.py says `{described}`, the catalogue says `{entry.summary}`"
    assert out.startswith(f"Usage: provision {name} ")
    assert all(f"  {example}\n" in out for example in entry.examples)
    options = {word for example in entry.examples for word in example.split() if word.startswith("--")}
    assert all(option in out.partition("Examples:")[0] for option in options), f"an example of {name} uses an unknown option"
    assert err == ""


@pytest.mark.parametrize("name", ENTRIES)
def test_the_help_names_every_option_that_writes_a_file(name: str) -> None:
    entry = ENTRIES[name]
    command = load_command(name.rsplit(maxsplit=1)[-1], module=name.replace(" ", "_"), entry=entry)
    for option in command.params:
        is_file = str(getattr(option, "help", "")).startswith(("Write ", "The file to write"))
        if is_file and not option.secondary_opts:  # --record and --no-record write what is written anyway
            assert option.opts[0] in entry.writes, f"`{name} {option.opts[0]}` writes, and the help says `{entry.writes}`"


@pytest.mark.parametrize("name", ENTRIES)
def test_every_help_says_what_goes_in_and_out_and_what_the_exit_codes_mean(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    leave(*name.split(), "--help")
    out, entry = capsys.readouterr().out, ENTRIES[name]
    told = " ".join(out.partition("\n  Reads:")[2].split())
    codes = {**entry.exits, 2: "bad input or usage"}
    exits = " ".join(f"{code} {codes[code]}" for code in sorted(codes))
    assert told.startswith(f"{entry.reads} Writes: {entry.writes} Exit codes: {exits} Examples: ")
    assert 0 in entry.exits
    assert max(map(len, out.partition("Examples:")[0].splitlines())) <= 80


@pytest.mark.parametrize("name", ENTRIES)
def test_every_summary_fits_one_line_of_the_list(name: str) -> None:
    entry = ENTRIES[name]
    assert len(f"  {name.removeprefix('matrix '):<10}{entry.summary}") <= (80 if name in COMMANDS else 100)
    assert not entry.summary.endswith(".")
    assert entry.examples
    assert all(example.startswith(f"provision {name}") for example in entry.examples)
