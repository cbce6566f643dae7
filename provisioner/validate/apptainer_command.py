"""The command line of Apptainer that runs a program in an image, for the engine and for jobs of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.accelerators import ACCELERATORS
from provisioner.validate.engine import WITH_DEVICE_FILES

if TYPE_CHECKING:
    from provisioner.validate.engine import RunRequest

DEVICE_VARIABLES = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
"""Variables by which a scheduler says which GPUs of a node are a job's: they pass into the container, as nothing else does."""

NOT_STARTED = 255
"""The exit code of Apptainer itself, when it cannot start a container (pkg/sylog: Fatalf)."""


def exec_command(program: str, image: str, request: RunRequest) -> tuple[str, ...]:
    """Return the command that runs that of `request` in the image file `image`.

    The environment, the home and the folders of the machine stay outside (`--cleanenv`, `--contain`), so that the image is
    measured and not what a user has. Source: apptainer.org/docs/user/main/environment_and_metadata.html, 2026-11-23.
    """
    accelerator = WITH_DEVICE_FILES.get(request.gpus) or (ACCELERATORS["cuda"] if request.gpus else None)
    option = (accelerator.apptainer_option,) if accelerator is not None else ()
    return (program, "exec", "--cleanenv", "--contain", *option, image, *request.command)
