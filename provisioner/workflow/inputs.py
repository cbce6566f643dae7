"""Read the inputs of a job from files: the spec, the hosts and the matrix."""

from __future__ import annotations

import hashlib
import os
import re
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from provisioner.accelerators import IMAGE_KINDS, accelerator_of_target
from provisioner.document import Document
from provisioner.errors import InvalidDocumentError, UsageError
from provisioner.host.catalogue import Catalogue
from provisioner.host.gpu_names import GpuNames, NamedGpu
from provisioner.host.model import Host, HostGpu
from provisioner.host.profile import Profile, host_from_document, load_profile
from provisioner.lock.requested import EXCLUDE_NEWER, PACKAGES, recorded_requirements
from provisioner.matrix.cache import cached_matrix
from provisioner.matrix.model import Matrix
from provisioner.matrix.once import once_per_matrix
from provisioner.outputs import OUTPUTS
from provisioner.places import Place
from provisioner.platforms import DEFAULT_PLATFORM, JETSON, PLATFORMS
from provisioner.request import Request, TargetHost, listed_target, merge_equal_hosts
from provisioner.resolver.rules.images import images_named
from provisioner.spec.check import component_mistakes
from provisioner.spec.load import AUTO, REQUIREMENTS, WITH, Asked, host_paths, load_spec, select_target
from provisioner.spec.model import canonical_text
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.errors import Mistake
    from provisioner.host.remark import Remark
    from provisioner.lock.format.model import Lock
    from provisioner.platforms import PlatformName
    from provisioner.spec.model import Spec
    from provisioner.spec.pyproject import OtherSource
    from provisioner.spec.requirement_file import IndexLine, OptionLine, ProjectLine
    from provisioner.spec.tool_settings import ToolSetting

_KEY_LINE = re.compile(r"^(?:requires|packages|packages-from)[ \t]*:", re.MULTILINE)
_TABLE_LINE = re.compile(r"^\[tool\.provision\b", re.MULTILINE)

INLINE = "target.host"
"""The label of a host that is written in the spec itself."""


class Inputs(Struct, frozen=True, kw_only=True):
    """A validated spec, the document it was read from, the hosts and the matrix.

    If the spec has `targets`, `target` is the name of the chosen one, `spec` and `document` are those of this target, and
    `targets` are the names of all. If `runs` lists several places, the spec is that of one of them, `places` are all, and
    `stated` is the spec of all.
    `files` are the files that the spec refers to and that were read with it. `other_sources` are the package sources that
    tables of other tools name for required distributions, `settings` what else these tables say;
    `indexes` and `projects` are lines of requirement files that name indexes, and projects in folders, `passed_over` the
    options that are for pip alone. `with_packages` are
    the lines of the command line that joined the packages; if
    `is_without_spec`, they are all that is asked for, and `path` names no file. `remarks` are those of an inspection of this
    machine. `is_strict` is whether the command was given `--strict`.
    """

    spec: Spec
    document: Document
    path: Path
    hosts: tuple[TargetHost, ...]
    matrix: Matrix
    target: str = ""
    targets: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    stated: Spec | None = None
    files: tuple[Path, ...] = ()
    other_sources: tuple[OtherSource, ...] = ()
    settings: tuple[ToolSetting, ...] = ()
    indexes: tuple[IndexLine, ...] = ()
    projects: tuple[ProjectLine, ...] = ()
    passed_over: tuple[OptionLine, ...] = ()
    with_packages: tuple[str, ...] = ()
    is_without_spec: bool = False
    remarks: tuple[Remark, ...] = ()
    is_strict: bool = False

    @property
    def is_trial(self) -> bool:
        """Whether packages of the command line joined a spec: the answer is then to more than a file asks for."""
        return bool(self.with_packages) and not self.is_without_spec

    @property
    def is_list(self) -> bool:
        """Whether packages are all that is asked for, in a requirement file or on the command line, which have no other key."""
        return self.is_without_spec or self.path.suffix in REQUIREMENTS

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms to lock."""
        platform = self.spec.target.platform
        return platform if isinstance(platform, tuple) else (platform,)

    @property
    def label(self) -> str:
        """The name of the target, and the place where it runs if the spec lists several; "" for a spec of one target."""
        return ", ".join(part for part in (self.target, self.spec.runs_in if self.places else "") if part)

    @property
    def digest(self) -> str:
        """`sha256:` and the hash of the spec's content, independent of its layout and comments."""
        return f"sha256:{hashlib.sha256(canonical_text(self.spec).encode()).hexdigest()}"

    def request(self, platform: str, *, preferred: Mapping[str, str] | None = None) -> Request:
        """Return the request for one platform with its hosts, of which those with equal facts are merged.

        `preferred` are the versions of an earlier lock that the solver tries first.
        """
        hosts = merge_equal_hosts([target for target in self.hosts if target.host.platform in {None, platform}])
        places = {**_places(self.document, self.path), "": Place(relative_to_spec(self.document.file, self.path))}
        return Request(
            spec=self.spec,
            hosts=hosts,
            platform=platform,
            places=places,
            preferred=preferred or {},
            has_strict_option=self.is_strict,
        )


