"""The facts that the smoke script measures inside a container and prints as JSON."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, Literal

from msgspec import ValidationError, field

from provisioner.document import dotted
from provisioner.errors import ProvisionError
from provisioner.strict_model import StrictModel, mistakes, read


class UnreadableMeasurementError(ProvisionError):
    """Raised when the smoke script printed something that is not a measurement."""

    code = "unreadable-measurement"
    exit_code = 3


class Measured(StrictModel, frozen=True, kw_only=True):
    """A part of a measurement.

    An unknown key is an error: the script and this model are of the same release.
    """


class Torch(Measured, frozen=True, kw_only=True):
    """The facts of the imported PyTorch; None for a fact that a probe could not read.

    `cudnn`, `nccl` and `compiled_cuda` are the libraries' version numbers (90100, 22005, 12010), `arch_flags` the targets that
    the kernels were compiled for, and `unresolved` the shared libraries that the loader does not find.
    """

    version: str
    cuda: str | None
    hip: str | None
    cudnn: int | None
    nccl: int | None
    arch_flags: tuple[str, ...] | None
    compiled_cuda: int | None
    unresolved: tuple[str, ...] | None


class Management(Measured, frozen=True, kw_only=True):
    """Facts from NVML: the driver's release, the names of its devices, and the hashes of their UUIDs ("" for one without)."""

    driver: str
    names: tuple[str, ...]
    identities: tuple[str, ...] = ()


class DriverInterface(Measured, frozen=True, kw_only=True):
    """Facts from libcuda: its CUDA version as a number (12040 is 12.4), and the number of devices it can open."""

    level: int
    count: int


class Load(Measured, frozen=True, kw_only=True):
    """The results of a load of some seconds on one device.

    `stable`: repeated computations had equal results. `memory_held`: a pattern in `memory_checked` bytes remained unchanged.
    `float32` and `float16` are TFLOP/s of matrix products, `memory_bandwidth` is in GB/s (10^9 bytes, read and written).
    """

    stable: bool
    memory_held: bool
    memory_checked: int
    seconds: float
    float32: float
    float16: float
    memory_bandwidth: float


class DeviceHealth(Measured, frozen=True, kw_only=True):
    """What the driver counted for one device, and its load; None for what it has no counter for, or what raised an error.

    `part` is `MIG` or `vGPU` if the device is a part of a GPU. `uncorrected` are memory errors that ECC did not correct since
    the driver was loaded, `repairs` what the memory waits for, `xids` the driver's errors during the load and `slowdowns` the
    reasons for which the GPU was slowed down.
    """

    device: str
    pci_device_id: str
    part: str
    load: Load | None
    uncorrected_before: int | None
    uncorrected: int | None
    repairs: tuple[str, ...] | None
    xids: tuple[int, ...] | None
    slowdowns: tuple[str, ...]
    errors: dict[str, str]


class Health(Measured, frozen=True, kw_only=True):
    """The health of all devices; `errors` are those that kept devices from being measured."""

    devices: tuple[DeviceHealth, ...]
    errors: dict[str, str]


class Device(Measured, frozen=True, kw_only=True):
    """One device and the results of its probes; None if the level excludes the probe, or the probe raised an error.

    `device` is PyTorch's name of the device (`cuda:0`), `memory` its size in bytes.
    """

    device: str
    name: str
    compute_capability: str
    gfx: str
    memory: int
    matmul: bool | None = None
    float16: bool | None = None
    bfloat16: bool | None = None
    attention: bool | None = None
    convolution: bool | None = None


class Libraries(Measured, frozen=True, kw_only=True):
    """The libraries of the `modules` extension modules of an environment, as the loader finds them.

    `unresolved`: those that the system lacks; `optional`: those of parts that need not be there; `shadowed`: those taken from
    outside although the environment has them; `preloaded`: those that every program loads first.
    """

    modules: int
    unresolved: tuple[str, ...]
    optional: tuple[str, ...]
    shadowed: tuple[str, ...]
    preloaded: tuple[str, ...]


class Content(Measured, frozen=True, kw_only=True):
    """What a file is that differs from its RECORD: its hash, and the packages (`NAME-VERSION`) whose RECORDs have it."""

    packages: tuple[str, ...]
    sha256: str


