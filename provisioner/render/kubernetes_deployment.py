"""Render a lock as a Deployment for Kubernetes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provisioner.render.pod import manifests

if TYPE_CHECKING:
    from provisioner.lock.format.model import Lock
    from provisioner.render.container import Workload


def render(lock: Lock, lock_file_name: str) -> str:
    """Return the Deployment of a lock; raises `UnrenderableError` when the lock is not for containers."""
    return manifests(lock, lock_file_name, what="a Deployment", controller=_deployment)


def _deployment(workload: Workload, template: dict[str, Any]) -> dict[str, Any]:
    """Return a Deployment, which ends the old pod first: the GPUs of the new one may be those of the old one."""
    selector = {"matchLabels": {"app.kubernetes.io/name": workload.name}}
    containers = [{**one, "args": ["sleep", "infinity"]} for one in template["spec"]["containers"]]
    pod = {**template["spec"], "containers": containers}
    spec = {"replicas": 1, "strategy": {"type": "Recreate"}, "selector": selector, "template": {**template, "spec": pod}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}
