"""Build images with a Docker or Podman client, and distinguish a lock that does not build from an interrupted build.

A Docker client must support BuildKit: through the buildx plug-in, or built in, as before version 23. The classic builder lacks
`RUN --mount`, and the engine's HTTP API cannot pass secrets to a build.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct

from provisioner.validate.engine import BuildFailedError, Built, EngineError
from provisioner.validate.process import stream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.errors import ProvisionError
    from provisioner.validate.engine import BuildRequest, Finished, Log

SHOWN_LINES = 12
"""The number of output lines of a failed build, the last ones, that its error shows."""

_OUT_OF_REACH = re.compile(
    r"Temporary failure in name resolution|Temporary failure resolving|Name or service not known|Could not resolve|dial tcp"
    r"|i/o timeout|Failed to establish a new connection|ConnectTimeoutError|ReadTimeoutError|Connection refused"
    r"|Connection reset|dns error|error sending request|tcp connect error|TLS handshake|CERTIFICATE_VERIFY_FAILED"
    r"|invalid peer certificate|Cannot connect to the Docker daemon"
    # A login that is missing, and an index or registry that answers nobody now: of uv, of pip, and of registries.
    r"|(?:401|403|407|429|50[0-4]) (?:Client Error|Server Error|Unauthorized|Forbidden|Proxy Authentication|Too Many Requests"
    r"|Internal Server|Bad Gateway|Service Unavailable|Gateway Time)|Missing credentials|pull access denied"
    r"|unauthorized: |authentication required|insufficient_scope|toomanyrequests",
    re.IGNORECASE,
)
"""Error messages of builds that lack network, a login, trusted certificates or engine: nothing is said about the lock."""

_FULL = re.compile(r"no space left on device", re.IGNORECASE)

_DAMAGED_CACHE = re.compile(
    r"ERROR: (?:.*: )?(?:layer does not exist|failed to prepare \S+: open \S+/overlay2/\S+: no such file or directory)"
)
"""Error messages of a BuildKit whose cache names layers that are gone, as after images were removed while others were built.

https://github.com/moby/moby/issues/36573 and https://github.com/moby/moby/issues/41595 are open; measured with Docker 20.10.
"""

NO_EMULATOR = "exec format error"
"""The kernel's words for a program of an architecture that this machine neither has nor emulates."""

EMULATION = (
    "validate on a machine of that platform, or let this one emulate it: apt-get install qemu-user-static binfmt-support"
)

_CAUSES = (
    re.compile(r"(?:[\d.]+ )?\s*╰─▶ (.+)"),
    re.compile(r"(?:[\d.]+ )?\s*(?:Caused by|cause): (.+)"),
    re.compile(r"(?:[\d.]+ )?(?:error|E|fatal): (.+)"),
    re.compile(r"(?:[\d.]+ )?ERROR: (?!executor failed running|process )(.+)"),
)
"""How the programs of a build state why they failed, the deepest cause first: uv's last arrow, its causes; apt, git; pip."""

_UNSOLVED = re.compile(r"(?:ERROR: )?failed to solve(?: with frontend \S+)?: (?:failed to create LLB definition: )?(.+)")
"""How BuildKit states that no step could begin, as for an instruction that does not exist."""

_PRINTED = re.compile(r"[\d.]+ (.*\S.*)")
"""A line that a step has printed, after its time in seconds."""

_KILLED = re.compile(r"ERROR: .*exit code: 137\b")
"""A step that the kernel has killed (128 + SIGKILL)."""


_PROXIES = tuple(name for one in ("http", "https", "ftp", "all", "no") for name in (f"{one}_proxy", f"{one}_proxy".upper()))
"""The build arguments that BuildKit knows without being declared, and turns into variables of each step."""


