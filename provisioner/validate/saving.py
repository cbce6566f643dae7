"""Save a base image as a tar archive, which `docker load` and `podman load` read on a machine without a network."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.validate.engine import EngineError
from provisioner.validate.process import stream

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.validate.engine import Finished, Log

ENGINES = ("docker", "podman")


def archive_name(reference: str, digest: str) -> str:
    """Return the name of the archive of an image, with a part of its digest unless that is ""."""
    known = f"-{digest.removeprefix('sha256:')[:12]}" if digest else ""
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', reference)}{known}.tar"


def save_image(program: str, *, reference: str, digest: str, folder: Path, log: Log) -> Path:
    """Save an image with its tag in a folder, unless its archive is there, and return the path of the archive.

    `program` is the command line of the engine. The image is pulled unless the engine has it. Of an image without a digest, an
    archive that is there is not trusted. Raises `EngineError`.
    """
    file = folder / archive_name(reference, digest)
    if digest and file.is_file():
        return file
    pinned = f"{reference}@{digest}" if digest else reference
    if stream((program, "image", "inspect", pinned)).exit_code != 0:
        _require(stream((program, "pull", pinned), log), f"image {pinned} cannot be pulled")
    if digest:
        _require(stream((program, "tag", pinned, reference)), f"image {pinned} cannot be tagged")
    temporary = folder / f".{file.name}"
    temporary.unlink(missing_ok=True)  # podman does not write over a file
    _require(stream((program, "save", "--output", str(temporary), reference), log), f"image {pinned} cannot be saved")
    temporary.replace(file)
    return file


def _require(finished: Finished, problem: str) -> None:
    if finished.exit_code != 0:
        raise EngineError(problem, causes=tuple(finished.stderr.strip().splitlines()[-3:]))
