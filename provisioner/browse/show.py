"""Answer queries to a matrix as plain data: a release with the releases it is compatible with, or the stacks of a host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.browse.companions import companions, rules_about
from provisioner.browse.query import component_named, is_target, matching, product
from provisioner.browse.rows import citations_of, gpu_data, image_data, release_data, rule_data, without_empty
from provisioner.errors import ProvisionError, RefusedError
from provisioner.versions import Version
from provisioner.words.conflict import member_words
from provisioner.words.doubt import doubt_words
from provisioner.words.notation import sources_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.browse.query import Fact
    from provisioner.browse.rows import Data
    from provisioner.browse.stacks import Refused, Running, Stacks
    from provisioner.matrix.model import Component, Gpu, Matrix, Release


class NothingFoundError(RefusedError):
    """Raised when the matrix has no release that a query asks for."""

    code = "nothing-found"


def release_answer(matrix: Matrix, fact: Fact) -> Data:
    """Return the releases in a range, their rules and sources, and the releases of other components compatible with them.

    Raises `NothingFoundError` when the matrix has no such release, naming the nearest ones.
    """
    component = component_named(matrix, fact.name)
    releases = matching(component, fact)
    if not releases:
        raise _no_release(component, fact)
    rows = [release_data(matrix, component, release) for release in releases]
    rules = [rule_data(matrix, rule) for rule in rules_about(matrix, component, releases)]
    compatible = _compatible(matrix, component, releases)
    gpus = _gpus(matrix, component, releases)
    images = _images(matrix, component, releases)
    return {
        "question": fact.spelled,
        "kind": "release",
        "component": component.name,
        "title": component.title,
        "releases": rows,
        "rules": rules,
        "with": compatible,
        "gpus": gpus,
        "images": images,
        "citations": citations_of(matrix, rows, rules, compatible, images),
    }


def _no_release(component: Component, fact: Fact) -> ProvisionError:
    wanted = fact.value.lstrip("<>=!~ ")
    causes: tuple[str, ...] = ()
    if component.releases and not component.named:
        version = Version.parse(wanted.partition(",")[0].removesuffix(".*"))
        below = max((one.version for one in component.releases if one.version < version), default=None)
        above = min((one.version for one in component.releases if one.version > version), default=None)
        near = " and ".join(str(one) for one in (below, above) if one is not None)
        causes = (f"the nearest it has: {near}",)
    return NothingFoundError(
        f"the matrix has no release of {component.name} that is {fact.text}",
        causes=causes,
        hints=(f"`provision matrix list {component.name}` lists all of them",),
    )


def _compatible(matrix: Matrix, component: Component, releases: Sequence[Release]) -> list[Data]:
    """Return compatible releases grouped by component, newest first."""
    groups: dict[str, list[Data]] = {}
    for one in companions(matrix, component, releases):
        builds = [build.name for build in one.builds]
        data = release_data(matrix, matrix.components[one.component], one.release)
        row = {"version": data["version"], "builds": builds, "basis": one.basis}
        row |= {"needs": data.get("needs", {}), "sources": data.get("sources", ())}
        groups.setdefault(one.component, []).append(without_empty(row))
    return [
        {
            "component": name,
            "title": matrix.components[name].title,
            "releases": rows,
            "of": len(matrix.components[name].releases),
        }
        for name, rows in groups.items()
    ]


def _gpus(matrix: Matrix, component: Component, releases: Sequence[Release]) -> list[Data]:
    """Return the GPU products with one of the queried compute capabilities; [] if `component` is not `gpu`."""
    if component.name != "gpu":
        return []
    wanted = {release.version for release in releases}
    return [gpu_data(gpu) for gpu in matrix.gpus if gpu.compute_capability and Version.parse(gpu.compute_capability) in wanted]


def _images(matrix: Matrix, component: Component, releases: Sequence[Release]) -> list[Data]:
    """Return the base images that contain one of `releases`; [] if the matrix records no release of `component` for images."""
    if component.name not in {"cuda", "cudnn", "python"}:
        return []
    versions = {str(release.version) for release in releases}
    return [image_data(image) for image in matrix.images if getattr(image, component.name) in versions]


def stacks_answer(matrix: Matrix, facts: Sequence[Fact], allow: Sequence[str]) -> Data:
    """Return the framework releases that run on a host with these facts, and the others with the rules that exclude them.

    `allow` is the `policy.allow` of the stacks' spec, such as `minor-version`.
    """
    from provisioner.browse.stacks import which_stacks

    found = which_stacks(matrix, facts, allow)
    running = [_running(one) for one in found.running]
    refused = [_refused(one) for one in found.refused]
    named = {name for one in found.refused for name in one.rules}
    rules = [rule_data(matrix, rule) for rule in matrix.rules if rule.name in named]
    gpu = _queried_gpu(matrix, facts)
    return without_empty(
        {
            "question": " ".join(fact.spelled for fact in facts),
            "kind": "stacks",
            "host": dict(found.facts),
            "gpu": gpu_data(gpu) if gpu is not None else None,
            "runs": running,
            "refused": refused,
            "rules": rules,
            "unverified": [doubt_words(doubt) for doubt in found.doubts],
            "citations": citations_of(matrix, rules, _rows_behind(matrix, found), gpu_data(gpu) if gpu is not None else {}),
        }
    )


def _queried_gpu(matrix: Matrix, facts: Sequence[Fact]) -> Gpu | None:
    fact = next((one for one in facts if one.name == "gpu" and one.is_exact), None)
    return None if fact is None or is_target(fact.value) else product(matrix, fact.value)


def _running(one: Running) -> Data:
    stack = one.stack
    return without_empty(
        {
            "component": one.component,
            "release": one.release,
            "build": one.build,
            "basis": stack.basis,
            "verdict": stack.verdict,
            "stack": dict(stack.components),
            "environment": dict(stack.environment),
            "unverified": [doubt_words(doubt) for doubt in stack.doubts],
        }
    )


def _refused(one: Refused) -> Data:
    members = [
        without_empty(
            {
                "component": member.component,
                "kind": member.kind,
                "text": member_words(member),
                "where": sources_words(member.sources),
            }
        )
        for member in one.members
    ]
    return {"component": one.component, "releases": list(one.releases), "rules": list(one.rules), "members": members}


def _rows_behind(matrix: Matrix, found: Stacks) -> list[Data]:
    """Return the rows of the releases and builds in the newest stack of each framework, whose sources the answer cites."""
    rows: list[Data] = []
    seen: set[str] = set()
    for one in found.running:
        if one.component in seen:
            continue
        seen.add(one.component)
        for pin in one.stack.pins:
            component = matrix.components.get(pin.component)
            release = next((r for r in component.releases if r.version.text == pin.version.text), None) if component else None
            if component is not None and release is not None:
                data = release_data(matrix, component, release)
                if pin.build:
                    builds = data.get("builds", ())
                    assert isinstance(builds, tuple)
                    data["builds"] = tuple(build for build in builds if build["name"] == pin.build)
                rows.append(data)
    return rows
