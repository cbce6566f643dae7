"""Render a lock as a `.devcontainer.json`, which editors open the image with.

The file is JSON with comments. Source: the Development Container specification, containers.dev/implementors/json_reference,
2026-11-23.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from provisioner.accelerators import ACCELERATORS
from provisioner.render.container import SHARED_MEMORY, only_workload
from provisioner.render.header import origin
from provisioner.render.stages import ENVIRONMENT

if TYPE_CHECKING:
    from provisioner.lock.format.model import Lock


def render(lock: Lock, lock_file_name: str) -> str:
    """Return the development container of a lock, for the folder that has the lock and its Dockerfile.

    Raises `UnrenderableError` when the lock is not for containers, or for several accelerators.
    """
    workload = only_workload(lock, "a development container")
    accelerator = ACCELERATORS[workload.accelerator]
    arguments = ["--shm-size", f"{SHARED_MEMORY}g"]
    arguments += [part for path in accelerator.device_files for part in ("--device", path)]
    arguments += [part for group in accelerator.device_groups for part in ("--group-add", group)]
    if accelerator.compose_driver:
        arguments += ["--gpus", "all"]
    data: dict[str, Any] = {"name": workload.name, "build": {"dockerfile": "Dockerfile", "context": "."}, "runArgs": arguments}
    if accelerator.compose_driver:
        data["hostRequirements"] = {"gpu": True}
    settings = {"python.defaultInterpreterPath": f"{ENVIRONMENT}/bin/python"}
    data |= {
        "remoteUser": "provision",
        "customizations": {"vscode": {"extensions": ["ms-python.python"], "settings": settings}},
    }
    return f"// {origin(lock, lock_file_name)}\n{json.dumps(data, indent=2)}\n"
