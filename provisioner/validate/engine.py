"""The protocol of engines that build images and run containers, with its requests, results and errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field

from provisioner.accelerators import ACCELERATORS, Accelerator
from provisioner.errors import RefusedError, UnavailableError

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.lock.format.model import Lock

WITH_DEVICE_FILES: dict[str, Accelerator] = {row.name: row for row in ACCELERATORS.values() if row.device_files}
"""Accelerators whose GPUs a container gets as plain device files of the host."""

Log = Callable[[str], None]
"""A function called with each line of progress output as soon as it is printed."""


class EngineError(UnavailableError):
    """Raised when the engine is out of reach or fails, so that no verdict about the lock is possible."""

    code = "engine"


class NoDeviceError(EngineError):
    """Raised when the engine cannot give a container the requested GPUs."""

    code = "no-device"


class HostRefusedError(RefusedError):
    """Raised when the container runtime does not start an image, because the host does not meet its NVIDIA_REQUIRE_CUDA."""

    code = "host-refused"


class BuildFailedError(RefusedError):
    """Raised when the image of a lock does not build; `causes` are the last output lines of the build."""

    code = "build-failed"


def pull_failure(reference: str, reason: str) -> EngineError:
    """Return the error of an image that cannot be had, which says nothing about its lock; `reason` is the engine's message."""
    hints = (
        "check that the engine reaches its registry, and log in if that asks for it, as `docker login` or `podman login` does",
        "build the image here: leave out --image",
    )
    return EngineError(f"image `{reference}` is not here and cannot be pulled", causes=(reason,), hints=hints)


class BuildRequest(Struct, frozen=True, kw_only=True):
    """A request to build the image of the file `dockerfile` with the folder `context`, and to tag it as `tag`.

    `secrets` maps ids of BuildKit secrets to files, which are mounted in single steps and never become part of a layer.
    `network` is "" for the engine's default, `host` (to reach indexes on loopback addresses) or `none`. `platform` is "" for
    the engine's own.
    """

    context: Path
    dockerfile: Path
    tag: str
    platform: str = ""
    secrets: Mapping[str, Path] = field(default_factory=dict)
    network: str = ""


class Built(Struct, frozen=True, kw_only=True):
    """A finished build: the image's id (`sha256:…`), its tag, and the name of the builder; all "" if nothing was built.

    `digests` are those of an image that registries have (`NAME@sha256:…`).
    """

    image: str = ""
    tag: str = ""
    method: str = ""
    digests: tuple[str, ...] = ()


class Image(Struct, frozen=True, kw_only=True):
    """The configuration of an image in an engine. `platform` is such as `linux/amd64`, `user` "" for root.

    `digests` are those that the image has in registries (`NAME@sha256:…`), () before it was pushed or pulled.
    """

    identity: str
    platform: str
    user: str = ""
    entrypoint: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    digests: tuple[str, ...] = ()


def image_of(answer: Mapping[str, Any]) -> Image:
    """Return the image that an engine describes, in the JSON that `docker image inspect` and `podman image inspect` share."""
    config = answer.get("Config") or {}
    return Image(
        identity=f"sha256:{str(answer['Id']).removeprefix('sha256:')}",
        platform=f"{answer.get('Os') or 'linux'}/{answer.get('Architecture', '')}",
        user=config.get("User") or "",
        entrypoint=tuple(config.get("Entrypoint") or ()),
        variables=dict(text.partition("=")[::2] for text in config.get("Env") or ()),
        labels=dict(config.get("Labels") or {}),
        digests=tuple(sorted(answer.get("RepoDigests") or ())),
    )


class RunRequest(Struct, frozen=True, kw_only=True):
    """A request to run `command` (program first) in a container of `image`, in place of its entry point.

    `gpus` is "" for none, `all`, device numbers (`0,1`), or an accelerator of `WITH_DEVICE_FILES`. `mounts` maps host folders
    to container folders, read-only. `timeout` is in seconds. `lock` is what is validated, narrowed to one platform: a cluster's
    engine renders its job from it.
    """

    image: str
    command: tuple[str, ...]
    gpus: str = ""
    mounts: Mapping[Path, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 600.0
    network: str = "none"
    lock: Lock | None = None


class Finished(Struct, frozen=True, kw_only=True):
    """The exit code of a finished container and its output.

    The exit code is 128 + n after signal n, and -1 after a timeout. `image` is the id of the image that ran, if only a run
    tells, else "".
    """

    exit_code: int
    stdout: str
    stderr: str
    image: str = ""


class Engine(Protocol):
    """Builds images and runs containers; every method raises `EngineError` when the engine is out of reach."""

    @property
    def name(self) -> str:
        """The name that a user gives with `--engine`."""

    @property
    def recipe(self) -> str:
        """The output format that it builds images from, such as `dockerfile`; "" if it only runs what is there."""

    @property
    def has_entry_points(self) -> bool:
        """Whether its images have the entry point that checks the host, as those built from a Dockerfile have."""

    @property
    def node_class(self) -> str:
        """The name of the class of nodes on which it runs; "" without a cluster, or for any node."""

    @property
    def version(self) -> str:
        """The engine's version, in its own spelling."""

    @property
    def platform(self) -> str:
        """The platform of its containers, such as `linux/amd64`; "" if it has nodes of several."""

    def build(self, request: BuildRequest, log: Log) -> Built:
        """Build an image; raises `BuildFailedError` when a step fails."""

    def run(self, request: RunRequest, log: Log) -> Finished:
        """Run a container until it ends, and pass its stderr on line by line.

        Raises `NoDeviceError` when `gpus` are unavailable, `HostRefusedError` when the container runtime rejects the host, and
        `NotRunError` when a cluster does not run the job.
        """

    def inspect(self, image: str) -> Image | None:
        """Return the configuration of an image; None if it is not there, or if the engine has no images."""

    def find(self, reference: str, log: Log) -> Built:
        """Return an image that was built before, fetched if need be; raises `UsageError` if the engine has no images."""

    def remove(self, image: str) -> None:
        """Remove an image; a missing image is no error."""


class ImageStore(Protocol):
    """An engine that keeps images of registries."""

    def inspect(self, image: str) -> Image | None:
        """Return the configuration of an image; None if it is not there."""

    def pull(self, reference: str) -> None:
        """Pull an image from its registry; raises `EngineError`."""


def find_or_pull(store: ImageStore, reference: str, log: Log) -> Built:
    """Return an image that was built before, pulled if the engine does not have it; raises `EngineError`."""
    image = store.inspect(reference)
    if image is None:
        log(f"pulling {reference}")
        store.pull(reference)
        image = store.inspect(reference)
    if image is None:
        raise EngineError(f"image `{reference}` is not here although it was pulled")
    return Built(image=image.identity, digests=image.digests)
