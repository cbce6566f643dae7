"""The protocol of engines that build and run containers, its values and its errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from provisioner.accelerators import ACCELERATORS, Accelerator
from provisioner.errors import RefusedError, UnavailableError

if TYPE_CHECKING:
    from pathlib import Path

WITH_DEVICE_FILES: dict[str, Accelerator] = {row.name: row for row in ACCELERATORS.values() if row.device_files}
"""Accelerators that a container is given as plain device files of the host."""

Log = Callable[[str], None]
"""Called with each line of progress as it comes."""


class EngineError(UnavailableError):
    """The engine is out of reach, or cannot do its part; nothing is known about the lock."""

    code = "engine"


class NoDeviceError(EngineError):
    """The engine cannot give a container the requested GPUs."""

    code = "no-device"


class HostRefusedError(RefusedError):
    """The container runtime refuses to start the image on this host, which does not meet its NVIDIA_REQUIRE_CUDA."""

    code = "host-refused"


class BuildFailedError(RefusedError):
    """The image does not build from its lock; `causes` are the last lines of the build."""

    code = "build-failed"


class BuildRequest(Struct, frozen=True, kw_only=True):
    """Build `dockerfile` (a path) over the files below `context` and tag the image.

    `secrets` maps BuildKit secret ids to files: they are mounted for single steps and never reach a layer. `network` is
    "" for the engine's default, or `host` (loopback indexes) or `none`.
    """

    context: Path
    dockerfile: Path
    tag: str
    platform: str = ""
    secrets: Mapping[str, Path] = field(default_factory=dict)
    network: str = ""


class Built(Struct, frozen=True, kw_only=True):
    """A finished build: the image's content id (`sha256:…`), its tag, and the name of its builder. All "" without a build."""

    image: str = ""
    tag: str = ""
    method: str = ""


class RunRequest(Struct, frozen=True, kw_only=True):
    """Run `command` (program first) in `image`, without its entrypoint.

    `gpus` is "" for none, `all`, device numbers (`0,1`), or an accelerator of `WITH_DEVICE_FILES`. `mounts` maps host folders
    to container folders, read-only. `timeout` is in seconds.
    """

    image: str
    command: tuple[str, ...]
    gpus: str = ""
    mounts: Mapping[Path, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 600.0
    network: str = "none"


class Finished(Struct, frozen=True, kw_only=True):
    """A container that ended: its exit code (128 + n after signal n; -1 when the time ran out) and its output."""

    exit_code: int
    stdout: str
    stderr: str


class Engine(Protocol):
    """Builds and runs. Every method raises `EngineError` when the engine is out of reach."""

    @property
    def name(self) -> str:
        """`docker`, `podman` or `local`."""

    @property
    def version(self) -> str:
        """The engine's own version, as it spells it."""

    @property
    def platform(self) -> str:
        """Where its containers run: `linux/amd64` and the like."""

    def build(self, request: BuildRequest, log: Log) -> Built:
        """Build an image; raises `BuildFailedError` when a step fails."""

    def run(self, request: RunRequest, log: Log) -> Finished:
        """Run to the end, passing stderr on line by line.

        Raises `NoDeviceError` when `gpus` cannot be had, `HostRefusedError` when the runtime refuses the image.
        """

    def remove(self, image: str) -> None:
        """Remove an image; one that is gone already is no error."""
