"""The package indexes of a spec, its packages by URL or path, and the package sources in tables of other tools."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec.structs import replace
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from provisioner.errors import InvalidDocumentError, without_logins
from provisioner.grounds.notice import (
    AddIndex,
    BuildWheels,
    IndexOfFile,
    NameFile,
    OptionOfPip,
    ProjectNotLocked,
    SettingOfTool,
    TakenElsewhere,
)
from provisioner.index.address import public_url
from provisioner.index.direct_reference import DirectReferenceError, direct_reference, require_file, shown_url
from provisioner.index.settings import PYPI, settings_from_pip
from provisioner.lock.provenance import location_of
from provisioner.places import Place
from provisioner.resolver.rules.policy import uploads_until
from provisioner.workflow.inputs import relative_to_spec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.document import Position
    from provisioner.index.settings import IndexLocation, IndexSettings
    from provisioner.spec.pyproject import OtherSource
    from provisioner.spec.tool_settings import ToolSetting
    from provisioner.workflow.inputs import Inputs

_FILES = (".whl", ".tar.gz", ".zip")
_VARIANT = re.compile(r"(?:cu|rocm)[\d.]+|cpu|xpu")
_PYTORCH, _NIGHTLY = "https://download.pytorch.org/whl", "/nightly"
"""PyTorch's own index, used for the build that the target needs unless the spec lists indexes without it; path of nightlies."""


def index_settings(inputs: Inputs, *, is_offline: bool) -> IndexSettings:
    """Return the indexes of the spec, or those configured for pip, with the spec's policy on prereleases, dates and sources."""
    spec = inputs.spec
    policy = spec.policy
    allowed = set(policy.allow).difference(policy.forbid)
    lines = () if spec.lists_indexes else tuple(one for one in inputs.indexes if not _is_pytorch(one.url))
    settings = settings_from_pip(os.environ, [(one.option, one.url) for one in lines])
    requirements = [Requirement(text) for text in (*spec.packages, *spec.constraints, *spec.overrides)]
    own = tuple(map(location_of, spec.indexes))
    return replace(
        settings,
        indexes=own if spec.lists_indexes else (*own, *settings.indexes),
        main_index="" if spec.lists_indexes else settings.main_index,
        pytorch_index="" if spec.lists_indexes else settings.pytorch_index,
        offline=is_offline,
        exclude_newer=uploads_until(inputs.matrix, policy),
        accepts_undated=policy.exclude_newer is None,
        allow_prerelease="prerelease" in allowed,
        prerelease_names=frozenset(canonicalize_name(one.name) for one in requirements if one.specifier.prereleases),
        allow_sdist=bool(allowed & {"sdist", "build"}),
        allow_build="build" in allowed,
        direct_urls=tuple(one.url for one in map(Requirement, spec.packages) if one.url is not None),
        direct_folder=inputs.path.parent,
    )


def line_notices(inputs: Inputs) -> Iterator[IndexOfFile | OptionOfPip | ProjectNotLocked | SettingOfTool]:
    """Yield a notice for each line of a requirement file that names an index or the folder of a project, or is for pip alone.

    Settings of uv and PDM that decide what these install are told, too, if the spec does not say the same.
    """
    yield from _settings_of_tools(inputs)
    for line in inputs.indexes:
        use = "other" if inputs.spec.lists_indexes else "needless" if _is_pytorch(line.url) else "asked"
        address = public_url(line.url)
        variant = address.removeprefix(_PYTORCH).strip("/").partition("/")[0] if use == "needless" else ""
        yield IndexOfFile(
            option=line.option,
            url=shown_url(line.url),
            place=_place_of(line.position, inputs),
            use=use,
            variant=variant if _VARIANT.fullmatch(variant) else "",
        )
    for project in inputs.projects:
        yield ProjectNotLocked(line=project.text, place=_place_of(project.position, inputs))
    for option in inputs.passed_over:
        yield OptionOfPip(name=option.name, value=without_logins(option.value), place=_place_of(option.position, inputs))


def _settings_of_tools(inputs: Inputs) -> Iterator[SettingOfTool]:
    """Yield one notice for each key of another tool, without what the spec has, too: who lists indexes has chosen them."""
    spec = inputs.spec
    said = {"override": set(spec.overrides), "constraint": set(spec.constraints)}
    together: dict[tuple[str, str, str], list[ToolSetting]] = {}
    for one in inputs.settings:
        is_pypi = public_url(one.value).rstrip("/") == PYPI
        is_asked = one.kind == "index" and (spec.lists_indexes or is_pypi or _is_pytorch(one.value))
        if not is_asked and one.value not in said.get(one.kind, ()):
            together.setdefault((one.tool, one.key, one.kind), []).append(one)
    for (tool, key, kind), settings in together.items():
        texts = (shown_url(one.value) if kind == "index" else without_logins(one.value) for one in settings if one.value)
        place = _place_of(settings[0].position, inputs)
        yield SettingOfTool(tool=tool, key=key, kind=kind, texts=tuple(texts), place=place)


