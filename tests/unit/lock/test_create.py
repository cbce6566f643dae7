from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.document import FileError
from provisioner.grounds.predicate import Ended
from provisioner.grounds.relaxation import DriverWay, Lifecycle
from provisioner.grounds.requirement import Subject
from provisioner.index.model import DIRECT_URL, IndexFile
from provisioner.lock.create import InconsistentStackError, create_lock, local_files
from provisioner.lock.format.artifact import UnhashedFileError
from provisioner.lock.format.file import write_lock
from provisioner.places import Place
from provisioner.resolver.stack import BaseImage, PackagePin
from tests.lock_examples import (
    INSTALLERS,
    MATRIX_DIGEST,
    PACKAGES,
    SIX,
    SPEC_DIGEST,
    UV_ARM64,
    cpu_stack,
    cuda_stack,
    lock_of,
    torch_wheel,
    with_file,
)
from tests.told import needs, states

if TYPE_CHECKING:
    from pathlib import Path


def test_one_stack_or_a_list_of_one_make_the_same_lock() -> None:
    alone = create_lock(
        cpu_stack(), name="trainer", matrix_digest=MATRIX_DIGEST, spec_digest=SPEC_DIGEST, installer=INSTALLERS["linux/amd64"]
    )
    assert alone == lock_of(cpu_stack())


def test_the_facts_of_one_machine_stay_out_and_the_ranges_come_in() -> None:
    lock = lock_of(cuda_stack())
    assert lock.stack.components == {"cuda": "12.6.3", "python": "3.12", "pytorch": "2.7.1", "pytorch_build": "cu126"}
    assert lock.stack.host_requirements == {"driver": ">=525.60.13", "gpu": "7.5, 8.0, 9.0"}
    text = write_lock(lock)
    for fact in ("535.104.05", "6.5.0-1017-aws", "a100"):
        assert fact not in text


def test_two_machines_in_the_same_range_give_the_same_bytes() -> None:
    here = cuda_stack()
    there = replace(here, components={**here.components, "driver": "550.54.15", "kernel": "5.15.0-105-generic"})
    assert write_lock(lock_of(here)) == write_lock(lock_of(there))


def test_a_relative_place_and_a_citation_stay_as_they_are() -> None:
    (pin,) = (pin for pin in lock_of(cuda_stack()).stacks[0].pins if pin.component == "cuda")
    assert [reason.where for reason in pin.reasons] == ["wheel METADATA, torch 2.7.1"]


def test_what_the_host_compiles_with_is_a_fact_only_where_the_environment_runs_on_the_host() -> None:
    stack = replace(cpu_stack(), components={"python": "3.12", "gcc": "12.3.0", "glibc": "2.36"})
    assert lock_of(stack).stack.components == {"python": "3.12", "gcc": "12.3.0", "glibc": "2.36"}
    assert lock_of(replace(stack, runs="host", image=None)).stack.components == {"python": "3.12"}


def test_credentials_and_fragments_do_not_reach_the_lock() -> None:
    url = SIX.url.replace("https://", "https://ada:secret@") + "#sha256=0"
    file = replace(SIX, url=url, index="https://ada:secret@example.org/simple")
    lock = lock_of(with_file(cpu_stack(), "six", file))
    (six,) = (package for package in lock.packages if package.name == "six")
    assert six.wheels[0].url == SIX.url
    assert six.index == "https://example.org/simple"
    assert "secret" not in write_lock(lock)


def test_a_file_without_a_hash_is_refused_by_name() -> None:
    file = replace(SIX, sha256="", index="https://ada:secret@example.org/simple")
    with pytest.raises(UnhashedFileError) as caught:
        lock_of(with_file(cpu_stack(), "six", file))
    assert caught.value.message == "`six-1.17.0-py2.py3-none-any.whl` has no sha256, and a lock without hashes is not a lock"
    assert caught.value.causes == ("index `https://example.org/simple` lists the file; of its sha256, none was given",)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("sha256", ["abc", "z" * 64, "0" * 63])
def test_a_hash_that_is_not_a_sha256_is_refused(sha256: str) -> None:
    with pytest.raises(UnhashedFileError, match="has no sha256"):
        lock_of(with_file(cpu_stack(), "six", replace(SIX, sha256=sha256)))


