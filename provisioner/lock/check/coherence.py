"""Check whether a lock contradicts itself: the fields that installers read against `[tool.provision]`.

A wrong digest shows that a lock was edited, but not where, and a program that updates the digest hides even that: a merge that
takes markers from one side and packages from the other, or a tool that changes one field. Neither index nor spec is needed.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from msgspec.structs import replace
from packaging.markers import Marker
from packaging.specifiers import SpecifierSet
from packaging.utils import (
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version as PackageVersion

from provisioner.grounds import finding as of
from provisioner.grounds.requirement import Subject
from provisioner.index.markers import marker_environment
from provisioner.index.metadata.core_metadata import parse_requirement
from provisioner.index.model import Environment
from provisioner.lock.format.artifact import fits, name_in
from provisioner.lock.format.entries import MOST, Same
from provisioner.lock.format.model import INSTALLER
from provisioner.platforms import DEFAULT_PLATFORM, PLATFORMS
from provisioner.versions import series

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.document import KeyPath
    from provisioner.grounds.finding import Contradiction, Finding
    from provisioner.lock.format.model import Installer, Lock, LockedFile, LockedPackage, LockedStack

    Placed = tuple[KeyPath, Contradiction]
    """A contradiction, and the path of the key in the lock file that it is about."""

_WINDOWS = {"os_name": "nt", "platform_machine": "AMD64", "platform_system": "Windows", "sys_platform": "win32"}
_PATCHES = range(40)
_AROUND = range(8, 20)
"""Minor numbers of Python series (3.8 to 3.19) that a lock must exclude unless it was solved for them."""


def coherence_findings(lock: Lock, text: str, *, file: str) -> Iterator[Finding]:
    """Yield each contradiction in a lock, with its line; `text` is the content of the lock file and `file` its name."""
    found = tuple(_contradictions(lock))
    if not found:
        return
    from provisioner.toml_document import parse_toml

    document = parse_toml(text, file=file, kind="lock file")
    yield from (replace(contradiction, place=document.place(path)) for path, contradiction in found)


def _contradictions(lock: Lock) -> Iterator[Placed]:
    yield from _of_environments(lock)
    wanted = tuple((stack.platform, _series(stack)) for stack in lock.stacks)
    for number, package in enumerate(lock.packages):
        found = _of_package(Same(package), wanted, lock.requires_python)
        yield from ((("packages", number, *at), contradiction) for at, contradiction in found)
    yield from _of_hashes(lock)
    yield from _of_names(lock)
    yield from _of_dependencies(lock)
    yield from _of_indexes(lock)
    for number, stack in enumerate(lock.stacks):
        path = ("tool", "provision", "platforms", number)
        if lock.packages and not _series(stack):
            yield (*path, "stack"), of.NoPython(platform=stack.platform)
        yield from (((*path, "pins", *at), contradiction) for at, contradiction in _of_pins(stack))
        yield from (((*path, *at), contradiction) for at, contradiction in _of_image(stack))
        if stack.installer is not None:
            yield from (((*path, "installer", *at), one) for at, one in _of_installer(stack.installer, stack.platform))


def _series(stack: LockedStack) -> str:
    """Return the Python series of a stack, as `3.12` for `3.12.7`; "" when the stack has no Python."""
    return series(stack.components.get("python", ""))


@cache
def _admits(specifier: str, python: str) -> bool:
    """Return whether a Requires-Python allows any patch release of a Python series."""
    admitted = SpecifierSet(specifier)
    return any(admitted.contains(f"{python}.{patch}", prereleases=True) for patch in _PATCHES)


@cache
def _variables(platform: str, python: str) -> dict[str, str]:
    """Return the marker variables (PEP 508) of a platform with a Python series.

    `windows` is accepted, too: provision makes no locks for it, so every lock must exclude it.
    """
    variables = marker_environment(Environment(platform=DEFAULT_PLATFORM if platform == "windows" else platform, python=python))
    return variables | _WINDOWS if platform == "windows" else variables


@lru_cache(maxsize=MOST)
def _holds(marker: str, platform: str, python: str) -> bool:
    """Evaluate a package's marker as an installer does that is given no extras and no groups (PEP 751, "Installation")."""
    variables: dict[str, Any] = {**_variables(platform, python), "extras": frozenset(), "dependency_groups": frozenset()}
    return Marker(marker).evaluate(cast("dict[str, str]", variables), context="lock_file")


