"""Validate one lock: build its image, run the checks in it, compare what they measure with the lock, report."""

from __future__ import annotations

import hashlib
import time
from datetime import UTC, datetime
from itertools import zip_longest
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from provisioner import __version__
from provisioner.accelerators import ACCELERATORS
from provisioner.document import file_sha256
from provisioner.errors import UsageError
from provisioner.evidence.report import (
    IDLE,
    LEVELS,
    EngineReport,
    FieldReport,
    GpuReport,
    HostReport,
    LevelReport,
    LoadReport,
    Report,
    at_level,
    masked,
    overall,
    unverified,
)
from provisioner.lock.format.file import lock_digest
from provisioner.render.entry_guard import entrypoint, has_guard, refusal
from provisioner.render.stages import ENVIRONMENT
from provisioner.validate.bill import bill_of_image
from provisioner.validate.builder import EMULATION, NO_EMULATOR
from provisioner.validate.compare import compare
from provisioner.validate.engine import BuildFailedError, Built, EngineError, HostRefusedError, NoDeviceError, RunRequest
from provisioner.validate.image import build, compare_image, compare_static, source_of
from provisioner.validate.measurement import parse_measurement, script
from provisioner.validate.not_run import NotRunError
from provisioner.validate.process import TIMED_OUT
from provisioner.validate.programs import IN_THE_SMOKE_SCRIPT, checked_packages, programs_for
from provisioner.validate.published import as_published

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from provisioner.lock.format.model import Lock
    from provisioner.render.bill_of_materials import Bill
    from provisioner.validate.compare_health import Figures
    from provisioner.validate.engine import Engine, Finished, Log
    from provisioner.validate.image import Source
    from provisioner.validate.measurement import Measurement
    from provisioner.validate.published import Published, ReadWheel

STATIC, BUILD, FILES, IMPORTS, DEVICES, HEALTH = range(len(LEVELS))

_KILLED = 128 + 9


class Options(Struct, frozen=True, kw_only=True):
    """The options of a validation. `gpus` is `auto`, `none`, `all` or device numbers; `timeout` of the run is in seconds.

    `level` is None for the highest level that has something to do for the lock, except health, which is the machine's. `image`
    is the image to measure, "" for one to build. Level 5 loads each GPU for `load_seconds`, and compares what it reaches with
    `figures`, by PCI device id. `read_wheel` gives the wheels in which files that differ from their RECORD are looked up;
    None to look up none. `lists_parts` if the packages of the distribution are read for a bill of materials, too.
    """

    level: int | None = None
    image: str = ""
    gpus: str = "auto"
    platform: str = ""
    build_network: str = ""
    keep_image: bool = False
    timeout: float = 900.0
    load_seconds: float = 20.0
    lists_parts: bool = False
    read_wheel: ReadWheel | None = None
    figures: Mapping[str, Figures] = field(default_factory=dict)


class Validation(Struct, frozen=True, kw_only=True):
    """The report of a validation, and the bill of materials of the image; None unless it was asked for and measured."""

    report: Report
    bill: Bill | None = None


class Outcome(Struct, frozen=True, kw_only=True):
    """The fields of a part of the report, and the measurement; None if none was printed.

    `image` is the id of the image that ran, "" if the run does not tell.
    """

    fields: tuple[FieldReport, ...]
    measurement: Measurement | None = None
    image: str = ""


def validate_lock(lock: Lock, lock_path: Path, *, engine: Engine, options: Options, log: Log) -> Report:
    """Validate one lock and return the report alone; as `measure_lock`."""
    return measure_lock(lock, lock_path, engine=engine, options=options, log=log).report


