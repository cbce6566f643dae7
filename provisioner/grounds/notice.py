"""Notices: messages to the user that do not stop the work."""

from __future__ import annotations

from msgspec import Struct

from provisioner.places import Place  # noqa: TC001 - part of types that are matched at run time


class UnusedEarlierLock(Struct, frozen=True):
    """The earlier lock was written by provision, but cannot be read, so it is not used."""

    problem: str


class EndsHere(Struct, frozen=True):
    """A dry run continues after an error that would end a run that writes files."""

    problem: str


class UnknownUpgrade(Struct, frozen=True):
    """A name to upgrade is in no stack; `nearest` is the name that may be meant, "" for none."""

    name: str
    nearest: str


class UnusedPreference(Struct, frozen=True):
    """A name under `policy.prefer` or `policy.avoid` (`table`) is in no stack."""

    table: str
    name: str
    place: Place


class NoDigest(Struct, frozen=True):
    """The digest of a base image is unknown, because of a `problem` with its registry, "" when the run is offline."""

    reference: str
    problem: str = ""


class MissingDetails(Struct, frozen=True, kw_only=True):
    """The lock lacks the size, or the attestation identities, of some files."""

    detail: str
    files: int
    is_offline: bool


class Told(Struct, frozen=True):
    """A message of an index, an inspection or another tool's table, in its own words."""

    text: str


Notice = UnusedEarlierLock | EndsHere | UnknownUpgrade | UnusedPreference | NoDigest | MissingDetails | Told
