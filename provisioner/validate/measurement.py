"""The facts that the smoke script measures inside a container and prints as JSON."""

from __future__ import annotations

from importlib.resources import files
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from provisioner.errors import ProvisionError


class UnreadableMeasurementError(ProvisionError):
    """The smoke script printed something that is not a measurement."""

    code = "unreadable-measurement"
    exit_code = 3


class Measured(BaseModel):
    """Frozen and strict: the script and its reader come from one release, so an unknown key is a defect."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Torch(Measured):
    """PyTorch as imported. `cudnn`, `nccl` and `compiled_cuda` are the libraries' own numbers (90100, 22005, 12010)."""

    version: str
    cuda: str | None
    hip: str | None
    cudnn: int | None
    nccl: int | None
    arch_flags: tuple[str, ...] | None
    compiled_cuda: int | None
    unresolved: tuple[str, ...] | None


class Management(Measured):
    """Facts from NVML: the driver's release and the names of its devices."""

    driver: str
    names: tuple[str, ...]


class DriverInterface(Measured):
    """Facts from libcuda: its CUDA version (12040 is 12.4) and the number of devices it can open."""

    level: int
    count: int


class Sustained(Measured):
    """Some seconds of load. `memory_checked` is in bytes, `seconds` in seconds."""

    stable: bool
    memory_held: bool
    memory_checked: int
    seconds: float
    teraflops: float
    gigabytes_per_second: float


class Device(Measured):
    """One accelerator and the outcomes of its probes. None: the level does not include the probe, or the probe failed."""

    device: str
    name: str
    compute_capability: str
    gfx: str
    memory: int
    matmul: bool | None = None
    float16: bool | None = None
    bfloat16: bool | None = None
    convolution: bool | None = None
    sustained: Sustained | None = None


class Measurement(Measured):
    """All facts of one run. `errors` maps a probe to the error it raised, `timing` to its seconds."""

    schema_version: Annotated[Literal[1], Field(alias="schema")]
    level: int
    python: str
    machine: str
    glibc: str | None
    distributions: dict[str, str] | None
    torch: Torch | None
    cpu_matmul: bool | None = None
    nvml: Management | None = None
    cuda_driver: DriverInterface | None = None
    devices: tuple[Device, ...] = ()
    all_reduce: bool | None = None
    errors: dict[str, str]
    timing: dict[str, float]

    def error(self, *probes: str) -> str:
        """Return the error of the first of these probes that raised one, "" where none did."""
        return next((self.errors[probe] for probe in probes if probe in self.errors), "")


def script() -> str:
    """Return the source of the smoke script, for `python -c`."""
    return (files("provisioner.validate") / "checks" / "smoke.py").read_text(encoding="utf-8")


def parse_measurement(printed: str) -> Measurement:
    """Read the measurement from the script's last line; raises `UnreadableMeasurementError` with the line where it is none."""
    lines = [line for line in printed.splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    try:
        return Measurement.model_validate_json(last)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the line"
        causes = (f"{where}: {first['msg']}", f"it printed: {last[:200]}" if last else "it printed nothing")
        raise UnreadableMeasurementError("the smoke test printed no measurement", causes=causes) from None