def read_inputs(
    asked: Path | Asked,
    *,
    hosts: Sequence[Path] | None = None,
    exclude_newer: str | None = None,
    matrix: Path | Matrix | None = None,
    target: str | None = None,
    is_target_optional: bool = False,
) -> Inputs:
    """Read the spec, the hosts it names (or `hosts` in their place) and the matrix; report all mistakes of a file at once.

    `matrix` is its folder, or a matrix that was read already. Packages without a spec are asked for this
    machine unless there are `hosts`.

    Of a spec that lists several places under `runs`, the inputs are those of the first; `in_place` has the others.
    `target` names one of the targets of a spec with several. For a spec without targets it must be None; with
    `is_target_optional` it is ignored there. Raises `InvalidDocumentError`, `FileError` or `UsageError`.
    """
    found = _read(asked, exclude_newer=exclude_newer, matrix=matrix)
    inputs = _with_hosts(_only(found, None if is_target_optional and not found.spec.targets else target), hosts)
    return _apart(inputs)[0]


def in_place(inputs: Inputs, runs: str) -> Inputs:
    """Return the inputs of another place that the spec lists under `runs`; the same inputs where it does not list that."""
    if inputs.stated is None:
        return inputs
    apart = _apart(replace(inputs, spec=inputs.stated))
    return next((one for one in apart if one.spec.runs == runs), inputs)


@once_per_matrix
def catalogue_of(matrix: Matrix) -> Catalogue:
    """Return the GPUs, systems and boards that a matrix knows, into which the names in host profiles are translated."""
    system = matrix.components.get("os")
    systems = [str(release.version) for release in system.releases] if system is not None else []
    boards = [
        (rule.when.range, str(need.one_of[0]))
        for rule in matrix.rules
        for need in rule.require
        if rule.when.component == "jetson" and need.component == "gpu" and len(need.one_of) == 1
    ]
    driver = matrix.components.get("amdgpu")
    releases = [str(release.version) for release in driver.releases] if driver is not None else []
    return Catalogue(
        GpuNames(matrix.gpus, matrix.chips),
        systems=systems,
        boards=boards,
        modules=modules_of(matrix),
        releases=releases,
        platforms=_platforms_of_gpus(matrix),
    )


def _platforms_of_gpus(matrix: Matrix) -> dict[str, PlatformName]:
    """Return the platform of every machine with a GPU, for those on one module with a CPU: by its name, and by its target.

    A target is left out if another GPU with it is not on such a module.
    """
    of_product = {gpu.name: JETSON if gpu.kind == "jetson" else gpu.platform for gpu in matrix.gpus}
    of_target: dict[str, set[PlatformName | Literal[""]]] = {}
    for gpu in matrix.gpus:
        of_target.setdefault(gpu.target, set()).add(of_product[gpu.name])
    of_targets = {target: platforms.pop() for target, platforms in of_target.items() if len(platforms) == 1}
    return {name: platform for name, platform in (of_product | of_targets).items() if platform}


