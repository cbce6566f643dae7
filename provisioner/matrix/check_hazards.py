"""Whether what a matrix says of hazards can be meant: names, specifiers, owners that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.document import KeyPath
    from provisioner.errors import Mistake
    from provisioner.matrix.check_distributions import Cited
    from provisioner.matrix.files import Parsed
    from provisioner.matrix.schema_distributions import HazardFile, OwnerEntry, SharedFileEntry


def check_hazards(file: Parsed[HazardFile], *, cited: Cited) -> Iterator[Mistake]:
    """Every mistake of meaning in the file of hazards; `cited` judges the sources of one entry."""
    entries = file.content.shared_files
    yield from file.repeated("shared_files", "shared file", [entry.name for entry in entries])
    for index, entry in enumerate(entries):
        path = ("shared_files", index)
        yield from _owners(file, path, entry)
        yield from cited(file, path, entry.source, f"shared file `{entry.name}`")


def _owners(file: Parsed[HazardFile], path: KeyPath, entry: SharedFileEntry) -> Iterator[Mistake]:
    names = [owner.distribution for owner in entry.owners]
    if len(set(names)) < 2:
        yield file.mistake((*path, "owners"), f"shared file `{entry.name}` must have two owners or more")
    if len({owner.content for owner in entry.owners}) == 1 and len(names) > 1:
        text = f"all owners of `{entry.path}` have the same content, so it does not matter whose is in effect"
        yield file.mistake((*path, "owners"), text)
    for number, owner in enumerate(entry.owners):
        below = (*path, "owners", number)
        if owner.distribution in names[:number]:
            yield file.mistake((*below, "distribution"), f"`{owner.distribution}` is an owner already")
        yield from _owner(file, below, owner)


def _owner(file: Parsed[HazardFile], path: KeyPath, owner: OwnerEntry) -> Iterator[Mistake]:
    name = canonicalize_name(owner.distribution)
    if name != owner.distribution:
        yield file.mistake((*path, "distribution"), f"`{owner.distribution}` is spelled `{name}` by indexes")
    if canonicalize_name(owner.artefact.partition("-")[0]) != name or not owner.artefact.endswith(".whl"):
        yield file.mistake((*path, "artefact"), f"`{owner.artefact}` is not a wheel of `{owner.distribution}`")
    if not owner.sha256:
        yield file.mistake((*path, "sha256"), f"what was measured in `{owner.artefact}` needs the wheel's sha256")
    try:
        SpecifierSet(owner.versions)
    except InvalidSpecifier:
        text = f"`{owner.versions}` is not a version specifier such as >=1.0,<2 or ==1.*"
        yield file.mistake((*path, "versions"), text)
