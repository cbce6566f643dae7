"""Where the files of a lock come from, and who attests them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.index.model import DIRECT_URL
from provisioner.lock.format.file import parse_lock, write_lock
from provisioner.lock.provenance import Origins, earlier_details, with_origins
from tests.lock_examples import DATEUTIL, SIX, UV_AMD64, cpu_stack, lock_of, with_file

if TYPE_CHECKING:
    from provisioner.lock.format.model import Lock, LockedPackage

ADA = {"kind": "GitHub", "repository": "ada/six", "workflow": "release.yml"}
BOB = {"kind": "GitLab", "repository": "bob/six"}


def six(lock: Lock) -> LockedPackage:
    (found,) = (package for package in lock.packages if package.name == "six")
    return found


def test_a_package_knows_the_url_of_its_index_besides_its_name() -> None:
    lock = with_origins(lock_of(cpu_stack()), Origins(urls={"pypi": "https://ada:secret@pypi.org/simple/"}))
    assert (six(lock).index, six(lock).index_url) == ("pypi", "https://pypi.org/simple")
    text = write_lock(lock)
    assert 'index = "https://pypi.org/simple"\n' in text
    assert "secret" not in text
    assert parse_lock(text, file="x") == lock


@pytest.mark.parametrize("url", ["", "file:///srv/simple", "/srv/simple"])
def test_an_index_in_a_folder_has_no_url_that_is_true_elsewhere(url: str) -> None:
    assert six(with_origins(lock_of(cpu_stack()), Origins(urls={"pypi": url}))).index_url == ""


def test_an_archive_comes_from_no_index() -> None:
    stack = with_file(cpu_stack(), "six", replace(SIX, index=DIRECT_URL))
    package = six(with_origins(lock_of(stack), Origins(urls={DIRECT_URL: "https://example.org"})))
    assert (package.index_url, package.wheels) == ("", ())
    assert package.archive is not None
    assert package.archive.filename == SIX.filename


def test_publishers_of_any_file_of_a_package_stand_once_and_in_order() -> None:
    origins = Origins(identities={SIX.sha256: (BOB, ADA, BOB), DATEUTIL.sha256: ()})
    lock = with_origins(lock_of(cpu_stack()), origins)
    assert six(lock).attestations == (ADA, BOB)
    assert [package.attestations for package in lock.packages if package.name != "six"] == [()]


class TestTheLockBefore:
    def test_knows_sizes_and_publishers_by_the_content_of_files(self) -> None:
        lock = with_origins(lock_of(cpu_stack()), Origins(identities={SIX.sha256: (ADA,)}))
        known = earlier_details(lock)
        assert known[SIX.sha256] == (SIX.size, (ADA,))
        assert known[UV_AMD64.sha256] == (UV_AMD64.size, ())

    def test_does_not_say_which_of_several_files_somebody_attests(self) -> None:
        lock = with_origins(lock_of(cpu_stack()), Origins(identities={SIX.sha256: (ADA,)}))
        (wheel,) = six(lock).wheels
        other = replace(wheel, filename="six-1.17.0-py3-none-any.whl", sha256="0" * 64)
        packages = tuple(replace(one, wheels=(wheel, other)) if one.name == "six" else one for one in lock.packages)
        known = earlier_details(replace(lock, packages=packages))
        assert known[SIX.sha256] == (SIX.size, ())

    def test_may_not_be_there(self) -> None:
        assert earlier_details(None) == {}