def test_a_local_wheel_is_hashed_and_named_relative_to_the_lock(tmp_path: Path) -> None:
    wheel = tmp_path / SIX.filename
    wheel.write_bytes(b"content")
    stack = with_file(cpu_stack(), "six", IndexFile(filename=SIX.filename, url="", index="find-links", path=str(wheel)))
    lock = lock_of(stack)
    (six,) = (package for package in lock.packages if package.name == "six")
    assert six.wheels[0].path == f"wheels/{SIX.filename}"
    assert six.wheels[0].url == ""
    assert six.wheels[0].sha256 == "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"
    assert local_files([stack], installer=INSTALLERS) == {f"wheels/{SIX.filename}": wheel}
    assert str(tmp_path) not in write_lock(lock)


def test_a_file_url_is_a_local_wheel(tmp_path: Path) -> None:
    wheel = tmp_path / "with space" / SIX.filename
    wheel.parent.mkdir()
    wheel.write_bytes(b"content")
    stack = with_file(cpu_stack(), "six", replace(SIX, url=wheel.as_uri()))
    assert local_files([stack]) == {f"wheels/{SIX.filename}": wheel}


def test_a_local_wheel_that_is_gone_is_named() -> None:
    stack = with_file(cpu_stack(), "six", IndexFile(filename=SIX.filename, url="", index="x", path="/nowhere/six.whl"))
    with pytest.raises(FileError, match=r"^wheel `six.whl` cannot be read: No such file or directory$"):
        lock_of(stack)


def test_a_wheel_of_another_machine_is_refused() -> None:
    stack = with_file(cuda_stack(), "torch", torch_wheel("aarch64"))
    with pytest.raises(InconsistentStackError) as caught:
        lock_of(stack)
    assert caught.value.message == "`torch-2.7.1+cu126-cp312-cp312-manylinux_2_28_aarch64.whl` is not for linux/amd64"


def test_an_installer_of_another_machine_is_refused() -> None:
    with pytest.raises(InconsistentStackError, match=r"aarch64\.whl` is not for linux/amd64\nhint: "):
        lock_of(cpu_stack(), installers={"linux/amd64": UV_ARM64})


def test_an_installer_that_is_not_a_wheel_is_refused() -> None:
    source = replace(SIX, filename="uv-0.9.11.tar.gz")
    with pytest.raises(InconsistentStackError, match=r"^installer `uv-0.9.11.tar.gz` is not a wheel: "):
        lock_of(cpu_stack(), installers={"linux/amd64": source})


def test_two_stacks_of_one_platform_are_refused() -> None:
    with pytest.raises(
        InconsistentStackError, match=r"^lock `trainer` needs one stack a platform\ngiven: linux/amd64, linux/amd64$"
    ):
        lock_of(cpu_stack(), cuda_stack())


def test_no_stack_at_all_is_refused() -> None:
    with pytest.raises(InconsistentStackError, match=r"^lock `trainer` needs one stack a platform\ngiven: $"):
        lock_of()


def test_a_package_that_is_the_same_everywhere_is_locked_once() -> None:
    lock = lock_of(cpu_stack("linux/arm64"), cpu_stack())
    assert [(package.name, package.platforms, package.marker) for package in lock.packages] == [
        ("python-dateutil", ("linux/amd64", "linux/arm64"), ""),
        ("six", ("linux/amd64", "linux/arm64"), ""),
    ]


def test_a_package_with_a_wheel_for_each_machine_holds_both() -> None:
    stacks = []
    for platform, machine in (("linux/amd64", "x86_64"), ("linux/arm64", "aarch64")):
        pin = PackagePin(name="torch", version="2.7.1+cu126", file=torch_wheel(machine))
        stacks.append(replace(cpu_stack(platform), packages=(pin,)))
    (torch,) = lock_of(*stacks).packages
    assert torch.marker == ""
    assert [file.filename for file in torch.wheels] == [torch_wheel("aarch64").filename, torch_wheel("x86_64").filename]


def test_versions_that_differ_between_platforms_are_told_apart_by_a_marker() -> None:
    older = replace(SIX, filename="six-1.16.0-py2.py3-none-any.whl")
    arm = replace(
        cpu_stack("linux/arm64"),
        packages=(PackagePin(name="six", version="1.16.0", file=older), PACKAGES[1]),
    )
    lock = lock_of(cpu_stack(), arm)
    assert [(package.version, package.marker) for package in lock.packages if package.name == "six"] == [
        ("1.17.0", 'platform_machine == "x86_64"'),
        ("1.16.0", 'platform_machine == "aarch64"'),
    ]
    assert [package.version for package in lock.on("linux/arm64").packages] == ["2.9.0.post0", "1.16.0"]