def modules_of(matrix: Matrix) -> dict[str, str]:
    """Return the series of AMD's driver (`30.20`) by the version that its kernel module calls itself (`6.16.6`).

    A module that serves several releases serves those of one series.
    """
    driver = matrix.components.get("amdgpu")
    rows = driver.releases if driver is not None else ()
    return {row.module: ".".join(str(row.version).split(".")[:2]) for row in rows if row.module}


def machine_called(name: str, matrix: Matrix) -> Profile:
    """Return a shipped profile, that of an instance type of a cloud, or one of a machine with one GPU that the matrix knows.

    Raises `UsageError` for a name that is none of these.
    """
    try:
        return load_profile(name)
    except UsageError:
        read = catalogue_of(matrix).gpus.read(name.replace("-", " "))
        product = next((gpu for gpu in matrix.gpus if isinstance(read, NamedGpu) and gpu.name == read.product), None)
        if product is None:
            raise
    gpu = HostGpu(name=product.name, compute_capability=product.compute_capability or None, gfx=product.gfx or None)
    host = catalogue_of(matrix).identify(Host(gpus=(gpu,)))
    host = replace(host, platform=host.platform or DEFAULT_PLATFORM)
    return Profile(name=name, description=f"one {product.name}; driver and kernel are left for the solver to choose", host=host)


def gpu_names_of(matrix: Matrix) -> dict[str, tuple[str, str]]:
    """Return product and compute capability by PCI device id, and by name for GPUs without one, for `inspect_host`."""
    return {identity: (gpu.name, gpu.compute_capability) for gpu in matrix.gpus for identity in (*gpu.pci_device_ids, gpu.name)}


def platform_of(inputs: Inputs, wanted: str | None) -> str:
    """Return the platform `wanted`, by default the first of the spec; raises `UsageError` when it is not one of the spec's."""
    if wanted is None:
        return inputs.platforms[0]
    if wanted not in inputs.platforms:
        raise UsageError(
            f"`{wanted}` is not a platform of {inputs.document.file}", hints=(f"it has {', '.join(inputs.platforms)}",)
        )
    return wanted


def read_locked_request(lock: Lock, folder: Path, *, hosts: Sequence[Path] | None, matrix: Path | Matrix | None) -> Inputs:
    """Return the inputs of a lock in `folder` that was solved without a spec, from what it recorded of the command line.

    Without `hosts` its one host has no facts: of the machine that it was solved on no lock tells.
    """
    packages = tuple(
        str(requirement)
        for key, text in lock.asked.items()
        if key.startswith(PACKAGES)
        for requirement in recorded_requirements(key.removeprefix(PACKAGES), text)
    )
    found = _read(Asked(packages=packages, name=lock.name), exclude_newer=lock.asked.get(EXCLUDE_NEWER), matrix=matrix)
    platforms = lock.platforms if len(lock.platforms) > 1 else lock.platforms[0]
    target = replace(found.spec.target, platform=platforms)
    spec = replace(found.spec, accelerator=lock.stacks[0].accelerator, target=target)  # which the host of the solve decided
    found = replace(found, spec=spec, path=folder / WITH)
    return _apart(_with_hosts(_only(found, None), hosts, is_of_lock=True))[0]


def read_targets(
    asked: Path | Asked,
    *,
    hosts: Sequence[Path] | None = None,
    exclude_newer: str | None = None,
    matrix: Path | None = None,
    wanted: Sequence[str] = (),
) -> list[Inputs]:
    """Read the inputs of every target of a spec, or of those in `wanted`, in every place that `runs` lists.

    Raises the errors of `read_inputs`, and `UsageError` when `hosts` are given for several targets.
    """
    found = _every(_read(asked, exclude_newer=exclude_newer, matrix=matrix), wanted)
    if hosts and len(found) > 1:
        raise UsageError(
            f"--host stands in place of the hosts of one target, and {found[0].document.file} has {len(found)}",
            hints=("choose one with --target",),
        )
    return [inputs for one in found for inputs in _apart(_with_hosts(one, hosts))]


