"""Find mistakes in the Python requirements of a spec (`packages`, `constraints`, `overrides`).

Reads the plain data, not the model, so that these mistakes are reported together with those of types.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from provisioner.names import DISTRIBUTION_OF_COMPONENT, pep508
from provisioner.spec.gather import PATH_LISTS, is_path
from provisioner.spec.interval import interval_of_range, interval_of_specifier

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.document import Document, KeyPath
    from provisioner.errors import Mistake
    from provisioner.spec.interval import Interval
    from provisioner.versions import Range

_WITHOUT_VERSION = re.compile(r"(?:[<>!~=]=|[<>])\s*$")
_SLIPS = (
    (re.compile("=>"), ">="),
    (re.compile("=<"), "<="),
    (re.compile(r"(?<![=<>!~])=(?![=<>])"), "=="),
    (re.compile(r"~(?!=)"), "~="),
    (re.compile(r"\^\s*([1-9]\d*)((?:\.\d+)*)"), lambda found: f">={found[1]}{found[2]},<{int(found[1]) + 1}"),
)
"""What people write for an operator: in another order, or as conda, npm and Poetry have it; and what it means."""

PlacedRequirements = list[tuple["KeyPath", Requirement]]
"""The well-formed requirements of one list, each with its key path."""

_LONGEST = 2000
_NOT_PACKAGES = {
    "python": "put it under `requires`",
    **{
        component: f"write `{distribution}`, or put it under `requires`"
        for component, distribution in DISTRIBUTION_OF_COMPONENT.items()
        if component != distribution
    },
}
"""Components whose namesakes on an index are placeholders without content, each with advice."""


def requirement_mistakes(document: Document, ranges: Mapping[str, Range]) -> Iterator[Mistake]:
    """Yield every mistake in `packages`, `constraints` and `overrides`; `ranges` are the spec's ranges of components."""
    overrides: PlacedRequirements = []
    yield from _readable(document, "overrides", overrides)
    yield from _overrides(document, overrides)
    packages: PlacedRequirements = []
    yield from _readable(document, "packages", packages)
    # Packages that contradict each other, or a component, are a conflict, which the solver reports with fixes. An override of a
    # component that nothing installs would be ignored silently.
    yield from _against_components(document, overrides, ranges)
    constraints: PlacedRequirements = []
    yield from _readable(document, "constraints", constraints)
    yield from _constraints(document, constraints)


def _readable(document: Document, key: str, found: PlacedRequirements) -> Iterator[Mistake]:
    """Put the well-formed requirements of a list into `found`, and yield the mistakes of the others."""
    items = document.data.get(key)
    for index, text in enumerate(items if isinstance(items, tuple) else ()):
        path: KeyPath = (key, index)
        if not isinstance(text, str) or (key in PATH_LISTS and is_path(text)):
            continue
        if len(text) > _LONGEST:
            yield document.mistake(path, f"`{text[:27]}…` is {len(text)} characters long; no requirement is")
            continue
        try:
            requirement = pep508(text)
            if requirement.marker is not None:
                requirement.marker.evaluate({"extra": ""})
        except UndefinedComparison:
            yield document.mistake(path, f"`{text}`: `~=` and `===` compare versions, not other text; write `==`")
            continue
        except UndefinedEnvironmentName:
            yield document.mistake(path, f"`{text}`: one side of each comparison names a variable, such as sys_platform")
            continue
        except (InvalidRequirement, RecursionError) as error:
            yield document.mistake(path, f"`{text}` is not a requirement{_slip(text) or _reason(error)}")
            continue
        name = str(canonicalize_name(requirement.name))
        if name in _NOT_PACKAGES:
            yield document.mistake(path, f"`{name}` is not a Python distribution here; {_NOT_PACKAGES[name]}")
        elif interval_of_specifier(requirement.specifier).is_empty:
            yield document.mistake(path, f"`{text}` allows no version at all")
        else:
            found.append((path, requirement))


