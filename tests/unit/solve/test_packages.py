"""The package half: markers of the target, extras, companions of the framework, versions that cannot be installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version as PackageVersion

from provisioner.index.model import Environment, IndexFile, PackageRelease
from provisioner.matrix.model import Release
from provisioner.solve.packages import PackageWorld, marker_environment
from provisioner.solve.problem import join
from provisioner.solve.requirement import PACKAGE, PYTORCH, Key
from provisioner.solve.resolve import decide
from provisioner.solve.universe import Universe
from provisioner.versions import Version
from tests import small

if TYPE_CHECKING:
    from collections.abc import Iterable

    from packaging.utils import NormalizedName

Table = dict[str, dict[str, list[str] | str]]

ENVIRONMENT = Environment(platform="linux/amd64", python="3.11", glibc=(2, 36))


class Shelf:
    """A package source held in memory: name and version -> Requires-Dist, or why it cannot be installed."""

    def __init__(
        self, table: dict[str, dict[str, list[str] | str]], variants: dict[str, dict[str, list[str]]] | None = None
    ) -> None:
        self._table = table
        self._variants = variants or {}
        self.asked: list[str] = []

    def releases(self, name: NormalizedName, *, index: str = "") -> tuple[PackageRelease, ...]:
        self.asked.append(f"{name}@{index}" if index else name)
        table: dict[str, list[str] | str] = (
            dict(self._variants.get(f"{name}@{index}", {})) if index else self._table.get(name, {})
        )
        found = []
        for version, content in table.items():
            filename = f"{name}-{version}-py3-none-any.whl"
            file = IndexFile(filename=filename, url=f"https://files.test/{filename}", index=index or "pypi", sha256="0" * 64)
            blocked = isinstance(content, str)
            found.append(
                PackageRelease(
                    name=name,
                    version=PackageVersion(version),
                    file=None if blocked else file,
                    why_not=content if isinstance(content, str) else "",
                    blocked_by="python" if blocked else "",
                )
            )
        return tuple(sorted(found, key=lambda release: release.version, reverse=True))

    def requirements(self, release: PackageRelease) -> tuple[Requirement, ...]:
        assert release.file is not None
        where = release.file.index
        table = self._table[release.name] if where == "pypi" else self._variants[f"{release.name}@{where}"]
        return tuple(Requirement(text) for text in table[str(release.version)])

    def prefetch(self, names: Iterable[NormalizedName]) -> None:
        del names


def matrix_with_variant() -> tuple[Release, ...]:
    builds = (
        small.build("cu121", {"python": ["3.11"]}, is_default=True),
        small.build("cu118", {"python": ["3.11"]}, index="pytorch-cu118", local="cu118", sass=("sm_70", "sm_75")),
    )
    return (Release(version=Version.parse("2.1.0"), builds=builds, sources=("invented",)),)


def solve(shelf: Shelf, packages: list[str], *gpus: str, variant: str = "") -> dict[str, str] | None:
    matrix = small.matrix(
        ("pytorch", "python", "gpu"),
        {"python": {"3.11": {}}, "gpu": {"7.0": {}, "7.5": {}, "8.0": {}}},
        releases={"pytorch": matrix_with_variant()},
    )
    host = {"gpus": [{"compute_capability": gpu} for gpu in gpus], "container_toolkit": "1.17.4"} if gpus else {}
    problem = join(matrix, small.wish({}, host, packages=packages))
    pins = decide(Universe(problem, PackageWorld(problem, shelf, ENVIRONMENT, variant)))
    return {key.name: pin.label for key, pin in pins.items() if key.is_package or key == PYTORCH} if pins else None


def test_markers_are_those_of_the_target_not_of_this_machine() -> None:
    markers = marker_environment(Environment(platform="linux/arm64", python="3.13", glibc=(2, 36)))
    assert (markers["platform_machine"], markers["python_version"], markers["sys_platform"]) == ("aarch64", "3.13", "linux")
    assert marker_environment(Environment(platform="macos/x86_64", python="3.11"))["sys_platform"] == "darwin"


def test_extras_bring_their_requirements_and_the_same_version_of_the_distribution() -> None:
    shelf = Shelf({
        "web": {"2": ["core"], "1": ["core", "fast>=1; extra == 'speed'", "gone; python_version < '3'"]},
        "core": {"1": []},
        "fast": {"1": ["web<2"]},
    })  # fmt: skip
    assert solve(shelf, ["web[speed]<2"]) == {"web[speed]": "1", "web": "1", "core": "1", "fast": "1"}


def test_a_package_constrains_the_framework_and_the_framework_brings_its_own_packages() -> None:
    shelf = Shelf({"model": {"1": ["torch==2.1.0"]}, "torch": {"2.1.0": ["sympy"]}, "sympy": {"1.14": []}})
    assert solve(shelf, ["model"], "7.0") == {
        "model": "1",
        "pytorch": "2.1.0+cu121",
        "torch": "2.1.0+cu121",
        "sympy": "1.14",
    }


def test_a_companion_from_the_default_index_does_not_go_with_a_variant_build() -> None:
    shelf = Shelf(
        {"torchvision": {"0.16.0": ["torch==2.1.0"]}, "torch": {"2.1.0": []}},
        {"torch@pytorch-cu118": {"2.1.0+cu118": []}, "torchvision@pytorch-cu118": {"0.16.0+cu118": ["torch==2.1.0"]}},
    )
    assert solve(shelf, ["torchvision"], "7.5", variant="pytorch-cu118") == {
        "torchvision": "0.16.0+cu118",
        "pytorch": "2.1.0+cu118",
        "torch": "2.1.0+cu118",
    }


def test_a_version_without_a_usable_file_is_passed_over() -> None:
    shelf = Shelf({"tool": {"2": "no wheel for cp311 on linux/amd64", "1": []}})
    assert solve(shelf, ["tool"]) == {"tool": "1"}
    assert solve(shelf, ["tool>=2"]) is None


def test_the_index_is_not_asked_for_a_build_the_matrix_refuses() -> None:
    shelf = Shelf({"torch": {"2.1.0": []}})
    assert solve(shelf, ["torch"], "8.0") is None
    assert not any(name.startswith("torch") for name in shelf.asked)


def test_keys_of_packages_are_normalized() -> None:
    shelf = Shelf({"my-tool": {"1": ["My.Tool_Core"]}, "my-tool-core": {"1": []}})
    assert solve(shelf, ["My_Tool"]) == {"my-tool": "1", "my-tool-core": "1"}
    assert Key(canonicalize_name("My_Tool"), PACKAGE).is_package
