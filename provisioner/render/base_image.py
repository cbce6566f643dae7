"""Determine the base image of a locked stack, and how its Python is installed there."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.render.chosen_files import is_source
from provisioner.render.header import UnrenderableError

if TYPE_CHECKING:
    from provisioner.lock.format.model import Lock, LockedStack

PYTHON = "/opt/python"
"""The path of a Python that is unpacked in the image."""

_REFERENCE = re.compile(r"[A-Za-z0-9][\w.:/-]*")
_SERIES = re.compile(r"(\d+\.\d+)(?:\.\d+\w*)?")


class Base(Struct, frozen=True, kw_only=True):
    """A base image; `python` is the command that starts the locked Python series in it (`python3.12`).

    `packages` are the distribution packages that install this command, `builder_packages` those that create virtual
    environments, `header_packages` those with Python's headers; all are empty if the image contains Python.
    If neither the image nor its distribution has the locked series, `archive` is the address of a Python with the hash
    `sha256`, to be unpacked in `PYTHON`; else both are "". `snapshot` is the time of the distribution's packages, "" for that
    of the build.
    """

    reference: str
    digest: str
    python: str
    packages: tuple[str, ...] = ()
    builder_packages: tuple[str, ...] = ()
    header_packages: tuple[str, ...] = ()
    archive: str = ""
    sha256: str = ""
    snapshot: str = ""

    @property
    def version(self) -> tuple[int, int]:
        """The locked Python series as numbers."""
        major, minor = self.python.rpartition("python")[2].split(".")
        return int(major), int(minor)


def base_of(stack: LockedStack) -> Base:
    """Return the base image of a stack; raises `UnrenderableError` when there is none, or it cannot have the stack's Python."""
    image = stack.image
    if image is None:
        raise UnrenderableError(
            f"the lock names no base image for {stack.platform}, so there is nothing to build on",
            hints=("write `runs: container` in the specification and solve again",),
        )
    if not _REFERENCE.fullmatch(image.reference):
        raise UnrenderableError(f"`{image.reference}` is not an image reference")
    python = stack.components.get("python", "")
    locked = _series(python)
    if not locked:
        raise UnrenderableError(
            f"`{python}` is not a Python version" if python else f"the lock names no Python for {stack.platform}",
            hints=("add `python` to `requires:` in the specification and solve again",),
        )
    command = f"python{locked}"
    here = Base(reference=image.reference, digest=image.digest, python=command, snapshot=image.snapshot)
    if locked == _series(image.python) or not (image.python or image.apt_python):
        return here
    if locked == _series(image.apt_python):
        return replace(
            here,
            packages=(command,),
            builder_packages=(f"{command}-venv",),
            header_packages=(f"lib{command}-dev",),
        )
    managed = image.managed_python
    if managed is not None and locked == _series(managed.version):
        return replace(here, python=f"{PYTHON}/bin/{command}", archive=managed.url, sha256=managed.sha256)
    offered = " and ".join(dict.fromkeys(filter(None, (image.python, image.apt_python))))
    raise UnrenderableError(
        f"base image `{image.reference}` has Python {offered}, and the lock is for {python}",
        hints=("choose another `image: base:`, or `python` in `requires:`, and solve again",),
    )


def shipped_base(lock: Lock, stack: LockedStack) -> Base:
    """Return the base image that is shipped: that of a stack, or the one without compilers once something was built with them.

    Without source distributions in the lock nothing is built here, and the compilers are for what a person builds in the image.
    """
    base = base_of(stack)
    runtime = stack.image.runtime if stack.image is not None else None
    if runtime is None or not any(is_source(package, (stack.platform,)) for package in lock.packages):
        return base
    return replace(base, reference=runtime.reference, digest=runtime.digest)


def undated_packages(stack: LockedStack) -> tuple[str, ...]:
    """Return the packages of the distribution that the image of a stack gets in the release of the day of its build.

    () if the stack has no image, if the lock has a time for them, or if nothing can be built on the image. Packages with a
    release (`git=1:2.47.3-0`) are left out.
    """
    if stack.image is None or stack.runs != "container" or stack.image.snapshot:
        return ()
    names = tuple(one.name for one in stack.apt)
    with suppress(UnrenderableError):
        names = (*base_of(stack).packages, *names)
    return tuple(name for name in names if "=" not in name)


def _series(version: str) -> str:
    match = _SERIES.fullmatch(version)
    return match[1] if match else ""