def specs_in(paths: Sequence[Path]) -> list[Path]:
    """Return the files among `paths` and the specs below the folders among them; raises `UsageError` for a folder without one.

    A spec in a folder is a YAML file with a key of requirements, or a `pyproject.toml` with a table `[tool.provision]`; hidden
    folders are skipped.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if not path.is_dir():
            found[path] = None
            continue
        files = sorted(one for one in path.rglob("*") if one.suffix in {".yaml", ".yml"} or one.name == "pyproject.toml")
        inside = [one for one in files if not _is_hidden(one.relative_to(path)) and _is_spec(one)]
        if not inside:
            raise UsageError(
                f"no spec is in `{path}`: no YAML file has `requires:`, `packages:` or `packages-from:`, "
                "and no pyproject.toml has [tool.provision]",
                hints=("`provision init` writes a spec",),
            )
        found.update(dict.fromkeys(inside))
    return list(found)


def spec_in(path: Path) -> Path:
    """Return the spec that a folder has, or `path` if it is no folder; raises `UsageError` unless the folder has just one."""
    found = specs_in((path,))
    if len(found) > 1:
        raise UsageError(
            f"`{path}` has {len(found)} specs, and one is asked about", hints=tuple(f"`{one}` is one" for one in found)
        )
    return found[0]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _is_spec(path: Path) -> bool:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return (_TABLE_LINE if path.suffix == ".toml" else _KEY_LINE).search(text) is not None


def read_without_hosts(
    spec_path: Path, *, exclude_newer: str | None = None, matrix: Path | Matrix | None = None, target: str | None = None
) -> Inputs:
    """Read the spec (its target `target` if it has `targets`) and the matrix, but no hosts, for a job that has its own."""
    return _apart(_only(_read(spec_path, exclude_newer=exclude_newer, matrix=matrix), target))[0]


def hosts_of(inputs: Inputs, given: Sequence[Path] | None = None) -> tuple[TargetHost, ...]:
    """Return the hosts that the spec names, or those of the profiles `given`; one host without facts when both are missing."""
    return _with_hosts(inputs, given).hosts


def relative_to_spec(file: str, spec_path: Path) -> str:
    """Return the path of a file relative to the folder of the spec, independent of the working directory.

    If the two share only the root of the file system, the name of the file is returned: folders of one machine must not appear
    in an answer.
    """
    folder, path = os.path.abspath(spec_path.parent), os.path.abspath(file)  # noqa: PTH100 - does not resolve symbolic links
    try:
        is_apart = os.path.commonpath((folder, path)) == Path(folder).anchor != folder
    except ValueError:  # on different drives of Windows
        is_apart = True
    return Path(file).name if is_apart else Path(os.path.relpath(path, folder)).as_posix()


def _read(
    asked: Path | Asked,
    *,
    exclude_newer: str | None,
    matrix: Path | Matrix | None,
) -> Inputs:
    """Read the spec with all its targets, and the matrix, but no hosts."""
    asked = asked if isinstance(asked, Asked) else Asked(path=asked, packages=())
    asked = replace(asked, path=spec_in(asked.path)) if asked.path is not None else asked
    found = matrix if isinstance(matrix, Matrix) else cached_matrix(matrix)
    loaded = load_spec(
        asked,
        check=lambda document: (
            *component_mistakes(document, found.components),
            *_host_mistakes(document),
            *_image_mistakes(document, found),
        ),
    )
    spec = loaded.spec
    if exclude_newer is not None:
        spec = replace(spec, policy=replace(spec.policy, exclude_newer=_day(exclude_newer)))
    return Inputs(
        spec=spec,
        document=loaded.document,
        path=asked.path or Path(WITH),
        hosts=(),
        matrix=found,
        files=loaded.files,
        other_sources=loaded.other_sources,
        settings=loaded.settings,
        indexes=loaded.indexes,
        projects=loaded.projects,
        passed_over=loaded.passed_over,
        with_packages=asked.packages,
        is_without_spec=asked.path is None,
    )


_OF_ALPINE = re.compile(r"^(?!.*glibc)(?:.*[/:-])?alpine(?![a-z])")
"""References of images of Alpine Linux, as Docker's official images write them: `alpine:3.20`, `python:3.12-alpine3.20`."""


