"""The host profiles that are shipped: one kind of machine each, with what only a real machine can state left open."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.document import parse_document, read_text
from provisioner.errors import UsageError
from provisioner.host.load import KIND, host_from_document
from provisioner.names import nearest

if TYPE_CHECKING:
    from provisioner.host.model import Host

_DIRECTORY = Path(__file__).parent / "profiles"


class Profile(Struct, frozen=True, kw_only=True):
    """A shipped profile: what it stands for in words, and its facts."""

    name: str
    description: str
    host: Host


def profile_names() -> tuple[str, ...]:
    """The names of the shipped profiles, sorted."""
    return tuple(sorted(path.stem for path in _DIRECTORY.glob("*.yaml")))


def load_profile(name: str) -> Profile:
    """Read a shipped profile; raises `UsageError` with the nearest name when there is none."""
    known = profile_names()
    if name not in known:
        near = nearest(name.lower(), known)
        hints = (f"did you mean `{near}`?",) if near else ()
        raise UsageError(f"there is no profile `{name}`", hints=(*hints, f"profiles: {', '.join(known)}"))
    text = read_text(_DIRECTORY / f"{name}.yaml", kind=KIND)
    description = text.splitlines()[0].removeprefix("#").strip()
    return Profile(
        name=name, description=description, host=host_from_document(parse_document(text, file=f"{name}.yaml", kind=KIND))
    )
