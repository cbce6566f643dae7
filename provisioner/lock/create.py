"""Stack -> lock: every file with its hash, one entry for a package that several platforms share, and no facts of a machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion
from packaging.version import Version as PackageVersion

from provisioner import __version__
from provisioner.components import COMPONENTS, Supplier
from provisioner.errors import ProvisionError
from provisioner.grounds.fields import fields_of
from provisioner.grounds.requirement import Entails
from provisioner.grounds.source import Hazard, MatrixRow
from provisioner.index.metadata.core_metadata import UnusableMetadataError, parse_requirement
from provisioner.index.model import DIRECT_PATH, DIRECT_URL
from provisioner.lock.format.artifact import fits, local_path, lock_file, locked_url, nameless
from provisioner.lock.format.model import (
    Installer,
    Lock,
    LockedPackage,
    LockedPin,
    LockedStack,
    LockedSystemPackage,
    Reason,
    relaxation,
)
from provisioner.places import Place
from provisioner.platforms import environment_marker, package_marker
from provisioner.resolver.stack import BaseImage, Stack, SystemPackage
from provisioner.versions import series
from provisioner.words.doubt import assumption_words, doubt_words
from provisioner.words.ground import say
from provisioner.words.notation import source_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from provisioner.grounds.requirement import Ground
    from provisioner.grounds.source import Source
    from provisioner.index.model import IndexFile
    from provisioner.lock.format.model import LockedFile
    from provisioner.resolver.stack import PackagePin, Pin

    Installers = IndexFile | Mapping[str, IndexFile] | None

HOST_FACTS = frozenset(row.name for row in COMPONENTS.values() if row.is_of_host)
"""Components that describe a host: a lock holds the range that a host must meet, never the value of one machine."""

_OF_BASE_IMAGES = frozenset(row.name for row in COMPONENTS.values() if row.supplier is Supplier.BASE_IMAGE)
"""Components that the base image provides to a container, or the host itself to an environment without a container."""


class InconsistentStackError(ProvisionError):
    """Raised when stacks cannot be locked.

    There is no stack, a platform has two, or a package or file is malformed or for another platform.
    """

    code = "inconsistent-stack"
    exit_code = 2


def create_lock(
    stacks: Stack | Sequence[Stack],
    *,
    name: str,
    matrix_digest: str,
    spec_digest: str,
    installer: Installers = None,
    spec_file: str = "provision.yaml",
) -> Lock:
    """Return the lock of one stack, or of several stacks for different platforms.

    `spec_file` is the name of the spec relative to the lock; the digests are those of the matrix and the spec. `installer` is
    the wheel of the program that installs the lock inside an image: one for all platforms, or a mapping by platform. Raises
    `UnhashedFileError` when a file has no sha256, `FileError` when a local file cannot be read, and `InconsistentStackError`
    when there is no stack, when two stacks are for one platform, when a wheel is for another platform, or when the version or a
    requirement of a package cannot be parsed.
    """
    given = [stacks] if isinstance(stacks, Stack) else list(stacks)
    ordered = sorted(given, key=lambda stack: stack.platform)
    platforms = tuple(stack.platform for stack in ordered)
    if not platforms or len(set(platforms)) < len(platforms):
        raise InconsistentStackError(f"lock `{name}` needs one stack a platform", causes=(f"given: {', '.join(platforms)}",))
    pythons = [series(stack.components.get("python", "")) for stack in ordered]
    is_one_python = len(set(pythons)) == 1
    return Lock(
        name=name,
        requires_python=_requires_python(pythons),
        environments=tuple(
            environment_marker(platform, python="" if is_one_python else python)
            for platform, python in zip(platforms, pythons, strict=True)
        ),
        packages=_merge(ordered, platforms),
        stacks=tuple(locked_stack(stack, installer) for stack in ordered),
        tool_version=__version__,
        matrix_digest=matrix_digest,
        spec_digest=spec_digest,
        spec_file=spec_file,
    )


def local_files(stacks: Sequence[Stack], *, installer: Installers = None) -> dict[str, Path]:
    """Return the local files to copy beside a lock: the path of each as the lock records it, and its path on this machine."""
    files = [package.file for stack in stacks for package in stack.packages]
    files += [file for stack in stacks if (file := _installer_file(stack.platform, installer))]
    sources = {lock_file(file).path: source for file in files if (source := local_path(file))}
    return dict(sorted(sources.items()))


def _requires_python(pythons: list[str]) -> str:
    known = sorted({python for python in pythons if python}, key=PackageVersion)
    if len(known) < 2:
        return "".join(f"=={python}.*" for python in known)
    return f">={known[0]}"


def _merge(stacks: Sequence[Stack], platforms: tuple[str, ...]) -> tuple[LockedPackage, ...]:
    """Return the packages of all stacks; packages that differ between platforms only in their files are one entry."""
    groups: dict[LockedPackage, list[tuple[str, LockedFile]]] = defaultdict(list)
    for stack in stacks:
        known = frozenset(canonicalize_name(package.name) for package in stack.packages)
        for package in stack.packages:
            _refuse_other_platform(package.file, stack.platform)
            file = lock_file(package.file)
            entry = _entry(package, known)
            if package.file.index in {DIRECT_PATH, DIRECT_URL}:
                entry = replace(entry, archive=nameless(file))
            groups[entry].append((stack.platform, file))
    merged = []
    for entry, found in groups.items():
        here = tuple(sorted(platform for platform, _ in found))
        files = {} if entry.archive else {file.filename: file for _, file in found}
        wheels = tuple(files[filename] for filename in sorted(files) if filename.endswith(".whl"))
        sources = tuple(files[filename] for filename in sorted(files) if not filename.endswith(".whl"))
        marker = package_marker(here, platforms)
        merged.append(replace(entry, platforms=here, marker=marker, wheels=wheels, sdist=sources[0] if sources else None))
    return tuple(sorted(merged, key=lambda package: (package.name, package.platforms)))


def _entry(package: PackagePin, known: frozenset[str]) -> LockedPackage:
    """Return a package without platforms and files; a package whose entries are equal on several platforms is locked once.

    `known` are the names of all packages of the stack. Raises `InconsistentStackError` when the version or a requirement
    cannot be parsed.
    """
    try:
        version = str(PackageVersion(package.version))
        requires = tuple(sorted({str(parse_requirement(text)) for text in package.requires}))
    except (InvalidVersion, UnusableMetadataError) as error:
        raise InconsistentStackError(f"package `{package.name}` cannot be locked: {error}") from None
    named = package.dependencies or tuple(parse_requirement(text).name for text in requires)
    dependencies = {canonicalize_name(dependency) for dependency in named} & known
    return LockedPackage(
        name=canonicalize_name(package.name),
        version=version,
        platforms=(),
        requires_python=_specifier(package.file.requires_python),
        index=locked_url(package.file.index),
        requires=requires,
        dependencies=tuple(sorted(dependencies)),
    )


def _specifier(requires_python: str | None) -> str:
    """Return a file's Requires-Python; "" when the index states none, or one that cannot be parsed, which installers ignore."""
    try:
        SpecifierSet(requires_python or "")
    except InvalidSpecifier:
        return ""
    return (requires_python or "").strip()