def _image_mistakes(document: Document, matrix: Matrix) -> Iterator[Mistake]:
    """Yield a mistake if an image has no glibc, or if packages of apt are wanted and it is not known to have apt-get."""
    image = document.data.get("image") if isinstance(document.data, dict) else None
    base = image.get("base", "auto") if isinstance(image, dict) else "auto"
    if not isinstance(image, dict) or not isinstance(base, str) or base in IMAGE_KINDS:
        return
    if _OF_ALPINE.search(base) and not image.get("glibc"):
        text = f"the C library of {base} is musl, and wheels are solved for glibc alone; `slim` is small, too, and has glibc"
        yield document.mistake(("image", "base"), text)
    elif image.get("apt") and not image.get("distribution") and not any(one.distribution for one in images_named(matrix, base)):
        text = (
            f"the matrix does not know whether {base} has apt-get; `distribution: debian:12`, for instance, states what it is"
        )
        yield document.mistake(("image", "apt"), text)


def _host_mistakes(document: Document) -> Iterator[Mistake]:
    """Yield the mistakes of every host that is written in the spec itself, with the key paths of the spec."""
    data = document.data if isinstance(document.data, dict) else {}
    targets = data.get("targets")
    several = targets.items() if isinstance(targets, dict) else ()
    for path, target in ((("target",), data.get("target")), *((("targets", name), one) for name, one in several)):
        if isinstance(target, dict) and isinstance(target.get("host"), dict):
            try:
                host_from_document(document.below((*path, "host")))
            except InvalidDocumentError as error:
                yield from (replace(one, path=".".join((*path, "host", one.path))) for one in error.mistakes)


def _day(text: str) -> str:
    for read in (date.fromisoformat, datetime.fromisoformat):
        try:
            read(text)
        except ValueError:
            continue
        return text
    raise UsageError(f"--exclude-newer `{text}` is not a date", hints=("write it as 2026-09-01",))


def _only(found: Inputs, target: str | None) -> Inputs:
    """Return the inputs of one target of the spec; raises the errors of `select_target`.

    `target` is its name, None for a spec without targets.
    """
    spec, document = select_target(found.spec, found.document, target)
    return replace(found, spec=spec, document=document, target=target or "", targets=tuple(found.spec.targets))


def _every(found: Inputs, wanted: Sequence[str]) -> list[Inputs]:
    """Return the inputs of every target, or of those in `wanted`, in the order of the spec; without `targets`, one item."""
    if not found.spec.targets and not wanted:
        return [found]
    chosen = {name: _only(found, name) for name in wanted or found.spec.targets}
    return [chosen[name] for name in found.spec.targets if name in chosen]


def _apart(inputs: Inputs) -> list[Inputs]:
    """Return the inputs once for each place that `runs` lists, each with a name, platforms and outputs of its own.

    The container has the image recipes, the host the other outputs. Raises `UsageError` if no container can be had.
    """
    runs = inputs.spec.runs
    if not isinstance(runs, tuple):
        return [inputs]
    if len(runs) == 1:
        return [replace(inputs, spec=replace(inputs.spec, runs=runs[0]))]
    return [_in_place(inputs, place, runs) for place in runs]


def _in_place(inputs: Inputs, place: Literal["container", "host"], places: tuple[str, ...]) -> Inputs:
    spec, is_container = inputs.spec, place == "container"
    platforms = tuple(one for one in inputs.platforms if not is_container or one.startswith("linux/"))
    if not platforms:
        at = ("runs", places.index(place))
        raise UsageError(
            f"`runs: container` ({inputs.document.where(at)}) cannot be on {', '.join(inputs.platforms)}: "
            "containers are of Linux",
            hints=("write `runs: host`, or name a linux platform under `target.platform`",),
        )
    outputs = tuple(
        output
        for output, file in zip(spec.outputs, spec.files, strict=True)
        if OUTPUTS[file.format].is_for_containers is is_container
    )
    target = replace(spec.target, platform=platforms if isinstance(spec.target.platform, tuple) else platforms[0])
    own = replace(spec, name=f"{spec.name}-{place}", runs=place, outputs=outputs, target=target)
    return replace(inputs, spec=own, places=places, stated=spec)


