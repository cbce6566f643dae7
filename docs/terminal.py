"""Take a picture of the program on a terminal: `python docs/terminal.py` writes docs/terminal.svg anew.

The commands really run, on a pseudo-terminal in a copy of the examples; what they print, with its colours, becomes an SVG. No
time, path or font of the machine is in it.
"""

from __future__ import annotations

import io
import os
import pty
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs/terminal.svg"
COMMANDS = (
    "solve examples/trainer/provision.yaml --stack-only",
    "solve examples/old-driver/provision.yaml --stack-only",
)
COLUMNS = 110
PROGRAM = """
from provisioner.cli import display
from provisioner.cli.app import main
display.PROGRESS_DELAY_SECONDS = 3600.0
main()
"""
"""The program on a machine that is never slow enough for a line about progress."""

FRAME = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="terminal-about">
<title id="terminal-about">provision on a terminal: a stack that runs, and a conflict with its hints</title>
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px; line-height: {line_height}px;
}}
.{unique_id}-title {{ font-family: sans-serif; font-size: 18px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""Rich's frame names a font on the network; this one takes what is there."""


def picture() -> str:
    """Return what the commands show on a terminal, as SVG."""
    console = Console(width=COLUMNS, record=True, file=io.StringIO(), force_terminal=True, color_system="standard")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples", Path(folder) / "examples")
        for command in COMMANDS:
            console.print(Text(f"$ provision {command}", style="bold"))
            console.print(Text.from_ansi(_shown(command.split(), Path(folder))), soft_wrap=True)
            console.print()
    return console.export_svg(title="", theme=MONOKAI, code_format=FRAME, unique_id="terminal")


def _shown(words: list[str], folder: Path) -> str:
    """Run the program on a pseudo-terminal as wide as the picture, and return what it writes there."""
    ours, programs = pty.openpty()
    variables = {"TERM": "xterm", "COLUMNS": str(COLUMNS), "PYTHONPATH": str(ROOT), "CI": "1"}
    kept = {name: os.environ[name] for name in ("HOME", "PATH", "XDG_CACHE_HOME") if name in os.environ}
    command = [sys.executable, "-c", PROGRAM, *words]
    with subprocess.Popen(command, cwd=folder, stdin=programs, stdout=programs, stderr=programs, env=kept | variables):
        os.close(programs)
        shown = b""
        while chunk := _read(ours):
            shown += chunk
    os.close(ours)
    return shown.decode().replace("\r\n", "\n").rstrip("\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # Linux reports the closed other end as an error
        return b""


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