def _reason(error: Exception) -> str:
    reason = (str(error) or "it is nested too deeply").splitlines()[0]
    return f" such as numpy>=2: {reason[:1].lower()}{reason[1:]}"


def _slip(text: str) -> str:
    """Return what may be meant by operators of other tools (`=`, `^`) and mistyped ones; "" where nothing is near."""
    if _WITHOUT_VERSION.search(text):
        return ": a version is missing at its end"
    meant = text
    for slip, operator in _SLIPS:
        meant = slip.sub(operator, meant)
    with suppress(InvalidRequirement, RecursionError):
        return f"; did you mean `{pep508(meant)}`?"
    return ""


def _overrides(document: Document, found: PlacedRequirements) -> Iterator[Mistake]:
    for path, requirement in found:
        if requirement.url is not None:
            yield document.mistake(path, f"`{requirement}` names a file; an override names versions")
    yield from _contradictions(document, found)


def _constraints(document: Document, found: PlacedRequirements) -> Iterator[Mistake]:
    """Check that constraints have a range, no extras and no URL (pip documentation, "Constraints Files")."""
    for path, requirement in found:
        if requirement.extras:
            extras = ",".join(sorted(requirement.extras))
            yield document.mistake(
                path, f"`{requirement}` names extras, which a constraint cannot bring in; leave out `[{extras}]`"
            )
        elif requirement.url is not None:
            yield document.mistake(path, f"`{requirement}` names a file; a constraint bounds versions")
        elif not requirement.specifier:
            advice = f"write a range such as `{requirement.name}<2`, or a path such as `./{requirement.name}`"
            yield document.mistake(path, f"`{requirement}` bounds nothing; {advice}")
    yield from _contradictions(document, found)


def _contradictions(document: Document, found: Sequence[tuple[KeyPath, Requirement]]) -> Iterator[Mistake]:
    seen: dict[str, list[tuple[KeyPath, Requirement]]] = {}
    for path, requirement in found:
        before = seen.setdefault(canonicalize_name(requirement.name), [])
        yield from _against_others(document, path, requirement, before)
        before.append((path, requirement))


def _against_others(
    document: Document, path: KeyPath, requirement: Requirement, before: Sequence[tuple[KeyPath, Requirement]]
) -> Iterator[Mistake]:
    own = interval_of_specifier(requirement.specifier)
    for other_path, other in before:
        # Requirements with different markers, or one without, may never apply together.
        if requirement.marker != other.marker:
            continue
        is_apart = own.intersect(interval_of_specifier(other.specifier)).is_empty
        if is_apart or (requirement.url and other.url and requirement.url != other.url):
            place = _place(document, other_path, seen_from=path)
            yield document.mistake(path, f"`{requirement}` contradicts `{other}` {place}")
            return


def _against_components(document: Document, found: PlacedRequirements, ranges: Mapping[str, Range]) -> Iterator[Mistake]:
    """Compare overrides of distributions that are components with the ranges of these components under `requires`."""
    components = {DISTRIBUTION_OF_COMPONENT.get(name, name): name for name in ranges}
    for path, requirement in found:
        name = canonicalize_name(requirement.name)
        component = components.get(name)
        if component is None or requirement.url is not None or requirement.marker is not None:
            continue
        own: Interval = interval_of_specifier(requirement.specifier)
        if own.intersect(interval_of_range(ranges[component])).is_empty:
            wanted = document.data["requires"][component]
            place = _place(document, ("requires", component), seen_from=path)
            text = f"`{document.texts[path]}` contradicts `{component}: {wanted}` {place}; they are the same component"
            yield document.mistake(path, text)


def _place(document: Document, path: KeyPath, *, seen_from: KeyPath) -> str:
    """Return the position of `path` as `on line 5`; with its file if `seen_from` is in another file."""
    position, own = document.position(path), document.position(seen_from)
    return f"on line {position.line}" if position.file == own.file else f"at {document.where(path)}"