def _refuse_other_platform(file: IndexFile, platform: str) -> None:
    if not fits(file.filename, platform):
        raise InconsistentStackError(
            f"`{file.filename}` is not for {platform}", hints=("choose a file whose platform tag names this platform, or any",)
        )


def _installer_file(platform: str, installer: Installers) -> IndexFile | None:
    return installer.get(platform) if isinstance(installer, Mapping) else installer


def _locked_installer(platform: str, installer: Installers) -> Installer | None:
    file = _installer_file(platform, installer)
    if file is None:
        return None
    _refuse_other_platform(file, platform)
    try:
        name, version, _, _ = parse_wheel_filename(file.filename)
    except InvalidWheelFilename as error:
        raise InconsistentStackError(f"installer `{file.filename}` is not a wheel: {error}") from None
    return Installer(name=name, version=str(version), file=lock_file(file))


def locked_stack(stack: Stack, installer: Installers = None) -> LockedStack:
    """Return what a lock records of one stack, without its packages: no facts of hosts, and the reasons as words and fields.

    Raises `InconsistentStackError` when the installer is no wheel for the platform of the stack.
    """
    facts = HOST_FACTS | _OF_BASE_IMAGES if stack.runs == "host" else HOST_FACTS
    return LockedStack(
        platform=stack.platform,
        accelerator=stack.accelerator,
        components={name: stack.components[name] for name in sorted(stack.components) if name not in facts},
        runs=stack.runs,
        basis=stack.basis,
        host_requirements=dict(sorted(stack.host_requirements.items())),
        host_reasons=_host_reasons(stack),
        require_cuda=stack.require_cuda,
        arch_list=stack.arch_list,
        environment=dict(sorted(stack.environment.items())),
        unverified=tuple(sorted(map(doubt_words, stack.doubts))),
        assumes=tuple(sorted(map(assumption_words, stack.assumes))),
        accepts=tuple(sorted(map(doubt_words, stack.accepts))),
        relaxations=tuple(
            sorted({relaxation(one.name, one.component) for one in stack.relaxations if one.component not in facts})
        ),
        image=_locked_image(stack.image) if stack.image else None,
        installer=_locked_installer(stack.platform, installer),
        host_setups=stack.host_setups,
        apt=tuple(_locked_system_package(one) for one in stack.system_packages),
        pins=_locked_pins(pin for pin in stack.pins if pin.component not in facts),
    )


