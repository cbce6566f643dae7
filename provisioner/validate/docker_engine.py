"""The Docker engine: docker-py for queries and containers, a Docker client with BuildKit for builds."""

from __future__ import annotations

import os
import socket
import threading
from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.accelerators import ACCELERATORS
from provisioner.validate.builder import docker_builder, proxy_arguments
from provisioner.validate.engine import (
    WITH_DEVICE_FILES,
    EngineError,
    Finished,
    HostRefusedError,
    NoDeviceError,
    find_or_pull,
    image_of,
    pull_failure,
)
from provisioner.validate.process import TIMED_OUT
from provisioner.validate.ssh_tunnel import SshTunnel

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.context import Context
    from docker.models.containers import Container
    from docker.tls import TLSConfig
    from docker.types import DeviceRequest

    from provisioner.errors import ProvisionError
    from provisioner.validate.engine import BuildRequest, Built, Image, Log, RunRequest

_SHARED_MEMORY = "1g"
"""The size of `/dev/shm`: NCCL and data loaders share memory there, and Docker's default of 64 MB is too small for either."""

_CDI_KIND = ACCELERATORS["cuda"].cdi_kind
_DEVICE_FILES = tuple(path for row in WITH_DEVICE_FILES.values() for path in row.device_files)
_DEVICE_SIGNS = ("device driver", "nvidia", "cdi", "gathering device information", *_DEVICE_FILES)


class DockerEngine:
    """A Docker engine at the address that DOCKER_HOST or a Docker context names, on this machine or another one."""

    name = "docker"
    recipe = "dockerfile"
    has_entry_points = True
    node_class = ""

    def __init__(self, client: DockerClient, host: str, version: str, platform: str) -> None:
        self._client = client
        self._host = host
        self.version = version
        self.platform = platform

    @classmethod
    def connect(cls) -> DockerEngine:
        """Connect to the engine, read its version and platform; raises `EngineError` with the address that did not answer."""
        from docker import DockerClient
        from docker.errors import DockerException

        host, tls = _address()
        try:
            _reach(host)
            if host.startswith("ssh://"):
                client = DockerClient(base_url=SshTunnel(host).address)
            else:
                client = DockerClient(base_url=host, tls=tls)
            answer = client.version()
        except (DockerException, OSError) as error:
            raise _no_answer(host, error) from None
        # A client finds the certificates of a context by the context alone.
        is_own = "DOCKER_HOST" not in os.environ and bool(tls)
        return cls(client, "" if is_own else host, str(answer["Version"]), f"{answer['Os']}/{answer['Arch']}")

    def build(self, request: BuildRequest, log: Log) -> Built:
        """Build with BuildKit and the proxies of this process.

        Raises `BuildFailedError`, and `EngineError` also when no client supports BuildKit.
        """
        builder = docker_builder(self._host)
        return replace(builder, command=(*builder.command, *proxy_arguments(request.network))).build(request, log)

    def run(self, request: RunRequest, log: Log) -> Finished:
        """Run one container, pass on its stderr, and remove it; raises `NoDeviceError`, `HostRefusedError` or `EngineError`."""
        from docker.errors import DockerException

        try:
            container = self._create(request)
            try:
                container.start()
                return _follow(container, request.timeout, log)
            finally:
                container.remove(force=True)
        except (DockerException, OSError) as error:
            raise run_failure(request, _reason(error)) from None

    def _create(self, request: RunRequest) -> Container:
        from docker.types import LogConfig

        accelerator = WITH_DEVICE_FILES.get(request.gpus)
        return self._client.containers.create(
            request.image,
            entrypoint=[request.command[0]],
            command=list(request.command[1:]),
            detach=True,
            device_requests=self._device_requests(request.gpus),
            devices=list(accelerator.device_files) if accelerator is not None else [],
            group_add=list(accelerator.device_groups) if accelerator is not None else [],
            environment=dict(request.environment),
            volumes={str(path): {"bind": inside, "mode": "ro"} for path, inside in request.mounts.items()},
            network_mode=request.network,
            shm_size=_SHARED_MEMORY,
            # The engine's default may be a log driver whose logs cannot be read back.
            log_config=LogConfig(type=LogConfig.types.JSON),
        )

    def _device_requests(self, gpus: str) -> list[DeviceRequest]:
        """Return the device requests of `--gpus`, through the Container Device Interface if the engine supports nothing else.

        Empty without GPUs, or for an accelerator that needs device files only.
        """
        from docker.types import DeviceRequest

        if not gpus or gpus in WITH_DEVICE_FILES:
            return []
        if self._has_only_cdi():
            return [DeviceRequest(driver="cdi", device_ids=[f"{_CDI_KIND}={one}" for one in gpus.split(",")])]
        capabilities = [["gpu", "compute", "utility"]]
        if gpus == "all":
            return [DeviceRequest(count=-1, capabilities=capabilities)]
        return [DeviceRequest(device_ids=gpus.split(","), capabilities=capabilities)]

    def _has_only_cdi(self) -> bool:
        information = self._client.info()
        found = (str(device.get("ID", "")) for device in information.get("DiscoveredDevices") or ())
        return "nvidia" not in information.get("Runtimes", {}) and any(one.startswith(_CDI_KIND) for one in found)

    def inspect(self, image: str) -> Image | None:
        """Return the configuration of an image, None if it is not there; raises `EngineError`."""
        from docker.errors import DockerException, ImageNotFound

        try:
            return image_of(self._client.images.get(image).attrs)
        except ImageNotFound:
            return None
        except (DockerException, OSError) as error:
            raise EngineError(f"image `{image}` cannot be inspected: {_reason(error)}") from None

    def find(self, reference: str, log: Log) -> Built:
        """Return an image that was built before, pulled if it is not here; raises `EngineError`."""
        return find_or_pull(self, reference, log)

    def pull(self, reference: str) -> None:
        """Pull an image, with the logins of the Docker client; raises `EngineError` with the registry's answer."""
        from docker.errors import DockerException

        try:
            self._client.images.pull(reference)
        except (DockerException, OSError) as error:
            raise pull_failure(reference, _reason(error)) from None

    def remove(self, image: str) -> None:
        """Remove an image and its tags.

        An image that is missing already, or in use by another container, is no error. Raises `EngineError` otherwise.
        """
        from docker.errors import APIError, DockerException

        try:
            self._client.images.remove(image, force=True)
        except APIError as error:
            if error.status_code not in {404, 409}:
                raise EngineError(f"image `{image}` cannot be removed: {_reason(error)}") from None
        except (DockerException, OSError) as error:
            raise EngineError(f"image `{image}` cannot be removed: {_reason(error)}") from None


