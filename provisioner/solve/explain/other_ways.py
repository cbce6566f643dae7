"""Changes that shape a problem before it is solved: what the policy allows, the base image, the Python of an environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.solve.explain.change import LEFT_OUT, LINES, Change, line_left_out
from provisioner.solve.requirement import Key
from provisioner.solve.rules.standing import is_prerelease

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.solve.search.universe import Universe
    from provisioner.request import Request

ALLOWANCES = {
    "minor-version": ("cuda needs driver",),
    "forward-compat": ("cuda needs driver",),
    "ptx-jit": ("pytorch needs gpu", "tensorflow needs gpu", "jax needs gpu"),
    "patched-kernel": ("driver needs kernel",),
    "image-gate": ("image gate",),
    "prerelease": ("requires.", "packages."),
    "end-of-life": (),
    "shared-files": (),
}
"""Words of `policy.allow`, and how the groups begin of which a conflict must hold one for the word to be worth trying."""

BASES = ("auto", "cuda-runtime")
"""Base images worth trying instead of another: the smallest, and the one that brings a CUDA and its newer libcuda."""


def other_ways(universe: Universe, groups: tuple[str, ...]) -> Iterator[tuple[Change, ...]]:
    """Every such change that may help with a conflict, the cheapest first; what helps is found by solving again."""
    request = universe.problem.request
    roots = [root for root in universe.roots if root.origin.group in groups]
    is_python_asked = any(root.key == Key("python") and root.origin.kind == "request" for root in roots)
    if universe.packages is not None and is_python_asked and "python" in request.spec.requires:
        yield (Change(component="python", text="", instead=f"`{request.spec.requires['python']}`"),)
    yield from _accelerators(request, groups)
    yield from _lines(request, groups)
    policies = list(_policies(universe, groups))
    for change in policies:
        yield (change,)
    images = [Change(component="image", text=base, instead=f"`{request.spec.image.base}`") for base in _bases(request, groups)]
    for change in images:
        yield (change,)
    for policy in policies:
        if "forward-compat" in policy.text:
            # An older driver branch helps nobody whose image does not carry the newer libcuda.
            yield from ((policy, image) for image in images if image.text.startswith("cuda-"))


def _accelerators(request: Request, groups: tuple[str, ...]) -> Iterator[tuple[Change, ...]]:
    """What the target's GPUs call for, where the spec says otherwise: nobody falls back to it in silence."""
    asked = request.spec.accelerator
    own = replace(request, spec=replace(request.spec, accelerator=None)).accelerator
    if asked is not None and "accelerator" in groups and own != asked:
        yield (Change(component="accelerator", text=f"=={own}", instead=f"`{asked}`"),)


def _lines(request: Request, groups: tuple[str, ...]) -> Iterator[tuple[Change, ...]]:
    """Constraints, overrides and hashes without which the rest may hold together."""
    for group in groups:
        key = group.partition(".")[0]
        if key == "requires-python":
            told = " and ".join(f"`{text}`" for text in request.spec.requires_python)
            yield (Change(component=key, text=LEFT_OUT, instead=f"the project's requires-python {told}"),)
        elif key == "hashes" or key in LINES:
            yield (line_left_out(request, group),)


def _policies(universe: Universe, groups: tuple[str, ...]) -> Iterator[Change]:
    policy = universe.problem.request.spec.policy
    kept = {group.rpartition(" ")[2] for group in groups if group.startswith("policy.")}
    for word, starts in ALLOWANCES.items():
        is_concerned = word in kept or any(group.startswith(starts) for group in groups)
        if not is_concerned or (word == "prerelease" and word not in kept and not _has_prereleases(universe, groups)):
            continue
        if word in policy.forbid:
            rest = [one for one in policy.forbid if one != word]
            yield Change(component="policy", text=f"forbid: [{', '.join(rest)}]")
        elif word not in policy.allow:
            yield Change(component="policy", text=f"allow: [{', '.join((*policy.allow, word))}]")
    if any(group.startswith("policy.strategy") for group in groups):
        yield Change(component="policy", text="strategy: newest")


def _has_prereleases(universe: Universe, groups: tuple[str, ...]) -> bool:
    """Whether something asked for has prereleases, or a distribution has no final version that was asked for."""
    components = universe.problem.matrix.components
    for root in universe.roots:
        if root.origin.group in groups and root.origin.kind == "request":
            component = components.get(root.key.component)
            if root.key.is_package and not universe.allowed(root):
                return True
            if component is not None and any(is_prerelease(release) for release in component.releases):
                return True
    return False


def _bases(request: Request, groups: tuple[str, ...]) -> Iterator[str]:
    if request.runs != "container" or not {"image", "cuda needs driver"}.intersection(groups):
        return
    base = request.spec.image.base
    for other in BASES:
        if other != base and not (other == "auto" and base == "slim") and (other == "auto" or request.accelerator == "cuda"):
            yield other