class Files(Measured, frozen=True, kw_only=True):
    """The files of an environment beside the RECORDs of its packages; paths are relative to `prefix`.

    `contents` has what each file of a package that is `changed` is now, by its path.
    `unowned` and `stale` are files of no package and bytecode that is not that of its source; `unowned` is None outside of a
    virtual environment. `unrecorded` are packages without a RECORD, `path` is the path of modules.
    """

    compared: int
    changed: tuple[str, ...]
    missing: tuple[str, ...]
    unreadable: tuple[str, ...]
    unrecorded: tuple[str, ...]
    unowned: tuple[str, ...] | None
    stale: tuple[str, ...]
    prefix: str
    path: tuple[str, ...]
    libraries: Libraries | None = None
    contents: dict[str, Content] = field(default_factory=dict)


class SystemPackage(Measured, frozen=True, kw_only=True):
    """A package of a distribution; `source` and `source_version` are those of its source package, "" if they are its own.

    `licenses` are those that a machine-readable copyright file names, as it spells them, `texts` the common texts to which
    another one refers.
    """

    name: str
    version: str
    architecture: str
    source: str
    source_version: str
    licenses: tuple[str, ...]
    texts: tuple[str, ...]


class System(Measured, frozen=True, kw_only=True):
    """The distribution of an image, by ID and VERSION_ID of os-release(5), and its packages; None if dpkg has none there.

    `unread` are the package managers whose databases are there, too, and are not read.
    """

    identifier: str = field(name="id")
    version: str
    packages: tuple[SystemPackage, ...] | None
    unread: tuple[str, ...]


class Framework(Measured, frozen=True, kw_only=True):
    """The result of the check of one framework: the version and the facts that it states, and its computations.

    An outcome is None for a computation that raised an error, which is in `errors`. `devices` are None below level 4, and if
    the check has nothing for devices; `on_devices` are the outcomes on them. `shadowed` are the loaded libraries that the
    environment has, too, and that come from elsewhere.
    """

    version: str | None
    facts: dict[str, str]
    outcomes: dict[str, bool | None]
    errors: dict[str, str]
    devices: tuple[str, ...] | None
    on_devices: dict[str, bool | None]
    shadowed: tuple[str, ...]
    seconds: float


class Measurement(Measured, frozen=True, kw_only=True):
    """All facts of one run. `errors` maps the name of a probe to the error it raised, `timing` to its duration in seconds.

    `kernel` is the release of the running kernel, as `uname -r` prints it, "" if it was not read.
    """

    schema_version: Literal[2] = field(name="schema")
    level: int
    python: str
    machine: str
    glibc: str | None
    distributions: dict[str, str] | None
    torch: Torch | None
    files: Files | None = None
    system: System | None = None
    frameworks: dict[str, Framework] = field(default_factory=dict)
    kernel: str = ""
    cpu_matmul: bool | None = None
    nvml: Management | None = None
    cuda_driver: DriverInterface | None = None
    devices: tuple[Device, ...] = ()
    all_reduce: bool | None = None
    peers: bool | None = None
    health: Health | None = None
    errors: dict[str, str]
    timing: dict[str, float]

    def error(self, *probes: str) -> str:
        """Return the first error that one of these probes raised, in their order; "" when none did."""
        return next((self.errors[probe] for probe in probes if probe in self.errors), "")


def script() -> str:
    """Return the source of the smoke script, for `python -c`."""
    return check_source("smoke")


def check_source(name: str) -> str:
    """Return the source of a module of `provisioner/validate/checks`, such as `frameworks/jax`."""
    return (files("provisioner.validate") / "checks" / f"{name}.py").read_text(encoding="utf-8")


def parse_measurement(printed: str) -> Measurement:
    """Parse the measurement, the last line that the script printed; raises `UnreadableMeasurementError` with that line."""
    lines = [line for line in printed.splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    try:
        data = _with_whole_characters(json.loads(last))
        return read(data, Measurement)
    except ValidationError:
        wrong = mistakes(data, Measurement, {})[0]
        cause = f"{dotted(wrong.path) or 'the line'}: {wrong.text}"
    except ValueError as error:
        cause = f"the line: {error}"
    causes = (cause, f"it printed: {last[:200]}" if last else "it printed nothing")
    raise UnreadableMeasurementError("the smoke test printed no measurement", causes=causes)


def _with_whole_characters(data: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    r"""Return data with `\udcff` as text for a byte of a name that is not UTF-8, which Python reads as half a character."""
    if isinstance(data, str):
        return data.encode(errors="backslashreplace").decode()
    if isinstance(data, dict):
        return {_with_whole_characters(key): _with_whole_characters(value) for key, value in data.items()}
    return [_with_whole_characters(value) for value in data] if isinstance(data, list) else data