def measure_lock(lock: Lock, lock_path: Path, *, engine: Engine, options: Options, log: Log) -> Validation:
    """Validate one lock and return the report, and the bill of materials if it is asked for; nothing is written.

    An image that does not build gives the verdict `no`, and a note whose first line is the reason. Raises `EngineError` when
    the engine has another platform or is out of reach, when the build lacks network, a login, certificates or disk space, or
    when an image cannot be pulled, `UsageError` for invalid options, and `FileError` for a lock that cannot be read.
    """
    if options.level is not None and not 0 <= options.level < len(LEVELS):
        raise UsageError(f"level {options.level} does not exist", hints=("levels go from 0 (static) to 5 (health)",))
    platform = _platform(lock, engine, options)
    began, lock_sha256 = datetime.now(UTC), file_sha256(lock_path)
    narrowed = lock.on(platform)
    idle = _idle_levels(narrowed, engine, options)
    level = max(set(range(HEALTH)) - idle.keys()) if options.level is None else options.level
    source = None if STATIC in idle else source_of(lock, lock_path, recipe=engine.recipe)
    fields = () if source is None else at_level(STATIC, compare_static(source, is_run=level >= FILES))
    started = time.monotonic()
    built, failure = _image(source, engine, options, log) if level >= BUILD else (Built(), ())
    build_seconds, started = time.monotonic() - started, time.monotonic()
    outcome = Outcome(fields=failure)
    if not failure:
        try:
            named = {"lock_file_name": lock_path.name, "platform": platform}
            config = compare_image(lock, built, engine, **named) if level >= FILES else ()
            fields += at_level(BUILD, [_BUILDS] if built.tag else []) + at_level(FILES, config)
            if level >= FILES:
                outcome = _measure(narrowed, built.image, engine, replace(options, level=level), log)
        finally:
            if built.tag and not options.keep_image:
                engine.remove(built.tag)
    fields = masked((*fields, *outcome.fields))
    image = outcome.image or built.image
    report = Report(
        name=lock.name,
        lock_file=lock_path.name,
        lock_digest=lock_digest(lock),
        lock_sha256=f"sha256:{lock_sha256}",
        tool_version=__version__,
        matrix_digest=lock.matrix_digest,
        platform=platform,
        engine=EngineReport(name=engine.name, version=engine.version, builder=built.method, node_class=engine.node_class),
        image=image,
        image_digests=built.digests,
        dockerfile="" if source is None else f"sha256:{hashlib.sha256(source.recipe.text.encode()).hexdigest()}",
        host=_host(outcome.measurement),
        level=level,
        verdict="unverified" if level in idle and overall(fields) == "yes" else overall(fields),
        levels=_levels(level, fields, idle),
        fields=fields,
        load=_load(outcome.measurement),
        time=began.strftime("%Y-%m-%dT%H:%M:%SZ"),
        timing=_timing(build_seconds, time.monotonic() - started, outcome.measurement),
    )
    if outcome.measurement is None or not options.lists_parts:
        return Validation(report=report)
    named = {"lock_file_name": lock_path.name, "image": image}
    return Validation(report=report, bill=bill_of_image(narrowed, outcome.measurement, **named))


_BUILDS = FieldReport(name="build", locked="builds", measured="built", verdict="yes")


def _platform(lock: Lock, engine: Engine, options: Options) -> str:
    """Return the requested platform, by default that of the engine; raises `EngineError` if the lock lacks the engine's."""
    if options.platform:
        return lock.on(options.platform).stack.platform
    if engine.platform in lock.platforms:
        return engine.platform
    if options.level == STATIC or (not engine.platform and len(lock.platforms) == 1):
        return lock.platforms[0]
    if not engine.platform:
        hints = (f"name that of the nodes: --platform {lock.platforms[0]}",)
        raise UsageError(
            f"lock `{lock.name}` is for {', '.join(lock.platforms)}, and a cluster may have all of them", hints=hints
        )
    known = ", ".join(lock.platforms)
    raise EngineError(
        f"lock `{lock.name}` is for {known}, and this {engine.name} engine runs {engine.platform}",
        hints=(f"validate it on a machine of its platform, or emulate one: --platform {lock.platforms[0]}",),
    )


