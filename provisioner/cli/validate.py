"""`provision validate`: build the image of each lock, measure it, compare, and write the evidence beside the lock."""

from __future__ import annotations

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from provisioner.cli.options import FormatOption, OutputFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from provisioner.evidence.report import Report
    from provisioner.validate.compare_health import Figures
    from provisioner.validate.engine import Engine
    from provisioner.validate.run import Options, Validation

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
        max=5,
        help="0 static, 1 build, 2 files, 3 imports, 4 devices, 5 health; default: the highest up to 4 with something to do.",
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
    Path | None,
    typer.Option(
        "--python", metavar="FILE", help="The interpreter of --engine local or slurm; default: that of the active environment."
    ),
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
LoadOption = Annotated[float, typer.Option("--load", metavar="SECONDS", min=1, help="How long level 5 loads each GPU.")]
TimeoutOption = Annotated[float, typer.Option("--timeout", metavar="SECONDS", min=1, help="Stop the smoke test after this.")]
RecordOption = Annotated[
    bool, typer.Option("--record/--no-record", help="Write pylock.<name>.<platform>.evidence.json beside the lock.")
]
EvidenceOption = Annotated[
    str, typer.Option("--evidence", metavar="FILE", help="Write the evidence here, not beside the lock; - is stdout.")
]
JunitOption = Annotated[
    str, typer.Option("--junit", metavar="FILE", help="Write a JUnit report for a test dashboard; - is stdout.")
]
HtmlOption = Annotated[str, typer.Option("--html", metavar="FILE", help="Write a page to read, one file; - is stdout.")]
SbomOption = Annotated[
    str,
    typer.Option(
        "--sbom",
        metavar="FILE",
        help="Write what the image holds, packages of Debian and Ubuntu too, in CycloneDX; - is stdout.",
    ),
]
SpdxOption = Annotated[str, typer.Option("--sbom-spdx", metavar="FILE", help="The same in SPDX; - is stdout.")]


class Views(NamedTuple):
    """The files in which views of the validations are asked for: "" for none, `-` for stdout."""

    evidence: str
    junit: str
    html: str
    sbom: str
    sbom_spdx: str

    @property
    def lists_parts(self) -> bool:
        """Whether a bill of materials is asked for."""
        return bool(self.sbom or self.sbom_spdx)

    def require_one_report(self, count: int, *, is_recorded: bool) -> None:
        """Raise `UsageError` when `count` reports would go into a file of one, or one that is not to be written is named."""
        from provisioner.errors import UsageError

        for name, file in (("evidence", self.evidence), ("sbom", self.sbom), ("sbom_spdx", self.sbom_spdx)):
            if file and count > 1:
                option = _option(name)
                hints = (f"give one lock and one class of nodes, or leave out {option}",)
                raise UsageError(f"{option} is the file of one report", hints=hints)
        if self.evidence and not is_recorded:
            raise UsageError("--no-record writes no evidence, and --evidence says where to", hints=("give one of them",))

    def require_an_image(self, engine: str, level: int | None, python: Path | None) -> None:
        """Raise `UsageError` when a bill of materials is asked for, and no image is measured."""
        from provisioner.errors import UsageError

        hints = ("the output `sbom` lists what a lock has: provision render LOCK --to sbom",)
        if self.lists_parts and (engine == "local" or python is not None):
            raise UsageError("a bill of materials lists what an image holds, and this environment is none", hints=hints)
        if self.lists_parts and level is not None and level < 2:
            raise UsageError(f"level {level} does not look into the image", hints=("ask for level 2 or more", *hints))

    def require_one_stdout(self, output_format: OutputFormat) -> None:
        """Raise `UsageError` when stdout would get two documents."""
        from provisioner.errors import UsageError

        printed = [_option(name) for name, file in self._asdict().items() if file == "-"]
        printed += ["--format json"] if output_format is OutputFormat.JSON else []
        if len(printed) > 1 and "-" in self:
            raise UsageError(f"{' and '.join(printed)} cannot share stdout", hints=("name a file for one of them",))

    def write(self, validations: Sequence[Validation]) -> None:
        """Write each view that was asked for; raises `FileError`."""
        from provisioner.cli.display import data, json_data, talk
        from provisioner.document import write_text

        for file, text, is_json in (*self._texts([one.report for one in validations]), *self._bills(validations[0])):
            if file != "-":
                write_text(Path(file), text)
                talk(f"wrote {file}")
            elif is_json:
                json_data(json.loads(text))
            else:
                data(text)

    def _texts(self, reports: Sequence[Report]) -> Iterator[tuple[str, str, bool]]:
        """Yield the file and the text of each view, and whether it is JSON."""
        if self.evidence:
            from provisioner.evidence.statement import evidence_text

            yield self.evidence, evidence_text(reports[0]), True
        if self.junit:
            from provisioner.evidence.junit import junit_text

            yield self.junit, junit_text(reports), False
        if self.html:
            from provisioner.browse.validation_page import validation_page

            yield self.html, validation_page(reports), False

    def _bills(self, validation: Validation) -> Iterator[tuple[str, str, bool]]:
        """Yield the same of the bill of materials, and say what it does not list."""
        from provisioner.cli.display import warn
        from provisioner.render import cyclonedx, spdx

        if not self.lists_parts:
            return
        bill = validation.bill
        if bill is None:
            warn("nothing was measured in the image, and no bill of materials is written")
            return
        for missing in bill.unread or ():
            warn(f"the bill of materials is not complete: {missing} are not listed")
        for file, text in ((self.sbom, cyclonedx.bill_text), (self.sbom_spdx, spdx.bill_text)):
            if file:
                yield file, text(bill), True


def _option(name: str) -> str:
    """Return the option of a view."""
    return f"--{name.replace('_', '-')}"


