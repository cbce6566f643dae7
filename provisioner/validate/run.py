"""Validate one lock: build its image, run the smoke test in it, compare the measurement with the lock, report."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.accelerators import ACCELERATORS
from provisioner.document import FileError
from provisioner.errors import UsageError
from provisioner.lock.format.file import lock_digest
from provisioner.render import render
from provisioner.render.dockerfile import ENVIRONMENT
from provisioner.render.entry_guard import entrypoint, has_guard, refusal
from provisioner.validate.compare import compare
from provisioner.validate.engine import (
    BuildFailedError,
    BuildRequest,
    Built,
    EngineError,
    HostRefusedError,
    NoDeviceError,
    RunRequest,
)
from provisioner.validate.measurement import parse_measurement, script
from provisioner.validate.process import TIMED_OUT
from provisioner.validate.report import EngineReport, FieldReport, LoadReport, Report, overall

if TYPE_CHECKING:
    from provisioner.lock.format.model import Lock
    from provisioner.validate.engine import Engine, Finished, Log
    from provisioner.validate.measurement import Measurement

LEVELS = ("import", "devices", "compute", "libraries", "sustained load")
"""The checks that each level adds to the levels below it, from level 0 on."""

_CERTIFICATES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE")
_KILLED = 128 + 9


class Options(Struct, frozen=True, kw_only=True):
    """The options of a validation. `gpus` is `auto`, `none`, `all` or device numbers; `timeout` of the run is in seconds."""

    level: int = 2
    gpus: str = "auto"
    platform: str = ""
    build_network: str = ""
    keep_image: bool = False
    timeout: float = 900.0


class Outcome(Struct, frozen=True, kw_only=True):
    """The result of running the smoke script: the fields of the report, and the measurement; None if none was printed."""

    fields: tuple[FieldReport, ...]
    measurement: Measurement | None = None


def validate_lock(lock: Lock, lock_path: Path, *, engine: Engine, options: Options, log: Log) -> Report:
    """Validate one lock and return the report; nothing is written.

    An image that does not build gives the verdict `no`, with the last lines of the failed step as its note. Raises
    `EngineError` when the engine has another platform or is out of reach, or when the build lacks network, certificates or
    disk space, and `UsageError` for invalid options.
    """
    if not 0 <= options.level < len(LEVELS):
        raise UsageError(f"level {options.level} does not exist", hints=("levels go from 0 (import) to 4 (sustained load)",))
    platform = _platform(lock, engine, options.platform)
    narrowed = lock.on(platform)
    started = time.monotonic()
    try:
        built = _build(lock, lock_path, engine, options, log)
    except BuildFailedError as error:
        note = "\n".join(error.causes) or error.message
        field = FieldReport(name="build", locked="builds", measured="failed", verdict="no", note=note)
        built, outcome = Built(), Outcome(fields=(field,))
        build_seconds, run_seconds = time.monotonic() - started, 0.0
    else:
        build_seconds, started = time.monotonic() - started, time.monotonic()
        try:
            outcome = _measure(narrowed, built.image, engine, options, log)
        finally:
            if built.tag and not options.keep_image:
                engine.remove(built.tag)
        run_seconds = time.monotonic() - started
    return Report(
        name=lock.name,
        lock_file=lock_path.name,
        lock_digest=lock_digest(lock),
        platform=platform,
        engine=EngineReport(name=engine.name, version=engine.version, builder=built.method),
        image=built.image,
        level=options.level,
        verdict=overall(outcome.fields),
        fields=outcome.fields,
        load=_load(outcome.measurement),
        timing=_timing(build_seconds, run_seconds, outcome.measurement),
    )


def _platform(lock: Lock, engine: Engine, requested: str) -> str:
    """Return the requested platform, by default that of the engine; raises `EngineError` if the lock lacks the engine's."""
    if requested:
        return lock.on(requested).stack.platform
    if engine.platform in lock.platforms:
        return engine.platform
    known = ", ".join(lock.platforms)
    raise EngineError(
        f"lock `{lock.name}` is for {known}, and this {engine.name} engine runs {engine.platform}",
        hints=(f"validate it on a machine of its platform, or emulate one: --platform {lock.platforms[0]}",),
    )


def _tag(lock: Lock) -> str:
    """Return the tag of the image, in a namespace of this program, so that no image of the user is replaced or removed."""
    digest = lock_digest(lock).removeprefix("sha256:")[:12]
    return f"provision-validate/{lock.name.lower()}:{digest}"


