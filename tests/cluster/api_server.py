"""An API server of Kubernetes on loopback, as far as Jobs go, with a kubelet that runs the containers of pods on this machine.

Written to the published API (kubernetes.io/docs/reference/generated/kubernetes-api/v1.32): paths, kinds, field and label
selectors, and status objects of errors. `moments` say what happens to a pod: there is no scheduler, registry or kubelet.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import urllib.parse
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

Document = dict[str, Any]

RUN = "run"
"""The moment in which the container of the pod runs, on this machine, and ends."""

_DISCOVERY: dict[str, Document] = {
    "/version": {"major": "1", "minor": "32", "gitVersion": "v1.32.3", "platform": "linux/amd64"},
    "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
    "/apis": {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [
            {
                "name": "batch",
                "versions": [{"groupVersion": "batch/v1", "version": "v1"}],
                "preferredVersion": {"groupVersion": "batch/v1", "version": "v1"},
            }
        ],
    },
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": ["get", "list"]},
            {"name": "pods/log", "singularName": "", "namespaced": True, "kind": "Pod", "verbs": ["get"]},
            {"name": "events", "singularName": "event", "namespaced": True, "kind": "Event", "verbs": ["get", "list"]},
        ],
    },
    "/apis/batch/v1": {
        "kind": "APIResourceList",
        "groupVersion": "batch/v1",
        "resources": [
            {
                "name": "jobs",
                "singularName": "job",
                "namespaced": True,
                "kind": "Job",
                "verbs": ["create", "delete", "get", "list"],
            }
        ],
    },
}


@dataclass
class Cluster:
    """What the server has, and what it does: `moments` are the states that the pod is seen in, one after the other.

    A moment is `RUN`, the status of a pod, or None for no pod; the last one stays. `forbids` are verbs and resources, such as
    `create jobs`, that the user may not use; `environment` is that of the image. `deleted` is when somebody deleted the
    pod, "" for one that stays.
    """

    moments: Sequence[Document | str | None] = (RUN,)
    forbids: Mapping[str, str] = field(default_factory=dict)
    job_status: Document = field(default_factory=dict)
    events: Sequence[Document] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    job: Document | None = None
    created: list[Document] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    log: bytes = b""
    deleted: str = ""
    last_pod: Document = field(default_factory=dict)
    _seen: int = 0
    _ended: Document | None = None

    def pod(self) -> Document | None:
        """The pod of the job at this moment, which is the next one when it is asked for again."""
        if self.job is None:
            return None
        moment = self.moments[min(self._seen, len(self.moments) - 1)]
        self._seen += 1
        status = self._run() if moment == RUN else moment
        if status is None:
            return None
        name = self.job["metadata"]["name"]
        metadata = {"name": f"{name}-x7k2p", "namespace": "lab", "labels": {"job-name": name}}
        metadata |= {"deletionTimestamp": self.deleted} if self.deleted else {}
        spec = self.job["spec"]["template"]["spec"]
        self.last_pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}
        return self.last_pod

    def _run(self) -> Document:
        """Run the container as a kubelet does: `command` for the entry point, `$(NAME)` expanded, both streams in one log."""
        if self._ended is None:
            assert self.job is not None
            (container,) = self.job["spec"]["template"]["spec"]["containers"]
            command = [expanded(one, self.environment) for one in container["command"]]
            finished = subprocess.run(
                command,
                env={**os.environ, **self.environment},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )
            self.log = finished.stdout
            code = finished.returncode if finished.returncode >= 0 else 128 - finished.returncode
            self._ended = ended(code, "Completed" if code == 0 else "Error")
        return self._ended


def status(phase: str, *, state: Document | None = None, **more: object) -> Document:
    """The status of a pod with one container."""
    image = "registry.example/team/trial@sha256:" + "a" * 64
    containers = [{"name": "trial", "imageID": image if phase != "Pending" else "", "state": state}] if state else []
    return {"phase": phase, "containerStatuses": containers, **more}


def ended(code: int, reason: str, **more: object) -> Document:
    """The status of a pod whose container has ended."""
    phase = "Succeeded" if code == 0 else "Failed"
    return status(phase, state={"terminated": {"exitCode": code, "reason": reason, **more}})


def waiting(reason: str, message: str = "") -> Document:
    """The status of a pod whose container waits."""
    return status("Pending", state={"waiting": {"reason": reason, "message": message}})


def unscheduled(message: str) -> Document:
    """The status of a pod that no node takes."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return status("Pending", conditions=[condition])


