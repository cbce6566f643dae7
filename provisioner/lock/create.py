"""Stack -> lock: every artefact with its hash, platforms merged, and the facts of one machine left behind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace
from packaging.requirements import InvalidRequirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion
from packaging.version import Version as PackageVersion

from provisioner import __version__
from provisioner.errors import ProvisionError
from provisioner.grounds.fields import fields_of
from provisioner.grounds.requirement import Entails, RequiresComponent
from provisioner.grounds.source import Hazard, MatrixRow
from provisioner.index.metadata.requirement_text import read_requirement
from provisioner.index.model import DIRECT_PATH, DIRECT_URL
from provisioner.lock.artifact import fits, local_path, lock_file, nameless, public_url
from provisioner.lock.model import Installer, Lock, LockedPackage, LockedPin, LockedStack, Reason
from provisioner.lock.platform import environment_marker, package_marker
from provisioner.names import HOST_COMPONENTS
from provisioner.places import Place
from provisioner.resolver.stack import BaseImage, Stack
from provisioner.words.doubt import doubt_words
from provisioner.words.ground import say
from provisioner.words.notation import source_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from provisioner.grounds.requirement import Ground
    from provisioner.grounds.source import Source
    from provisioner.index.model import IndexFile
    from provisioner.lock.model import LockedFile
    from provisioner.resolver.stack import PackagePin, Pin

    Installers = IndexFile | Mapping[str, IndexFile] | None

HOST_FACTS = frozenset(HOST_COMPONENTS)
"""Components a machine states about itself: a lock holds the range they must meet, never one machine's value."""

_BUILD_TOOLS_OF_THE_HOST = frozenset({"clang", "gcc", "glibc", "nvcc"})
"""What the base image brings to a container, and the machine itself to an environment that runs on it."""


class InconsistentStackError(ProvisionError):
    """A stack cannot be locked as it is: it contradicts itself or an artefact of it is for another platform."""

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
    """Lock one stack, or one a platform in a single file.

    `installer` is the wheel that installs inside an image, one for all platforms or one each. Raises
    `UnhashedFileError` for a file without sha256, `FileError` for a local one that cannot be read, and
    `InconsistentStackError` for two stacks of one platform or a wheel of another platform.
    """
    given = [stacks] if isinstance(stacks, Stack) else list(stacks)
    ordered = sorted(given, key=lambda stack: stack.platform)
    platforms = tuple(stack.platform for stack in ordered)
    if not platforms or len(set(platforms)) < len(platforms):
        raise InconsistentStackError(f"lock `{name}` needs one stack a platform", causes=(f"given: {', '.join(platforms)}",))
    pythons = [_series(stack.components.get("python", "")) for stack in ordered]
    is_one_python = len(set(pythons)) == 1
    return Lock(
        name=name,
        requires_python=_requires_python(pythons),
        environments=tuple(
            environment_marker(platform, python="" if is_one_python else python)
            for platform, python in zip(platforms, pythons, strict=True)
        ),
        packages=_merge(ordered, platforms),
        stacks=tuple(_locked_stack(stack, installer) for stack in ordered),
        tool_version=__version__,
        matrix_digest=matrix_digest,
        spec_digest=spec_digest,
        spec_file=spec_file,
    )


def local_files(stacks: Sequence[Stack], *, installer: Installers = None) -> dict[str, Path]:
    """The files of this machine a lock refers to: the path it gives them, relative to itself, and where they lie now."""
    files = [package.file for stack in stacks for package in stack.packages]
    files += [file for stack in stacks if (file := _installer_file(stack.platform, installer))]
    sources = {lock_file(file).path: source for file in files if (source := local_path(file))}
    return dict(sorted(sources.items()))


def _series(python: str) -> str:
    """`3.12` of `3.12.7`: a lock is for one series, whatever its patch release."""
    return ".".join(python.split(".")[:2])


def _requires_python(pythons: list[str]) -> str:
    known = sorted({python for python in pythons if python}, key=PackageVersion)
    if len(known) < 2:
        return "".join(f"=={python}.*" for python in known)
    return f">={known[0]}"


def _merge(stacks: Sequence[Stack], platforms: tuple[str, ...]) -> tuple[LockedPackage, ...]:
    """One entry for all platforms where a package is the same on them but for its file, otherwise one a platform."""
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
    """What must be equal for two platforms to share an entry."""
    try:
        version = str(PackageVersion(package.version))
        requires = tuple(sorted({str(read_requirement(text)) for text in package.requires}))
    except (InvalidVersion, InvalidRequirement) as error:
        raise InconsistentStackError(f"package `{package.name}` cannot be locked: {error}") from None
    named = package.dependencies or tuple(read_requirement(text).name for text in requires)
    dependencies = {canonicalize_name(dependency) for dependency in named} & known
    return LockedPackage(
        name=canonicalize_name(package.name),
        version=version,
        platforms=(),
        requires_python=_specifier(package.file.requires_python),
        index=public_url(package.file.index),
        requires=requires,
        dependencies=tuple(sorted(dependencies)),
    )


def _specifier(requires_python: str | None) -> str:
    """The Requires-Python an index states of a file; one that no installer could read is left out, as installers do."""
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


def _locked_stack(stack: Stack, installer: Installers) -> LockedStack:
    facts = HOST_FACTS | _BUILD_TOOLS_OF_THE_HOST if stack.runs == "host" else HOST_FACTS
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
        relaxations=tuple(sorted({f"{one.name} ({one.component})" for one in stack.relaxations if one.component not in facts})),
        image=_locked_image(stack.image) if stack.image else None,
        installer=_locked_installer(stack.platform, installer),
        pins=_locked_pins(pin for pin in stack.pins if pin.component not in facts),
    )


def _locked_image(image: BaseImage) -> BaseImage:
    """The image with tag and digest apart, however the reference was written."""
    reference, _, digest = image.reference.partition("@")
    return replace(image, reference=reference, digest=image.digest or digest)


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
    """For each host requirement the rules it comes from: those of the stack's own parts, never of one machine's."""
    found: dict[str, dict[Reason, None]] = {}
    for pin in stack.pins:
        for reason in pin.reasons:
            is_of_stack = reason.kind == "rule" and reason.component not in HOST_FACTS | {"image"}
            if pin.component in stack.host_requirements and is_of_stack:
                found.setdefault(pin.component, {})[reason_of(reason)] = None
    order = sorted(found.items())
    return {fact: tuple(sorted(reasons, key=lambda one: (one.component, one.text, one.where))) for fact, reasons in order}


def reason_of(ground: Ground) -> Reason:
    """Return a ground as a lock records it: in words, and as fields."""
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
    """Return a ground without the lines of the matrix: a row keeps its meaning when others are added above it."""
    if isinstance(ground, Entails):
        return replace(ground, cited=_without_line(ground.cited))
    return replace(ground, attempt="") if isinstance(ground, RequiresComponent) else ground


def _without_line(source: Source | None) -> Source | None:
    match source:
        case Place(file=file) if file.startswith("matrices/"):
            return Place(file)
        case MatrixRow(place=Place() as place) | Hazard(place=place):
            return replace(source, place=Place(place.file))
    return source
