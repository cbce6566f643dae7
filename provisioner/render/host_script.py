"""Render the setups of a lock as a shell script that brings a host to the locked drivers and toolkits, step by step.

The commands are those of the setups, which the lock has from the matrix. Every step looks first whether it is done, so that a
second run does nothing; the script reboots nothing, and needs no secret.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.render.header import UnrenderableError, header
from provisioner.render.host_linux import linux_script
from provisioner.render.host_macos import macos_script

if TYPE_CHECKING:
    from provisioner.lock.format.model import Lock, LockedStack
    from provisioner.setups import HostSetup

_FAMILIES = ("ubuntu", "debian", "rhel", "rocky", "almalinux", "ol", "fedora", "macos")
"""The systems whose package managers, or installers, the script knows."""


def render(lock: Lock, lock_file_name: str) -> str:
    """Return the script of a lock, for every platform and system that its hosts have.

    Raises `UnrenderableError` when the lock has no setups, when a step of one has no known package, and when two setups are for
    the same system and processor.
    """
    pairs = [(stack, setup) for stack in lock.stacks for setup in stack.host_setups]
    if not pairs:
        raise _without_setups(lock)
    for stack, setup in pairs:
        _require_known(stack, setup)
    systems = [(stack.platform, setup.os) for stack, setup in pairs]
    twice = next((one for one in systems if systems.count(one) > 1), None)
    if twice is not None:
        raise UnrenderableError(
            f"lock `{lock.name}` has several ways to set up {twice[1]} on {twice[0]}, which a script cannot tell apart",
            hints=("write a target for each kind of host in the specification and solve again",),
        )
    macs = [pair for pair in pairs if pair[0].platform.startswith("macos/")]
    if macs and len(macs) < len(pairs):
        raise UnrenderableError(
            f"lock `{lock.name}` is for {', '.join(lock.platforms)}: a host script is for Linux or for macOS",
            hints=("write a target for each in the specification and solve again",),
        )
    body = macos_script(lock, macs, lock_file_name) if macs else linux_script(pairs, lock_file_name)
    names = " and ".join(dict.fromkeys(setup.os for _, setup in pairs))
    use = (
        f"It brings a host with {names} to what the stack takes from its host. To see the commands: sh host.sh --dry-run",
        "Every step looks first whether it is done. The script never reboots, and never asks for a secret.",
        "It ends with 0 when the host meets the lock, 1 when it does not, 2 for a wrong option, 3 when that shows only",
        "after a reboot or by hand, and 78 on a host that it is not for.",
    )
    return f"#!/bin/sh\n{header(lock, lock_file_name, *use)}\n{body}"


def _without_setups(lock: Lock) -> UnrenderableError:
    spec = lock.spec_file or "the specification"
    return UnrenderableError(
        f"lock `{lock.name}` does not say how its hosts are set up",
        causes=("a lock says so for hosts that state their operating system, if `outputs` has `host-script`",),
        hints=(
            f"list `host-script` under `outputs` in {spec} and solve again",
            'its hosts must state `os`, `kernel` and `gpus`, such as `os: {id: ubuntu, version: "24.04"}`',
        ),
    )


def _require_known(stack: LockedStack, setup: HostSetup) -> None:
    """Raise `UnrenderableError` for a setup that has nothing to do, or a step that nobody knows how to take."""
    where = f"{setup.os} on {stack.platform}"
    if not setup.steps:
        raise UnrenderableError(
            f"the stack takes nothing from a host with {where}: there is nothing to set up",
            hints=("leave `host-script` out of `outputs`",),
        )
    by_hand = "install what the stack needs by the guides of its vendors and leave `host-script` out of `outputs`"
    if setup.os.partition(" ")[0] not in _FAMILIES:
        raise UnrenderableError(
            f"there is no host script for {where}, only for {', '.join(_FAMILIES[:-1])} and {_FAMILIES[-1]}", hints=(by_hand,)
        )
    unknown = next((step for step in setup.steps if not step.is_known and step.component != "xcode"), None)
    if unknown is not None:
        what = " ".join(filter(None, (unknown.component, unknown.version)))
        other = "another version of it"
        if unknown.component == "driver" and setup.driver_module:
            what += f" with {setup.driver_module} kernel modules"
            other += f", or `driver_module: {'proprietary' if setup.driver_module == 'open' else 'open'}`,"
        flavour = " without knowing its GPUs" if unknown.component == "driver" and not setup.driver_module else ""
        raise UnrenderableError(
            f"the matrix does not say how {what} is installed on {where}{flavour}",
            hints=(
                "state `gpus` under `target.host`"
                if flavour
                else f"ask for {other} under `requires`, or for another system (docs/outputs.md has them)",
                by_hand,
            ),
        )
    missing = next((one.name for one in setup.repositories if not (one.url or one.line or one.package)), None)
    if missing is not None:
        raise UnrenderableError(
            f"the matrix has no repository `{missing}` for {where}",
            hints=("install by the guide of its vendor and leave `host-script` out of `outputs`",),
        )