def _address() -> tuple[str, TLSConfig | bool]:
    """Return the engine's address, and how it is proved: DOCKER_CONTEXT, else DOCKER_HOST, else the current context.

    Without a context, the default socket. This is the order of the Docker client (docs.docker.com/reference/cli/docker,
    environment variables, 2026-11-23). Raises `EngineError` for a context that does not exist.
    """
    from docker import ContextAPI
    from docker.errors import DockerException
    from docker.utils import kwargs_from_env

    name = os.environ.get("DOCKER_CONTEXT")
    if not name and os.environ.get("DOCKER_HOST"):
        found = kwargs_from_env()
        return os.environ["DOCKER_HOST"], found.get("tls", False)
    try:
        context = ContextAPI.get_context(name) if name else ContextAPI.get_current_context()
    except (DockerException, OSError):
        context = None
    if context is None and name:
        raise EngineError(f"there is no Docker context `{name}`", hints=("`docker context ls` lists them",))
    if context is None:
        return "unix:///var/run/docker.sock", False
    # docker-py has its own URL scheme for the default socket; the command line accepts only unix://.
    return str(context.Host).replace("http+unix://", "unix://"), _tls_of(context)


def _tls_of(context: Context) -> TLSConfig | bool:
    """Return the certificates of a context, False if it has none; the types of docker-py say that it always has."""
    found: TLSConfig | None = context.TLSConfig
    return found or False


def _reach(host: str) -> None:
    """Connect to the engine's socket and close it again; raises the plain `OSError` when the engine cannot be reached.

    docker-py would wrap that error in four others and leak a socket.
    """
    if not host.startswith("unix://"):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(10)
        connection.connect(host.removeprefix("unix://"))


def _no_answer(host: str, error: Exception) -> EngineError:
    reason = getattr(error, "strerror", None) or _reason(error)
    remedy = "start Docker, or name another engine with DOCKER_HOST or --engine podman"
    if isinstance(error, PermissionError):
        remedy = "the socket is not yours to use: join the group `docker`, or run rootless Docker or --engine podman"
    hints = (remedy, "on this machine itself, without containers: --engine local")
    return EngineError(f"no Docker engine answers at `{host}`", causes=(reason,), hints=hints)


def _follow(container: Container, timeout: float, log: Log) -> Finished:
    """Pass stderr on to `log` until the container ends, then return its exit code and both complete streams.

    The container is killed after `timeout` seconds.
    """
    has_expired = threading.Event()

    def expire() -> None:
        from docker.errors import APIError

        has_expired.set()
        try:
            container.kill()
        except APIError:
            return  # the container ended by itself meanwhile

    timer = threading.Timer(timeout, expire)
    timer.daemon = True
    timer.start()
    try:
        rest = b""
        for chunk in container.logs(stdout=False, stderr=True, stream=True, follow=True):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                log(line.decode(errors="replace"))
        code = int(container.wait()["StatusCode"])
    finally:
        timer.cancel()
    stdout = container.logs(stdout=True, stderr=False).decode(errors="replace")
    stderr = container.logs(stdout=False, stderr=True).decode(errors="replace")
    return Finished(exit_code=TIMED_OUT if has_expired.is_set() else code, stdout=stdout, stderr=stderr)


def run_failure(request: RunRequest, reason: str) -> ProvisionError:
    """Return the error of a container that did not start, chosen by the engine's error message `reason`."""
    lowered = reason.lower()
    if "requirement error" in lowered or "unsatisfied condition" in lowered:
        return HostRefusedError(f"the container runtime refuses to start `{request.image}` on this host", causes=(reason,))
    if request.gpus and any(sign in lowered for sign in _DEVICE_SIGNS):
        hints = (
            "install the NVIDIA Container Toolkit and run: nvidia-ctk runtime configure --runtime=docker",
            "`provision doctor` checks this machine layer by layer",
        )
        return NoDeviceError(f"the engine cannot give a container GPUs ({request.gpus})", causes=(reason,), hints=hints)
    return EngineError(f"a container of `{request.image}` cannot be run", causes=(reason,))


def _reason(error: Exception) -> str:
    """Return the error message of the engine in one line."""
    explanation = getattr(error, "explanation", None)
    text = explanation.decode(errors="replace") if isinstance(explanation, bytes) else str(explanation or error)
    return " ".join(text.split())
