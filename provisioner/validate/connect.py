"""Connect to the engine that a user names: of containers, of a cluster, or the local interpreter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.errors import UsageError
from provisioner.names import nearest
from provisioner.validate.node_class import NodeClass
from provisioner.validate.where import Where

if TYPE_CHECKING:
    from provisioner.validate.engine import Engine

ENGINES = ("docker", "podman", "apptainer", "kubernetes", "slurm", "local")
"""The names of engines, as `--engine` takes them."""

CLUSTERS = frozenset({"kubernetes", "slurm"})
"""Engines that choose a node for a job."""

_RECIPES = {"apptainer": "apptainer"}


def connect(name: str, where: Where | None = None, *, is_needed: bool = True) -> Engine:
    """Connect to the engine called `name`, and return it after it has answered.

    Where it is not needed, a stand-in that runs nothing is returned. Raises `UsageError` for an unknown name, and for an option
    that the engine does not have, and `EngineError` for an engine that does not answer.
    """
    where = where or Where()
    if name not in ENGINES:
        near = nearest(name, ENGINES)
        hints = ((f"did you mean `{near}`?",) if near else ()) + (f"choose one of {', '.join(ENGINES)}",)
        raise UsageError(f"`{name}` is not an engine", hints=hints)
    _require_options(name, where)
    if not is_needed:
        from provisioner.validate.local_engine import NoEngine

        return NoEngine(_RECIPES.get(name, "dockerfile"))
    return _connected(name, where)


def _connected(name: str, where: Where) -> Engine:
    if name == "docker":
        from provisioner.validate.docker_engine import DockerEngine

        return DockerEngine.connect()
    if name == "podman":
        from provisioner.validate.podman_engine import PodmanEngine

        return PodmanEngine.connect()
    if name == "apptainer":
        from provisioner.validate.apptainer_engine import ApptainerEngine

        return ApptainerEngine.connect()
    if name == "kubernetes":
        from provisioner.validate.kubernetes_engine import KubernetesEngine

        return KubernetesEngine.connect(where)
    if name == "slurm":
        from provisioner.validate.slurm_engine import SlurmEngine

        return SlurmEngine.connect(where)
    from provisioner.validate.local_engine import LocalEngine, active_python

    return LocalEngine.connect(active_python() if where.python is None else where.python)


def _require_options(name: str, where: Where) -> None:
    """Raise `UsageError` for an option that an engine does not have."""
    if where.python is not None and name not in {"local", "slurm"}:
        raise UsageError(f"--python names the interpreter of --engine local and slurm, not of --engine {name}")
    if where.modules and name != "slurm":
        raise UsageError(f"--module is for --engine slurm, not for --engine {name}")
    if where.nodes != NodeClass() and name not in CLUSTERS:
        raise UsageError(f"--node-class is for --engine slurm and kubernetes, not for --engine {name}")