def _of_environments(lock: Lock) -> Iterator[Placed]:
    """Yield contradictions of `environments` and `requires-python` with the platforms and Pythons that the lock was solved for.

    The two keys together must admit these platforms and Pythons, and no others.
    """
    wanted = {(stack.platform, _series(stack)) for stack in lock.stacks if _series(stack)}
    outside = sorted({python for _, python in wanted if not _admits(lock.requires_python, python)})
    for python in outside:
        yield ("requires-python",), of.PythonNotAdmitted(needed=python, locked=lock.requires_python)
    if outside or len(wanted) < len(lock.stacks):
        return
    known = {f"3.{minor}" for minor in _AROUND} | {python for _, python in wanted}
    pythons = [one for one in sorted(known, key=PackageVersion) if _admits(lock.requires_python, one)]
    others: dict[tuple[str, tuple[str, str]], list[str]] = {}
    for platform in (*PLATFORMS, "windows"):
        let_in = [one for one in pythons if not lock.environments or _any_holds(lock.environments, platform, one)]
        solved = [python for here, python in sorted(wanted) if here == platform]
        if solved and not set(solved) & set(let_in):
            yield ("environments",), of.EnvironmentsRefuse(platform=platform, python=solved[0])
        rest = [python for python in let_in if python not in solved]
        if rest:
            key = "requires-python" if solved else "environments"
            others.setdefault((key, (rest[0], rest[-1])), []).append(platform)
    for (key, admitted), platforms in others.items():
        yield (key,), of.EnvironmentsAdmit(key=key, platforms=tuple(platforms), pythons=admitted)


def _any_holds(markers: tuple[str, ...], platform: str, python: str) -> bool:
    return any(_holds(marker, platform, python) for marker in markers)


@lru_cache(maxsize=MOST)
def _of_package(package: Same[LockedPackage], wanted: tuple[tuple[str, str], ...], requires_python: str) -> tuple[Placed, ...]:
    """Return the contradictions of a package, which many locks have: of its platforms, and of its files.

    `wanted` are the platforms of the lock with their Python series, and `requires_python` is that of the lock.
    """
    found = list(_of_platforms(package.value, wanted, requires_python))
    for place, file in _files(package.value):
        is_named = file is not package.value.archive
        found += (((*place, *at), one) for at, one in _of_file(file, package.value.subject, is_named=is_named))
    return tuple(found)


def _of_platforms(package: LockedPackage, wanted: tuple[tuple[str, str], ...], requires_python: str) -> Iterator[Placed]:
    subject = package.subject
    files = tuple(file.filename for file in package.files)
    for platform, python in wanted:
        if not python:
            continue
        is_here = platform in package.platforms
        if (not package.marker or _holds(package.marker, platform, python)) != is_here:
            marker = package.marker
            yield ("marker",), of.MarkerDisagrees(subject=subject, platform=platform, marker=marker, is_locked=is_here)
        is_reported = not _admits(requires_python, python)
        if is_here and not is_reported and not _admits(package.requires_python, python):
            needed = package.requires_python
            yield ("requires-python",), of.PackagePython(subject=subject, platform=platform, needed=needed, locked=python)
        if is_here and not any(fits(file, platform) for file in files):
            yield ("wheels", 0, "name"), of.NoFileForPlatform(subject=subject, platform=platform, files=files)
    if len(files) > len(package.platforms):
        yield ("wheels", 0, "name"), of.TooManyFiles(subject=subject, platforms=package.platforms, files=files)


def _files(package: LockedPackage) -> Iterator[tuple[KeyPath, LockedFile]]:
    yield from ((("wheels", number), file) for number, file in enumerate(package.wheels))
    for key, one in (("sdist", package.sdist), ("archive", package.archive)):
        if one is not None:
            yield (key,), one


def _of_file(file: LockedFile, subject: Subject, *, is_named: bool = True) -> Iterator[Placed]:
    """Yield contradictions of a file with its address and with the package that it is locked for.

    `is_named`: the file has a name of its own in the lock, which an archive has not.
    """
    parts = urlsplit(file.url)
    if file.url and (parts.scheme not in {"https", "http"} or not parts.hostname):
        yield ("url",), of.UnusableAddress(subject=subject, url=file.url)
    if parts.username is not None:
        yield ("url",), of.LoginInAddress(subject=subject)
    if not file.url and not file.path:
        yield (), of.NoAddress(subject=subject, file=file.filename)
    if (release := _release(file.filename)) is not None and release != (subject.name, _version(subject.label)):
        at = "name" if is_named else "url" if file.url else "path"
        yield (at,), of.OtherWheel(subject=subject, file=file.filename)
    for key, address in (("url", file.url), ("path", file.path)):
        found = name_in(address, "") if address else ""
        # An address may end in anything but the name of another release.
        if is_named and found != file.filename and _release(found) is not None:
            yield (key,), of.OtherAddress(subject=subject, file=file.filename, found=found)


_version = cache(PackageVersion)


@cache
def _release(filename: str) -> tuple[str, PackageVersion] | None:
    """Return the distribution and the version in the name of a wheel or source distribution; None for any other name."""
    try:
        if filename.endswith(".whl"):
            return parse_wheel_filename(filename)[:2]
        return parse_sdist_filename(filename)
    except ValueError:  # the name of neither, or a number of more than 4,300 digits
        return None


def _of_installer(installer: Installer, platform: str) -> Iterator[Placed]:
    """Yield contradictions of the program that installs the lock in an image: it is a file as those of packages are."""
    if installer.name != INSTALLER:
        yield ("name",), of.OtherInstaller(platform=platform, needed=INSTALLER, locked=installer.name)
    subject = Subject(installer.name, installer.version)
    try:
        PackageVersion(installer.version)
    except ValueError:  # InvalidVersion, or a number of more than 4,300 digits
        yield ("version",), of.OtherWheel(subject=subject, file=installer.file.filename)
        return
    yield from ((("file", *at), one) for at, one in _of_file(installer.file, subject))
    if not fits(installer.file.filename, platform):
        files = (installer.file.filename,)
        yield ("file", "name"), of.NoFileForPlatform(subject=subject, platform=platform, files=files)