def test_a_package_of_one_platform_only_carries_a_marker() -> None:
    lock = lock_of(cpu_stack(), replace(cpu_stack("linux/arm64"), packages=PACKAGES[:1]))
    assert [(package.name, package.marker) for package in lock.packages] == [
        ("python-dateutil", 'platform_machine == "x86_64"'),
        ("six", ""),
    ]


def test_pythons_that_differ_between_platforms_stand_in_the_environments() -> None:
    lock = lock_of(cpu_stack(), replace(cpu_stack("linux/arm64"), components={"python": "3.9.21"}))
    assert lock.requires_python == ">=3.9"
    assert lock.environments == (
        'sys_platform == "linux" and platform_machine == "x86_64" and python_version == "3.12"',
        'sys_platform == "linux" and platform_machine == "aarch64" and python_version == "3.9"',
    )


def test_a_lock_is_for_one_series_of_python() -> None:
    lock = lock_of(replace(cpu_stack(), components={"python": "3.12.7"}))
    assert lock.requires_python == "==3.12.*"
    assert lock.environments == ('sys_platform == "linux" and platform_machine == "x86_64"',)


def test_dependencies_are_those_of_the_lock_and_requirements_are_kept_whole() -> None:
    (torch,) = (package for package in lock_of(cuda_stack()).packages if package.name == "torch")
    assert torch.requires == ("six>=1.5", "triton==3.3.1")
    assert torch.dependencies == ("six",)


def test_names_and_versions_are_normalized_as_pep_751_asks() -> None:
    pin = PackagePin(name="Python_DateUtil", version="2.9.0-post0", file=PACKAGES[1].file)
    (package,) = lock_of(replace(cpu_stack(), packages=(pin,))).packages
    assert (package.name, package.version) == ("python-dateutil", "2.9.0.post0")


def test_a_version_that_is_none_is_named() -> None:
    pin = replace(PACKAGES[0], version="newest")
    with pytest.raises(InconsistentStackError, match=r"^package `six` cannot be locked: Invalid version: 'newest'$"):
        lock_of(replace(cpu_stack(), packages=(pin,)))


def test_a_reference_with_a_digest_is_taken_apart() -> None:
    digest = f"sha256:{'e' * 64}"
    lock = lock_of(replace(cpu_stack(), image=BaseImage(reference=f"debian:13@{digest}")))
    assert lock.stack.image == BaseImage(reference="debian:13", digest=digest)


def test_a_source_distribution_stands_beside_the_wheels_of_other_platforms() -> None:
    source = IndexFile(filename="torch-2.7.1+cu126.tar.gz", url="https://example.org/torch.tar.gz", index="x", sha256="5" * 64)
    pin = PackagePin(name="torch", version="2.7.1+cu126", file=replace(torch_wheel("x86_64"), index="x"))
    amd = replace(cpu_stack(), packages=(pin,))
    arm = replace(cpu_stack("linux/arm64"), packages=(replace(pin, file=source),))
    (torch,) = lock_of(amd, arm).packages
    assert [file.filename for file in torch.files] == [torch_wheel("x86_64").filename, "torch-2.7.1+cu126.tar.gz"]
    assert "torch-2.7.1+cu126.tar.gz" in write_lock(lock_of(amd, arm))


def test_narrowing_to_a_platform_the_lock_lacks_names_those_it_has() -> None:
    from provisioner.errors import UsageError

    with pytest.raises(UsageError) as caught:
        lock_of(cpu_stack()).on("linux/arm64")
    assert caught.value.message == "lock `trainer` has no platform `linux/arm64`"
    assert caught.value.hints == ("it has linux/amd64",)


def test_narrowing_keeps_the_environment_of_the_platform() -> None:
    lock = lock_of(cpu_stack(), cuda_stack("linux/arm64")).on("linux/arm64")
    assert lock.environments == ('sys_platform == "linux" and platform_machine == "aarch64"',)
    assert lock.stack.accelerator == "cuda"
    assert {package.name: package.index for package in lock.packages} == {
        "python-dateutil": "pypi",
        "six": "pypi",
        "torch": "pytorch-cu126",
    }


