"""Kubernetes: the checks run as one Job on a class of nodes, in an image that a registry has.

kubectl speaks to the API server: it is where a cluster is used, and knows every way to log in. Sources, of 2026-11-23:
kubernetes.io/docs/concepts/workloads/controllers/job, kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle.
"""

from __future__ import annotations

import base64
import json
import math
import secrets
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from provisioner.errors import UsageError
from provisioner.render.job import job_of
from provisioner.validate.engine import Built, EngineError, Finished
from provisioner.validate.not_run import NotRun, NotRunError
from provisioner.validate.process import TIMED_OUT, stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from provisioner.validate.engine import BuildRequest, Image, Log, RunRequest
    from provisioner.validate.not_run import Kind
    from provisioner.validate.where import Where

_MARK = "provision-stdout "
"""Begins the lines of a log that hold what the checks print: a log mixes the two streams of a container, line by line."""

_RELAY = f"""\
import base64, subprocess, sys
try:
    process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
except OSError as error:
    sys.stderr.write("%s\\n" % error)
    sys.exit(127)
text = base64.b64encode(process.communicate()[0]).decode()
for start in range(0, len(text), 2000):
    sys.stdout.write("{_MARK}" + text[start:start + 2000] + "\\n")
    sys.stdout.flush()
sys.exit(process.returncode if process.returncode >= 0 else 128 - process.returncode)
"""
"""The program of a container: runs its arguments, and prints their output in short lines, which no other line can break."""

_KEPT = 600
"""Seconds after which Kubernetes itself removes a Job that has ended, if this program was killed before it could."""

_PAUSE, _LONGEST_PAUSE = 0.5, 5.0

_HOPELESS: dict[str, Kind] = {
    "ImagePullBackOff": "image-unavailable",
    "ErrImageNeverPull": "image-unavailable",
    "InvalidImageName": "image-unavailable",
    "CreateContainerConfigError": "not-started",
    "CreateContainerError": "not-started",
    "RunContainerError": "not-started",
    "CrashLoopBackOff": "not-started",
}
"""Reasons why a container waits that do not pass within minutes (kubernetes/kubernetes, pkg/kubelet/images/types.go)."""

_LOST: dict[str, Kind] = {
    "Evicted": "preempted",
    "Preempting": "preempted",
    "Terminated": "node-failed",
    "NodeShutdown": "node-failed",
    "NodeLost": "node-failed",
    "Shutdown": "node-failed",
    "NodeAffinity": "refused",
    "UnexpectedAdmissionError": "refused",
    "OutOfcpu": "refused",
    "OutOfmemory": "refused",
    "DeadlineExceeded": "time-limit",
}
"""Reasons of pods that failed as a whole (kubernetes/kubernetes, pkg/kubelet: eviction, nodeshutdown, lifecycle)."""

_NO_PROGRAM = (126, 127)
"""Exit codes for a program that cannot be run, or is not in the image."""

_CANCELLED = NotRun(kind="cancelled", reason="somebody deleted it")

_STARTED_NOTHING = frozenset({"ContainerCannotRun", "StartError", "CreateContainerError"})


class _Pod(Struct, frozen=True, kw_only=True):
    """The status of the pod of a Job, as far as it is read; `name` is "" while there is none, `word` its reason.

    `is_deleted` says that somebody deleted it, or its Job, and that it is about to go.
    """

    name: str = ""
    phase: str = ""
    word: str = ""
    message: str = ""
    image: str = ""
    waiting: Mapping[str, Any] | None = None
    terminated: Mapping[str, Any] | None = None
    conditions: tuple[Mapping[str, Any], ...] = ()
    is_deleted: bool = False

    def condition(self, kind: str, status: str) -> str:
        """Return reason and message of a condition that has a status, "" if it has not."""
        found = next((one for one in self.conditions if (one.get("type"), one.get("status")) == (kind, status)), None)
        return "" if found is None else _said(found.get("reason"), found.get("message")) or kind


