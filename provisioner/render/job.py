"""The Job of Kubernetes that runs the container of a lock, for its output `kubernetes` and for validations on a cluster.

Source: kubernetes.io/docs/concepts/workloads/controllers/job (pod failure policy: stable since 1.31), 2026-11-23.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provisioner.render.container import only_workload
from provisioner.render.entry_guard import REFUSED, has_guard
from provisioner.render.pod import manifest

if TYPE_CHECKING:
    from provisioner.lock.format.model import Lock
    from provisioner.render.container import Workload


def job_of(lock: Lock) -> dict[str, Any]:
    """Return the Job of a lock as a document; raises `UnrenderableError` unless the lock is for one kind of container."""
    return manifest(lock, only_workload(lock, "a Job"), job)


def job(workload: Workload, template: dict[str, Any]) -> dict[str, Any]:
    """Return a Job, which fails at once where the image's entry point refuses the node."""
    spec: dict[str, Any] = {"backoffLimit": 2}
    if any(has_guard(stack) for stack in workload.stacks):
        refused = {"containerName": workload.name, "operator": "In", "values": [REFUSED]}
        spec["podFailurePolicy"] = {"rules": [{"action": "FailJob", "onExitCodes": refused}]}
    pod = template["spec"] | {"restartPolicy": "Never"}
    containers = [{**one, "args": ["python", "--version"]} for one in pod["containers"]]
    spec["template"] = {**template, "spec": {**pod, "containers": containers}}
    return {"apiVersion": "batch/v1", "kind": "Job", "spec": spec}