def expanded(text: str, environment: Mapping[str, str]) -> str:
    """What Kubernetes makes of an argument (third_party/forked/golang/expansion: `$$` is `$`, `$(NAME)` a variable)."""

    def value(found: re.Match[str]) -> str:
        return "$" if found[0] == "$$" else environment.get(found[1], found[0])

    return re.sub(r"\$\$|\$\(([^)]*)\)", value, text)


class ApiServer:
    """Serve a cluster while used as a context manager."""

    def __init__(self, cluster: Cluster) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"cluster": cluster}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def write_configuration(self, path: Path) -> None:
        """Write the configuration of kubectl for this server, with a namespace."""
        address = f"http://127.0.0.1:{self._server.server_port}"
        context = {"cluster": "trial", "user": "trial", "namespace": "lab"}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "trial", "cluster": {"server": address}}],
            "contexts": [{"name": "trial", "context": context}],
            "users": [{"name": "trial", "user": {}}],
            "current-context": "trial",
        }
        path.write_text(json.dumps(document))


class _Handler(BaseHTTPRequestHandler):
    cluster: ClassVar[Cluster]
    protocol_version = "HTTP/1.1"
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def do_GET(self) -> None:  # the name http.server calls
        url = urllib.parse.urlsplit(self.path)
        if url.path in _DISCOVERY:
            self._send(200, _DISCOVERY[url.path])
            return
        if url.path.endswith("/log"):
            if not self._refused("get pods/log"):
                self._send(200, self.cluster.log)
            return
        if "/namespaces/lab/pods/" in url.path:
            self._send(200, self.cluster.last_pod)
            return
        resource = url.path.rpartition("/")[2]
        if resource not in {"pods", "jobs", "events"} or not url.path.endswith(f"/namespaces/lab/{resource}"):
            self._send(404, _error(404, "NotFound", f"the server could not find {url.path}"))
            return
        if self._refused(f"list {resource}"):
            return
        query = dict(urllib.parse.parse_qsl(url.query))
        with self._lock:
            items = self._items(resource, query)
        version = "batch/v1" if resource == "jobs" else "v1"
        self._send(200, {"kind": "List", "apiVersion": version, "metadata": {"resourceVersion": "1"}, "items": items})

    def _items(self, resource: str, query: Mapping[str, str]) -> list[Document]:
        job = self.cluster.job
        name = "" if job is None else job["metadata"]["name"]
        if resource == "pods":
            assert query["labelSelector"].startswith("job-name=")
            pod = self.cluster.pod() if query["labelSelector"] == f"job-name={name}" else None
            return [] if pod is None else [pod]
        if resource == "jobs":
            assert query["fieldSelector"].startswith("metadata.name=")
            return [] if job is None else [{**job, "status": self.cluster.job_status}]
        assert query["fieldSelector"].startswith("involvedObject.name=")
        return list(self.cluster.events)

    def do_POST(self) -> None:  # the name http.server calls
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.path.partition("?")[0] == "/apis/batch/v1/namespaces/lab/jobs"
        if self._refused("create jobs"):
            return
        self.cluster.created.append(body)
        self.cluster.job = body
        self._send(201, body)

    def do_DELETE(self) -> None:  # the name http.server calls
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self._refused("delete jobs"):
            return
        name = self.path.partition("?")[0].rpartition("/")[2]
        if self.cluster.job is None or self.cluster.job["metadata"]["name"] != name:
            self._send(404, _error(404, "NotFound", f'jobs.batch "{name}" not found'))
            return
        self.cluster.job = None
        self._send(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})

    def _refused(self, what: str) -> bool:
        self.cluster.requests.append(what)
        if what not in self.cluster.forbids:
            return False
        self._send(403, _error(403, "Forbidden", self.cluster.forbids[what]))
        return True

    def _send(self, code: int, body: Document | bytes) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "text/plain" if isinstance(body, bytes) else "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        """Say nothing."""


def _error(code: int, reason: str, message: str) -> Document:
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code}
