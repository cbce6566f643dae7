"""Are the locked files still what their indexes offer? Gone, exchanged under their name, withdrawn, or dated otherwise.

An index promises that a file never changes; a lock that pins hashes is where a broken promise shows.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from msgspec import Struct
from packaging.utils import canonicalize_name

from provisioner.index.model import DIRECT_PATH, DIRECT_URL, FIND_LINKS
from provisioner.lock.check.finding import Finding
from provisioner.lock.format.artifact import upload_moment

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from packaging.utils import NormalizedName

    from provisioner.index.model import IndexFile
    from provisioner.lock.format.model import Lock, LockedFile, LockedPackage

    Named = Callable[[NormalizedName, str, Collection[str]], tuple[IndexFile, ...]]
    """The files of a project that an index lists under some filenames, whatever they are for."""

NO_INDEX = frozenset({"", DIRECT_PATH, DIRECT_URL, FIND_LINKS})
"""Files from there are in no list that could say something of them today."""

_ALIKE = timedelta(seconds=1)
"""HTML pages and JSON pages of one index round an upload time differently."""

_VERDICTS = {"vanished": "no", "exchanged": "no"}


class Offer(Struct, frozen=True, kw_only=True):
    """What an index says today of one locked file that is not what the lock relies on.

    `kind` is `vanished` (no longer listed), `exchanged` (listed with another sha256), `yanked` (withdrawn, but still served:
    PEP 592) or `redated` (another upload time with the same content). `said` and `says` are what the lock and the index say.
    """

    kind: str
    name: str
    version: str
    filename: str
    index: str
    text: str
    said: str = ""
    says: str = ""

    @property
    def is_alarm(self) -> bool:
        """Whether the lock cannot be installed from this index any more."""
        return self.kind in _VERDICTS


def offers(lock: Lock, named: Named) -> Iterator[Offer]:
    """Everything an index says today that a lock does not expect, package by package.

    `lock` is of any number of platforms. Raises what `named` raises where an index cannot be asked.
    """
    for package in lock.packages:
        if package.index in NO_INDEX:
            continue
        files = {file.filename: file for file in package.files if not file.path}
        found = {file.filename: file for file in named(canonicalize_name(package.name), package.index, files.keys())}
        for filename, file in files.items():
            yield from _of_file(package, file, found.get(filename))


def offer_findings(found: tuple[Offer, ...], *, where: str) -> Iterator[Finding]:
    """What makes a lock useless: files nobody can have from its index any more."""
    for offer in found:
        if offer.is_alarm:
            hint = (
                "do not install it before somebody has said why: an index must never change a file under its name"
                if offer.kind == "exchanged"
                else "`provision solve` locks what is offered today"
            )
            code = f"{offer.kind}-file"
            yield Finding(code=code, verdict=_VERDICTS[offer.kind], text=offer.text, where=where, hints=(hint,))


def _of_file(package: LockedPackage, file: LockedFile, listed: IndexFile | None) -> Iterator[Offer]:
    label = f"{package.name} {package.version}"

    def offer(kind: str, text: str, *, said: str = "", says: str = "") -> Offer:
        return Offer(
            kind=kind, name=package.name, version=package.version, filename=file.filename, index=package.index,
            text=text, said=said, says=says,
        )  # fmt: skip

    if listed is None:
        yield offer("vanished", f"`{file.filename}` of {label} is no longer listed by index {package.index}")
        return
    if listed.sha256 and listed.sha256.lower() != file.sha256:
        text = (
            f"`{file.filename}` of {label} has another sha256 on index {package.index} than in the lock: "
            f"{listed.sha256.lower()}, the lock has {file.sha256}"
        )
        yield offer("exchanged", text, said=file.sha256, says=listed.sha256.lower())
    if listed.yanked is not None:
        why = f": {listed.yanked}" if listed.yanked else ", with no reason given"
        yield offer("yanked", f"{label} is yanked{why}", says=listed.yanked)
    said, says = file.upload_time, upload_moment(listed.upload_time)
    if said is not None and says is not None and abs(said - says) >= _ALIKE:
        text = f"`{file.filename}` of {label} was uploaded {says.isoformat()} by its index, the lock says {said.isoformat()}"
        yield offer("redated", text, said=said.isoformat(), says=says.isoformat())
