"""List the candidates of a component: the releases and builds that may be chosen, most preferred first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.components import FRAMEWORKS
from provisioner.resolver.choices.frameworks import is_plain_for_gpus, is_taken_as_named
from provisioner.resolver.choices.variants import LABELLED_BUILDS, variants_of
from provisioner.resolver.requirement import Key, ReleaseCandidate
from provisioner.resolver.rules.policy import arranged, offered

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from provisioner.matrix.model import Build, Component, Matrix, Release
    from provisioner.request import Request
    from provisioner.resolver.rules.silence import Silence

ACCELERATOR_OF = {"cuda": "cuda", "rocm": "rocm"}
"""The accelerator that a runtime belongs to. In a stack for another accelerator the runtime has no candidates, so a stack for
AMD that requires CUDA is impossible instead of becoming one for NVIDIA. A CPU stack may still have an unused CUDA, such as that
of its base image."""


DRIVER_OF = {"driver": "cuda", "driver_module": "cuda", "amdgpu": "rocm"}
"""The accelerator whose GPUs a driver serves. In a stack for another accelerator's GPUs the driver has no candidates."""


def candidates_of(
    component: Component, request: Request, key: Key | None = None, *, silence: Silence, is_on_jetson: bool = True
) -> tuple[ReleaseCandidate, ...]:
    """Return the candidates of a component, most preferred first.

    `key` is the key of the candidates, by default the one that all hosts share. Candidates about which `silence` finds that the
    matrix lacks a row that it should have come after all others. A runtime or driver of another accelerator than the request's
    has no candidates. Left out are releases after the policy's `exclude-newer`, builds for another accelerator, builds to be
    compiled unless the request allows them, and unless `is_on_jetson`, builds for Jetsons that the spec does not name. Of a
    framework that is taken as named (`is_taken_as_named`), the builds with extras are left out, and not those for the CPU.
    """
    key = key or Key(component.name)
    accelerator = request.accelerator
    if _is_foreign(component, accelerator):
        return ()
    until = request.spec.policy.exclude_newer
    may_compile = _may_compile(component, request)
    as_named = not is_on_jetson and is_taken_as_named(component, request)
    # A build for another accelerator is never chosen: it would not be what the request is for.
    wanted = frozenset({"", "cpu" if computes_on_cpu(component, request) else accelerator, *(["cpu"] if as_named else ())})
    variants = variants_of(silence.matrix)
    early = offered(component, variants.prereleases(component.name), request, scope=key.scope)
    releases = variants.final(component.name).union(map(id, early))
    in_time = releases if until is None else releases & variants.published(component.name, until)
    for_jetsons = frozenset[ReleaseCandidate]() if is_on_jetson else variants.for_jetsons(component.name)

    def is_candidate(one: ReleaseCandidate) -> bool:
        build = one.build
        if build is None or id(one.release) not in in_time:
            return id(one.release) in in_time
        is_left_out = (build.compiled and not may_compile) or one in for_jetsons
        return not is_left_out or _is_named(component, build, request)

    built = variants.built_for(component.name, wanted)
    found = _of_own_platform(component, list(filter(is_candidate, built)), request.platform)
    if as_named:
        found = _as_named(found, request)
    if not component.named and not component.virtual and request.spec.policy.strategy == "oldest":
        found.sort(key=lambda candidate: candidate.version)
    silent = frozenset[ReleaseCandidate]().union(*map(variants.silent, silence.binding(component.name)))
    if silent:
        found.sort(key=silent.__contains__)
    if key != Key(component.name):
        found = [ReleaseCandidate(key, one.version, one.label, one.release, one.build) for one in found]
    return arranged(found, request, component.name)


def _as_named(found: Sequence[ReleaseCandidate], request: Request) -> list[ReleaseCandidate]:
    """Return the builds that a framework's distribution is without extras; of each release those for GPUs, if there are any.

    Up to 2.13, the wheel of TensorFlow uses the CUDA of the system; from then on a GPU needs more than the wheel.
    """
    plain = [one for one in found if one.build is None or not one.build.install]
    with_gpus = {
        id(one.release) for one in plain if one.build is not None and is_plain_for_gpus(one.release, one.build, request)
    }
    return [one for one in plain if id(one.release) not in with_gpus or one.build is None or one.build.accelerator != "cpu"]


def computes_on_cpu(component: Component, request: Request) -> bool:
    """Return whether a framework without builds for a Mac's GPU (MPS) computes on the CPU in a stack for that GPU.

    False if the spec names the accelerator itself: then only builds for that accelerator are candidates.
    """
    if request.accelerator != "mps" or request.spec.accelerator is not None or component.name not in FRAMEWORKS:
        return False
    builds = (build for release in component.releases for build in release.builds)
    return not any(build.accelerator == "mps" for build in builds)


def accelerator_of(matrix: Matrix, request: Request, names: Iterable[str]) -> str:
    """Return the accelerator that a stack computes on: the request's, or `cpu` if all its frameworks compute on the CPU.

    `names` are the components of the stack.
    """
    frameworks = [name for name in names if name in FRAMEWORKS]
    is_on_cpu = bool(frameworks) and all(computes_on_cpu(matrix.components[name], request) for name in frameworks)
    return "cpu" if is_on_cpu else request.accelerator


def _of_own_platform(component: Component, found: list[ReleaseCandidate], platform: str) -> list[ReleaseCandidate]:
    """Return the candidates without builds for other platforms that have the label of a build for `platform`.

    A requirement names a label, and `2.15.0+cpu` is one wheel on Linux and another one, of another index, on macOS. A label
    that only builds for other platforms have stays, so that a conflict can name their platform.
    """
    if component.name not in LABELLED_BUILDS:
        return found
    own = {one.label for one in found if _is_for(one, platform)}
    return [one for one in found if one.label not in own or _is_for(one, platform)]


def _is_for(candidate: ReleaseCandidate, platform: str) -> bool:
    return candidate.build is None or _serves(candidate.release, candidate.build, platform)


def _is_foreign(component: Component, accelerator: str) -> bool:
    """Return whether a component is a runtime or driver of another accelerator than the request's."""
    owner = ACCELERATOR_OF.get(component.name, accelerator)
    if owner != accelerator and not (component.name == "cuda" and accelerator == "cpu"):
        return True
    return accelerator in DRIVER_OF.values() and DRIVER_OF.get(component.name, accelerator) != accelerator


def _may_compile(component: Component, request: Request) -> bool:
    """Return whether builds that have to be compiled, because no file of them is published, are candidates.

    Such builds are candidates if the spec compiles PyTorch, or if no other build of the component is for the request's
    accelerator and platform.
    """
    if request.spec.build is not None and request.spec.build.kind == "pytorch":
        return True
    accelerator = request.accelerator
    return not any(
        not build.compiled and build.accelerator == accelerator and _serves(release, build, request.platform)
        for release in component.releases
        for build in release.builds
    )


def _serves(release: Release, build: Build, platform: str) -> bool:
    platforms = build.platforms or release.platforms
    return not platforms or platform in platforms


def _is_named(component: Component, build: Build, request: Request) -> bool:
    requires = request.spec.requires
    named = f"+{build.name}" in requires.get(component.name, "")
    return named or (component.name == "pytorch" and requires.get("pytorch_build") == build.name)
