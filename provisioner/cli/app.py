"""The entry point of the program: the fast path for `--version`, the dispatch, and the printing of errors."""

from __future__ import annotations

import errno
import gc
import sys

TYPE_CHECKING = False  # `typing` itself would be a third of what `provision --version` may take
if TYPE_CHECKING:
    from collections.abc import Sequence

    import typer

    from provisioner.errors import ProvisionError

_INTERRUPTED = 130
_PIPE_CLOSED = 141
_UNWRITABLE = 2
_UNTOLD = 3
_CACHE_DIR = "--cache-dir"
_COMPLETION = "_PROVISION_COMPLETE"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program on `arguments` (default: the command line) and exit with its exit code; never returns."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    # Objects of a solve live until its end; collecting at Python's default rate takes a tenth of its time.
    gc.set_threshold(300_000, 20, 100)
    _prepare_streams()
    try:
        code = _guarded(words)
    except Exception as error:
        if arguments is not None:
            raise
        code = _fallen(error)
    if code == _INTERRUPTED:
        _abandon_threads()
    if arguments is None:
        # On its way out the interpreter looks for garbage in every object that is left: without this line a solve of the
        # components alone takes a quarter more processor time (docs/speed.md).
        gc.freeze()
    raise SystemExit(code)


def _prepare_streams() -> None:
    """Make stdout and stderr safe to write to.

    A closed stream (`>&-`) discards its output; a stream with a narrow encoding shows characters that it cannot encode as
    escapes.
    """
    import io
    import os

    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - quick, and open to the end
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _guarded(words: list[str]) -> int:
    """Run the program, and return its exit code; for an interrupt or an output error, the code that shells report for it."""
    try:
        code = _version() if words in (["--version"], ["-V"]) else _run(words)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        _abandon_output()
        return _PIPE_CLOSED
    except OSError as error:
        return _output_lost(error)
    return code


def _output_lost(error: OSError) -> int:
    """Print an error about unwritable standard output, such as on a full disk, and return 2; raise any other `error` again."""
    is_full = error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
    if not is_full or error.filename is not None:
        raise error
    _abandon_output()
    sys.stderr.write(f"error: standard output cannot be written: {error.strerror}  [file]\n")
    return _UNWRITABLE


def _fallen(error: Exception) -> int:
    """Print the traceback of a bug as any other message, without logins and controls, and return the exit code of no answer."""
    import traceback

    from provisioner.cli.display import trace

    trace("".join(traceback.format_exception(error)))
    sys.stderr.write("error: this is a fault of provision itself; it tells nothing of the stack  [bug]\n")
    return _UNTOLD


def _version() -> int:
    from provisioner import __version__

    sys.stdout.write(f"provision {__version__}\n")
    return 0


def _run(words: list[str]) -> int:
    from provisioner.errors import ProvisionError

    try:
        return _dispatch(words)
    except ProvisionError as error:
        return _report(error, words)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        from provisioner.document import FileError

        name = str(error.filename)
        return _report(FileError(f"`{name[:60]}…` is longer than the name of a file can be ({len(name):,} characters)"), words)


def _dispatch(words: list[str]) -> int:
    """Parse the command line with Typer and run the command; raises `UsageError` when Typer cannot parse it."""
    import os

    import typer
    from typer.main import get_command

    from provisioner.cli.commands import PROGRAM, application

    app = application()
    if _COMPLETION in os.environ:
        app(prog_name=PROGRAM)
    try:
        # Not `app()`, which maps an interrupt and a closed pipe to other exit codes, 1 among them.
        command = get_command(app)
        with command.make_context(PROGRAM, _own_options_first(words)) as context:
            result = command.invoke(context)
    except typer.Exit as stop:
        return stop.exit_code
    except typer.Abort:
        return _INTERRUPTED
    except typer.TyperException as error:
        return _misused(error)
    return result if isinstance(result, int) else 0


def _own_options_first(words: list[str]) -> list[str]:
    """Move the options of the program to the front: `provision solve -v` means `provision -v solve`."""
    end = words.index("--") if "--" in words else len(words)
    if words[:end][-1:] == [_CACHE_DIR]:
        from provisioner.errors import UsageError

        raise UsageError(f"{_CACHE_DIR} names no folder", hints=(f"write {_CACHE_DIR} DIR",))
    first: list[str] = []
    rest: list[str] = []
    before = ""
    for word in words[:end]:
        is_own = word in {"-v", "-vv", "--verbose", _CACHE_DIR} or word.startswith(f"{_CACHE_DIR}=") or before == _CACHE_DIR
        (first if is_own else rest).append(word)
        before = word if before != _CACHE_DIR else ""
    return first + rest + words[end:]


def _misused(error: typer.TyperException) -> int:
    """Raise Typer's error about the command line as a `UsageError`.

    If the command is missing, Typer's message is the whole help: it is printed, and the exit code is returned.
    """
    from provisioner.cli.display import talk
    from provisioner.errors import UsageError

    message = error.format_message()
    if message.startswith("Usage:"):  # without a command, Typer's message is the whole help
        talk(message)
        return UsageError.exit_code
    text = message.removesuffix(".")
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "provision"
    raise UsageError(text[:1].lower() + text[1:], hints=(f"`{command} --help` shows what can be given",))


def _report(error: ProvisionError, words: list[str]) -> int:
    from provisioner.cli.display import failure, failure_data, json_data

    if _wants_json(words):
        json_data(failure_data(error))
    failure(error)
    return error.exit_code


def _wants_json(words: list[str]) -> bool:
    """Return whether `words`, the command line, request JSON output; they are searched, not parsed, as they may be invalid."""
    from itertools import pairwise

    options = words[: words.index("--")] if "--" in words else words
    return "--format=json" in options or ("--format", "json") in pairwise(options)


def _abandon_output() -> None:
    """Redirect stdout to the null device: the interpreter flushes stdout at exit, which would fail again."""
    import os

    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())


def _abandon_threads() -> None:
    """Exit at once if requests are still running in threads: the interpreter would wait for each of them to time out.

    No data is lost: the main thread writes files, atomically, and it has been interrupted already.
    """
    import os
    import threading

    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_INTERRUPTED)