def _of_image(stack: LockedStack) -> Iterator[Placed]:
    """Yield a contradiction for each fact of the base image that the components of its stack state otherwise."""
    if stack.image is None:
        return
    for key, component in (("reference", "image"), ("glibc", "glibc")):
        has, needed = getattr(stack.image, key), stack.components.get(component, "")
        if has != needed.partition("@")[0]:
            yield ("image", key), of.OtherKey(platform=stack.platform, object=f"image.{key}", needed=needed, locked=has)


def _of_indexes(lock: Lock) -> Iterator[Placed]:
    """Yield logins in the URLs of indexes, and indexes with two URLs or two names."""
    urls: dict[str, str] = {}
    names: dict[str, str] = {}
    for number, package in enumerate(lock.packages):
        path: KeyPath = ("packages", number, "index")
        url = package.index_url or package.index
        if "://" in url and urlsplit(url).username is not None:
            yield path, of.LoginInAddress(subject=package.subject)
        if package.archive is not None or not package.index:
            continue
        name = "" if "://" in package.index else package.index
        for known, key, value in ((urls, name, package.index_url), (names, url if "://" in url else "", name)):
            if key and known.setdefault(key, value) != value:
                yield path, of.TwoAddresses(object=key, values=(known[key], value))


@cache
def _required(requires: tuple[str, ...]) -> frozenset[str]:
    """Return the names of the distributions that some requirements are about."""
    return frozenset(canonicalize_name(parse_requirement(text).name) for text in requires)


def _of_dependencies(lock: Lock) -> Iterator[Placed]:
    """Yield differences between the dependencies of a package, which installers read, and its requirements."""
    names: dict[tuple[str, ...], set[str]] = {}
    for number, package in enumerate(lock.packages):
        required = _required(package.requires)
        here = package.platforms
        if here not in names:
            names[here] = {one.name for one in lock.packages if not set(one.platforms).isdisjoint(here)}
        locked = names[here]
        for name in sorted(required & locked - set(package.dependencies)):
            missing = of.OtherDependency(subject=package.subject, object=name, is_required=True)
            yield ("packages", number, "dependencies"), missing
        for at, name in enumerate(package.dependencies):
            if name not in required and name in locked:
                beside = of.OtherDependency(subject=package.subject, object=name, is_required=False)
                yield ("packages", number, "dependencies", at), beside


def _of_hashes(lock: Lock) -> Iterator[Placed]:
    """Yield files of packages that have the hash of another file: no two files have the same content."""
    seen: dict[str, str] = {}
    for number, package in enumerate(lock.packages):
        for place, file in _files(package):
            other = seen.setdefault(file.sha256, file.filename)
            if other != file.filename:
                path: KeyPath = ("packages", number, *place, "hashes", "sha256")
                yield path, of.SameHash(subject=package.subject, files=(file.filename, other))


def _of_names(lock: Lock) -> Iterator[Placed]:
    """Yield distributions that are locked twice for a platform, and dependencies that are not locked at all."""
    seen: dict[tuple[str, str], str] = {}
    for number, package in enumerate(lock.packages):
        for platform in package.platforms:
            if other := seen.get((package.name, platform)):
                versions = (other, package.version)
                twice = of.LockedTwice(object=package.name, platform=platform, versions=versions)
                yield ("packages", number, "name"), twice
            seen[package.name, platform] = package.version
    names = {package.name for package in lock.packages}
    for number, package in enumerate(lock.packages):
        required = _required(package.requires)  # `check.packages`
        for at, name in enumerate(package.dependencies):
            if name not in names and name not in required:
                unlocked = of.UnlockedDependency(subject=package.subject, object=name)
                yield ("packages", number, "dependencies", at), unlocked


def _of_pins(stack: LockedStack) -> Iterator[Placed]:
    """Yield a contradiction for each component whose recorded reasons are about another version than the stack has.

    Each component has its reasons, except the build of PyTorch, which is part of PyTorch's.
    """
    pinned: dict[str, set[str]] = {}
    for pin in stack.pins:
        pinned.setdefault(pin.component, set()).add(pin.version)
    for number, pin in enumerate(stack.pins):
        has = stack.components.get(pin.component)
        if has is not None and not pinned[pin.component] & set(has.split(", ")):
            other = of.OtherPin(platform=stack.platform, object=pin.component, needed=has, locked=pin.version)
            yield (number, "version"), other
        if has is None:
            yield (
                (number, "component"),
                of.OtherPin(platform=stack.platform, object=pin.component, needed="", locked=pin.version),
            )
    for name, version in stack.components.items():
        if pinned and name not in pinned and name != "pytorch_build":
            yield (), of.OtherPin(platform=stack.platform, object=name, needed=version, locked="")
