from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.index.model import IndexFile
from provisioner.render import render
from tests.lock_examples import SIX, cpu_stack, cuda_stack, lock_of, with_file

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.lock.format.model import Lock


def test_a_local_wheel_is_required_by_its_path(tmp_path: Path) -> None:
    (tmp_path / SIX.filename).write_bytes(b"x")
    local = IndexFile(filename=SIX.filename, url="", index="x", path=str(tmp_path / SIX.filename))
    stack = with_file(cpu_stack(), "six", local)
    assert f"\n./wheels/{SIX.filename} \\\n    --hash=sha256:" in render(lock_of(stack), "requirements")


def test_each_platform_takes_the_wheel_of_its_machine_before_one_for_any() -> None:
    specific = replace(SIX, filename="six-1.17.0-cp312-cp312-manylinux_2_28_aarch64.whl", url="https://example.org/six.whl")
    lock = lock_of(cpu_stack(), with_file(cpu_stack("linux/arm64"), "six", specific))
    lines = [line for line in render(lock, "requirements-urls").splitlines() if line.startswith("six @")]
    assert lines == [
        f'six @ {SIX.url} ; platform_machine == "x86_64" \\',
        'six @ https://example.org/six.whl ; platform_machine == "aarch64" \\',
    ]


def packages_from(lock: Lock, **indexes: tuple[str, str]) -> Lock:
    """The lock with packages whose index is another one: its name and its URL."""
    packages = [
        replace(package, index=indexes[package.name][0], index_url=indexes[package.name][1])
        if package.name in indexes
        else package
        for package in lock.packages
    ]
    return replace(lock, packages=tuple(packages))


def options(lock: Lock) -> list[str]:
    return [line for line in render(lock, "requirements").splitlines() if line.startswith("--")]


def test_a_version_has_the_hashes_of_every_platform() -> None:
    other = replace(SIX, filename="six-1.17.0-cp312-cp312-manylinux_2_28_aarch64.whl", sha256="e" * 64)
    lock = lock_of(cpu_stack(), with_file(cpu_stack("linux/arm64"), "six", other))
    assert render(lock, "requirements").endswith(
        f"\nsix==1.17.0 \\\n    --hash=sha256:{SIX.sha256} \\\n    --hash=sha256:{'e' * 64}\n"
    )


def test_a_package_of_one_platform_has_its_marker() -> None:
    alone = replace(cpu_stack("linux/arm64"), packages=())
    assert 'six==1.17.0 ; platform_machine == "x86_64" \\\n' in render(lock_of(cpu_stack(), alone), "requirements")


def test_a_build_of_another_index_is_looked_up_on_its_page() -> None:
    lock = lock_of(cuda_stack())
    found = packages_from(lock, torch=("pytorch-cu126", "https://download.pytorch.org/whl/cu126"))
    assert options(found) == ["--find-links https://download.pytorch.org/whl/cu126/torch/"]
    assert "\ntorch==2.7.1+cu126 \\\n" in render(found, "requirements")


def test_indexes_that_the_spec_lists_are_named_and_pypi_is_not() -> None:
    lock = replace(lock_of(cpu_stack()), asked={"indexes.corp": "x", "indexes.pypi": "y"})
    assert options(packages_from(lock, six=("pypi", "https://pypi.org/simple"))) == []
    corp = ("corp", "https://corp.example/simple")
    both = packages_from(lock, six=corp, **{"python-dateutil": corp})
    assert options(both) == ["--index-url https://corp.example/simple"]
    page = replace(both, asked={**both.asked, "indexes.wheels": "z", "indexes.wheels.kind": "find-links"})
    page = packages_from(page, six=("wheels", "https://corp.example/wheels.html"))
    assert options(page) == ["--index-url https://corp.example/simple", "--find-links https://corp.example/wheels.html"]