def _with_hosts(inputs: Inputs, given: Sequence[Path] | None, *, is_of_lock: bool = False) -> Inputs:
    """Return the inputs with hosts: those of the profiles `given`, else those of the spec, or without a spec this machine.

    With `is_of_lock` this machine is not meant: who reads a lock need not be on the machine that it was solved on. Raises
    `UsageError` when a host has a platform that the spec does not lock.
    """
    stated, remarks = inputs.spec.target.host, inputs.remarks
    if inputs.is_without_spec and not is_of_lock:
        stated = AUTO
    if given:
        hosts = tuple(_profile(path, inputs) for path in given)
    elif stated is None:
        hosts = (TargetHost(label="the target", host=Host()),)
    elif stated == AUTO:
        from provisioner.host.inspect import inspect_host  # imported late: only `host: auto` needs it

        inspection = inspect_host(modules=modules_of(inputs.matrix))
        hosts, remarks = (TargetHost(label="this machine", host=inspection.host),), inspection.remarks
    elif isinstance(stated, dict):
        label = f"targets.{inputs.target}.host" if inputs.target else INLINE
        hosts = (_target(inputs.document.below(("target", "host")), label, inputs.path),)
    else:
        hosts = tuple(_profile(path, inputs) for path in host_paths(inputs.spec, inputs.path))
    catalogue = catalogue_of(inputs.matrix)
    stated_gpus = tuple(one for target in hosts for one in _with_required_gpu(target, inputs))
    identified = tuple(replace(target, host=catalogue.identify(target.host)) for target in stated_gpus)
    inputs = replace(inputs, spec=_completed(inputs, identified))
    for target in identified:
        _require_platform(target, inputs)
    inputs = replace(inputs, hosts=identified, remarks=remarks)
    _require_glibc(inputs)
    return inputs


def _with_required_gpu(target: TargetHost, inputs: Inputs) -> tuple[TargetHost, ...]:
    """Return a host that leaves its GPUs open with the one GPU that the spec requires.

    For a range of GPUs that no newer one can belong to, these are hosts with each of them, for the target may be any.
    """
    text = inputs.spec.requires.get("gpu", "").removeprefix("==").strip()
    required = (text,) if accelerator_of_target(text) is not None else _gpus_within(text, inputs)
    if target.host.gpus is not None or not required:
        return (target,)
    place = _places(inputs.document, inputs.path).get("requires.gpu")
    at = {"gpus": place, "gpus.0": place} if place is not None else {}
    return tuple(
        replace(
            target,
            label=f"{target.label} with gpu {one}" if len(required) > 1 else target.label,
            host=replace(target.host, gpus=(HostGpu.of_target(one),)),
            places={**target.places, **at},
        )
        for one in required
    )


def _gpus_within(text: str, inputs: Inputs) -> tuple[str, ...]:
    """Return the compute capabilities in a range of the products that a host of the spec's platform may have.

    () if the range has no end, or one above the newest that the matrix knows, so that GPUs which nobody knows yet are in it.
    So, too, for other platforms than linux/amd64, where a GPU may be that of a Jetson, of which its release decides.
    """
    component = inputs.matrix.components.get("gpu")
    if not text or component is None or inputs.platforms != ("linux/amd64",):
        return ()
    newest, within = max(one.version for one in component.releases), Range.parse(text)
    unknown = (f"{newest.release[0]}.{newest.release[1] + 1}", f"{newest.release[0] + 1}.0")
    if any(within.allows(Version.parse(one)) for one in unknown):
        return ()
    cards = (gpu for gpu in inputs.matrix.gpus if gpu.kind != "jetson" and gpu.platform in {"", *inputs.platforms})
    known = {Version.parse(gpu.compute_capability) for gpu in cards if gpu.compute_capability}
    return tuple(str(one) for one in sorted(known) if within.allows(one))