_AT_ONCE = 16
"""The most jobs of a cluster that are waited for at the same time."""


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
    load: LoadOption = 20.0,
    timeout: TimeoutOption = 900.0,
    record: RecordOption = True,
    evidence: EvidenceOption = "",
    junit: JunitOption = "",
    html: HtmlOption = "",
    sbom: SbomOption = "",
    sbom_spdx: SpdxOption = "",
    output_format: FormatOption = OutputFormat.TEXT,
) -> None:
    """Build and run an image, and compare what is in it with its lock, field by field."""
    from msgspec.structs import replace

    from provisioner.errors import UsageError
    from provisioner.validate.connect import CLUSTERS, connect
    from provisioner.validate.node_class import parse_node_classes
    from provisioner.validate.run import Options
    from provisioner.validate.where import Where

    if image and len(locks) > 1:
        raise UsageError("--image is the image of one lock", hints=("give one lock, or leave out --image to build each",))
    views = Views(evidence=evidence, junit=junit, html=html, sbom=sbom, sbom_spdx=sbom_spdx)
    views.require_one_report(len(locks) * len(node_classes or (1,)), is_recorded=record)
    views.require_one_stdout(output_format)
    views.require_an_image(engine, level, python)
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
        load_seconds=load,
        lists_parts=views.lists_parts,
        figures=_figures() if level == 5 else {},
    )
    stop = Event()
    given = Where(python=python, modules=tuple(modules or ()), wait=wait, stop=stop)
    places = [replace(given, nodes=nodes) for nodes in parse_node_classes(node_classes or ())]
    connected = [connect(engine, where, is_needed=level != 0) for where in places]
    jobs = [partial(_validated, lock, one, options, is_recorded=record and not evidence) for lock in locks for one in connected]
    validations = _together(jobs, stop) if engine in CLUSTERS else [job() for job in jobs]
    reports = [one.report for one in validations]
    views.write(validations)
    if output_format is OutputFormat.JSON:
        _show_json(reports)
    elif "-" not in views:
        for report in reports:
            _show(report)
    codes = {report.exit_code for report in reports}
    raise typer.Exit(1 if 1 in codes else max(codes))


def _figures() -> dict[str, Figures]:
    """Return what healthy boards reach, by PCI device id."""
    from provisioner.matrix.load import load_matrix
    from provisioner.validate.compare_health import Figures

    rows = load_matrix().performance
    return {row.pci_device_id: Figures(memory_bandwidth=row.memory_bandwidth, float32=row.float32) for row in rows}


def _together(jobs: Sequence[Callable[[], Validation]], stop: Event) -> list[Validation]:
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
                # Who ends a process often does so twice. The second signal must neither keep the first from being obeyed nor
                # change the exit code: it is ignored until the process ends.
                before = signal.SIG_IGN
                signal.signal(signal.SIGTERM, before)
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise
            return [one.result() for one in started]
    finally:
        signal.signal(signal.SIGTERM, before)


def _validated(path: Path, engine: Engine, options: Options, *, is_recorded: bool) -> Validation:
    from msgspec.structs import replace

    from provisioner.cli.display import talk
    from provisioner.evidence.report import NO_ENGINE
    from provisioner.lock.format.file import read_lock
    from provisioner.validate.run import measure_lock
    from provisioner.workflow.fetching import single_files

    lock = read_lock(path)
    what = options.image or path
    by = "" if engine.name == NO_ENGINE else f" with {engine.name} {engine.version}".rstrip()
    on = f" on {engine.node_class}" if engine.node_class else ""
    talk(f"validating {what}{by}{on}")
    prefix = f"{engine.node_class}: " if engine.node_class else ""
    with single_files(path.parent) as read_wheel:
        options = replace(options, read_wheel=read_wheel)
        found = measure_lock(lock, path, engine=engine, options=options, log=lambda line: _show_progress(line, prefix))
    if is_recorded:
        _record(path, found.report)
    return found


def _show_progress(line: str, prefix: str) -> None:
    """Print one line of a build or run after a prefix, unless it is blank or the digest of a layer."""
    from provisioner.cli.display import talk

    _, _, rest = line.partition(" ")
    if line.strip() and not rest.startswith("sha256:"):
        talk(f"  {prefix}{line}")


def _record(path: Path, report: Report) -> None:
    """Write the evidence of a report beside its lock, unless what is there already proves more."""
    from provisioner.cli.display import talk, warn
    from provisioner.document import FileError
    from provisioner.errors import InvalidDocumentError
    from provisioner.evidence.report import is_stronger, proven_level
    from provisioner.evidence.statement import evidence_path, read_evidence, write_evidence

    target = evidence_path(path, report.platform, report.engine.node_class)
    try:
        recorded = read_evidence(target)
    except (FileError, InvalidDocumentError):
        recorded = None
    if recorded is not None and not recorded.is_edited and is_stronger(recorded.report, report):
        engine, level = recorded.report.engine.name, proven_level(recorded.report)
        warn(f"{target} already proves more of this lock: the levels up to {level}, with {engine}; it is kept")
        return
    write_evidence(target, report)
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
    engine = f", {report.engine.title}" if report.engine.title else ""
    nodes = f", nodes {report.engine.node_class}" if report.engine.node_class else ""
    data(f"{report.lock_file} on {report.platform}{engine}{nodes}, level {report.level}: {report.verdict}")


def _show_json(reports: list[Report]) -> None:
    from msgspec import to_builtins

    from provisioner.cli.display import json_data
    from provisioner.evidence.report import overall

    verdict = overall(field for report in reports for field in report.fields)
    json_data({"verdict": verdict, "reports": [to_builtins(report) for report in reports]})
