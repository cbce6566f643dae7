"""Notices as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.grounds import notice as of
from provisioner.words.notation import counted

if TYPE_CHECKING:
    from provisioner.grounds.notice import Notice

_DETAILS = {"size": "size", "attestations": "attestation identities"}


def notice_words(notice: Notice) -> str:
    """Return a notice as one line."""
    match notice:
        case of.UnusedEarlierLock(problem=problem):
            return f"the earlier lock is not used: {problem}"
        case of.EndsHere(problem=problem):
            return f"without --dry-run this ends here: {problem}"
        case of.UnknownUpgrade(name=name, nearest=nearest):
            return f"--upgrade-package `{name}` is in no stack{f'; did you mean `{nearest}`?' if nearest else ''}"
        case of.UnusedPreference(table=table, name=name, place=place):
            return f"policy.{table} `{name}` ({place}) is in no stack, so it changes nothing"
        case of.NoDigest(reference=reference, problem=problem):
            return f"image {reference}: {problem or 'offline, so its registry was not asked for its digest'}"
        case of.MissingDetails(detail=detail, files=files, is_offline=is_offline):
            why = "offline, and not in the cache" if is_offline else "their server does not tell"
            return f"the lock goes without the {_DETAILS[detail]} of {counted(files, 'file')}: {why}"
        case of.Told(text=text):
            return text