def _idle_levels(lock: Lock, engine: Engine, options: Options) -> dict[int, str]:
    """Return the levels that have nothing to do for a lock of one platform, with the reason."""
    idle: dict[int, str] = {}
    if options.image:
        idle |= dict.fromkeys((STATIC, BUILD), f"{options.image} was built before")
    elif not engine.recipe:
        idle |= dict.fromkeys((STATIC, BUILD), "no image is built for an environment that is installed")
    if not checked_packages(lock) and IN_THE_SMOKE_SCRIPT not in {package.name for package in lock.packages}:
        idle[IMPORTS] = "the lock has no framework, and its spec names no package"
    if not ACCELERATORS[lock.stack.accelerator].vendor:
        idle |= dict.fromkeys((DEVICES, HEALTH), f"the stack computes on the CPU (accelerator {lock.stack.accelerator})")
    elif lock.stack.accelerator == "mps":
        idle[HEALTH] = "no driver of Apple's GPUs counts what they do"
    return idle


def _levels(level: int, fields: tuple[FieldReport, ...], idle: dict[int, str]) -> tuple[LevelReport, ...]:
    """Return the verdict of each level up to `level`; a level that was not reached is unverified."""
    reports = []
    for number, name in enumerate(LEVELS[: level + 1]):
        verdict = overall(field for field in fields if field.level == number)
        note = idle.get(number, "")
        reports.append(LevelReport(level=number, name=name, verdict=IDLE if note else verdict, note=note))
    return tuple(reports)


def _image(source: Source | None, engine: Engine, options: Options, log: Log) -> tuple[Built, tuple[FieldReport, ...]]:
    """Return the image to measure, and the field of a build that failed; without one for an environment of this machine."""
    if options.image:
        return engine.find(options.image, log), ()
    if source is None:
        return Built(), ()
    named = {"platform": options.platform, "network": options.build_network}
    try:
        return build(source, engine, log, **named, is_kept=options.keep_image), ()
    except BuildFailedError as error:
        note = "\n".join(error.causes) or error.message
        field = FieldReport(name="build", locked="builds", measured="failed", verdict="no", note=note)
        return Built(), at_level(BUILD, [field])


def _measure(lock: Lock, image: str, engine: Engine, options: Options, log: Log) -> Outcome:
    """Run the checks, with devices if the level needs them, and compare what they measure with the lock.

    If the engine has no GPUs for the container, they run without any.
    """
    level = options.level or FILES
    programs = programs_for(
        lock,
        level,
        has_entry_point=engine.has_entry_points,
        load_seconds=options.load_seconds,
        lists_system=options.lists_parts,
    )
    command = (*_entry(lock, engine), "python", "-c", script(), str(level), str(programs))
    request = RunRequest(
        image=image,
        command=command,
        gpus=_gpus(lock, options.gpus) if level >= DEVICES else "",
        environment={} if image else lock.stack.environment,
        timeout=options.timeout,
        lock=lock,
    )
    no_device = ""
    try:
        try:
            finished = engine.run(request, log)
        except NoDeviceError as error:
            no_device = error.causes[0]
            log(f"no GPU: {no_device}; measuring without one")
            finished = engine.run(replace(request, gpus=""), log)
    except HostRefusedError as error:
        return _refused(lock, "; ".join(error.causes))
    except NotRunError as error:
        field = FieldReport(name="job", locked="runs", measured=error.cause.kind, verdict="unverified", note=error.message)
        return Outcome(fields=at_level(FILES, [field]))
    reason = refusal(finished.exit_code, finished.stderr)
    if reason:
        return _refused(lock, reason)
    if NO_EMULATOR in finished.stderr:
        note = f"programs of {lock.stack.platform} do not run here ({NO_EMULATOR}): {EMULATION}"
        field = unverified("smoke test", "starts", note)
        return Outcome(fields=at_level(FILES, [field]), image=finished.image)
    ended = _ended_early(finished, options.timeout)
    if ended is not None:
        return Outcome(fields=at_level(FILES, [ended]), image=finished.image)
    measurement = parse_measurement(finished.stdout)
    fields = compare(
        lock,
        measurement,
        no_device=no_device,
        figures=options.figures,
        engine_platform=engine.platform,
        published=_published(lock, measurement, options, log),
    )
    return Outcome(fields=fields, measurement=measurement, image=finished.image)


