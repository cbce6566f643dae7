"""Apptainer, used through its command line: builds the rendered definition file, or runs an image that is there."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from provisioner.document import FileError, file_sha256
from provisioner.errors import UsageError
from provisioner.validate.apptainer_command import NOT_STARTED, exec_command
from provisioner.validate.builder import build_failure
from provisioner.validate.engine import Built, EngineError, Image, pull_failure
from provisioner.validate.local_engine import ARCHITECTURES, this_platform
from provisioner.validate.process import stream

if TYPE_CHECKING:
    from provisioner.errors import ProvisionError
    from provisioner.validate.engine import BuildRequest, Finished, Log, RunRequest

_ARCHITECTURE_LABEL = "org.label-schema.build-arch"
"""The label by which Apptainer states the architecture of an image."""


_STEP_FAILED = re.compile(r"^FATAL:.*%post", re.MULTILINE)
"""How Apptainer says that the script of a definition file failed: what else fails, such as a mount, is this machine's."""


class ApptainerEngine:
    """The `apptainer` found on PATH; an image is a file, and its id the hash of the file."""

    name = "apptainer"
    recipe = "apptainer"
    has_entry_points = False
    node_class = ""

    def __init__(self, program: str, version: str) -> None:
        self._program = program
        self._files: dict[str, Path] = {}
        self._pulled: tempfile.TemporaryDirectory[str] | None = None
        self.version = version
        self.platform = this_platform()

    @classmethod
    def connect(cls, program: str = "apptainer") -> ApptainerEngine:
        """Read Apptainer's version; raises `EngineError` when it is missing or does not work."""
        hints = ("install Apptainer, or use --engine docker or podman",)
        try:
            finished = stream((program, "version"), timeout=60)
        except EngineError as error:
            raise EngineError(f"no Apptainer answers: {error.message}", hints=hints) from None
        if finished.exit_code != 0:
            causes = tuple(finished.stderr.strip().splitlines()[-3:])
            raise EngineError("Apptainer does not work on this machine", causes=causes, hints=hints)
        return cls(program, finished.stdout.strip())

    def build(self, request: BuildRequest, log: Log) -> Built:
        """Build the definition file `request.dockerfile` in its context, into a new folder.

        Raises `BuildFailedError`, and `EngineError` for what says nothing about the lock.
        """
        self._require_own(request)
        folder = Path(tempfile.mkdtemp(prefix="provision-apptainer-"))
        file = folder / f"{request.tag.rpartition('/')[2].replace(':', '-')}.sif"
        # Apptainer itself takes user namespaces for a user who is not root (--fakeroot is then implied, from 1.1 on).
        command = (self._program, "build", str(file), str(request.dockerfile))
        try:
            finished = stream(command, log, folder=request.context)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        if finished.exit_code != 0 or not file.is_file():
            shutil.rmtree(folder, ignore_errors=True)
            raise _build_failure(request.tag, (finished.stdout + finished.stderr).splitlines())
        log(f"built {file}")
        return Built(image=self._identity(file), tag=str(file), method=f"apptainer build {self.version}")

    def _require_own(self, request: BuildRequest) -> None:
        """Raise `UsageError` for what Apptainer cannot do: another platform, and another network than the machine's."""
        if request.platform not in {"", self.platform}:
            raise UsageError(f"Apptainer builds for {self.platform} here, not for {request.platform}")
        if request.network not in {"", "host"}:
            raise UsageError(f"Apptainer builds with the network of this machine, not with --build-network {request.network}")

    def find(self, reference: str, log: Log) -> Built:
        """Return the image of a file, or of a reference such as `docker://…`, which is pulled into Apptainer's cache.

        Raises `EngineError` for an image that cannot be had.
        """
        if "://" not in reference:
            return Built(image=self._identity(Path(reference).absolute()))
        log(f"pulling {reference}")
        self._pulled = self._pulled or tempfile.TemporaryDirectory(prefix="provision-apptainer-")
        file = Path(self._pulled.name) / f"{len(self._files)}.sif"
        finished = stream((self._program, "pull", str(file), reference), log)
        if finished.exit_code != 0:
            raise pull_failure(reference, " ".join(finished.stderr.strip().splitlines()[-1:]))
        return Built(image=self._identity(file))

    def _identity(self, file: Path) -> str:
        try:
            identity = f"sha256:{file_sha256(file)}"
        except FileError as error:
            raise EngineError(error.message, hints=("name an image file, or a reference such as docker://…",)) from None
        self._files[identity] = file
        return identity

    def run(self, request: RunRequest, log: Log) -> Finished:
        """Run the command of `request` in an image; raises `EngineError` when Apptainer cannot start a container."""
        command = exec_command(self._program, str(self._files[request.image]), request)
        chosen = {"APPTAINERENV_CUDA_VISIBLE_DEVICES": request.gpus} if request.gpus[:1].isdigit() else {}
        finished = stream(command, log, timeout=request.timeout, environment=chosen)
        if finished.exit_code == NOT_STARTED and not finished.stdout.strip() and "FATAL" in finished.stderr:
            causes = tuple(finished.stderr.strip().splitlines()[-3:])
            raise EngineError("Apptainer cannot start a container of the image", causes=causes)
        return finished

    def inspect(self, image: str) -> Image | None:
        """Return the labels and the platform of an image; None if they cannot be read."""
        finished = stream((self._program, "inspect", "--json", "--labels", str(self._files[image])), timeout=120)
        try:
            labels = json.loads(finished.stdout)["data"]["attributes"]["labels"] if finished.exit_code == 0 else None
        except (ValueError, KeyError, TypeError):
            labels = None
        if not isinstance(labels, dict):
            return None
        architecture = str(labels.get(_ARCHITECTURE_LABEL, ""))
        platform = f"linux/{ARCHITECTURES.get(architecture, architecture)}" if architecture else ""
        return Image(identity=image, platform=platform, labels={str(name): str(value) for name, value in labels.items()})

    def remove(self, image: str) -> None:
        """Remove an image file that was built, with its folder."""
        shutil.rmtree(Path(image).parent, ignore_errors=True)


def _build_failure(tag: str, lines: list[str]) -> ProvisionError:
    """Return the error of a failed build: `BuildFailedError` if the installation failed for a reason that is the lock's."""
    error = build_failure(tag, lines)
    if _STEP_FAILED.search("\n".join(lines)) or isinstance(error, EngineError):
        return error
    return EngineError(f"Apptainer cannot build `{tag}` on this machine", causes=tuple(lines[-3:]))
