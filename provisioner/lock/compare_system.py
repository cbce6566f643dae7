"""What an environment is made of besides packages, before and after: components, base image, variables, what is unverified."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.lock.comparison import Change, differences
from provisioner.resolver.rules.gate import KEPT
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.lock.model import LockedStack

FIRST = ("pytorch", "tensorflow", "jax", "cuda", "rocm", "python")
"""Components that a reviewer looks for first; the image comes next, then the others by name."""

_IMAGE = re.compile(r"^image: \S+ (?=is not pinned)")

_ELSEWHERE = frozenset({"image", "platform", "pytorch_build"})
"""Told as the image, as the platform of the lock, and as part of `pytorch`."""


def component_labels(stack: LockedStack) -> dict[str, str]:
    """Every component and its version as one word: `pytorch`: `2.7.1+cu126`."""
    labels = {name: text for name, text in stack.components.items() if name not in _ELSEWHERE}
    build = stack.components.get("pytorch_build")
    if "pytorch" in labels and build and "+" not in labels["pytorch"]:
        labels["pytorch"] += f"+{build}"
    return labels


def system_changes(old: LockedStack, new: LockedStack) -> Iterator[Change]:
    """The system half of one platform, where the two locks differ, in the order of a review."""
    before, after = component_labels(old), component_labels(new)
    names = sorted({*before, *after}, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name))
    first = [name for name in names if name in FIRST]
    yield from _components(first, before, after)
    yield from _image(old, new)
    yield from _components([name for name in names if name not in FIRST], before, after)
    yield from _variables(old.environment, new.environment)
    yield from _listed("relaxations", old.relaxations, new.relaxations)
    yield from _listed("unverified", old.unverified, new.unverified)
    yield from _installer(old, new)


def moved(old: str, new: str) -> str:
    """`added`, `removed`, `upgraded`, `downgraded`, or `changed` for what has no order or differs in its build only."""
    if not old or not new:
        return "added" if new else "removed"
    try:
        before, after = Version.parse(old), Version.parse(new)
    except ValueError:
        return "changed"
    if before == after:
        return "changed"
    return "upgraded" if before < after else "downgraded"


def arrow(subject: str, old: str, new: str) -> str:
    """`cuda 12.4.1 -> 12.6.3`, `cuda 12.6.3 is new`, `cuda 12.4.1 is gone`."""
    if old and new:
        return f"{subject} {old} -> {new}"
    return f"{subject} {new} is new" if new else f"{subject} {old} is gone"


def _components(names: list[str], before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Change]:
    for name in names:
        old, new = before.get(name, ""), after.get(name, "")
        if old != new:
            change = moved(old, new)
            text = arrow(name, old, new) + (", a downgrade" if change == "downgraded" else "")
            yield Change(section="system", subject=name, change=change, text=text, old=old, new=new)


def _image(old: LockedStack, new: LockedStack) -> Iterator[Change]:
    before, after = _reference(old), _reference(new)
    if before == after:
        return
    (old_tag, _, old_digest), (new_tag, _, new_digest) = before.partition("@"), after.partition("@")
    change = "added" if not before else "removed" if not after else "changed"
    if old_tag != new_tag:
        text = arrow("image", before, after)
    elif old_digest and new_digest:
        text = f"image {new_tag} has other content: {old_digest} -> {new_digest}"
    elif new_digest:
        text = f"image {new_tag} is pinned by digest now: {new_digest}"
    else:
        text = f"image {new_tag} is no longer pinned by digest, which was {old_digest}"
    yield Change(section="system", subject="image", change=change, text=text, old=before, new=after)


def _reference(stack: LockedStack) -> str:
    if stack.image is None:
        return ""
    return f"{stack.image.reference}@{stack.image.digest}" if stack.image.digest else stack.image.reference


def _variables(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Change]:
    for name, change, before, after in differences(old, new):
        if name == KEPT:  # what the base asks of hosts is told with the hosts
            continue
        text = {
            "added": f"`{name}={after}` is set now",
            "removed": f"`{name}={before}` is not set any more",
            "changed": f"`{name}` is `{after}` now, it was `{before}`",
        }[change]
        yield Change(section="system", subject=f"environment.{name}", change=change, text=text, old=before, new=after)


def _listed(subject: str, old: tuple[str, ...], new: tuple[str, ...]) -> Iterator[Change]:
    """Sentences that came or went, one change each; that an image is not pinned is the same sentence of every image."""
    known, said = {_of_any_image(text) for text in old}, {_of_any_image(text) for text in new}
    words = {"relaxations": ("relaxed now", "no longer relaxed"), "unverified": ("unverified now", "no longer unverified")}[
        subject
    ]
    for text in sorted(one for one in set(new) if _of_any_image(one) not in known):
        yield Change(section="system", subject=subject, change="added", text=f"{words[0]}: {text}", new=text)
    for text in sorted(one for one in set(old) if _of_any_image(one) not in said):
        yield Change(section="system", subject=subject, change="removed", text=f"{words[1]}: {text}", old=text)


def _of_any_image(text: str) -> str:
    return _IMAGE.sub("image: ", text)


def _installer(old: LockedStack, new: LockedStack) -> Iterator[Change]:
    before, after = (f"{one.installer.name} {one.installer.version}" if one.installer else "" for one in (old, new))
    if before != after:
        text = arrow("installer", before, after)
        change = "added" if not before else "removed" if not after else "changed"
        yield Change(section="system", subject="installer", change=change, text=text, old=before, new=after)
    elif old.installer and new.installer and old.installer.file.sha256 != new.installer.file.sha256:
        text = f"the file of installer {after} has another sha256: {old.installer.file.sha256} -> {new.installer.file.sha256}"
        is_exchanged = old.installer.file.filename == new.installer.file.filename
        yield Change(
            section="system", subject="installer", change="changed", text=text,
            old=old.installer.file.sha256, new=new.installer.file.sha256, is_breaking=is_exchanged,
        )  # fmt: skip
