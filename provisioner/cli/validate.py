"""`provision validate`: build the image of each lock, measure it, compare, and write the evidence beside the lock."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from provisioner.cli.options import FormatOption, OutputFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from provisioner.validate.engine import Engine
    from provisioner.validate.report import Report
    from provisioner.validate.run import Options

LocksArgument = Annotated[list[Path], typer.Argument(metavar="LOCK...", readable=False, help="Lock files: pylock.<name>.toml.")]
EngineOption = Annotated[
    str, typer.Option("--engine", metavar="NAME", help="docker, podman, apptainer, kubernetes, slurm, or local (no container).")
]
LevelOption = Annotated[
    int | None,
    typer.Option(
        "--level",
        metavar="LEVEL",
        min=0,
        max=4,
        help="0 static, 1 build, 2 files, 3 imports, 4 devices; default: the highest with something to do.",
    ),
]
ImageOption = Annotated[str, typer.Option("--image", metavar="REF", help="Measure this image; build none.")]
GpusOption = Annotated[
    str, typer.Option("--gpus", metavar="WHICH", help="auto (what the lock needs), none, all, or numbers such as 0,1.")
]
PlatformOption = Annotated[
    str, typer.Option("--platform", metavar="PLATFORM", help="The lock's platform to validate; default: the engine's.")
]
PythonOption = Annotated[
    Path | None, typer.Option("--python", metavar="FILE", help="The interpreter of --engine local or slurm.")
]
ModulesOption = Annotated[
    list[str] | None, typer.Option("--module", metavar="NAME", help="A module that a job of Slurm loads first; repeatable.")
]
NodeClassesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--node-class",
        metavar="CLASS",
        help='Nodes of a cluster to validate on; repeatable. "h100: partition=gpu constraint=sm_90", or labels of Kubernetes.',
    ),
]
WaitOption = Annotated[
    float, typer.Option("--wait", metavar="SECONDS", min=1, help="Give up a cluster's job that has not started by then.")
]
NetworkOption = Annotated[
    str, typer.Option("--build-network", metavar="NAME", help="Network of build steps: host reaches loopback indexes.")
]
KeepOption = Annotated[bool, typer.Option("--keep-image", help="Keep the image that was built.")]
TimeoutOption = Annotated[float, typer.Option("--timeout", metavar="SECONDS", min=1, help="Stop the smoke test after this.")]
_AT_ONCE = 16
"""The most jobs of a cluster that are waited for at the same time."""

RecordOption = Annotated[bool, typer.Option("--record/--no-record", help="Write <name>.validation.json beside the lock.")]


def validate(
    locks: LocksArgument,
    *,
    engine: EngineOption = "docker",
    level: LevelOption = None,
    image: ImageOption = "",
    gpus: GpusOption = "auto",
    platform: PlatformOption = "",
    python: PythonOption = None,
    modules: ModulesOption = None,
    node_classes: NodeClassesOption = None,
    wait: WaitOption = 600.0,
    build_network: NetworkOption = "",
    keep_image: KeepOption = False,
    timeout: TimeoutOption = 900.0,
    record: RecordOption = True,
    output_format: FormatOption = OutputFormat.TEXT,
) -> None:
    """Build and run an image, and compare what is in it with its lock, field by field.

    Exit code 0: everything asked for was measured and agrees. 1: something differs. 3: something could not be measured, such as
    a GPU this machine does not have, or the level asked for has nothing to do for the lock.
    """
    from msgspec.structs import replace

    from provisioner.errors import UsageError
    from provisioner.validate.connect import CLUSTERS, connect
    from provisioner.validate.node_class import parse_node_classes
    from provisioner.validate.run import Options
    from provisioner.validate.where import Where

    if image and len(locks) > 1:
        raise UsageError("--image is the image of one lock", hints=("give one lock, or leave out --image to build each",))
    if image and python is not None and engine == "slurm":
        raise UsageError("--image and --python name two environments", hints=("leave out one of them",))
    if not image and engine == "kubernetes" and level != 0:
        raise UsageError("--engine kubernetes runs an image that a registry has", hints=("name it: --image REFERENCE",))
    options = Options(
        level=level,
        image=image,
        gpus=gpus,
        platform=platform,
        build_network=build_network,
        keep_image=keep_image,
        timeout=timeout,
    )
    stop = Event()
    given = Where(python=python, modules=tuple(modules or ()), wait=wait, stop=stop)
    places = [replace(given, nodes=nodes) for nodes in parse_node_classes(node_classes or ())]
    connected = [connect(engine, where, is_needed=level != 0) for where in places]
    jobs = [partial(_validated, lock, one, options, is_recorded=record) for lock in locks for one in connected]
    reports = _together(jobs, stop) if engine in CLUSTERS else [job() for job in jobs]
    if output_format is OutputFormat.JSON:
        _show_json(reports)
    else:
        for report in reports:
            _show(report)
    codes = {report.exit_code for report in reports}
    raise typer.Exit(1 if 1 in codes else max(codes))


def _together(jobs: Sequence[Callable[[], Report]], stop: Event) -> list[Report]:
    """Do several jobs at the same time, because a cluster has them wait, and return their results in order.

    Raises the error of one that failed, after all have ended. On an interrupt, and when CI ends this process, all jobs are
    stopped, and what they have in the cluster is removed.
    """
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with ThreadPoolExecutor(max_workers=min(len(jobs), _AT_ONCE)) as pool:
            started = [pool.submit(job) for job in jobs]
            try:
                wait_for(started)
            except KeyboardInterrupt:
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise
            return [one.result() for one in started]
    finally:
        signal.signal(signal.SIGTERM, before)


def _validated(path: Path, engine: Engine, options: Options, *, is_recorded: bool) -> Report:
    from provisioner.cli.display import talk
    from provisioner.lock.format.file import read_lock
    from provisioner.validate.run import validate_lock

    lock = read_lock(path)
    what = options.image or path
    by = "" if engine.name == "none" else f" with {engine.name} {engine.version}".rstrip()
    on = f" on {engine.node_class}" if engine.node_class else ""
    talk(f"validating {what}{by}{on}")
    prefix = f"{engine.node_class}: " if engine.node_class else ""
    report = validate_lock(lock, path, engine=engine, options=options, log=lambda line: _show_progress(line, prefix))
    if is_recorded:
        _record(path, report)
    return report


def _show_progress(line: str, prefix: str) -> None:
    """Print one line of a build or run after a prefix, unless it is blank or the digest of a layer."""
    from provisioner.cli.display import talk

    _, _, rest = line.partition(" ")
    if line.strip() and not rest.startswith("sha256:"):
        talk(f"  {prefix}{line}")


def _record(path: Path, report: Report) -> None:
    from provisioner.cli.display import talk, warn
    from provisioner.document import FileError
    from provisioner.errors import InvalidDocumentError
    from provisioner.validate.report import is_stronger, load_report, report_path, write_report

    target = report_path(path, report.engine.node_class)
    try:
        recorded = load_report(target)
    except (FileError, InvalidDocumentError):
        recorded = None
    if recorded is not None and is_stronger(recorded, report):
        warn(f"{target} already proves more of this lock, on {recorded.engine.name} at level {recorded.level}; it is kept")
        return
    write_report(target, report)
    talk(f"evidence: {target}")


def _show(report: Report) -> None:
    from provisioner.cli.display import data, table

    rows = [(field.name, field.locked, field.measured, field.verdict, field.note) for field in report.fields]
    table(("fact", "locked", "measured", "verdict", "note"), rows)
    for load in report.load:
        figures = f"{load.teraflops:g} TFLOP/s, {load.gigabytes_per_second:g} GB/s, {load.memory_checked / 1e9:.1f} GB held"
        data(f"{load.device} {load.name}: {figures}")
    for level in report.levels:
        data(f"level {level.level} ({level.name}): {level.verdict}" + (f", {level.note}" if level.note else ""))
    engine = f"{report.engine.name} {report.engine.version}".rstrip()
    nodes = f", nodes {report.engine.node_class}" if report.engine.node_class else ""
    data(f"{report.lock_file} on {report.platform}, {engine}{nodes}, level {report.level}: {report.verdict}")


def _show_json(reports: list[Report]) -> None:
    from msgspec import to_builtins

    from provisioner.cli.display import json_data
    from provisioner.validate.report import overall

    verdict = overall(field for report in reports for field in report.fields)
    json_data({"verdict": verdict, "reports": [to_builtins(report) for report in reports]})