class KubernetesEngine:
    """The cluster and the namespace of kubectl's current context, and one class of its nodes."""

    name = "kubernetes"
    recipe = ""
    has_entry_points = True
    platform = ""

    def __init__(self, version: str, where: Where) -> None:
        self.version = version
        self.node_class = where.nodes.name
        self._nodes = where.nodes
        self._wait = where.wait
        self._stop = where.stop

    @classmethod
    def connect(cls, where: Where) -> KubernetesEngine:
        """Ask the API server for its version; where and how long a Job may wait is said by `where`.

        Raises `EngineError` if no server answers, or kubectl is missing.
        """
        hints = ("`kubectl version` says why; KUBECONFIG and `kubectl config use-context` choose the cluster",)
        try:
            finished = stream(("kubectl", "version", "--output", "json", "--request-timeout", "20s"), timeout=60)
            version = str(json.loads(finished.stdout)["serverVersion"]["gitVersion"])
        except EngineError as error:
            raise EngineError(f"no Kubernetes answers: {error.message}", hints=("install kubectl",)) from None
        except (ValueError, KeyError, TypeError):
            raise EngineError("no Kubernetes API server answers", causes=_last_lines(finished), hints=hints) from None
        return cls(version, where)

    def build(self, request: BuildRequest, log: Log) -> Built:
        """Return an empty result: nothing is built on a cluster's nodes."""
        del request, log
        return Built()

    def find(self, reference: str, log: Log) -> Built:
        """Return the image that a node will pull; which one that is, is known from the run."""
        del log
        return Built(image=reference)

    def inspect(self, image: str) -> Image | None:
        """Return None: the API server does not know the configuration of images."""
        del image
        return None

    def remove(self, image: str) -> None:
        """Do nothing, because nothing was built."""

    def run(self, request: RunRequest, log: Log) -> Finished:
        """Run the command of `request` as a Job, and delete the Job with its pod whatever happens.

        Raises `NotRunError` when the Job does not run to its end, and `UsageError` for GPUs by number.
        """
        document = self._manifest(request)
        name = document["metadata"]["name"]
        with tempfile.TemporaryDirectory(prefix="provision-kubernetes-") as folder:
            file = Path(folder) / "job.json"
            file.write_text(json.dumps(document), encoding="utf-8")
            try:
                created = stream(("kubectl", "create", "--validate=false", "--filename", str(file)), timeout=120)
                if created.exit_code != 0:
                    raise NotRunError(NotRun(kind="refused", reason=" ".join(_last_lines(created))))
                log(f"job {name} of Kubernetes")
                return self._follow(name, request, log)
            finally:
                # Also after an interrupt while it was created; its pod goes with it.
                deleted = stream(("kubectl", "delete", "job", name, "--ignore-not-found", "--wait=false"), timeout=120)
                if deleted.exit_code != 0:
                    log(f"job {name} is still there: {' '.join(_last_lines(deleted))}")

    def _manifest(self, request: RunRequest) -> dict[str, Any]:
        """Return the Job of the lock with the checks as its program: one pod, without a second try."""
        if request.lock is None:
            raise EngineError("a Job is rendered from a lock")
        if request.gpus[:1].isdigit():
            raise UsageError(f"--gpus {request.gpus} names devices, and Kubernetes chooses those of a container")
        document = job_of(request.lock)
        document["metadata"]["name"] = f"{document['metadata']['name']}-{secrets.token_hex(3)}"
        spec, pod = document["spec"], document["spec"]["template"]["spec"]
        limit = math.ceil(self._wait + request.timeout) + 60
        spec |= {"backoffLimit": 0, "ttlSecondsAfterFinished": _KEPT, "activeDeadlineSeconds": limit}
        # The reason of a refusal is read from the log.
        spec.pop("podFailurePolicy", None)
        selector = pod.setdefault("nodeSelector", {})
        for label, value in self._nodes.selects.items():
            if selector.get(label, value) != value:
                raise UsageError(f"nodes with {label}={value} are not the lock's, which are for {label}={selector[label]}")
            selector[label] = value
        (container,) = pod["containers"]
        container["image"] = request.image
        container.pop("args", None)
        container["command"] = [_literal(one) for one in ("python", "-c", _RELAY, *request.command)]
        if not request.gpus:
            container.pop("resources", None)
        return document

    def _follow(self, name: str, request: RunRequest, log: Log) -> Finished:
        """Wait until the container of a Job has ended, and return its result."""
        begun = time.monotonic()
        started: float | None = None
        seen, pulled, pause, had_pod = "", "", _PAUSE, False
        while True:
            pod = _pod_of(name)
            now = _told(pod)
            if now != seen:
                log(f"job {name}: {now}")
                seen, pause = now, _PAUSE
            waiting = str((pod.waiting or {}).get("reason", ""))
            if waiting == "ErrImagePull":
                pulled = str((pod.waiting or {}).get("message", ""))
            if pod.terminated is not None:
                return _result(pod, log)
            if waiting in _HOPELESS:
                told = pulled or (pod.waiting or {}).get("message")
                raise NotRunError(NotRun(kind=_HOPELESS[waiting], reason=_said(waiting, told)))
            _require_alive(name, pod, had_pod=had_pod)
            had_pod = had_pod or bool(pod.name)
            if pod.phase == "Running" and started is None:
                started = time.monotonic()
            if started is None and time.monotonic() - begun > self._wait:
                raise NotRunError(NotRun(kind="pending", reason=f"{_why_pending(name, pod)}, after {self._wait:g} s"))
            if started is not None and time.monotonic() - started > request.timeout:
                printed, errors = _logs(pod.name)
                return Finished(exit_code=TIMED_OUT, stdout=printed, stderr=errors, image=pod.image)
            if self._stop.wait(pause):
                raise KeyboardInterrupt
            pause = min(pause * 1.5, _LONGEST_PAUSE)