def _build(lock: Lock, lock_path: Path, engine: Engine, options: Options, log: Log) -> Built:
    """Build the Dockerfile of the lock with a context that contains only the files it mounts.

    The engine `local` builds nothing.
    """
    if engine.name == "local":
        return Built()
    with tempfile.TemporaryDirectory(prefix="provision-context-") as scratch:
        context = Path(scratch) / "context"
        context.mkdir()
        copy_context(lock, lock_path, context)
        dockerfile = Path(scratch) / "Dockerfile"
        text = render(lock, "dockerfile", lock_file_name=lock_path.name)
        dockerfile.write_text(text, encoding="utf-8")
        request = BuildRequest(
            context=context,
            dockerfile=dockerfile,
            tag=_tag(lock),
            platform=options.platform,
            secrets=build_secrets(text),
            network=options.build_network,
        )
        return engine.build(request, log)


def copy_context(lock: Lock, lock_path: Path, context: Path) -> None:
    """Copy the lock and the local files beside it that it names into a build context; raises `FileError` if one is missing."""
    files = [file for package in lock.packages for file in package.files]
    files += [stack.installer.file for stack in lock.stacks if stack.installer is not None]
    for name in (lock_path.name, *sorted({file.path for file in files if file.path})):
        target = context / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(lock_path.parent / name, target)
        except OSError as error:
            raise FileError(f"`{name}`, which lock `{lock.name}` names, cannot be read: {error.strerror}") from None


def build_secrets(dockerfile: str) -> dict[str, Path]:
    """Return the files of this machine for the secrets that a Dockerfile mounts, by the id of the secret.

    `ca` is the certificate bundle that the environment variables name, `netrc` the logins for private indexes. A secret without
    a file is left out. Secrets are mounted in single steps of the build and never become part of the image.
    """
    candidates = {
        "ca": [os.environ.get(name, "") for name in _CERTIFICATES],
        "netrc": [os.environ.get("NETRC", ""), str(Path.home() / ".netrc")],
    }
    found = {name: [Path(path) for path in paths if path and Path(path).is_file()] for name, paths in candidates.items()}
    return {name: paths[0] for name, paths in found.items() if paths and f"id={name}" in dockerfile}


def _measure(lock: Lock, image: str, engine: Engine, options: Options, log: Log) -> Outcome:
    """Run the smoke script, with devices if the level needs them, and compare its measurement with the lock.

    If the engine has no GPUs for the container, the script runs without any.
    """
    request = RunRequest(
        image=image,
        command=(*_entry(lock, engine), "python", "-c", script(), str(options.level)),
        gpus=_gpus(lock, options),
        environment=lock.stack.environment if engine.name == "local" else {},
        timeout=options.timeout,
    )
    no_device = ""
    try:
        try:
            finished = engine.run(request, log)
        except NoDeviceError as error:
            no_device = error.causes[0] if error.causes else error.message
            log(f"no GPU: {no_device}; measuring without one")
            without = RunRequest(image=image, command=request.command, timeout=options.timeout)
            finished = engine.run(without, log)
    except HostRefusedError as error:
        return _refused(lock, "; ".join(error.causes))
    reason = refusal(finished.exit_code, finished.stderr)
    if reason:
        return _refused(lock, reason)
    ended = _ended_early(finished, options.timeout)
    if ended is not None:
        return Outcome(fields=(ended,))
    measurement = parse_measurement(finished.stdout)
    return Outcome(fields=compare(lock, measurement, no_device=no_device), measurement=measurement)


def _entry(lock: Lock, engine: Engine) -> tuple[str, ...]:
    """Return the image's entry point, the guard that checks the host; empty if the image has none.

    Engines override the entry point, so the command must start with it for the validation to check the host as well.
    """
    is_guarded = engine.name != "local" and any(has_guard(stack) for stack in lock.stacks)
    return entrypoint(ENVIRONMENT).arguments if is_guarded else ()


def _refused(lock: Lock, reason: str) -> Outcome:
    """Return the outcome `no` for a host that the container runtime, or the entry point of the image, has refused."""
    field = FieldReport(name="host", locked=lock.stack.require_cuda, measured="refused", verdict="no", note=reason)
    return Outcome(fields=(field,))


def _gpus(lock: Lock, options: Options) -> str:
    if options.gpus == "none" or options.level == 0:
        return ""
    if options.gpus != "auto":
        return options.gpus
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


def _load(measurement: Measurement | None) -> tuple[LoadReport, ...]:
    devices = measurement.devices if measurement is not None else ()
    return tuple(
        LoadReport(
            device=device.device,
            name=device.name,
            teraflops=device.sustained.teraflops,
            gigabytes_per_second=device.sustained.gigabytes_per_second,
            memory_checked=device.sustained.memory_checked,
            seconds=device.sustained.seconds,
        )
        for device in devices
        if device.sustained is not None
    )


def _timing(build_seconds: float, run_seconds: float, measurement: Measurement | None) -> dict[str, float]:
    probes = measurement.timing if measurement is not None else {}
    timing = {"build": round(build_seconds, 2), "run": round(run_seconds, 2)}
    return timing | {f"probe {name}": seconds for name, seconds in sorted(probes.items())}
