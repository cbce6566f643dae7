"""What a spec asks of distributions: whether its packages, constraints and overrides mean something, and go together.

Reads the plain data, not the model, so that these mistakes are reported together with the model's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from provisioner.names import DISTRIBUTION_OF_COMPONENT
from provisioner.spec.gather import READ_INSTEAD, is_path
from provisioner.spec.interval import interval_of_range, interval_of_specifier

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from provisioner.document import Document, KeyPath
    from provisioner.errors import Mistake
    from provisioner.spec.interval import Interval
    from provisioner.versions import Range

Stated = list[tuple["KeyPath", Requirement]]
"""Requirements of one list that can be read, each with where it stands."""

_LONGEST = 2000
_NOT_PACKAGES = {
    "python": "put it under `requires`",
    **{
        component: f"write `{distribution}`, or put it under `requires`"
        for component, distribution in DISTRIBUTION_OF_COMPONENT.items()
        if component != distribution
    },
}
"""Names whose namesakes on an index are empty shells that nobody means."""


def request_mistakes(document: Document, ranges: Mapping[str, Range]) -> Iterator[Mistake]:
    """Every mistake in the three lists; `ranges` are the spec's own requests for components."""
    overrides: Stated = []
    yield from _readable(document, "overrides", overrides)
    yield from _overrides(document, overrides)
    overridden = {canonicalize_name(one.name) for _, one in overrides}
    packages: Stated = []
    yield from _readable(document, "packages", packages)
    # What is overridden is not asked any longer, so that it cannot contradict anything.
    yield from _contradictions(document, [pair for pair in packages if canonicalize_name(pair[1].name) not in overridden])
    yield from _against_components(document, packages, ranges, without=overridden)
    yield from _against_components(document, overrides, ranges, without=())
    constraints: Stated = []
    yield from _readable(document, "constraints", constraints)
    yield from _constraints(document, constraints)


def _readable(document: Document, key: str, found: Stated) -> Iterator[Mistake]:
    """Put the requirements of a list that can be read into `found`, and say what is wrong with the others."""
    items = document.data.get(key)
    for index, text in enumerate(items if isinstance(items, tuple) else ()):
        path: KeyPath = (key, index)
        if not isinstance(text, str) or (key in READ_INSTEAD and is_path(text)):
            continue
        if len(text) > _LONGEST:
            yield document.mistake(path, f"`{text[:27]}…` is {len(text)} characters long; no requirement is")
            continue
        try:
            requirement = Requirement(text)
            if requirement.marker is not None:
                requirement.marker.evaluate({"extra": ""})
        except UndefinedComparison:
            yield document.mistake(path, f"`{text}`: `~=` and `===` compare versions, not other text; write `==`")
            continue
        except UndefinedEnvironmentName:
            yield document.mistake(path, f"`{text}`: one side of each comparison names a variable, such as sys_platform")
            continue
        except (InvalidRequirement, RecursionError) as error:
            reason = (str(error) or "it is nested too deeply").splitlines()[0]
            yield document.mistake(path, f"`{text}` is not a requirement such as numpy>=2: {reason[:1].lower()}{reason[1:]}")
            continue
        name = str(canonicalize_name(requirement.name))
        if name in _NOT_PACKAGES:
            yield document.mistake(path, f"`{name}` is not a Python distribution here; {_NOT_PACKAGES[name]}")
        elif interval_of_specifier(requirement.specifier).is_empty:
            yield document.mistake(path, f"`{text}` allows no version at all")
        else:
            found.append((path, requirement))


def _overrides(document: Document, found: Stated) -> Iterator[Mistake]:
    for path, requirement in found:
        if requirement.url is not None:
            yield document.mistake(path, f"`{requirement}` names a file; an override names versions")
    yield from _contradictions(document, found)


def _constraints(document: Document, found: Stated) -> Iterator[Mistake]:
    """Source: pip documentation, "Constraints Files": a constraint has no extras, and says which version, not where from."""
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


def _against_components(
    document: Document, found: Stated, ranges: Mapping[str, Range], *, without: Collection[str]
) -> Iterator[Mistake]:
    """A distribution that is a component, against what is asked of the component under `requires`."""
    components = {DISTRIBUTION_OF_COMPONENT.get(name, name): name for name in ranges}
    for path, requirement in found:
        name = canonicalize_name(requirement.name)
        component = components.get(name)
        if component is None or name in without or requirement.url is not None or requirement.marker is not None:
            continue
        own: Interval = interval_of_specifier(requirement.specifier)
        if own.intersect(interval_of_range(ranges[component])).is_empty:
            wanted = document.data["requires"][component]
            place = _place(document, ("requires", component), seen_from=path)
            text = f"`{document.texts[path]}` contradicts `{component}: {wanted}` {place}; they are the same component"
            yield document.mistake(path, text)


def _place(document: Document, path: KeyPath, *, seen_from: KeyPath) -> str:
    """`on line 5`, or where that line stands in another file than the one it is spoken of from."""
    position, own = document.position(path), document.position(seen_from)
    return f"on line {position.line}" if position.file == own.file else f"at {document.where(path)}"