class CommandBuilder(Struct, frozen=True):
    """A program that builds images and has the options of `docker build`.

    `command` is the program with its first arguments, `method` the name of this way to build in reports. `environment`
    is added to that of this process.
    """

    method: str
    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()

    def build(self, request: BuildRequest, log: Log) -> Built:
        """Build the image and return its id; raises `BuildFailedError` or `EngineError` with the last lines of the output.

        A build that fails for a damaged cache is done again without the cache.
        """
        with tempfile.TemporaryDirectory(prefix="provision-build-") as scratch:
            identity = Path(scratch) / "image-id"
            finished = self._run(request, identity, log)
            if is_cache_damaged(finished):
                log("the engine's build cache names layers that are gone: building again without the cache")
                finished = self._run(request, identity, log, "--no-cache")
            if finished.exit_code != 0:
                raise build_failure(request.tag, _output(finished))
            return Built(image=identity.read_text(encoding="utf-8").strip(), tag=request.tag, method=self.method)

    def _run(self, request: BuildRequest, identity: Path, log: Log, *options: str) -> Finished:
        command = [*self.command, *options, *self._arguments(request, identity)]
        return stream(command, log, environment=dict(self.environment))

    def _arguments(self, request: BuildRequest, identity: Path) -> list[str]:
        options = ["--file", str(request.dockerfile), "--tag", request.tag, "--iidfile", str(identity)]
        if request.platform:
            options += ["--platform", request.platform]
        if request.network:
            options += ["--network", request.network]
        for name, path in sorted(request.secrets.items()):
            options += ["--secret", f"id={name},src={path}"]
        return [*options, str(request.context)]


def is_cache_damaged(finished: Finished) -> bool:
    """Return whether a build failed because the cache of its engine names layers that are gone."""
    return finished.exit_code != 0 and any(_DAMAGED_CACHE.search(line) for line in _output(finished)[-60:])


def _output(finished: Finished) -> list[str]:
    return (finished.stderr + finished.stdout).splitlines()


def proxy_arguments(network: str) -> tuple[str, ...]:
    """Return the options that lend a Docker build the proxies of this process, as Podman does without being asked.

    The values stay out of the command line, and BuildKit out of layers and history (docs.docker.com/build/building/variables,
    2026-11-23: proxy arguments). A proxy on a loopback address is another machine's in a step that lacks this one's network.
    """
    names = [name for name in _PROXIES if os.environ.get(name)]
    if network != "host" and any(_is_loopback(os.environ[name]) for name in names if name.lower() != "no_proxy"):
        return ()
    return tuple(word for name in names for word in ("--build-arg", name))


def _is_loopback(url: str) -> bool:
    host = urlsplit(url if "//" in url else f"//{url}").hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")


def build_failure(tag: str, lines: list[str]) -> ProvisionError:
    """Return the error of a failed build.

    `EngineError`, which gives no verdict, if the output shows that network, certificates, disk, engine or emulation failed;
    else `BuildFailedError`, a negative verdict. `lines` are the output of the build.
    """
    printed = [line.rstrip() for line in lines if line.strip()]
    last = failed_step(printed)[-SHOWN_LINES:]
    if any(_DAMAGED_CACHE.search(line) for line in printed[-60:]):
        prune = ("remove the engine's build cache: docker builder prune --all",)
        return EngineError(f"the engine lost layers while it built `{tag}`", causes=last, hints=prune)
    if any(NO_EMULATOR in line for line in printed[-60:]):
        reason = f"the engine of `{tag}` does not run programs of the image's architecture: {NO_EMULATOR}"
        return EngineError(reason, causes=last, hints=(EMULATION,))
    if any(_FULL.search(line) for line in printed[-60:]):
        room = ("docker system df shows what its disk holds, and docker system prune removes what nobody uses any more",)
        return EngineError(f"the engine has no space left to build `{tag}`", causes=last, hints=room)
    sign = next((match for line in printed[-60:] if (match := _OUT_OF_REACH.search(line))), None)
    if sign is not None:
        hints = (
            "a build does not see this machine's loopback addresses or proxies: --build-network host lends it this network",
            "certificates are taken from SSL_CERT_FILE, REQUESTS_CA_BUNDLE or PIP_CERT, where one of them is set",
            "logins are taken from the file that NETRC names, or ~/.netrc; those of registries from the engine's client",
        )
        return EngineError(f"the build of `{tag}` could not reach what it needs: {sign[0]}", causes=last, hints=hints)
    if any(_KILLED.search(line) for line in printed[-60:]):
        memory = ("give the engine more memory, or build with less at a time",)
        return EngineError(f"a step of `{tag}` was killed, most often for want of memory", causes=last, hints=memory)
    reason = reason_of(failed_step(printed))
    return BuildFailedError(f"the image `{tag}` does not build from its lock", causes=((reason,) if reason else ()) + last)


