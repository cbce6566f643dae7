"""Notices: what a user should hear although the work goes on."""

from __future__ import annotations

from msgspec import Struct

from provisioner.places import Place  # noqa: TC001 - part of types that are matched at run time


class UnusedEarlierLock(Struct, frozen=True):
    """The earlier lock is ours, and cannot be read."""

    problem: str


class EndsHere(Struct, frozen=True):
    """A run that wrote something would end with this error; a dry run goes on."""

    problem: str


class UnknownUpgrade(Struct, frozen=True):
    """A name that was to be upgraded is in no stack; `nearest` is the name that may be meant, "" for none."""

    name: str
    nearest: str


class UnusedPreference(Struct, frozen=True):
    """A name under `policy.prefer` or `policy.avoid` is in no stack; `table` is the key."""

    table: str
    name: str
    place: Place


class NoDigest(Struct, frozen=True):
    """The registry of a base image was not asked for its digest, or did not give it; `problem` "": the run is offline."""

    reference: str
    problem: str = ""


class MissingDetails(Struct, frozen=True, kw_only=True):
    """A lock goes without the size, or the attestation identities, of some files."""

    detail: str
    files: int
    is_offline: bool


class Told(Struct, frozen=True):
    """What an index, an inspection or the table of another tool has to say, in its own words."""

    text: str


Notice = UnusedEarlierLock | EndsHere | UnknownUpgrade | UnusedPreference | NoDigest | MissingDetails | Told