def _published(lock: Lock, measurement: Measurement, options: Options, log: Log) -> Published | None:
    """Return which files that differ from their RECORD are as the wheel was published; None if there are none to look up."""
    files = measurement.files
    if options.read_wheel is None or files is None or not files.contents:
        return None
    differing = "1 file differs" if len(files.contents) == 1 else f"{len(files.contents)} files differ"
    log(f"{differing} from the RECORD of their wheel; reading the wheel itself")
    return as_published(lock, files, options.read_wheel)


def _entry(lock: Lock, engine: Engine) -> tuple[str, ...]:
    """Return the image's entry point, the guard that checks the host; empty if the image has none.

    Engines override the entry point, so the command must start with it for the validation to check the host as well.
    """
    is_guarded = engine.has_entry_points and any(has_guard(stack) for stack in lock.stacks)
    return entrypoint(ENVIRONMENT).arguments if is_guarded else ()


def _refused(lock: Lock, reason: str) -> Outcome:
    """Return the outcome `no` for a host that the container runtime, or the entry point of the image, has refused."""
    field = FieldReport(name="host", locked=lock.stack.require_cuda, measured="refused", verdict="no", note=reason)
    return Outcome(fields=at_level(DEVICES, [field]))


def _gpus(lock: Lock, requested: str) -> str:
    """Return the GPUs that the container gets, as `RunRequest` has them."""
    if requested != "auto":
        return "" if requested == "none" else requested
    accelerator = ACCELERATORS[lock.stack.accelerator]
    return accelerator.name if accelerator.device_files else "all" if accelerator.cdi_kind else ""


def _ended_early(finished: Finished, timeout: float) -> FieldReport | None:
    """Return the field of a run that ended before it printed a measurement; None if it may have printed one.

    The verdict is `no` after a crash, which is the fault of the stack, and `unverified` after a timeout or a kill from outside.
    """
    if finished.exit_code == 0 or finished.stdout.strip():
        return None
    last = finished.stderr.strip().splitlines()[-1:] or ["nothing was printed"]
    if finished.exit_code == TIMED_OUT:
        note = f"stopped after {timeout:g} s; the last line was: {last[0]}"
        return FieldReport(name="smoke test", locked="ends", measured="time ran out", verdict="unverified", note=note)
    if finished.exit_code == _KILLED:
        note = f"killed from outside, most often for want of memory; the last line was: {last[0]}"
        return FieldReport(name="smoke test", locked="ends", measured="killed", verdict="unverified", note=note)
    ended = f"signal {finished.exit_code - 128}" if finished.exit_code > 128 else f"exit code {finished.exit_code}"
    return FieldReport(name="smoke test", locked="ends", measured=ended, verdict="no", note=f"the last line was: {last[0]}")


def _host(measurement: Measurement | None) -> HostReport:
    """Return what the checks have read of the host; nothing if they printed no measurement."""
    if measurement is None:
        return HostReport()
    nvml = measurement.nvml
    if nvml is None:
        return HostReport(kernel=measurement.kernel)
    gpus = zip_longest(nvml.names, nvml.identities, fillvalue="")
    found = tuple(GpuReport(name=name, identity=identity) for name, identity in gpus)
    return HostReport(kernel=measurement.kernel, driver=nvml.driver, gpus=found)


def _load(measurement: Measurement | None) -> tuple[LoadReport, ...]:
    if measurement is None or measurement.health is None:
        return ()
    names = {device.device: device.name for device in measurement.devices}
    return tuple(
        LoadReport(
            device=device.device,
            name=names.get(device.device, ""),
            teraflops=device.load.float16,
            gigabytes_per_second=device.load.memory_bandwidth,
            memory_checked=device.load.memory_checked,
            seconds=device.load.seconds,
        )
        for device in measurement.health.devices
        if device.load is not None
    )


def _timing(build_seconds: float, run_seconds: float, measurement: Measurement | None) -> dict[str, float]:
    probes = measurement.timing if measurement is not None else {}
    timing = {"build": round(build_seconds, 2), "run": round(run_seconds, 2)}
    return timing | {f"probe {name}": seconds for name, seconds in sorted(probes.items())}