def _locked_image(image: BaseImage) -> BaseImage:
    """Return the image with the digest in `digest` and without it in `reference`, whether or not the reference included it."""
    reference, _, digest = image.reference.partition("@")
    return replace(image, reference=reference, digest=image.digest or digest)


def _locked_system_package(package: SystemPackage) -> LockedSystemPackage:
    reasons = dict.fromkeys(reason_of(ground) for ground in package.reasons)
    return LockedSystemPackage(name=package.name, reasons=tuple(sorted(reasons, key=lambda one: (one.component, one.text))))


def _locked_pins(pins: Iterable[Pin]) -> tuple[LockedPin, ...]:
    locked = (
        LockedPin(
            component=pin.component,
            version=str(pin.version),
            build=pin.build,
            reasons=tuple(dict.fromkeys(reason_of(ground) for ground in pin.reasons if ground.kind != "fact")),
        )
        for pin in pins
    )
    return tuple(sorted(locked, key=lambda pin: (pin.component, pin.version, pin.build)))


def _host_reasons(stack: Stack) -> dict[str, tuple[Reason, ...]]:
    """Return the rules behind each host requirement, by host fact; rules of host components and of the image are left out."""
    found: dict[str, dict[Reason, None]] = {}
    for pin in stack.pins:
        for reason in pin.reasons:
            is_of_stack = reason.kind == "rule" and reason.component not in HOST_FACTS | {"image"}
            if pin.component in stack.host_requirements and is_of_stack:
                gpus = stack.gpus.get(reason, ()) if pin.component == "gpu" else ()
                found.setdefault(pin.component, {})[replace(reason_of(reason), gpus=gpus)] = None
    order = sorted(found.items())
    return {fact: tuple(sorted(reasons, key=lambda one: (one.component, one.text, one.where))) for fact, reasons in order}


def reason_of(ground: Ground) -> Reason:
    """Return the record of a ground in a lock: its English sentence and its fields."""
    lasting = _lasting(ground)
    fields = fields_of(lasting)
    return Reason(
        component=ground.component,
        kind=ground.kind,
        text=say(lasting),
        where=source_words(lasting.source),
        type=fields.type,
        subject=fields.subject,
        object=fields.object,
        ranges=fields.ranges,
        source=fields.source,
        place=fields.place,
    )


def _lasting(ground: Ground) -> Ground:
    """Return a ground without the line numbers of the matrix, which change too often for a lock."""
    return replace(ground, cited=_without_line(ground.cited)) if isinstance(ground, Entails) else ground


def _without_line(source: Source | None) -> Source | None:
    match source:
        case Place(file=file) if file.startswith("matrices/"):
            return Place(file)
        case MatrixRow(place=Place() as place) | Hazard(place=place):
            return replace(source, place=Place(place.file))
    return source
