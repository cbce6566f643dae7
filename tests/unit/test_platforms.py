from __future__ import annotations

import pytest

from provisioner.platforms import environment_marker, package_marker

ALL = ("linux/amd64", "linux/arm64", "macos/arm64", "macos/x86_64")


def test_an_environment_names_system_and_machine_and_python_when_asked() -> None:
    assert environment_marker("linux/arm64") == 'sys_platform == "linux" and platform_machine == "aarch64"'
    assert environment_marker("macos/x86_64", python="3.12") == (
        'sys_platform == "darwin" and platform_machine == "x86_64" and python_version == "3.12"'
    )


@pytest.mark.parametrize(
    ("platforms", "among", "expected"),
    [
        (("linux/amd64",), ("linux/amd64",), ""),
        (("linux/amd64",), ("linux/amd64", "linux/arm64"), 'platform_machine == "x86_64"'),
        (("linux/amd64",), ("linux/amd64", "macos/x86_64"), 'sys_platform == "linux"'),
        (("macos/arm64",), ("linux/amd64", "macos/arm64"), 'sys_platform == "darwin"'),
        (
            ("linux/amd64", "macos/arm64"),
            ALL,
            f"{environment_marker('linux/amd64')} or {environment_marker('macos/arm64')}",
        ),
    ],
)
def test_a_package_marker_is_the_shortest_that_tells_platforms_apart(
    platforms: tuple[str, ...], among: tuple[str, ...], expected: str
) -> None:
    assert package_marker(platforms, among) == expected


@pytest.mark.parametrize("among", [ALL, ALL[:2], ALL[1:3], (ALL[0], ALL[3])])
def test_markers_hold_on_their_platforms_and_nowhere_else(among: tuple[str, ...]) -> None:
    from packaging.markers import Marker

    values = {"linux/amd64": "linux x86_64", "linux/arm64": "linux aarch64", "macos/arm64": "darwin arm64"}
    for platform in among:
        marker = package_marker((platform,), among)
        for other in among:
            system, machine = values.get(other, "darwin x86_64").split()
            environment = {"sys_platform": system, "platform_machine": machine}
            assert Marker(marker).evaluate(environment) is (other == platform)