def _literal(text: str) -> str:
    """Return an argument that Kubernetes hands on as `text`: `$(NAME)` would be a variable, and `$$` is a dollar.

    Source: kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables, 2026-11-23.
    """
    return text.replace("$", "$$")


def _pod_of(name: str) -> _Pod:
    """Return the newest pod of a Job; an empty one if there is none, or if the server does not answer now."""
    found = _get("pods", "--selector", f"job-name={name}") or ()
    pods = sorted(found, key=lambda one: str(one["metadata"].get("creationTimestamp", "")))
    if not pods:
        return _Pod()
    status = pods[-1].get("status", {})
    containers = status.get("containerStatuses") or [{}]
    state = containers[0].get("state") or {}
    return _Pod(
        name=str(pods[-1]["metadata"]["name"]),
        phase=str(status.get("phase", "")),
        word=str(status.get("reason", "")),
        message=str(status.get("message", "")),
        image=str(containers[0].get("imageID") or "").removeprefix("docker-pullable://"),
        waiting=state.get("waiting"),
        terminated=state.get("terminated"),
        conditions=tuple(status.get("conditions") or ()),
        is_deleted=bool(pods[-1]["metadata"].get("deletionTimestamp")),
    )


def _get(*words: str) -> list[dict[str, Any]] | None:
    """Return the objects that `kubectl get` lists, None if the server does not answer now.

    Raises `NotRunError` if the user may not list them.
    """
    finished = stream(("kubectl", "get", *words, "--output", "json", "--request-timeout", "30s"), timeout=60)
    if finished.exit_code != 0:
        if "(Forbidden)" in finished.stderr:
            raise NotRunError(NotRun(kind="refused", reason=" ".join(_last_lines(finished))))
        return None
    try:
        return list(json.loads(finished.stdout).get("items", ()))
    except ValueError:
        return None


def _told(pod: _Pod) -> str:
    """Return the state of a pod in a line of progress."""
    waiting = _said((pod.waiting or {}).get("reason"), "")
    return " ".join(filter(None, (pod.phase or "no pod yet", waiting or pod.condition("PodScheduled", "False"))))


