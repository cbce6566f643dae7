"""Render a lock as a Job for Kubernetes.

Source: kubernetes.io/docs/concepts/workloads/controllers/job (pod failure policy: stable since 1.31), 2026-11-23.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provisioner.render.entry_guard import REFUSED, has_guard
from provisioner.render.pod import manifests

if TYPE_CHECKING:
    from provisioner.lock.format.model import Lock
    from provisioner.render.container import Workload


def render(lock: Lock, lock_file_name: str) -> str:
    """Return the Job of a lock; raises `UnrenderableError` when the lock is not for containers."""
    return manifests(lock, lock_file_name, what="a Job", controller=_job)


def _job(workload: Workload, template: dict[str, Any]) -> dict[str, Any]:
    """Return a Job, which fails at once where the image's entry point refuses the node."""
    spec: dict[str, Any] = {"backoffLimit": 2}
    if any(has_guard(stack) for stack in workload.stacks):
        refused = {"containerName": workload.name, "operator": "In", "values": [REFUSED]}
        spec["podFailurePolicy"] = {"rules": [{"action": "FailJob", "onExitCodes": refused}]}
    pod = template["spec"] | {"restartPolicy": "Never"}
    containers = [{**one, "args": ["python", "--version"]} for one in pod["containers"]]
    spec["template"] = {**template, "spec": {**pod, "containers": containers}}
    return {"apiVersion": "batch/v1", "kind": "Job", "spec": spec}
