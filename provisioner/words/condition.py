"""The condition of a machine as lines: the drivers of DKMS, CDI specifications, container engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from provisioner.host.condition import CdiSpec, Condition, DkmsModule

Part = TypeVar("Part")


def condition_lines(condition: Condition) -> tuple[str, ...]:
    """Return a line for each part of the condition; what could not be seen is `unknown`, what is not there `none`."""
    return (
        f"dkms: {_listed(condition.dkms, _module)}",
        f"cdi: {_listed(condition.cdi, _specification)}",
        f"engines: {_listed(condition.engines, str)}",
    )


def _module(module: DkmsModule) -> str:
    return f"{module.name} {module.version}, built for {' and '.join(module.kernels) or 'no kernel'}"


def _specification(spec: CdiSpec) -> str:
    return f"{spec.file} for {f'driver {spec.driver}' if spec.driver else 'a driver that it does not name'}"


def _listed(found: tuple[Part, ...] | None, spelled: Callable[[Part], str]) -> str:
    """Return parts in one line, in which a name of a file with a line break does not begin another one."""
    if found is None:
        return "unknown"
    return "".join(one if one.isprintable() else "?" for one in "; ".join(map(spelled, found))) or "none"
