"""Podman, used through its command line; it needs no daemon, and its builder supports `RUN --mount` too."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from provisioner.accelerators import ACCELERATORS
from provisioner.validate.builder import CommandBuilder
from provisioner.validate.docker_engine import run_failure
from provisioner.validate.engine import WITH_DEVICE_FILES, EngineError, find_or_pull, image_of, pull_failure
from provisioner.validate.process import stream

if TYPE_CHECKING:
    from provisioner.validate.engine import BuildRequest, Built, Finished, Image, Log, RunRequest

_ENGINE_FAILED = 125
"""podman-run(1), EXIT STATUS: "125 The error is with Podman itself"."""

_NOT_STARTED = (126, 127)
"""The exit codes for a command in the container that cannot be invoked, or cannot be found."""


_CACHE_FROM = (4, 4)
"""The first Podman whose builder is trusted with cached stages: `major, minor`.

Older ones mount a stage that came from the cache without what its steps made. Source: buildah issue 4375 (October 2022); seen
with Podman 4.3.1, which has Buildah 1.28.
"""


class PodmanEngine:
    """The `podman` found on PATH."""

    name = "podman"
    recipe = "dockerfile"
    has_entry_points = True
    node_class = ""

    def __init__(self, program: str, version: str, platform: str) -> None:
        self._program = program
        self.version = version
        self.platform = platform

    @classmethod
    def connect(cls, program: str = "podman") -> PodmanEngine:
        """Read Podman's version and platform; raises `EngineError` when it is missing or does not work on this machine."""
        hints = ("install Podman, or use --engine docker", "`podman info` says why it does not work")
        try:
            finished = stream((program, "info", "--format", "json"), timeout=60)
        except EngineError as error:
            raise EngineError(f"no Podman answers: {error.message}", hints=hints) from None
        if finished.exit_code != 0:
            causes = tuple(finished.stderr.strip().splitlines()[-3:])
            raise EngineError("Podman does not work on this machine", causes=causes, hints=hints)
        answer = json.loads(finished.stdout)
        host = answer["host"]
        return cls(program, str(answer["version"]["Version"]), f"{host['os']}/{host['arch']}")

    def build(self, request: BuildRequest, log: Log) -> Built:
        """Build with Buildah, which is part of Podman; raises `BuildFailedError` or `EngineError`."""
        major, minor = (int(part) for part in self.version.split(".")[:2])
        options = () if (major, minor) >= _CACHE_FROM else ("--no-cache",)
        builder = CommandBuilder(f"podman build {self.version}", (self._program, "build", *options))
        return builder.build(request, log)

    def run(self, request: RunRequest, log: Log) -> Finished:
        """Run one container and remove it; raises `NoDeviceError`, `HostRefusedError` or `EngineError`."""
        options = ["--rm", "--network", request.network, "--shm-size", "1g", "--entrypoint", request.command[0]]
        for path, inside in sorted(request.mounts.items()):
            options += ["--volume", f"{path}:{inside}:ro"]
        for name, value in sorted(request.environment.items()):
            options += ["--env", f"{name}={value}"]
        options += _device_options(request.gpus)
        command = [self._program, "run", *options, request.image, *request.command[1:]]
        finished = stream(command, log, timeout=request.timeout)
        if finished.exit_code == _ENGINE_FAILED or finished.exit_code in _NOT_STARTED:
            raise run_failure(request, " ".join(finished.stderr.split()))
        return finished

    def inspect(self, image: str) -> Image | None:
        """Return the configuration of an image, None if it is not there."""
        finished = stream((self._program, "image", "inspect", image), timeout=120)
        return image_of(json.loads(finished.stdout)[0]) if finished.exit_code == 0 else None

    def find(self, reference: str, log: Log) -> Built:
        """Return an image that was built before, pulled if it is not here; raises `EngineError`."""
        return find_or_pull(self, reference, log)

    def pull(self, reference: str) -> None:
        """Pull an image; raises `EngineError` with the last lines that Podman printed."""
        finished = stream((self._program, "pull", "--quiet", reference))
        if finished.exit_code != 0:
            raise pull_failure(reference, " ".join(finished.stderr.strip().splitlines()[-1:]))

    def remove(self, image: str) -> None:
        """Remove an image; a missing image is no error."""
        stream((self._program, "rmi", "--force", image), timeout=120)


def _device_options(gpus: str) -> list[str]:
    """Return the options for devices: through the Container Device Interface for NVIDIA, as plain device files for others."""
    accelerator = WITH_DEVICE_FILES.get(gpus)
    if accelerator is None:
        return [option for one in gpus.split(",") if one for option in ("--device", f"{ACCELERATORS['cuda'].cdi_kind}={one}")]
    files = [option for path in accelerator.device_files for option in ("--device", path)]
    return [*files, *(option for group in accelerator.device_groups for option in ("--group-add", group))]
