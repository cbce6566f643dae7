"""A package of a lock that is built from source keeps its file: what is compiled on a machine may be for its GPUs."""

from __future__ import annotations

import pytest

from provisioner.lock.check.kept import chosen
from provisioner.lock.format.model import LockedFile, LockedPackage
from provisioner.resolver.requirement import PACKAGE, FileCandidate, Key

WHEEL = LockedFile(filename="alpha-1-py3-none-any.whl", sha256="a" * 64, url="https://index.example/alpha-1-py3-none-any.whl")
SOURCE = LockedFile(filename="alpha-1.tar.gz", sha256="b" * 64, url="https://index.example/alpha-1.tar.gz")


@pytest.mark.parametrize(
    ("package", "name"),
    [
        (LockedPackage(name="alpha", version="1", platforms=(), wheels=(WHEEL,), sdist=SOURCE), None),
        (LockedPackage(name="alpha", version="1", platforms=(), sdist=SOURCE), SOURCE.filename),
        (LockedPackage(name="alpha", version="1", platforms=(), archive=SOURCE), SOURCE.filename),
        (LockedPackage(name="alpha", version="1", platforms=()), None),
    ],
)
def test_the_file_is_that_of_a_build(package: LockedPackage, name: str | None) -> None:
    candidate = chosen((package,))[Key("alpha", PACKAGE)]
    assert isinstance(candidate, FileCandidate)
    file = candidate.release.file
    assert (file.filename if file is not None else None) == name
