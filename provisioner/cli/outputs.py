"""Whose the files are that a run would write over: two specs in one folder must not take them from each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.cli.inputs import Inputs
    from provisioner.lock.model import Lock


def require_own_files(inputs: Inputs, folder: Path, earlier: Lock | None) -> None:
    """Raise `UsageError` where a lock or a rendered file in `folder` is that of another spec, and that spec is still there.

    A file that nobody rendered is written over, with a warning. `earlier` is the lock that would be replaced. A spec that was
    renamed, or that names itself otherwise now, keeps its files.
    """
    from provisioner.cli.display import warn
    from provisioner.lock.file import lock_path
    from provisioner.render.formats import FORMATS
    from provisioner.render.header import rendered_from

    name = lock_path(inputs.spec.name)
    if earlier is not None and (other := _other_spec(inputs, folder, earlier)):
        place = inputs.document.where(("name",))
        raise UsageError(
            f"name `{inputs.spec.name}` ({place}) would overwrite `{folder / name}`, which is the lock of `{other}`",
            hints=("give one of the two specs another `name:`, or write elsewhere with --out DIR",),
        )
    for index, output in enumerate(inputs.spec.outputs):
        rendered = folder / FORMATS[output]
        lock_name = rendered_from(rendered)
        if not lock_name and rendered.is_file():
            warn(f"`{rendered}` was not rendered by provision, and `solve` writes over it")
        spec = _spec_behind(inputs, folder, lock_name) if lock_name != name else ""
        if spec:
            place = inputs.document.where(("outputs", index))
            apart = f"provision render {folder / name} --to {output} --out {folder / inputs.spec.name}.{FORMATS[output]}"
            raise UsageError(
                f"output `{output}` ({place}) would overwrite `{rendered}`, "
                f"which was rendered from {lock_name}, the lock of `{spec}`",
                hints=("write elsewhere with --out DIR", f"or leave `{output}` out of `outputs:` and write it apart: {apart}"),
            )


def other_lock(rendered: Path, lock_name: str) -> str:
    """The name of the lock that a file was rendered from, where it lies beside it and is another one; else ""."""
    from provisioner.render.header import rendered_from

    found = rendered_from(rendered)
    return found if found not in {"", lock_name} and (rendered.parent / found).is_file() else ""


def is_of_same_spec(lock_file: Path, spec_file: str, other: Path) -> bool:
    """Whether another lock is of the spec that this one was solved from (`spec_file`, as it says), under an earlier name.

    A spec that is not there tells nothing.
    """
    from provisioner.errors import ProvisionError
    from provisioner.lock.file import read_lock

    spec = lock_file.parent / spec_file
    try:
        return spec.is_file() and spec.samefile(other.parent / read_lock(other).spec_file)
    except (ProvisionError, OSError, ValueError):  # the other's is not there, or no path
        return False


def _spec_behind(inputs: Inputs, folder: Path, lock_name: str) -> str:
    """The spec of another lock in the folder; "" for the spec at hand, one that is gone, or a lock that cannot be read."""
    from provisioner.errors import ProvisionError
    from provisioner.lock.file import read_lock

    if not lock_name:
        return ""
    try:
        return _other_spec(inputs, folder, read_lock(folder / lock_name))
    except ProvisionError:
        return ""


def _other_spec(inputs: Inputs, folder: Path, lock: Lock) -> str:
    path = folder / lock.spec_file
    return lock.spec_file if path.is_file() and path.resolve() != inputs.path.resolve() else ""
