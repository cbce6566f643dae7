"""The parts of a lock that all formats for containers share: its containers, the name of its image, its user, its installer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from msgspec import Struct

from provisioner.lock.format.file import lock_digest
from provisioner.platforms import package_marker
from provisioner.render.header import UnrenderableError

if TYPE_CHECKING:
    from provisioner.lock.format.model import Lock, LockedStack

USER_ID = 10001
"""The numeric id of user and group of an image's programs."""

HOME = "/home/provision"
"""The home and working directory of this user."""

SHARED_MEMORY = "8"
"""The upper limit of /dev/shm in GiB, of which only what is used takes memory.

Data loaders and NCCL exchange tensors there, and the 64 MiB that engines give otherwise end in a bus error. Source: PyTorch's
README, "Docker Image": increase shared memory size with --ipc=host or --shm-size.
"""

_LONGEST = 40
"""The most characters of a name: with the tag and a suffix it is a label of Kubernetes, of at most 63 characters."""


class Workload(Struct, frozen=True, kw_only=True):
    """One container that a lock describes: its `name`, and the stacks of the platforms it is for, all of one accelerator."""

    name: str
    accelerator: str
    stacks: tuple[LockedStack, ...]

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms of the container, sorted."""
        return tuple(stack.platform for stack in self.stacks)


def container_stacks(lock: Lock, what: str) -> tuple[LockedStack, ...]:
    """Return the stacks of a lock that run in containers; `what` names the output in the error.

    Raises `UnrenderableError` when there are none.
    """
    stacks = tuple(stack for stack in lock.stacks if stack.platform.startswith("linux/") and stack.runs == "container")
    if not stacks:
        raise UnrenderableError(
            f"lock `{lock.name}` runs on the host ({', '.join(lock.platforms)}), and {what} is for containers",
            hints=("write `runs: container` and a linux platform in the specification and solve again",),
        )
    return stacks


def installer_requirement(stack: LockedStack, stacks: tuple[LockedStack, ...], *, folder: str) -> str:
    """Return the installer of a platform as a requirement for pip, with a marker if another of `stacks` has another file.

    `folder` has the files beside the lock, in the image. Raises `UnrenderableError` when the lock has no installer for the
    platform.
    """
    if stack.installer is None:
        raise UnrenderableError(
            f"the lock names no installer for {stack.platform}, and an image needs one to install its packages",
            hints=("solve again with this version of provision",),
        )
    file = stack.installer.file
    url = f"file://{folder}/{quote(file.path)}" if file.path else file.url
    sharing = tuple(other.platform for other in stacks if other.installer == stack.installer)
    marker = package_marker(sharing, tuple(other.platform for other in stacks))
    condition = f" ; {marker}" if marker else ""
    return f"{stack.installer.name} @ {url}{condition} --hash=sha256:{file.sha256}"


def workloads(lock: Lock, what: str) -> tuple[Workload, ...]:
    """Return the containers of a lock, one for each accelerator; `what` names the output in the error.

    Raises `UnrenderableError` when no platform of the lock runs in a container.
    """
    stacks = container_stacks(lock, what)
    name = repository(lock)
    accelerators = tuple(dict.fromkeys(stack.accelerator for stack in stacks))
    return tuple(
        Workload(
            name=name if len(accelerators) == 1 else f"{name}-{accelerator}",
            accelerator=accelerator,
            stacks=tuple(stack for stack in stacks if stack.accelerator == accelerator),
        )
        for accelerator in accelerators
    )


def only_workload(lock: Lock, what: str) -> Workload:
    """Return the one container of a lock.

    Raises `UnrenderableError` as `workloads`, and when there are several accelerators.
    """
    first, *others = workloads(lock, what)
    if others:
        names = ", ".join(one.accelerator for one in (first, *others))
        raise UnrenderableError(
            f"the platforms of lock `{lock.name}` compute on different accelerators ({names}), and {what} is for one",
            hints=("write a target for each platform in the specification and solve again",),
        )
    return first


def repository(lock: Lock) -> str:
    """Return the name of a lock's image without registry and tag, which is a label of DNS, too."""
    return re.sub(r"[^a-z0-9]+", "-", lock.name.lower())[:_LONGEST].strip("-") or "environment"


def tag(lock: Lock) -> str:
    """Return the tag of a lock's image: the first digits of the lock's digest, so that another lock is another image."""
    return lock_digest(lock).removeprefix("sha256:")[:12]
