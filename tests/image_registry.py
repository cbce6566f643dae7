"""A real registry on loopback (Debian's docker-registry), and images of nothing but a configuration in it."""

from __future__ import annotations

import hashlib
import json
import shutil
import socket
import subprocess
import time
import urllib.request
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PROGRAM = "docker-registry"
INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"


def is_installed() -> bool:
    return shutil.which(PROGRAM) is not None


class ImageRegistry:
    """A registry of its own on a free port, with its storage in `folder`; a context manager."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Self:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.host = f"127.0.0.1:{free.getsockname()[1]}"
        config = {
            "version": 0.1,
            "log": {"level": "error"},
            "storage": {"filesystem": {"rootdirectory": str(self._folder / "storage")}},
            "http": {"addr": self.host},
        }
        path = self._folder / "registry.yml"
        path.write_text(json.dumps(config), encoding="utf-8")
        self._process = subprocess.Popen([PROGRAM, "serve", str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            try:
                self._send("GET", "/v2/")
            except OSError:
                time.sleep(0.05)
            else:
                return self
        self.__exit__()
        raise RuntimeError(f"{PROGRAM} does not answer")

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(10)

    def push(self, repository: str, tag: str, environments: Mapping[str, Mapping[str, str]]) -> str:
        """Push an image for each platform (`linux/amd64`) with these variables, tag their index; returns its digest."""
        entries = []
        for platform, environment in environments.items():
            system, _, machine = platform.partition("/")
            pairs = [f"{name}={value}" for name, value in environment.items()]
            content = {"os": system, "architecture": machine, "config": {"Env": pairs}, "rootfs": {"type": "layers"}}
            config = self._blob(repository, json.dumps(content).encode())
            manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": {"mediaType": CONFIG, **config}, "layers": []}
            body = json.dumps(manifest).encode()
            digest = self._manifest(repository, _digest(body), MANIFEST, body)
            described = {"mediaType": MANIFEST, "digest": digest, "size": len(body)}
            entries.append({**described, "platform": {"os": system, "architecture": machine}})
        index = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).encode()
        return self._manifest(repository, tag, INDEX, index)

    def _blob(self, repository: str, content: bytes) -> dict[str, object]:
        place = self._send("POST", f"/v2/{repository}/blobs/uploads/")
        sign = "&" if "?" in place else "?"
        self._send("PUT", f"{place}{sign}digest={_digest(content)}", content, "application/octet-stream")
        return {"digest": _digest(content), "size": len(content)}

    def _manifest(self, repository: str, name: str, kind: str, content: bytes) -> str:
        self._send("PUT", f"/v2/{repository}/manifests/{name}", content, kind)
        return _digest(content)

    def _send(self, method: str, path: str, content: bytes | None = None, kind: str = "") -> str:
        """Send a request; returns the place that the answer names, "" if none."""
        url = path if path.startswith("http") else f"http://{self.host}{path}"
        headers = {"Content-Type": kind} if kind else {}
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        request = urllib.request.Request(url, data=content, method=method, headers=headers)
        with opener.open(request, timeout=10) as answer:
            return answer.headers.get("Location") or ""


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
