"""Changes of a stack apart from host requirements and packages: components, image, variables, sentences, installer.

Sentences are the relaxations, assumptions and unverified facts, which a lock records in English.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.components import LEADS
from provisioner.grounds.change import Change, OfFile
from provisioner.resolver.rules.gate import BASE_IMAGE_GATE
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.lock.format.model import LockedStack
    from provisioner.setups import HostSetup

FIRST = (*LEADS, "python")
"""Components that a reviewer looks for first; the image comes next, then the others by name."""

_ELSEWHERE = frozenset({"image", "platform", "pytorch_build"})
"""Components that are compared otherwise: as the image, as the platform of the lock, and as part of `pytorch`."""


def component_labels(stack: LockedStack) -> dict[str, str]:
    """Return the version of every component, with the build of PyTorch as part of it: `pytorch`: `2.7.1+cu126`."""
    labels = {name: text for name, text in stack.components.items() if name not in _ELSEWHERE}
    build = stack.components.get("pytorch_build")
    if "pytorch" in labels and build and "+" not in labels["pytorch"]:
        labels["pytorch"] += f"+{build}"
    return labels


def system_changes(old: LockedStack, new: LockedStack) -> Iterator[Change]:
    """Yield the changes of components, image, variables, sentences and installer on one platform, in the order of a review."""
    before, after = component_labels(old), component_labels(new)
    names = sorted({*before, *after}, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name))
    first = [name for name in names if name in FIRST]
    yield from _components(first, before, after)
    yield from _image(old, new)
    yield from _system_packages(old, new)
    yield from _components([name for name in names if name not in FIRST], before, after)
    yield from _setups(old, new)
    yield from _variables(old.environment, new.environment)
    yield from _listed("relaxations", old.relaxations, new.relaxations)
    yield from _listed("unverified", old.unverified, new.unverified)
    yield from _listed("assumes", old.assumes, new.assumes)
    yield from _listed("accepts", old.accepts, new.accepts)
    yield from _installer(old, new)


def moved(old: str, new: str) -> str:
    """Return `added`, `removed`, `upgraded` or `downgraded`; `changed` for another build, or for values without an order."""
    if not old or not new:
        return "added" if new else "removed"
    try:
        before, after = Version.parse(old), Version.parse(new)
    except ValueError:
        return "changed"
    if before == after:
        return "changed"
    return "upgraded" if before < after else "downgraded"


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield each key whose value differs between two tables: the key, `added`, `removed` or `changed`, and both values.

    "" stands for the value of a missing key.
    """
    for key in sorted({*old, *new}):
        before, after = old.get(key), new.get(key)
        if before != after:
            yield key, "added" if before is None else "removed" if after is None else "changed", before or "", after or ""


def _components(names: list[str], before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Change]:
    for name in names:
        old, new = before.get(name, ""), after.get(name, "")
        if old != new:
            yield Change(section="system", subject=name, change=moved(old, new), old=old, new=new)


def _image(old: LockedStack, new: LockedStack) -> Iterator[Change]:
    before, after = _reference(old), _reference(new)
    if before != after:
        yield _set("image", before, after)


def _system_packages(old: LockedStack, new: LockedStack) -> Iterator[Change]:
    """Yield a change for each package of the base image's distribution that only one of the locks has."""
    before, after = ({one.name for one in stack.apt} for stack in (old, new))
    yield from (_set(f"apt.{name}", "", name) for name in sorted(after - before))
    yield from (_set(f"apt.{name}", name, "") for name in sorted(before - after))


def _setups(old: LockedStack, new: LockedStack) -> Iterator[Change]:
    """Yield a change for each part of a host's setup that differs, with the packages, addresses or variables of both."""
    before, after = ({name: text for setup in one.host_setups for name, text in _parts(setup)} for one in (old, new))
    for name, change, was, now in differences(before, after):
        yield Change(section="system", subject=f"host-setups.{name}", change=change, old=was, new=now)


def _parts(setup: HostSetup) -> Iterator[tuple[str, str]]:
    yield setup.os, setup.driver_module or "set up"
    for step in setup.steps:
        words = (
            step.version,
            step.stream,
            *step.first,
            step.lock,
            *step.packages,
            step.url,
            step.file,
            step.sha256,
            step.kernel,
        )
        yield f"{setup.os}.{step.component}", " ".join(filter(None, words))
    for one in setup.repositories:
        yield f"{setup.os}.{one.name}", " ".join(filter(None, (one.url, one.line, one.key, one.package, one.sha256, one.pin)))
    if (build := setup.build) is not None:
        variables = (f"{name}={value}" for name, value in build.environment.items())
        yield f"{setup.os}.build", " ".join((build.component, build.version, build.repository, *variables, *build.patches))


def _set(subject: str, old: str, new: str) -> Change:
    change = "added" if not old else "removed" if not new else "changed"
    return Change(section="system", subject=subject, change=change, old=old, new=new)


def _reference(stack: LockedStack) -> str:
    if stack.image is None:
        return ""
    return f"{stack.image.reference}@{stack.image.digest}" if stack.image.digest else stack.image.reference


def _variables(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Change]:
    for name, change, before, after in differences(old, new):
        if name != BASE_IMAGE_GATE:  # a requirement of the base image on hosts is a change of the hosts
            yield Change(section="system", subject=f"environment.{name}", change=change, old=before, new=after)


def _listed(subject: str, old: tuple[str, ...], new: tuple[str, ...]) -> Iterator[Change]:
    """Yield a change for each sentence that only one of the locks records."""
    for text in sorted(set(new) - set(old)):
        yield Change(section="system", subject=subject, change="added", new=text)
    for text in sorted(set(old) - set(new)):
        yield Change(section="system", subject=subject, change="removed", old=text)


def _installer(old: LockedStack, new: LockedStack) -> Iterator[Change]:
    before, after = (f"{one.installer.name} {one.installer.version}" if one.installer else "" for one in (old, new))
    if before != after:
        yield _set("installer", before, after)
    elif old.installer and new.installer and old.installer.file.sha256 != new.installer.file.sha256:
        hashes = old.installer.file.sha256, new.installer.file.sha256
        is_exchanged = old.installer.file.filename == new.installer.file.filename
        detail = OfFile(version=after, file=new.installer.file.filename)
        yield replace(_set("installer", *hashes), is_breaking=is_exchanged, detail=detail)
