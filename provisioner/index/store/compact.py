"""Releases <-> the bytes the cache keeps: rows without keys, for a project may have a thousand of them.

msgspec makes the objects from the bytes, and a version is taken apart only when somebody compares it: most never are.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

from msgspec import MsgspecError
from msgspec.json import Decoder, Encoder
from packaging.version import Version

from provisioner.index.model import PackageRelease

if TYPE_CHECKING:
    from collections.abc import Iterable

FORMAT = "3"
"""What these bytes are called where they are kept: those of another format are not looked at."""


_ONE_AT_A_TIME = Lock()


class _KeptVersion(Version):
    """A version as it was written down, in the normal spelling: its parts are there as soon as one is asked for."""

    __slots__ = ("_kept",)

    def __init__(self, kind: type[Any], text: Any) -> None:  # noqa: ANN401 - what JSON holds in the place of a version
        if type(text) is not str:
            raise TypeError(f"a {kind.__name__} is written as text")  # which the decoder makes an error of its own
        self._kept = text

    def __str__(self) -> str:
        return self._kept

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a part of a version is
        # Only what nothing has been assigned to yet is asked for here: the parts, before the text is taken apart. Threads share
        # releases: who came second would take away the sort key that the first has just made.
        with _ONE_AT_A_TIME:
            try:
                return object.__getattribute__(self, name)
            except AttributeError:
                Version.__init__(self, object.__getattribute__(self, "_kept"))
        return object.__getattribute__(self, name)


_ENCODER = Encoder(enc_hook=str)
_DECODER = Decoder(tuple[PackageRelease, ...], dec_hook=_KeptVersion)


def encode_releases(releases: Iterable[PackageRelease]) -> bytes:
    """Releases as bytes, in their order."""
    return _ENCODER.encode(tuple(releases))


def decode_releases(kept: bytes | None) -> tuple[PackageRelease, ...] | None:
    """The releases that `encode_releases` made bytes of; None for nothing, and for anything else."""
    if kept is None:
        return None
    try:
        return _DECODER.decode(kept)
    except (MsgspecError, UnicodeDecodeError):
        return None