def _require_alive(name: str, pod: _Pod, *, had_pod: bool) -> None:
    """Raise `NotRunError` for a pod that failed without its container, and for a Job that was ended or deleted."""
    disrupted = pod.condition("DisruptionTarget", "True")
    if pod.is_deleted and pod.phase == "Failed" and not (pod.word or disrupted):
        raise NotRunError(_CANCELLED)
    if pod.phase == "Failed" or disrupted:
        reason = _said(pod.word, pod.message) or disrupted
        raise NotRunError(NotRun(kind=_LOST.get(pod.word, "preempted" if disrupted else "no-output"), reason=reason))
    jobs = None if pod.name else _get("jobs", "--field-selector", f"metadata.name={name}")
    if had_pod and jobs == []:
        raise NotRunError(_CANCELLED)
    for one in jobs[0].get("status", {}).get("conditions") or () if jobs else ():
        if (one.get("type"), one.get("status")) == ("Failed", "True"):
            reason = _said(one.get("reason"), one.get("message"))
            raise NotRunError(NotRun(kind=_LOST.get(str(one.get("reason")), "cancelled"), reason=reason))


def _why_pending(name: str, pod: _Pod) -> str:
    """Return why a Job has not started: what the scheduler, the kubelet or the controller of Jobs says last."""
    if pod.name:
        waiting = pod.waiting or {}
        return pod.condition("PodScheduled", "False") or _said(waiting.get("reason"), waiting.get("message")) or pod.phase
    events = _get("events", "--field-selector", f"involvedObject.name={name}") or ()
    told = [_said(one.get("reason"), one.get("message")) for one in events if one.get("type") == "Warning"]
    return told[-1] if told else "no pod was made"


def _result(pod: _Pod, log: Log) -> Finished:
    """Return the result of a container that has ended; raises `NotRunError` if it ended from outside, or never began."""
    ended = pod.terminated or {}
    reason = str(ended.get("reason", ""))
    told = _said(reason, ended.get("message"))
    disrupted = pod.condition("DisruptionTarget", "True")
    if reason == "OOMKilled":
        raise NotRunError(NotRun(kind="out-of-memory", reason=told))
    if reason in _STARTED_NOTHING:
        raise NotRunError(NotRun(kind="not-started", reason=told))
    if ended.get("exitCode") != 0 and (pod.word in _LOST or disrupted):
        raise NotRunError(NotRun(kind=_LOST.get(pod.word, "preempted"), reason=_said(pod.word, pod.message) or disrupted))
    if ended.get("exitCode") != 0 and pod.is_deleted:
        raise NotRunError(_CANCELLED)
    printed, errors = _logs(pod.name)
    if pod.is_deleted and not printed.strip():  # kubelets before 1.22 say exit code 0 of a container that they ended
        raise NotRunError(_CANCELLED)
    for line in errors.splitlines():
        log(line)
    code = int(ended.get("exitCode", 1))
    if code in _NO_PROGRAM and not printed.strip():
        raise NotRunError(NotRun(kind="not-started", reason=_said(f"exit code {code}", " ".join(errors.splitlines()[-1:]))))
    return Finished(exit_code=code, stdout=printed, stderr=errors, image=pod.image)


def _logs(pod: str) -> tuple[str, str]:
    """Return what the checks of a pod printed, and the other lines; raises `NotRunError` if the node does not give them."""
    finished = stream(("kubectl", "logs", pod), timeout=120)
    if finished.exit_code != 0:
        raise NotRunError(NotRun(kind="no-output", reason=" ".join(_last_lines(finished))))
    return split_log(finished.stdout.splitlines())


def split_log(lines: Iterable[str]) -> tuple[str, str]:
    """Return the two streams of a log: what came through the relay, and everything else."""
    marked: list[str] = []
    others: list[str] = []
    for line in lines:
        (marked if line.startswith(_MARK) else others).append(line)
    try:
        printed = base64.b64decode("".join(line.removeprefix(_MARK) for line in marked), validate=True)
    except ValueError:
        raise NotRunError(NotRun(kind="no-output", reason="the log of the pod is not complete")) from None
    return printed.decode(errors="replace"), "".join(f"{line}\n" for line in others)


def _said(reason: object, message: object) -> str:
    """Return a reason and its message, as far as there are any."""
    return ": ".join(" ".join(str(one).split()) for one in (reason, message) if one)


def _last_lines(finished: Finished) -> tuple[str, ...]:
    return tuple((finished.stderr or finished.stdout).strip().splitlines()[-2:])
