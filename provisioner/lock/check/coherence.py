"""Does a lock say one thing? What installers read in it beside what `[tool.provision]` says of the same environments.

A digest tells that somebody edited a lock, not what, and whoever writes it again hides even that: a merge that takes markers
from one side and packages from the other, or a program that "updates" one field. No index and no spec is asked.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from packaging.markers import Marker
from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version as PackageVersion

from provisioner.index.markers import marker_environment
from provisioner.index.metadata.core_metadata import parsed_requirement
from provisioner.index.model import Environment
from provisioner.lock.check.finding import Finding
from provisioner.lock.format.artifact import PLATFORMS, fits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.document import KeyPath
    from provisioner.lock.format.model import Lock, LockedFile, LockedPackage, LockedStack

    Contradiction = tuple[KeyPath, str]

_WINDOWS = {"os_name": "nt", "platform_machine": "AMD64", "platform_system": "Windows", "sys_platform": "win32"}
_PATCHES = range(40)
_AROUND = range(8, 20)
"""Python series, 3.8 and on, that a lock must not let in unless it is for them."""


def coherence_findings(lock: Lock, text: str, *, where: str) -> Iterator[Finding]:
    """Everything that two places of a lock file, of which `text` is the content, say differently; each with its line."""
    found = tuple(_contradictions(lock))
    if not found:
        return
    from provisioner.toml_document import parse_toml

    document = parse_toml(text, file=where, kind="lock file")
    for path, words in found:
        yield Finding(code="contradiction", verdict="no", text=f"{words}  ({document.where(path)})", where=document.where(path))


def _contradictions(lock: Lock) -> Iterator[Contradiction]:
    yield from _of_environments(lock)
    for number, package in enumerate(lock.packages):
        path: KeyPath = ("packages", number)
        yield from ((path + at, words) for at, words in _of_package(package, lock))
        for place, file in _files(package):
            yield from ((path + place + at, words) for at, words in _of_file(file, package))
    yield from _of_names(lock)
    for number, stack in enumerate(lock.stacks):
        path = ("tool", "provision", "platforms", number)
        if lock.packages and not _series(stack):
            yield (*path, "stack"), f"the stack of {stack.platform} names no python, and packages are for one"
        yield from (((*path, "pins", *at), words) for at, words in _of_pins(stack))


def _series(stack: LockedStack) -> str:
    """`3.12` of a stack whose Python is `3.12` or `3.12.7`; "" where it has none."""
    return ".".join(stack.components.get("python", "").split(".")[:2])


@cache
def _admits(specifier: str, series: str) -> bool:
    """Whether a Requires-Python takes any patch release of a series."""
    return any(SpecifierSet(specifier).contains(f"{series}.{patch}", prereleases=True) for patch in _PATCHES)


@cache
def _variables(platform: str, series: str) -> dict[str, str]:
    """The environment of PEP 508 of a platform, or of `windows`, which no lock of ours is for."""
    variables = marker_environment(Environment(platform="linux/amd64" if platform == "windows" else platform, python=series))
    return variables | _WINDOWS if platform == "windows" else variables


def _holds(marker: str, platform: str, series: str) -> bool:
    """As an installer judges the marker of a package that is given no extras and no groups (PEP 751, "Installation")."""
    variables: dict[str, Any] = {**_variables(platform, series), "extras": frozenset(), "dependency_groups": frozenset()}
    return Marker(marker).evaluate(cast("dict[str, str]", variables), context="lock_file")


def _of_environments(lock: Lock) -> Iterator[Contradiction]:
    """Installers go by `environments` and `requires-python`: they must let in what was solved, and nothing else."""
    wanted = {(stack.platform, _series(stack)) for stack in lock.stacks if _series(stack)}
    outside = sorted({series for _, series in wanted if not _admits(lock.requires_python, series)})
    for series in outside:
        yield ("requires-python",), f"requires-python is {lock.requires_python}, the stack has python {series}"
    if outside or len(wanted) < len(lock.stacks):
        return
    known = {f"3.{minor}" for minor in _AROUND} | {series for _, series in wanted}
    pythons = [one for one in sorted(known, key=PackageVersion) if _admits(lock.requires_python, one)]
    others: dict[tuple[str, str], list[str]] = {}
    for platform in (*PLATFORMS, "windows"):
        let_in = [one for one in pythons if not lock.environments or _any_holds(lock.environments, platform, one)]
        solved = [series for here, series in sorted(wanted) if here == platform]
        if solved and not set(solved) & set(let_in):
            text = f"`environments` turns installers away on {platform} with python {solved[0]}, for which this lock was solved"
            yield ("environments",), text
        rest = [series for series in let_in if series not in solved]
        if rest:
            shown = rest[0] if len(rest) == 1 else f"{rest[0]} to {rest[-1]}"
            others.setdefault(("requires-python" if solved else "environments", shown), []).append(platform)
    for (key, shown), platforms in others.items():
        places = " and ".join(filter(None, (", ".join(platforms[:-1]), platforms[-1])))
        yield (key,), f"`{key}` lets installers in on {places} with python {shown}, for which nothing was solved"


def _any_holds(markers: tuple[str, ...], platform: str, series: str) -> bool:
    return any(_holds(marker, platform, series) for marker in markers)


def _of_package(package: LockedPackage, lock: Lock) -> Iterator[Contradiction]:
    label = f"{package.name} {package.version}"
    for stack in lock.stacks:
        platform, series = stack.platform, _series(stack)
        if not series:
            continue
        is_here = platform in package.platforms
        if package.marker and _holds(package.marker, platform, series) != is_here:
            verb = "is locked for" if is_here else "is not locked for"
            text = f"{label} {verb} {platform}, and its marker `{package.marker}` {'fails' if is_here else 'holds'} there"
            yield ("marker",), text
        if not package.marker and not is_here:
            yield ("marker",), f"{label} is not locked for {platform}, and without a marker it is installed there"
        is_told = not _admits(lock.requires_python, series)
        if is_here and not is_told and not _admits(package.requires_python, series):
            text = f"{label} needs python {package.requires_python}, the stack of {platform} has python {series}"
            yield ("requires-python",), text
        if is_here and not any(fits(file.filename, platform) for file in package.files):
            names = ", ".join(file.filename for file in package.files)
            yield ("wheels", 0), f"{label} is locked for {platform}, and no file of it is: {names}"
    if len(package.files) > len(package.platforms):
        names = ", ".join(file.filename for file in package.files)
        platforms = " and ".join(package.platforms)
        yield ("wheels", 0), f"{label} has {len(package.files)} files for {platforms}, and one each is what was solved: {names}"


def _files(package: LockedPackage) -> Iterator[tuple[KeyPath, LockedFile]]:
    yield from ((("wheels", number), file) for number, file in enumerate(package.wheels))
    for key, one in (("sdist", package.sdist), ("archive", package.archive)):
        if one is not None:
            yield (key,), one


def _of_file(file: LockedFile, package: LockedPackage) -> Iterator[Contradiction]:
    parts = urlsplit(file.url)
    if file.url and (parts.scheme not in {"https", "http"} or not parts.hostname):
        text = f"`{file.url}` of {package.name} {package.version} is not the address of a file that others could download"
        yield ("url",), text
    if parts.username is not None:
        text = f"the address of {package.name} {package.version} holds a login, which whoever has this lock can read"
        yield ("url",), text
    if package.archive is file and file.filename.endswith(".whl") and _release(file.filename) != _release_of(package):
        text = f"{package.name} {package.version} is locked with `{file.filename}`, which is a wheel of something else"
        yield ("url" if file.url else "path",), text


def _release(filename: str) -> tuple[str, PackageVersion] | None:
    try:
        name, version, _, _ = parse_wheel_filename(filename)
    except InvalidWheelFilename:
        return None
    return name, version


def _release_of(package: LockedPackage) -> tuple[str, PackageVersion]:
    return package.name, PackageVersion(package.version)


def _of_names(lock: Lock) -> Iterator[Contradiction]:
    """Entries of one name must be for different platforms, and dependencies must mean entries that are there."""
    seen: dict[tuple[str, str], str] = {}
    for number, package in enumerate(lock.packages):
        for platform in package.platforms:
            if other := seen.get((package.name, platform)):
                both = f"as {other} and as {package.version}" if other != package.version else f"both times as {other}"
                text = f"{package.name} is locked twice for {platform}, {both}, which installers refuse"
                yield ("packages", number, "name"), text
            seen[package.name, platform] = package.version
    names = {package.name for package in lock.packages}
    for number, package in enumerate(lock.packages):
        required = {canonicalize_name(parsed_requirement(text).name) for text in package.requires}  # told as not being locked
        for at, name in enumerate(package.dependencies):
            if name not in names | required:
                text = f"{package.name} {package.version} depends on {name}, which is not locked"
                yield ("packages", number, "dependencies", at), text


def _of_pins(stack: LockedStack) -> Iterator[Contradiction]:
    """The reasons for a component are about the version that the stack has."""
    pinned: dict[str, set[str]] = {}
    for pin in stack.pins:
        pinned.setdefault(pin.component, set()).add(pin.version)
    for number, pin in enumerate(stack.pins):
        has = stack.components.get(pin.component)
        if has is not None and not pinned[pin.component] & set(has.split(", ")):
            name = pin.component
            text = f"the stack of {stack.platform} has {name} {has}, and the reasons are for {name} {pin.version}"
            yield (number, "version"), text
