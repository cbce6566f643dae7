from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from provisioner.validate.buildkit import ApiBuilder, Progress, without_optional_secrets
from provisioner.validate.engine import BuildRequest, EngineError

if TYPE_CHECKING:
    from pathlib import Path


def varint(number: int) -> bytes:
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


def field(number: int, value: bytes | int) -> bytes:
    """One protobuf field, as protobuf.dev/programming-guides/encoding describes it."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def trace(*parts: bytes) -> dict[str, object]:
    return {"id": "moby.buildkit.trace", "aux": base64.b64encode(b"".join(parts)).decode()}


def test_a_trace_becomes_the_lines_of_plain_progress() -> None:
    progress = Progress()
    started = field(1, field(1, b"sha256:a") + field(3, b"[1/2] FROM debian") + field(5, b"time"))
    assert progress.read(trace(started)) == ["#1 [1/2] FROM debian"]
    said = field(3, field(1, b"sha256:b") + field(2, b"\x08\x01") + field(3, 1) + field(4, b"hello\nthere\n"))
    cached = field(1, field(1, b"sha256:a") + field(3, b"[1/2] FROM debian") + field(4, 1))
    assert progress.read(trace(said, cached)) == ["#2 hello", "#2 there", "#1 CACHED [1/2] FROM debian"]
    ended = field(1, field(1, b"sha256:b") + field(5, b"t") + field(6, b"t"))
    broken = field(1, field(1, b"sha256:b") + field(5, b"t") + field(6, b"t") + field(7, b"exit code: 3"))
    assert progress.read(trace(ended, broken)) == ["#2 DONE", "#2 ERROR: exit code: 3"]


def test_a_long_field_and_a_fixed_one_are_read_past() -> None:
    long_line = b"x" * 300
    fixed = varint(9 << 3 | 1) + b"12345678" + varint(8 << 3 | 5) + b"1234"
    said = field(3, field(1, b"sha256:a") + fixed + field(4, long_line))
    assert Progress().read(trace(field(2, b""), said)) == [f"#1 {'x' * 300}"]


def test_the_image_and_the_error_are_kept() -> None:
    progress = Progress()
    assert progress.read({"id": "moby.image.id", "aux": {"ID": "sha256:abc"}}) == []
    progress.read({"error": "exit code: 3", "errorDetail": {"message": "exit code: 3"}})
    assert (progress.image, progress.error) == ("sha256:abc", "ERROR: exit code: 3")


def test_optional_secrets_are_left_out_and_required_ones_are_kept() -> None:
    text = (
        "RUN --mount=type=cache,target=/c \\\n    --mount=type=secret,id=ca \\\n"
        "    --mount=type=secret,id=netrc \\\n    pip install x\n"
        "RUN --mount=type=secret,id=token,required=true cat /run/secrets/token\n"
    )
    assert without_optional_secrets(text) == (
        "RUN --mount=type=cache,target=/c \\\n    pip install x\n"
        "RUN --mount=type=secret,id=token,required=true cat /run/secrets/token\n"
    )


def test_a_build_that_needs_a_secret_is_refused_before_it_starts(tmp_path: Path) -> None:
    from docker import DockerClient

    client = DockerClient(base_url=f"unix://{tmp_path}/none.sock", version="1.41")
    dockerfile = tmp_path / "Dockerfile"
    dockerfile.write_text("FROM debian\nRUN --mount=type=secret,id=ca true\n")
    request = BuildRequest(context=tmp_path, dockerfile=dockerfile, tag="t:1", secrets={"ca": tmp_path / "ca.pem"})
    with pytest.raises(EngineError) as refused:
        ApiBuilder(client).build(request, lambda _: None)
    assert refused.value.message == "the build of `t:1` needs secrets (ca), which only a Docker client can hand to the engine"
    assert refused.value.exit_code == 3
    client.close()
