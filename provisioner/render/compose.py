"""Render a lock as a Compose file, with one service for each accelerator.

Source: the Compose specification, github.com/compose-spec/compose-spec (build.md, deploy.md: devices), 2026-11-23.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provisioner.accelerators import ACCELERATORS
from provisioner.document import yaml_text
from provisioner.render.container import SHARED_MEMORY, repository, tag, workloads
from provisioner.render.header import header

if TYPE_CHECKING:
    from provisioner.lock.format.model import Lock
    from provisioner.render.container import Workload


def render(lock: Lock, lock_file_name: str) -> str:
    """Return the Compose file of a lock, for the folder that has the lock and its Dockerfile.

    Raises `UnrenderableError` when the lock is not for containers.
    """
    found = workloads(lock, "a Compose file")
    image = f"${{REGISTRY-}}{repository(lock)}:{tag(lock)}"
    data = {"name": repository(lock), "services": {one.name: _service(one, image) for one in found}}
    use = (
        f"To build the image and run a program: docker compose run --build --rm {found[0].name} python train.py",
        "To push and pull it, name the registry with a slash at the end: REGISTRY=registry.example/team/ docker compose push",
    )
    return f"{header(lock, lock_file_name, *use)}\n\n{yaml_text(data)}"


def _service(workload: Workload, image: str) -> dict[str, Any]:
    service: dict[str, Any] = {"image": image, "build": {"context": ".", "dockerfile": "Dockerfile"}}
    if len(workload.platforms) == 1:
        service["platform"] = workload.platforms[0]
    service |= {"init": True, "shm_size": f"{SHARED_MEMORY}gb"}
    accelerator = ACCELERATORS[workload.accelerator]
    if accelerator.device_files:
        devices = [f"{path}:{path}" for path in accelerator.device_files]
        service |= {"devices": devices, "group_add": list(accelerator.device_groups)}
    elif accelerator.compose_driver:
        device = {"driver": accelerator.compose_driver, "count": "all", "capabilities": ["gpu"]}
        service["deploy"] = {"resources": {"reservations": {"devices": [device]}}}
    return service