def test_the_rules_behind_a_host_requirement_are_kept_and_those_of_the_machine_are_not() -> None:
    stack = cuda_stack()
    cuda = Place.parse("matrices/cuda.yaml:263")
    driver = replace(
        stack.pins[2],
        reasons=(
            states("driver", "535.104.05"),
            needs("fabric_manager 535.104.05", "driver", "==535.104.05", source=Place.parse("matrices/fabric_manager.yaml:9")),
            needs("image x", "driver", ">=560", source=Place.parse("matrices/image.yaml:3")),
            needs("cuda 12.6.3", "driver", ">=525.60.13", source=cuda),
        ),
    )
    kernel = replace(driver, component="kernel", reasons=(needs("cuda 12.6.3", "kernel", ">=4.15", source=Place("x")),))
    locked = lock_of(replace(stack, pins=(*stack.pins[:2], driver, kernel))).stacks[0]
    (reason,) = locked.host_reasons["driver"]
    assert (reason.text, reason.where) == ("cuda 12.6.3 needs driver >=525.60.13", "matrices/cuda.yaml")
    assert (reason.type, reason.subject, reason.object, reason.ranges) == ("needs", "cuda 12.6.3", "driver", (">=525.60.13",))
    assert set(locked.host_reasons) == {"driver"}, "the kernel is not required of hosts"


def test_relaxations_are_named_but_not_those_of_the_machine() -> None:
    used = (
        DriverWay(
            component="cuda",
            way="minor-version",
            driver="535.104.05",
            native="12.2",
            cuda="12.6",
            source=Place("matrices/driver.yaml"),
        ),
        Lifecycle(component="driver", subject=Subject("driver", "535.104.05"), predicate=Ended("2026-06", "535"), source=None),
    )
    assert lock_of(replace(cuda_stack(), relaxations=used)).stacks[0].relaxations == ("minor-version (cuda)",)
    assert "relaxations" not in write_lock(lock_of(cuda_stack()))


def test_a_place_in_a_folder_of_the_matrix_loses_its_line_too() -> None:
    stack = cuda_stack()
    where = Place("matrices/libraries/cusparselt.yaml", 159)
    pin = replace(stack.pins[1], reasons=(needs("cusparselt 0.7", "cuda", "12.6", source=where),))
    (locked,) = (one for one in lock_of(replace(stack, pins=(pin,))).stacks[0].pins)
    assert locked.reasons[0].where == "matrices/libraries/cusparselt.yaml"


@pytest.mark.parametrize(
    ("stated", "expected"),
    [(None, ""), ("", ""), (" >=3.8 ", ">=3.8"), (">=2.7,!=3.0.*", ">=2.7,!=3.0.*"), (">=3.6.*", ""), ("any", "")],
)
def test_the_python_a_file_needs_is_locked_as_its_index_states_it(stated: str | None, expected: str) -> None:
    """One that cannot be read excludes nothing to installers; in a lock it would make them refuse the file."""
    lock = lock_of(with_file(cpu_stack(), "six", replace(SIX, requires_python=stated)))
    assert [package.requires_python for package in lock.packages if package.name == "six"] == [expected]


def test_a_file_that_a_url_names_is_an_archive_and_one_for_all_platforms_that_take_it() -> None:
    direct = replace(SIX, index=DIRECT_URL)
    stacks = [with_file(cpu_stack(platform), "six", direct) for platform in ("linux/amd64", "linux/arm64")]
    (six,) = (package for package in lock_of(*stacks).packages if package.name == "six")
    assert (six.wheels, six.sdist, six.marker, six.index) == ((), None, "", DIRECT_URL)
    assert six.files == (six.archive,)


def test_platforms_that_take_another_archive_have_an_entry_each() -> None:
    direct = replace(SIX, index=DIRECT_URL)
    other = replace(direct, url=SIX.url.replace("py2.py3-none-any", "py3-none-any"), sha256="0" * 64)
    stacks = [
        with_file(cpu_stack("linux/amd64"), "six", direct),
        with_file(cpu_stack("linux/arm64"), "six", other),
    ]
    found = [package for package in lock_of(*stacks).packages if package.name == "six"]
    assert [(package.platforms, package.marker) for package in found] == [
        (("linux/amd64",), 'platform_machine == "x86_64"'),
        (("linux/arm64",), 'platform_machine == "aarch64"'),
    ]