def reason_of(lines: tuple[str, ...]) -> str:
    """Return the one line of a failed step that says why it failed: that of a known form, else the last that the step printed.

    "" if it printed nothing.
    """
    for pattern in (*_CAUSES, _UNSOLVED, _PRINTED):
        found = [match[1].strip() for line in lines if (match := pattern.fullmatch(line))]
        if found:
            return found[-1]
    return ""


def failed_step(lines: list[str]) -> tuple[str, ...]:
    """Return the output lines of the failed step, without its number; all lines if BuildKit does not name the step.

    `#7 0.412 ERROR: …` belongs to step 7, and `#7 ERROR: executor failed running […]` says that it failed.
    """
    failed = [match[1] for line in lines if (match := re.match(r"#(\d+) ERROR: ", line))]
    if not failed:
        return tuple(lines)
    mark = f"#{failed[-1]} "
    own = (line.removeprefix(mark) for line in lines if line.startswith(mark))
    return tuple(line for line in own if not line.startswith(("sha256:", "transferring ")))


def docker_builder(host: str, path: str | None = None) -> CommandBuilder:
    """Return the best client on `path` (default: PATH) for BuildKit with the engine at `host`, "" for that of its own context.

    Raises `EngineError` when there is none, with the clients that were found.
    """
    clients = tuple(_programs("docker", os.environ.get("PATH", "") if path is None else path))
    at_host = (("DOCKER_HOST", host),) if host else ()
    for client in clients:
        version = _version((client, "buildx", "version"), at_host)
        if version:
            command = (client, "buildx", "build", "--load", "--progress=plain")
            return CommandBuilder(f"docker buildx {version}", command, at_host)
    versions = {client: _version((client, "--version"), at_host) for client in clients}
    for client, version in versions.items():
        if version and int(version.partition(".")[0]) < 23:
            environment = (*at_host, ("DOCKER_BUILDKIT", "1"))
            return CommandBuilder(f"docker {version} with BuildKit", (client, "build", "--progress=plain"), environment)
    found = tuple(
        f"`{client}` {version or 'of an unknown version'} has no buildx plug-in" for client, version in versions.items()
    )
    raise EngineError(
        "no Docker client here can build with BuildKit",
        causes=found or ("there is no `docker` on PATH",),
        hints=(
            "install the buildx plug-in: apt-get install docker-buildx, or docker-buildx-plugin from Docker's own packages",
            "or build without a Docker client: --engine podman",
        ),
    )


def _programs(name: str, path: str) -> Iterator[str]:
    """Yield every program called `name` on a search path, in its order; links to a file found before are skipped."""
    seen = set()
    for folder in path.split(os.pathsep):
        found = shutil.which(name, path=folder) if folder else None
        if found is not None and (real := os.path.realpath(found)) not in seen:
            seen.add(real)
            yield found


def _version(command: tuple[str, ...], environment: tuple[tuple[str, str], ...]) -> str:
    """Return the first version number that a program prints: `20.10.24` of `Docker version 20.10.24+dfsg1, build 297e128`.

    "" when the program fails or prints none.
    """
    try:
        finished = stream(command, timeout=30, environment=dict(environment))
    except EngineError:
        return ""
    match = re.search(r"\d+\.\d+(?:\.\d+)*", finished.stdout) if finished.exit_code == 0 else None
    return match[0] if match else ""
