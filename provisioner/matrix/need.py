"""Needs, the requirements of matrix rows on components (`cuda: ">=12,<13"`), and their spelling in YAML."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from msgspec import Struct

from provisioner.accelerators import ACCELERATORS
from provisioner.components import ABSENT, PRESENT
from provisioner.platforms import PLATFORMS
from provisioner.strict_model import Spelling
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Iterable

SAME = "same"
"""The text of a need for the same version as the component that has the need."""

GpuKind = Literal["datacenter", "workstation", "geforce", "jetson", "radeon", "apu"]

NAMED_GUARDS: dict[str, tuple[str, ...]] = {
    "platform": tuple(PLATFORMS),
    "accelerator": tuple(ACCELERATORS),
    "runs": ("container", "host"),
    "build": (ABSENT, "extension", "pytorch"),
    "framework": (ABSENT, PRESENT),
    "cuda_compat": (ABSENT, "present"),
    "gpu_kind": get_args(GpuKind),
    "nvswitch": (ABSENT, PRESENT),
    "prebuilt_modules": (ABSENT, PRESENT),
    "virtualization": (ABSENT, "wsl1", "wsl2", "vm", "container"),
}
"""Facts of the host and the request that are no components but may occur in the `on` of a rule, with their values.

They are known before solving starts. In `on`, the value `none` means that the host does not have or state the fact: a driver
that is not stated is still to be installed. `framework` is whether the spec names one. `prebuilt_modules` is whether the
matrix lists a package with the driver's kernel modules, already built, for the system that a host states
(driver_packages.yaml); `none` where it states no system, too.
"""


OF_REQUESTS = ("platform", "accelerator", "runs", "build", "framework")
"""The facts of `NAMED_GUARDS` that belong to a request, not to a host."""


class Need(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """A requirement on one component: a version range, or any of some exact versions or names (`one_of`).

    With `is_same`, the version must equal that of the component that has the need, as a fabric manager's must equal its
    driver's; `allows` cannot decide such a need, because it does not know that version.
    """

    component: str
    range: Range
    one_of: tuple[Version, ...] = ()
    is_same: bool = False

    def allows(self, version: Version) -> bool:
        """Return whether a version of the component satisfies this need."""
        return version in self.one_of if self.one_of else self.range.allows(version)

    def __str__(self) -> str:
        if self.is_same:
            return "of the same version"
        return " or ".join(str(version) for version in self.one_of) if self.one_of else str(self.range)


Needs = tuple[Need, ...]
NeedText = str | tuple[str, ...]
"""The spelling of a need in a file: a range (`>=12,<13`), a name (`open`), a list of versions or names (one of them), or
`same`."""


def read_version(text: object) -> Version:
    """Return the version that a text spells, or the name if it does not start with a number.

    Raises `ValueError` for other types.
    """
    if not isinstance(text, str):
        raise ValueError("must be text")  # noqa: TRY004 - a mistake of the document
    try:
        return Version.parse(text)
    except ValueError:
        return Version.named(text)


def read_range(text: object) -> Range:
    """Return the version range that a text spells; raises `ValueError` when it is malformed."""
    if not isinstance(text, str):
        raise ValueError("must be text")  # noqa: TRY004 - a mistake of the document
    return Range.parse(text)


def read_need(mapping: object) -> Need:
    """Return the need in a mapping of one component to a `NeedText`; raises `ValueError` for anything else."""
    needs = read_needs(mapping)
    if len(needs) != 1:
        raise ValueError(f"must have one component, it has {len(needs)}")
    return needs[0]


def read_needs(mapping: object) -> Needs:
    """Return the needs in a mapping of components to `NeedText`s; raises `ValueError` for anything else."""
    if not isinstance(mapping, dict) or not all(isinstance(component, str) for component in mapping):
        raise ValueError("must be a mapping of components to what is needed of them")
    return tuple(_need(component, _text(value)) for component, value in mapping.items())


def need_text(need: Need) -> NeedText:
    """Return the YAML value of a need, the inverse of `read_need`; `*` for any version."""
    if need.is_same:
        return SAME
    if not need.one_of:
        return str(need.range) if need.range.clauses else "*"
    texts = tuple(version.text for version in need.one_of)
    return texts[0] if len(texts) == 1 and not need.one_of[0].release else texts


def need_texts(needs: Iterable[Need]) -> dict[str, NeedText]:
    """Return the YAML mapping of needs: components to values."""
    return {need.component: need_text(need) for need in needs}


def need_of(needs: Iterable[Need], component: str) -> Need | None:
    """Return the need for one component; None when there is none."""
    return next((need for need in needs if need.component == component), None)


WrittenVersion = Annotated[Version, Spelling(str, read_version, str)]
WrittenRange = Annotated[Range, Spelling(str, read_range, str)]
WrittenNeed = Annotated[Need, Spelling(dict[str, NeedText], read_need, lambda need: need_texts([need]))]
WrittenNeeds = Annotated[Needs, Spelling(dict[str, NeedText], read_needs, need_texts)]


def _text(value: object) -> NeedText:
    if isinstance(value, str):
        return value
    if isinstance(value, tuple | list) and all(isinstance(text, str) for text in value):
        return tuple(value)
    raise ValueError("must be text or a list of texts")


@lru_cache(maxsize=16384)
def _need(component: str, text: NeedText) -> Need:
    if text == SAME:
        return Need(component=component, range=Range(), is_same=True)
    if isinstance(text, tuple):
        return Need(component=component, range=Range(), one_of=tuple(read_version(one) for one in text))
    try:
        return Need(component=component, range=Range.parse(text))
    except ValueError:  # a name
        return Need(component=component, range=Range(), one_of=(Version.named(text),))
