"""Render the pods of a lock, which its Job and its Deployment for Kubernetes share.

They meet the Pod Security Standard `restricted`. Source: kubernetes.io/docs/concepts/security/pod-security-standards,
2026-11-23.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provisioner.accelerators import ACCELERATORS
from provisioner.document import yaml_text
from provisioner.lock.format.file import lock_digest
from provisioner.node_labels import SYSTEM
from provisioner.render.container import HOME, SHARED_MEMORY, USER_ID, repository, tag, workloads
from provisioner.render.header import header
from provisioner.render.node_affinity import node_terms, unlabelled

if TYPE_CHECKING:
    from collections.abc import Callable

    from provisioner.lock.format.model import Lock
    from provisioner.render.container import Workload

    Controller = Callable[[Workload, dict[str, Any]], dict[str, Any]]
    """Returns the kind, apiVersion and spec of a manifest from a container's workload and its pod template."""

_VOLUMES = {"home": HOME, "scratch": "/tmp"}  # noqa: S108 - a path inside the container
"""The folders that a program may write to, by the names of their volumes."""


def manifests(lock: Lock, lock_file_name: str, *, what: str, controller: Controller) -> str:
    """Return the manifests of a lock as YAML, one for each accelerator; `what` names the output in the error.

    Raises `UnrenderableError` when the lock is not for containers, or requires more than labels of nodes can show.
    """
    found = workloads(lock, what)
    hidden = unlabelled(stack for one in found for stack in one.stacks)
    image = repository(lock)
    use = (
        f"Kustomize names the registry: kustomize edit set image {image}=registry.example/team/{image}",
        "Give the program as `args`: `command` would replace the image's entry point, which checks the host.",
        *([f"No label of a node shows that it meets: {'; '.join(hidden)}."] if hidden else []),
    )
    documents = "---\n".join(yaml_text(manifest(lock, one, controller)) for one in found)
    return f"{header(lock, lock_file_name, *use)}\n\n{documents}"


def manifest(lock: Lock, workload: Workload, controller: Controller) -> dict[str, Any]:
    """Return the manifest of one container of a lock as a document."""
    labels = {"app.kubernetes.io/name": workload.name, "app.kubernetes.io/managed-by": "provision"}
    annotations = {"dev.provision.lock.digest": lock_digest(lock)}
    template = {"metadata": {"labels": labels, "annotations": annotations}, "spec": _pod(lock, workload)}
    body = controller(workload, template)
    # A Job cannot be changed: another lock is another Job.
    name = f"{workload.name}-{tag(lock)}" if body["kind"] == "Job" else workload.name
    metadata = {"name": name, "labels": labels, "annotations": annotations}
    return {"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": metadata, "spec": body["spec"]}


def _pod(lock: Lock, workload: Workload) -> dict[str, Any]:
    resource = ACCELERATORS[workload.accelerator].node_resource
    mounts = [{"name": name, "mountPath": path} for name, path in {**_VOLUMES, "shared-memory": "/dev/shm"}.items()]  # noqa: S108
    container: dict[str, Any] = {"name": workload.name, "image": f"{repository(lock)}:{tag(lock)}"}
    if resource:
        container["resources"] = {"limits": {resource: 1}}
    container |= {
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": mounts,
    }
    pod: dict[str, Any] = {
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER_ID,
            "runAsGroup": USER_ID,
            "fsGroup": USER_ID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    } | _placement(workload)
    if resource:
        pod["tolerations"] = [{"key": resource, "operator": "Exists", "effect": "NoSchedule"}]
    shared = {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": f"{SHARED_MEMORY}Gi"}}
    return pod | {"containers": [container], "volumes": [*({"name": name, "emptyDir": {}} for name in _VOLUMES), shared]}


def _placement(workload: Workload) -> dict[str, Any]:
    """Return the fields of a pod that select its nodes; an expression of all terms with one value is a plain selector."""
    terms = node_terms(workload.stacks)
    shared = [one for one in terms[0] if len(one.values) == 1 and one.operator == "In" and all(one in term for term in terms)]
    selector = {SYSTEM: "linux"} | {one.key: one.values[0] for one in shared}
    rest = [{"matchExpressions": [one.document() for one in term if one not in shared]} for term in terms]
    if rest == [{"matchExpressions": []}]:
        return {"nodeSelector": selector}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": rest}}
    return {"nodeSelector": selector, "affinity": {"nodeAffinity": required}}
