"""From paths on the command line to one request for each platform: the only place where spec, hosts and matrix meet."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provisioner.document import Document
    from provisioner.matrix.model import Matrix
    from provisioner.request import TargetHost, Request
    from provisioner.spec.model import Spec


INLINE = "target.host"
"""What a host that stands in the spec itself is called."""


class Inputs(Struct, frozen=True, kw_only=True):
    """A validated spec, the document it came from, the hosts and the matrix.

    `target` is the name of the target, of a spec that names several, and `targets` are the names of all: `spec` and
    `document` then speak of that one.
    """

    spec: Spec
    document: Document
    path: Path
    hosts: tuple[TargetHost, ...]
    matrix: Matrix
    target: str = ""
    targets: tuple[str, ...] = ()

    @property
    def platforms(self) -> tuple[str, ...]:
        """Every platform the spec wants locked."""
        platform = self.spec.target.platform
        return platform if isinstance(platform, tuple) else (platform,)

    def request(self, platform: str, *, preferred: Mapping[str, str] | None = None) -> Request:
        """What is wanted on one platform; hosts of another platform do not bind it, and those that state the same are one."""
        from provisioner.request import Request, alike

        hosts = alike([target for target in self.hosts if target.host.platform in {None, platform}])
        places = {"": self.document.file}
        for key in self.document.keys:
            places[".".join(str(part) for part in key)] = self.document.where(key)
        return Request(spec=self.spec, hosts=hosts, platform=platform, places=places, preferred=preferred or {})


def read_inputs(
    spec_path: Path,
    *,
    hosts: Sequence[Path] | None = None,
    exclude_newer: str | None = None,
    matrix: Path | None = None,
    target: str | None = None,
    is_target_optional: bool = False,
) -> Inputs:
    """Read the spec, the hosts it names (or those given instead) and the matrix; all mistakes of a file at once.

    Of a spec with several targets, `target` is the one wanted; of a spec with one it must be None, unless it is optional.
    """
    found = _read(spec_path, exclude_newer=exclude_newer, matrix=matrix)
    return with_hosts(_only(found, None if is_target_optional and not found.spec.targets else target), hosts)


def read_targets(
    spec_path: Path,
    *,
    hosts: Sequence[Path] | None = None,
    exclude_newer: str | None = None,
    matrix: Path | None = None,
    wanted: Sequence[str] = (),
) -> list[Inputs]:
    """The inputs of every target of a spec, or of those wanted; as `read_inputs`."""
    found = _every(_read(spec_path, exclude_newer=exclude_newer, matrix=matrix), wanted)
    if hosts and len(found) > 1:
        raise UsageError(
            f"--host stands in place of the hosts of one target, and {found[0].document.file} has {len(found)}",
            hints=("choose one with --target",),
        )
    return [with_hosts(one, hosts) for one in found]


def with_hosts(found: Inputs, hosts: Sequence[Path] | None = None) -> Inputs:
    """Inputs with the hosts their spec names, or those given instead."""
    targets = hosts_of(found, hosts)
    _same_platform(targets, found.spec, found.document)
    return replace(found, hosts=targets)


def read_without_hosts(
    spec_path: Path, *, exclude_newer: str | None = None, matrix: Path | None = None, target: str | None = None
) -> Inputs:
    """Read the spec, of several targets the one wanted, and the matrix; hosts are read by who knows better where they are."""
    return _only(_read(spec_path, exclude_newer=exclude_newer, matrix=matrix), target)


def _only(found: Inputs, target: str | None) -> Inputs:
    """The inputs of one target, None for those of a spec that has no other; raises as `of_target`."""
    from provisioner.spec.targets import of_target

    spec, document = of_target(found.spec, found.document, target)
    return replace(found, spec=spec, document=document, target=target or "", targets=tuple(found.spec.targets))


def _every(found: Inputs, wanted: Sequence[str]) -> list[Inputs]:
    """The inputs of every target, or of those wanted, in the order of the spec; of a spec without targets itself alone."""
    if not found.spec.targets and not wanted:
        return [found]
    chosen = {name: _only(found, name) for name in wanted or found.spec.targets}
    return [chosen[name] for name in found.spec.targets if name in chosen]


def _read(spec_path: Path, *, exclude_newer: str | None, matrix: Path | None) -> Inputs:
    """The spec with all its targets, and the matrix."""
    from provisioner.matrix.cache import cached_matrix
    from provisioner.spec.load import check_components, load_spec

    spec, document = load_spec(spec_path)
    if exclude_newer is not None:
        spec = replace(spec, policy=replace(spec.policy, exclude_newer=_day(exclude_newer)))
    loaded = cached_matrix(matrix)
    check_components(document, spec, [*loaded.components, "pytorch_build"])
    return Inputs(spec=spec, document=document, path=spec_path, hosts=(), matrix=loaded)


def hosts_of(inputs: Inputs, given: Sequence[Path] | None = None) -> tuple[TargetHost, ...]:
    """The hosts the spec names, or those given instead; a target nobody described where there are none."""
    found = _hosts(inputs.spec, inputs.document, inputs.path, given)
    if not inputs.target:
        return found
    return tuple(replace(one, label=f"targets.{inputs.target}.host") if one.label == INLINE else one for one in found)


def require_available_outputs(inputs: Inputs) -> None:
    """Raise `UsageError` for an output of the contract that this version does not write."""
    from provisioner.render.formats import FORMATS

    unknown = [output for output in inputs.spec.outputs if output not in FORMATS]
    if unknown:
        place = inputs.document.where(("outputs", inputs.spec.outputs.index(unknown[0])))
        raise UsageError(
            f"output `{unknown[0]}` ({place}) is not available in this version", hints=(f"available: {', '.join(FORMATS)}",)
        )


def require_other_outputs(inputs: Inputs, folder: Path) -> None:
    """Raise `UsageError` for an output that would be written over a file the spec was read from."""
    from provisioner.render.formats import FORMATS
    from provisioner.spec.gather import files_of

    read = {inputs.path.resolve(), *files_of(inputs.document)}
    for index, output in enumerate(inputs.spec.outputs):
        if Path(os.path.realpath(folder / FORMATS[output])) in read:  # `resolve` raises on a link that leads to itself
            place = inputs.document.where(("outputs", index))
            other = f"call the file that is read otherwise, such as {Path(FORMATS[output]).stem}.in"
            raise UsageError(
                f"output `{output}` ({place}) would overwrite `{folder / FORMATS[output]}`, which the spec reads",
                hints=(f"{other}, or write elsewhere with --out",),
            )


def _day(text: str) -> str:
    from datetime import date, datetime

    for read in (date.fromisoformat, datetime.fromisoformat):
        try:
            read(text)
        except ValueError:
            continue
        return text
    raise UsageError(f"--exclude-newer `{text}` is not a date", hints=("write it as 2026-09-01",))


def _hosts(spec: Spec, document: Document, spec_path: Path, given: Sequence[Path] | None) -> tuple[TargetHost, ...]:
    from provisioner.spec.load import host_paths

    if given:
        return tuple(_profile(path, path) for path in given)
    stated = spec.target.host
    if stated is None:
        return (_open_host(),)
    if stated == "auto":
        return (_this_machine(),)
    if isinstance(stated, dict):
        return (_inline(document),)
    return tuple(_profile(path, _shown(path, spec_path)) for path in host_paths(spec, spec_path))


def _shown(path: Path, spec_path: Path) -> Path:
    """A profile as users know it: relative to the spec when it lies beside or below it."""
    folder = spec_path.parent
    return path.relative_to(folder) if folder != Path() and path.is_relative_to(folder) else path


def _profile(path: Path, shown: Path) -> TargetHost:
    from provisioner.document import load_document
    from provisioner.host.load import host_from_document

    document = load_document(path, kind="host profile")
    return _target(replace(document, file=str(shown)), str(shown), host_from_document)


def _inline(document: Document) -> TargetHost:
    from provisioner.host.load import host_from_document

    return _target(document.below(("target", "host")), INLINE, host_from_document)


def _target(document: Document, label: str, read: object) -> TargetHost:
    from provisioner.request import TargetHost

    assert callable(read)
    places = {".".join(str(part) for part in key): document.where(key) for key in document.keys}
    return TargetHost(label=label, host=read(document), places=places)


def _open_host() -> TargetHost:
    """A target nobody described: everything the solver can choose is chosen, the rest is unverified."""
    from provisioner.host.model import Host
    from provisioner.request import TargetHost

    return TargetHost(label="the target", host=Host())


def _this_machine() -> TargetHost:
    from provisioner.cli.display import warn
    from provisioner.host.inspect import inspect_host
    from provisioner.request import TargetHost

    inspection = inspect_host()
    for note in inspection.notes:
        warn(note)
    return TargetHost(label="this machine", host=inspection.host)


def _same_platform(targets: tuple[TargetHost, ...], spec: Spec, document: Document) -> None:
    """A host of a platform nobody asked for is a mistake, not a host to skip in silence."""
    wanted = spec.target.platform if isinstance(spec.target.platform, tuple) else (spec.target.platform,)
    for target in targets:
        if target.host.platform is not None and target.host.platform not in wanted:
            place = document.where(("target", "platform"))
            raise UsageError(
                f"host `{target.label}` is {target.host.platform}, but the spec locks {', '.join(wanted)}",
                causes=(
                    f"target.platform: {', '.join(wanted)}  ({place})",
                    f"platform: {target.host.platform}  ({target.label})",
                ),
                hints=(f"set target.platform to {target.host.platform}, or leave this host out",),
            )
