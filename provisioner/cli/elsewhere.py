"""What a user should hear of names that another tool takes from elsewhere, by a `pyproject.toml` that the spec reads."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from provisioner.index.address import public_url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.cli.inputs import Inputs
    from provisioner.index.settings import IndexLocation
    from provisioner.spec.other_sources import OtherSource

_FILES = (".whl", ".tar.gz", ".zip")
_PYTORCH, _NIGHTLY = "https://download.pytorch.org/whl", "/nightly"
"""The index of PyTorch's builds is asked anyway, for the build that the target needs; that of its nightly builds is not."""


def elsewhere(inputs: Inputs, indexes: Sequence[IndexLocation]) -> tuple[str, ...]:
    """One line for each place that a tool's table names and that is not asked here, with its names and what to write instead.

    `indexes` are those that are asked. A name is not told where the spec says whose it is: by address, or in the `packages` of
    an index.
    """
    from provisioner.spec.gather import elsewhere_in

    spec = inputs.spec
    wanted = [Requirement(text) for text in (*spec.packages, *spec.overrides)]
    settled = {canonicalize_name(one.name) for one in wanted if one.url}
    together: dict[tuple[str, ...], list[OtherSource]] = {}
    for source in elsewhere_in(inputs.document):
        is_claimed = any(index.pins(source.name) for index in indexes)
        if source.name not in settled and not is_claimed and not _is_asked(source, indexes):
            key = (source.table, source.kind, source.place, source.index)
            together.setdefault(key if source.kind in {"index", "workspace"} else (*key, source.name), []).append(source)
    return tuple(f"{_told(sources)}; {_instead(sources, inputs)}" for sources in together.values())


def _is_asked(source: OtherSource, indexes: Sequence[IndexLocation]) -> bool:
    """Whether a name comes from there anyway: the first index asked is the one, or it is that of PyTorch's builds."""
    place = public_url(source.place).rstrip("/")
    if source.kind != "index" or not place:
        return False
    is_first = bool(indexes) and public_url(indexes[0].url).rstrip("/") == place
    return is_first or (place.startswith(_PYTORCH) and _NIGHTLY not in place)


def _told(sources: Sequence[OtherSource]) -> str:
    first = sources[0]
    names = ", ".join(f"`{one.name}` ({one.position.file}:{one.position.line})" for one in sources)
    them = "it" if len(sources) == 1 else "them"
    return f"{first.tool} takes {names} from {_place(first)}, and here the indexes are asked for {them}"


def _place(source: OtherSource) -> str:
    place = public_url(source.place)
    if source.kind == "index":
        return f"the index `{source.index}`{f', {place}' if place else ''}"
    return {"git": f"the repository {place}", "workspace": "its workspace", "path": f"the path {place}"}.get(source.kind, place)


def _instead(sources: Sequence[OtherSource], inputs: Inputs) -> str:
    """What to write in the spec so that the names come from there."""
    first, names = sources[0], ", ".join(one.name for one in sources)
    if first.kind == "index":
        # Spelled as specs spell names of indexes.
        index = re.sub(r"[^a-z0-9._-]+", "-", first.index.lower()).strip("-._") or "other"
        entry = f'{{name: {index}, url: "{public_url(first.place) or "URL"}", packages: [{names}]}}'
        default = '{name: pypi, url: "https://pypi.org/simple"}'
        return f"write `{entry}` under `indexes:`" if inputs.spec.indexes else f"write `indexes: [{default}, {entry}]`"
    if first.kind in {"url", "path"} and first.place.endswith(_FILES):
        # A path starts from the project there, and from the spec here.
        path = os.path.relpath(Path(first.position.file).parent / first.place, inputs.path.parent)
        address = public_url(first.place) if first.kind == "url" else f"file:{Path(path).as_posix()}"
        return f"write `{first.name} @ {address}` under `packages:`"
    what = "a wheel" if len(sources) == 1 else "wheels"
    written = " and ".join(f"`{one.name} @ URL`" for one in sources[:2]) + (" and so on" if len(sources) > 2 else "")
    return f"build {what} (`pip wheel --no-deps`) and write {written} under `packages:`"
