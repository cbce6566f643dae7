"""Locks and measurements for the tests of `validate`: what was really measured, and the lock that says the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.json import decode

from provisioner.lock.format.model import Lock, LockedFile, LockedPackage, LockedStack
from provisioner.validate.measurement import Measurement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from provisioner.evidence.report import FieldReport

CUDA = "torch-2.4.1-cu121"
"""Measured with the wheels of the default index, on a machine without a GPU, at level 4."""

CPU = "torch-2.13.0-cpu"

_MEASUREMENTS = Path(__file__).parent / "measurements"
_BESIDE = {"pip", "setuptools"}


def measured(name: str) -> Measurement:
    """A recorded measurement."""
    return decode((_MEASUREMENTS / f"{name}.json").read_bytes(), type=Measurement)


def lock_of(
    packages: Mapping[str, str],
    *,
    components: Mapping[str, str] | None = None,
    accelerator: str = "cpu",
    arch_list: tuple[str, ...] = (),
    host_requirements: Mapping[str, str] | None = None,
    platform: str = "linux/amd64",
) -> Lock:
    """A lock that holds these packages and components, for one platform; its spec names no package."""
    stack = LockedStack(
        platform=platform,
        accelerator=accelerator,
        components={"python": "3.11", **(components or {})},
        arch_list=arch_list,
        host_requirements=host_requirements or {},
    )
    return Lock(
        name="trial",
        requires_python=">=3.11,<3.12",
        environments=(),
        packages=tuple(_package(name, version, platform) for name, version in sorted(packages.items())),
        stacks=(stack,),
        tool_version="1.0",
        matrix_digest=f"sha256:{'1' * 64}",
        spec_digest=f"sha256:{'2' * 64}",
        asked={"requires.python": "3.11"},
    )


def _package(name: str, version: str, platform: str) -> LockedPackage:
    filename = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    file = LockedFile(filename=filename, sha256="3" * 64, url=f"https://example.org/{filename}")
    return LockedPackage(name=name, version=version, platforms=(platform,), wheels=(file,))


def failed(fields: Iterable[FieldReport]) -> tuple[FieldReport, ...]:
    """The fields that are not a yes."""
    return tuple(field for field in fields if field.verdict != "yes")


def cuda_lock(**components: str) -> Lock:
    """The lock that `CUDA` was installed from; keywords change components."""
    installed = measured(CUDA).distributions or {}
    stack = {"pytorch": "2.4.1", "pytorch_build": "cu121", "cuda": "12.1.1", "cudnn": "9.1.0.70", "nccl": "2.20.5"}
    return lock_of(
        {name: version for name, version in installed.items() if name not in _BESIDE},
        components=stack | components,
        accelerator="cuda",
        arch_list=("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"),
        host_requirements={"driver": ">=525.60.13", "gpu": "9.0"},
    )


def cpu_lock(**components: str) -> Lock:
    """The lock that `CPU` was installed from; keywords change components."""
    installed = measured(CPU).distributions or {}
    stack = {"pytorch": "2.13.0", "pytorch_build": "cpu"}
    return lock_of({name: version for name, version in installed.items() if name not in _BESIDE}, components=stack | components)
