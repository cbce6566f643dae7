"""Which builds may be chosen: a name that builds of several platforms share means the one of the request's platform."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.resolver.choices.candidates import candidates_of
from provisioner.resolver.choices.variants import LABELLED_BUILDS
from provisioner.resolver.rules.silence import Silence
from tests import small

if TYPE_CHECKING:
    from provisioner.matrix.model import Component, Matrix
    from provisioner.versions import Version


@pytest.mark.parametrize("platform", ["linux/amd64", "linux/arm64", "macos/x86_64", "macos/arm64"])
@pytest.mark.parametrize("accelerator", ["cuda", "rocm", "mps", "cpu"])
def test_a_label_that_a_platform_has_means_no_build_of_another_one(matrix: Matrix, platform: str, accelerator: str) -> None:
    """`2.15.0+cpu` is a wheel of PyPI on macOS and one of the CPU index on Linux; a requirement names the label alone."""
    request = small.request({"python": "==3.12"}, platform=platform, accelerator=accelerator)
    for name in LABELLED_BUILDS:
        builds = [
            (one.label, one.build.platforms)
            for one in candidates_of(matrix.components[name], request, silence=Silence(matrix, request))
            if one.build is not None
        ]
        own = {label for label, platforms in builds if not platforms or platform in platforms}
        assert [label for label, platforms in builds if label in own and platforms and platform not in platforms] == []


@pytest.mark.parametrize("until", ["2016-03-01", "2018-09-30", "2020-11-15", "2022-06-30", "2024-02-29", "2026-08-01"])
def test_a_release_without_a_date_is_out_by_a_day_as_far_as_its_neighbours_tell(matrix: Matrix, until: str) -> None:
    """A later release of its series is out, or each earlier series has begun; a dated release is out on its day."""

    def listed(component: Component, policy: dict[str, str]) -> set[Version]:
        request = small.request({}, policy=policy)
        found = candidates_of(component, request, silence=Silence(matrix, request))
        return {one.release.version for one in found}

    def is_out(component: Component, version: Version) -> bool:
        dates = {one.version: one.released for one in component.releases if one.released and one.version.release}
        if version in dates:
            return dates[version] <= until
        series = version.release[0]
        later = [day for one, day in dates.items() if one > version and one.release[0] == series]
        earlier: dict[int, list[str]] = {}
        for one, day in dates.items():
            if one < version:
                earlier.setdefault(one.release[0], []).append(day)
        return any(day <= until for day in later) or all(min(days) <= until for days in earlier.values())

    for component in matrix.components.values():
        every = {one for one in listed(component, {}) if one.release}
        due = {one for one in every if is_out(component, one)}
        assert {one for one in listed(component, {"exclude-newer": until}) if one.release} == due, component.name
