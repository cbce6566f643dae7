"""The content of a new spec, each part with the line of the file that it was read from."""

from __future__ import annotations

from msgspec import Struct, field

from provisioner.places import Place  # noqa: TC001 - msgspec evaluates the annotations


class Entry(Struct, frozen=True):
    """One value of a spec, spelled as in the spec, and the file and line that it was read from."""

    value: str
    place: Place


class ProjectEntry(Struct, frozen=True, kw_only=True):
    """One item of `packages-from`: a requirement file or `pyproject.toml`, with the extras that are wanted of a project."""

    file: str
    extras: tuple[str, ...] = ()
    place: Place


class IndexEntry(Struct, frozen=True, kw_only=True):
    """One item of `indexes`."""

    name: str
    url: str
    place: Place


class Content(Struct, frozen=True, kw_only=True):
    """The keys of a spec as read from other files; an empty value is a key that the spec leaves out.

    `image` are the keys of `image` except `apt`; `allow` are words of `policy.allow` beside the default ones.
    """

    sources: tuple[str, ...] = ()
    name: str = ""
    accelerator: Entry | None = None
    requires: dict[str, Entry] = field(default_factory=dict)
    packages: tuple[Entry, ...] = ()
    packages_from: tuple[ProjectEntry, ...] = ()
    constraints: tuple[Entry, ...] = ()
    indexes: tuple[IndexEntry, ...] = ()
    image: dict[str, Entry] = field(default_factory=dict)
    apt: tuple[Entry, ...] = ()
    allow: tuple[Entry, ...] = ()
