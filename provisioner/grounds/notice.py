"""Notices: messages to the user that do not stop the work."""

from __future__ import annotations

from msgspec import Struct

from provisioner.host.remark import Remark
from provisioner.index.notice import ConfusionNotice, IndexName, IndexSkipped
from provisioner.places import Place  # noqa: TC001 - part of types that are matched at run time


class UnusedEarlierLock(Struct, frozen=True):
    """An earlier lock that provision wrote but cannot read, so that it is not used; `problem` is the error message."""

    problem: str


class EndsHere(Struct, frozen=True):
    """An error (`problem` is its message) after which only a dry run continues; a run that writes files would end."""

    problem: str


class UnknownUpgrade(Struct, frozen=True):
    """A name to upgrade that is in no stack; `nearest` is the name that may be meant, "" for none."""

    name: str
    nearest: str


class UnusedPreference(Struct, frozen=True):
    """A name under `policy.prefer`, `policy.avoid` or `policy.accept` (`table`) that is in no stack, so it has no effect."""

    table: str
    name: str
    place: Place


class NoDigest(Struct, frozen=True):
    """A base image without a known digest, because of a `problem` with its registry, "" when the run is offline."""

    reference: str
    problem: str = ""


class MissingDetails(Struct, frozen=True, kw_only=True):
    """A `detail` of files that the lock lacks, `size` or `attestations` (identities); `files` is the number of these files.

    `is_offline`: the run is offline and the cache lacks the detail; otherwise the server does not state it.
    """

    detail: str
    files: int
    is_offline: bool


class MovedIndex(Struct, frozen=True, kw_only=True):
    """Packages that are taken from another index than in the earlier lock, `before`.

    The URL of `before` is "" when the lock records none.
    """

    packages: tuple[str, ...]
    index: IndexName
    before: IndexName


class AddIndex(Struct, frozen=True, kw_only=True):
    """The advice to add an index to the spec; `url` is "" if unknown.

    `with_default`: the spec lists no indexes yet, so the user must add PyPI, too.
    """

    name: str
    url: str
    with_default: bool


class NameFile(Struct, frozen=True):
    """The advice to name the file of a package in the spec, by the `url` of the file."""

    url: str


class BuildWheels(Struct, frozen=True):
    """The advice to build wheels of the packages, and to name these wheels in the spec."""


class TakenElsewhere(Struct, frozen=True, kw_only=True):
    """Packages that another tool takes from another source than the indexes; `instead` is the equivalent change of the spec.

    `lines` are the lines of the tool's file that name the packages. `kind` is `git`, `url`, `path`, `workspace` or `index`;
    `address` is the URL or the path, "" for none, and `index` the name of an index, "" for another source.
    """

    tool: str
    packages: tuple[str, ...]
    lines: tuple[Place, ...]
    kind: str
    address: str
    index: str
    instead: AddIndex | NameFile | BuildWheels


class IndexOfFile(Struct, frozen=True, kw_only=True):
    """A line of a requirement file that names an index, or a page of files, by an `option` of pip.

    `use` is `asked`, `needless` for PyTorch's own index, whose builds are chosen without it, or `other` where the spec lists
    the indexes to ask. `variant` is the build (`cu124`) that an address of PyTorch's index is of, "" for none.
    """

    option: str
    url: str
    place: Place
    use: str
    variant: str = ""


class ProjectNotLocked(Struct, frozen=True):
    """A line of a requirement file that names the folder of a project, of which only the dependencies are locked."""

    line: str
    place: Place


class OptionOfPip(Struct, frozen=True, kw_only=True):
    """An option in a requirement file, by its `name`, that says how pip works and not what it installs."""

    name: str
    value: str
    place: Place


class SettingOfTool(Struct, frozen=True, kw_only=True):
    """A setting of uv or PDM in a project that is not read: its `key`, its `kind`, and what it asks for (`texts`).

    `kind` is `override`, `constraint` or `index`, which have a key of a spec to be written under, or `other`.
    """

    tool: str
    key: str
    kind: str
    texts: tuple[str, ...]
    place: Place


SourceNotice = ConfusionNotice | MovedIndex | TakenElsewhere
"""Notices on the index or other source that packages are taken from."""

Notice = (
    UnusedEarlierLock
    | EndsHere
    | UnknownUpgrade
    | UnusedPreference
    | NoDigest
    | MissingDetails
    | Remark
    | IndexSkipped
    | IndexOfFile
    | OptionOfPip
    | ProjectNotLocked
    | SettingOfTool
    | SourceNotice
)
