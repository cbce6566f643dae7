"""BuildKit through the engine's plain HTTP API (`POST /build?version=2`): no client, no plug-in, and no secrets.

Secrets travel over a gRPC session that only a client can hold: a step that mounts one fails here with `no active sessions`.
A build that hands over no secret loses nothing by leaving the optional mounts out, since the step would see no file either
way; one that needs a secret is refused before it starts. Progress arrives as base64 protobuf messages of
type `moby.buildkit.v1.StatusResponse` (github.com/moby/buildkit, api/services/control/control.proto): field 1 are vertexes,
field 2 statuses, field 3 log lines.
"""

from __future__ import annotations

import base64
import io
import json
import re
import tarfile
from typing import TYPE_CHECKING

from msgspec import Struct, field

from provisioner.validate.builder import build_failure
from provisioner.validate.engine import Built, EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from docker import DockerClient

    from provisioner.validate.engine import BuildRequest, Log

_DOCKERFILE = ".provision.Dockerfile"
_CHUNK = 1 << 16
_OPTIONAL_SECRET = re.compile(r"--mount=type=secret(?!\S*required=true)\S*[ \t]+(?:\\\n[ \t]*)?")


class ApiBuilder(Struct, frozen=True):
    """Builds through the HTTP API of the engine a client is connected to."""

    client: DockerClient
    method: str = "BuildKit over HTTP"

    def build(self, request: BuildRequest, log: Log) -> Built:
        """Build and return the image's id; raises `BuildFailedError`, or `EngineError` where secrets are asked for."""
        dockerfile = without_optional_secrets(request.dockerfile.read_text(encoding="utf-8"))
        if request.secrets or "type=secret" in dockerfile:
            wanted = ", ".join(sorted(request.secrets)) or "required by its Dockerfile"
            raise EngineError(
                f"the build of `{request.tag}` needs secrets ({wanted}), which only a Docker client can hand to the engine",
                causes=("no `docker` on PATH has buildx, and none is older than 23",),
                hints=("install the buildx plug-in: apt-get install docker-buildx, or docker-buildx-plugin from Docker",),
            )
        from docker.errors import DockerException

        try:
            return self._build(request, dockerfile, log)
        except (DockerException, OSError) as error:
            raise EngineError(f"the build of `{request.tag}` lost its engine: {error}") from None

    def _build(self, request: BuildRequest, dockerfile: str, log: Log) -> Built:
        api = self.client.api
        parameters = {"version": "2", "t": request.tag, "dockerfile": _DOCKERFILE, "rm": "1"}
        if request.platform:
            parameters["platform"] = request.platform
        if request.network:
            parameters["networkmode"] = request.network
        with io.BytesIO() as context:
            _pack(request.context, dockerfile, context)
            response = api.post(
                f"{api.base_url}/v{api.api_version}/build",
                params=parameters,
                data=context.getvalue(),
                headers={"Content-Type": "application/x-tar"},
                stream=True,
                timeout=None,
            )
        progress = Progress()
        for line in response.iter_lines(chunk_size=_CHUNK):
            for told in progress.read(json.loads(line) if line else {}):
                log(told)
        if progress.error or not progress.image:
            raise build_failure(request.tag, [*progress.lines, progress.error or "the engine sent no image"])
        return Built(image=progress.image, tag=request.tag, method=self.method)


def without_optional_secrets(dockerfile: str) -> str:
    """The same Dockerfile without secret mounts that are not `required`."""
    return _OPTIONAL_SECRET.sub("", dockerfile)


def _pack(context: Path, dockerfile: str, into: io.BytesIO) -> None:
    """Write the context as a tar whose bytes depend on the files alone, with the Dockerfile under a name of its own."""
    with tarfile.open(fileobj=into, mode="w") as archive:
        for path in sorted(context.rglob("*")):
            archive.add(path, arcname=path.relative_to(context).as_posix(), recursive=False, filter=_anonymous)
        content = dockerfile.encode()
        member = tarfile.TarInfo(_DOCKERFILE)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


class Progress(Struct):
    """What a build has said so far: the lines, the image's id once there is one, and the error that ended it."""

    lines: list[str] = field(default_factory=list)
    image: str = ""
    error: str = ""
    _numbers: dict[str, int] = field(default_factory=dict)

    def read(self, message: dict[str, object]) -> list[str]:
        """Take in one message of the stream and return the lines it adds, numbered as `--progress=plain` does."""
        added: list[str] = []
        if message.get("id") == "moby.buildkit.trace":
            added = list(self._trace(base64.b64decode(str(message["aux"]))))
        elif isinstance(aux := message.get("aux"), dict) and "ID" in aux:
            self.image = str(aux["ID"])
        elif "error" in message:
            self.error = f"ERROR: {message['error']}"
        elif message.get("message"):
            self.error = f"ERROR: {message['message']}"
        self.lines.extend(added)
        return added

    def _trace(self, content: bytes) -> Iterator[str]:
        for number, value in _fields(content):
            if not isinstance(value, bytes):
                continue
            parts = dict(_fields(value))
            if number == 1:
                yield from self._vertex(parts)
            elif number == 3:
                step = self._number(_text(parts.get(1)))
                for line in _text(parts.get(4)).splitlines():
                    yield f"#{step} {line}"

    def _vertex(self, parts: dict[int, int | bytes]) -> Iterator[str]:
        """Vertex: 1 digest, 3 name, 4 cached, 5 started, 6 completed, 7 error."""
        step = self._number(_text(parts.get(1)))
        if parts.get(7):
            yield f"#{step} ERROR: {_text(parts[7])}"
        elif parts.get(4) == 1:
            yield f"#{step} CACHED {_text(parts.get(3))}"
        elif 5 in parts and 6 not in parts:
            yield f"#{step} {_text(parts.get(3))}"
        elif 6 in parts:
            yield f"#{step} DONE"

    def _number(self, digest: str) -> int:
        return self._numbers.setdefault(digest, len(self._numbers) + 1)


def _text(value: int | bytes | None) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


def _fields(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of one protobuf message: (number, integer or bytes). Fixed-width values come as their bytes."""
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(content, at)
            yield key >> 3, value
            continue
        length = 8 if kind == 1 else 4
        if kind == 2:
            length, at = _varint(content, at)
        yield key >> 3, content[at : at + length]
        at += length


def _varint(content: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = content[at]
        result |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return result, at