def _place_of(position: Position, inputs: Inputs) -> Place:
    return Place(relative_to_spec(position.file, inputs.path), position.line)


def _is_pytorch(url: str) -> bool:
    """Return whether a URL is of PyTorch's own index of stable builds, which is asked for the build that the target needs."""
    address = public_url(url)
    return address.startswith(_PYTORCH) and _NIGHTLY not in address


def require_files(inputs: Inputs) -> None:
    """Check the packages given by URL or path; raises `InvalidDocumentError` with every one that cannot be locked."""
    mistakes = []
    hints: dict[str, None] = {}
    for index, text in enumerate(inputs.spec.packages):
        requirement = Requirement(text)
        if requirement.url is None:
            continue
        try:
            _require_file(requirement, inputs.path.parent)
        except DirectReferenceError as error:
            mistakes.append(inputs.document.mistake(("packages", index), error.message))
            hints.update(dict.fromkeys(error.hints))
    if mistakes:
        raise InvalidDocumentError("spec", tuple(mistakes), hints=tuple(hints))


def _require_file(requirement: Requirement, folder: Path) -> None:
    assert requirement.url is not None
    if "@" in urlsplit(requirement.url).netloc:
        # The message omits the URL, because its login must not appear in logs.
        raise DirectReferenceError(
            f"the URL of `{requirement.name}` carries a login, and this file is shared",
            hints=("put the login of the host into ~/.netrc or the keyring",),
        )
    reference = direct_reference(requirement.name, requirement.url, folder)
    if reference.path:
        shown = f"{requirement.name} @ {shown_url(requirement.url)}"
        require_file(reference, shown, hints=("a relative path starts from the folder of the spec",))


def other_sources(inputs: Inputs, indexes: Sequence[IndexLocation]) -> tuple[TakenElsewhere, ...]:
    """Return notices on sources that other tools' tables name for packages of the spec, and that this program does not use.

    `indexes` are the indexes in use. Sources with the same table and address are one notice. A source is left out if the spec
    itself says where its package comes from: by URL, or in the `packages` of an index.
    """
    spec = inputs.spec
    wanted = [Requirement(text) for text in (*spec.packages, *spec.overrides)]
    settled = {canonicalize_name(one.name) for one in wanted if one.url}
    together: dict[tuple[str, ...], list[OtherSource]] = {}
    for source in inputs.other_sources:
        is_pinned = any(index.pins(source.name) for index in indexes)
        if source.name not in settled and not is_pinned and not _is_used(source, indexes, has_own=spec.lists_indexes):
            key = (source.table, source.kind, source.address, source.index)
            together.setdefault(key if source.kind in {"index", "workspace"} else (*key, source.name), []).append(source)
    return tuple(_notice(sources, inputs) for sources in together.values())


def _is_used(source: OtherSource, indexes: Sequence[IndexLocation], *, has_own: bool) -> bool:
    """Return whether the source is an index in use anyway: the first of `indexes`, or that of PyTorch's builds.

    With `has_own`, the indexes are those that the spec lists, and PyTorch's index is in use only if it is one of them.
    """
    address = public_url(source.address).rstrip("/")
    if source.kind != "index" or not address:
        return False
    is_first = bool(indexes) and public_url(indexes[0].url).rstrip("/") == address
    is_listed = any(one.url.startswith(_PYTORCH) for one in indexes)
    return is_first or (_is_pytorch(address) and (is_listed or not has_own))


def _notice(sources: Sequence[OtherSource], inputs: Inputs) -> TakenElsewhere:
    """Return the notice on sources that have one address in common."""
    first = sources[0]
    return TakenElsewhere(
        tool=first.tool,
        packages=tuple(one.name for one in sources),
        lines=tuple(Place(one.position.file, one.position.line) for one in sources),
        kind=first.kind,
        address=public_url(first.address),
        index=first.index,
        instead=_instead(first, inputs),
    )


def _instead(source: OtherSource, inputs: Inputs) -> AddIndex | NameFile | BuildWheels:
    """Return the change of the spec with which a package would come from the address of a source."""
    if source.kind == "index":
        # Index names in specs have these characters only.
        name = re.sub(r"[^a-z0-9._-]+", "-", source.index.lower()).strip("-._") or "other"
        return AddIndex(name=name, url=public_url(source.address), with_default=not inputs.spec.lists_indexes)
    if source.kind == "url" and source.address.endswith(_FILES):
        return NameFile(public_url(source.address))
    if source.kind == "path" and source.address.endswith(_FILES):
        # The other tool's path is relative to its project, the spec's to the folder of the spec.
        path = os.path.relpath(Path(source.position.file).parent / source.address, inputs.path.parent)
        return NameFile(f"file:{Path(path).as_posix()}")
    return BuildWheels()