def _completed(inputs: Inputs, hosts: Sequence[TargetHost]) -> Spec:
    """Return the spec with the defaults that its hosts decide: their common platform, and no outputs where no container is."""
    spec, stated = inputs.spec, inputs.document.data
    platforms = {target.host.platform for target in hosts} & PLATFORMS.keys()
    if len(platforms) == 1 and "platform" not in (stated.get("target") or {}):
        spec = replace(spec, target=replace(spec.target, platform=platforms.pop()))
    is_mac = all(platform.startswith("macos/") for platform in replace(inputs, spec=spec).platforms)
    return replace(spec, outputs=()) if (is_mac or spec.runs in {"host", ("host",)}) and "outputs" not in stated else spec


def _profile(path: Path, inputs: Inputs) -> TargetHost:
    """Return the host that a path names: a profile, or `FILE#NAME` of an inventory."""
    from provisioner.host.inventory import read_host  # with a reader for each kind of inventory

    label = relative_to_spec(str(path), inputs.path)
    found = read_host(path, catalogue=catalogue_of(inputs.matrix))
    if isinstance(found, Document):
        return _target(found, label, inputs.path)
    place = found.place and Place(relative_to_spec(found.place.file, inputs.path), found.place.line)
    return listed_target(found, label=label, place=place)


def _target(document: Document, label: str, spec_path: Path) -> TargetHost:
    return TargetHost(label=label, host=host_from_document(document), places=_places(document, spec_path))


def _places(document: Document, spec_path: Path) -> dict[str, Place]:
    """Return the file and line of every key of a document, the file relative to the folder of the spec."""
    places = document.places()
    files = {file: relative_to_spec(file, spec_path) for file in {place.file for place in places.values()}}
    return {key: Place(files[place.file], place.line) for key, place in places.items()}


def _require_platform(target: TargetHost, inputs: Inputs) -> None:
    """Raise `UsageError` if a host states, or other facts show, a platform or a system that the spec does not lock."""
    wanted, platform, system = inputs.platforms, target.host.platform, target.host.os
    if platform is not None:
        possible = tuple({platform} & PLATFORMS.keys())
        shown = catalogue_of(inputs.matrix).platforms_shown(target.host)
        showing = [f"{fact} shows that it is {platform}" for fact, one in shown.items() if one == platform]
        has, facts = f"is {platform}", ", ".join(showing) or f"platform: {platform}"
    elif system is not None:
        possible = tuple(one.name for one in PLATFORMS.values() if one.system == system.system)
        has, facts = f"has {system.id}", f"os: {system.id}"
    else:
        return
    if platform in wanted or (platform is None and set(possible) & set(wanted)):
        return
    where = inputs.document.where(("target", "platform"))
    raise UsageError(
        f"host `{target.label}` {has}, but the spec locks {', '.join(wanted)}",
        causes=(f"target.platform: {', '.join(wanted)}  ({where})", f"{facts}  ({target.label})"),
        hints=(
            f"set target.platform to {' or '.join(possible)}, or leave this host out"
            if possible
            else "locks are for Linux and macOS: leave this host out, or describe the Linux in its WSL 2 (`provision inspect`)",
        ),
    )


def _require_glibc(inputs: Inputs) -> None:
    """Raise `UsageError` if packages are to run on a host whose C library is musl: wheels for that are not looked for."""
    stated = inputs.spec.runs
    if "host" not in (stated if isinstance(stated, tuple) else {inputs.request(inputs.platforms[0]).runs}):
        return
    for target in inputs.hosts:
        system = target.host.os
        if system is not None and system.has_musl and target.host.glibc is None:
            raise UsageError(
                f"host `{target.label}` has {system.id}, whose C library is musl, and wheels are solved for glibc alone",
                hints=("write `runs: container`, whose image brings glibc; or state `glibc` if the host has one beside",),
            )
