"""Compare an installed environment with a lock, with itself, and with the machine that it is on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.markers import InvalidMarker, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from provisioner.accelerators import ON_GPUS
from provisioner.grounds.fault import CpuBuild, Difference, NotAsLocked, OtherPython, Unlisted
from provisioner.grounds.requirement import Subject
from provisioner.index.markers import Markers, marker_environment
from provisioner.index.model import Environment
from provisioner.layers import layer_of
from provisioner.lock.check.kept import chosen
from provisioner.lock.format.model import LockedPackage
from provisioner.names import COMPONENT_OF_DISTRIBUTION, DISTRIBUTION_OF_COMPONENT
from provisioner.resolver.choices.frameworks import GPU_PLUGINS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.grounds.fault import Fault
    from provisioner.host.environment import PythonEnvironment
    from provisioner.host.model import Host
    from provisioner.layers import LayerName
    from provisioner.lock.format.model import Lock
    from provisioner.matrix.model import Matrix
    from provisioner.resolver.requirement import Candidate, Key

_LIBRARIES = ("nvidia-cudnn-", "nvidia-nccl-", "nvidia-cublas", "tensorrt")
"""The beginnings of the names of distributions with the libraries of CUDA."""


def layer_of_distribution(name: str) -> LayerName:
    """Return the layer of an installed distribution: that of its component, of the libraries of CUDA, or of packages."""
    if name in COMPONENT_OF_DISTRIBUTION:
        return layer_of(COMPONENT_OF_DISTRIBUTION[name])
    return "libraries" if name.startswith(_LIBRARIES) else "packages"


def requires_of(
    environment: PythonEnvironment, matrix: Matrix, *, host: Host, accelerator: str
) -> tuple[dict[str, str], list[Fault]]:
    """Return what an environment holds as the `requires` of a spec, and faults of what cannot be required.

    These are releases that the matrix does not list, and, on a `host` whose GPUs call for an accelerator, frameworks that are
    installed for the CPU alone.
    """
    requires: dict[str, str] = {}
    faults: list[Fault] = []
    for component, distribution in DISTRIBUTION_OF_COMPONENT.items():
        installed = environment.distributions.get(distribution)
        if installed is None or component not in matrix.components:
            continue
        build = environment.torch.build if component == "pytorch" and environment.torch is not None else ""
        version = installed.version.partition("+")[0]
        subject = Subject(component, f"{version}+{build}" if build else version)
        releases = [one for one in matrix.components[component].releases if str(one.version) == version]
        is_listed = any(not build or any(one.name == build for one in release.builds) for release in releases)
        lacks = _lacking(component, environment, host, accelerator)
        if accelerator in ON_GPUS and host.gpus != () and (build == "cpu" or lacks):
            faults.append(CpuBuild(layer="framework", subject=subject, accelerator=accelerator, lacks=lacks))
        elif not is_listed:
            faults.append(Unlisted(layer=layer_of(component), subject=subject))
        else:
            requires[component] = f"=={version}"
            if build:
                requires["pytorch_build"] = build
    series = environment.python_series
    if requires and any(str(one.version) == series for one in matrix.components["python"].releases):
        requires["python"] = f"=={series}"
    return requires, faults


def _lacking(component: str, environment: PythonEnvironment, host: Host, accelerator: str) -> str:
    """Return the beginning of the name of the distribution that a framework lacks to use GPUs; "" if it lacks none."""
    beginnings = GPU_PLUGINS.get((component, accelerator), ())
    has_cudnn_of_system = component == "tensorflow" and host.libraries is not None and host.libraries.cudnn is not None
    if not beginnings or has_cudnn_of_system or any(name.startswith(beginnings) for name in environment.distributions):
        return ""
    return beginnings[0]


def candidates_of(environment: PythonEnvironment) -> dict[Key, Candidate]:
    """Return the installed distributions that are no components as chosen candidates, by key."""
    names = (name for name in environment.distributions if name not in COMPONENT_OF_DISTRIBUTION)
    versions = ((name, environment.distributions[name].version) for name in names)
    return chosen(LockedPackage(name=name, version=version, platforms=()) for name, version in versions if _is_version(version))


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def differences_from(lock: Lock, environment: PythonEnvironment) -> Iterator[Fault]:
    """Yield a fault for each layer in which an environment differs from a lock of one platform, and for another Python."""
    python = lock.stack.components.get("python", "")
    if python and environment.python_series and environment.python_series != ".".join(python.split(".")[:2]):
        yield OtherPython(layer="python", locked=python, installed=environment.python or "")
    by_layer: dict[LayerName, list[Difference]] = {}
    counts: dict[LayerName, int] = {}
    for package in lock.packages:
        layer = layer_of_distribution(package.name)
        counts[layer] = counts.get(layer, 0) + 1
        installed = environment.distributions.get(package.name)
        needed = locked_version(lock, package.name, package.version)
        if installed is None or not _is_same(needed, _version_of(environment, package.name)):
            has = _version_of(environment, package.name) if installed is not None else ""
            by_layer.setdefault(layer, []).append(Difference(name=package.name, needed=needed, installed=has))
    for layer, differences in by_layer.items():
        yield NotAsLocked(layer=layer, differences=tuple(differences), count=counts[layer])


def locked_version(lock: Lock, name: str, version: str) -> str:
    """Return the locked version of a distribution; that of torch with its build, `2.7.1+cu126`."""
    build = lock.stack.components.get("pytorch_build", "")
    return f"{version}+{build}" if name == DISTRIBUTION_OF_COMPONENT["pytorch"] and build and "+" not in version else version


def _version_of(environment: PythonEnvironment, name: str) -> str:
    """Return the version of an installed distribution; that of torch with the build that it says it is."""
    version = environment.distributions[name].version if name in environment.distributions else ""
    if name == DISTRIBUTION_OF_COMPONENT["pytorch"] and environment.torch is not None and "+" not in version:
        return f"{version}+{environment.torch.build}"
    return version


def _is_same(needed: str, installed: str) -> bool:
    try:
        return Version(needed) == Version(installed)
    except InvalidVersion:
        return needed == installed


def unmet_requirements(environment: PythonEnvironment, platform: str) -> Iterator[Difference]:
    """Yield each requirement of an installed distribution that the environment does not meet, without those of extras."""
    markers = Markers(marker_environment(Environment(platform=platform, python=environment.python_series or "3.12")))
    for name, one in environment.distributions.items():
        for text in one.requires:
            try:
                requirement = Requirement(text)
                holds = markers.hold(requirement.marker)
            except (InvalidRequirement, InvalidMarker, UndefinedEnvironmentName):
                continue
            other = environment.distributions.get(canonicalize_name(requirement.name))
            version = other.version if other is not None else ""
            if holds and not _meets(requirement, version):
                needed = f"{requirement.name}{requirement.specifier}"
                yield Difference(name=canonicalize_name(requirement.name), needed=needed, installed=version, by=name)


def _meets(requirement: Requirement, version: str) -> bool:
    try:
        return bool(version) and requirement.specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:
        return True
