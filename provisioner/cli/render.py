"""`provision render`: write a lock as a Dockerfile or in another output format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from provisioner.outputs import OUTPUTS, output_named

LockArgument = Annotated[Path, typer.Argument(metavar="LOCK", readable=False, help="A lock file: pylock.<name>.toml.")]
_FORMATS = "; ".join(f"{output.name}: {output.summary}" for output in OUTPUTS.values())
ToOption = Annotated[str, typer.Option("--to", metavar="FORMAT", help=f"{_FORMATS}.")]
OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="PATH", help="Write to this file, or into this directory; default: stdout.")
]


def render(lock: LockArgument, to: ToOption = "dockerfile", out: OutOption = None) -> None:
    """Write a Dockerfile, or another output, from a lock alone. Only a file that provision rendered is overwritten.

    Helper files that an output uses are written beside the lock, unless the output goes to stdout.
    """
    from provisioner.cli import display
    from provisioner.document import read_text, write_together
    from provisioner.errors import UsageError
    from provisioner.lock.format.file import KIND, parse_lock, verify_digest
    from provisioner.render import render as render_lock
    from provisioner.render.helper import has_text, helper_files
    from provisioner.workflow.ownership import is_of_same_spec, other_lock, require_rendered

    file_name = output_named(to).file_name
    lock_text = read_text(lock, kind=KIND)
    parsed = parse_lock(lock_text, file=str(lock))
    text = render_lock(parsed, to, lock_file_name=lock.name)
    if not verify_digest(lock_text):
        display.warn(f"`{lock}` was changed after it was written: its digest does not fit its content")
    helpers = {lock.parent / name: helper for name, helper in helper_files(to, text).items()}
    if out is None:
        display.data(text)
        for file in (file for file, helper in helpers.items() if not has_text(file, helper)):
            display.talk(f"it uses {file}, which --out writes with it")
        return
    path = out / file_name if out.is_dir() else out
    other = other_lock(path, lock.name) if out.is_dir() else ""
    if other and not is_of_same_spec(lock, parsed.spec_file, out / other):
        raise UsageError(
            f"`{path}` was rendered from {other}, which lies beside it",
            hints=(f"name the file: --out {out / lock.stem.removeprefix('pylock.')}.{file_name}",),
        )
    written = {path: text, **helpers}
    for file in written:
        require_rendered(file)
    write_together({file: content.encode() for file, content in written.items()})
    display.talk(f"wrote {', '.join(map(str, written))}")
