"""The shipped matrix, read once by each process that runs tests: as the fixture `matrix`, or here where no fixture reaches."""

from __future__ import annotations

import shutil
from functools import cache
from typing import TYPE_CHECKING

from provisioner.caches import cache_directory
from provisioner.matrix.cache import cached_matrix

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from provisioner.matrix.model import Matrix


@cache
def shipped() -> Matrix:
    """The shipped matrix; not to be asked for while modules are imported, when there is no cache of the tests' own yet."""
    return cached_matrix()


def forget_the_index(patch: pytest.MonkeyPatch, home: Path) -> None:
    """Use a cache below `home` that holds the decoded matrix, which takes seconds to read from YAML, and nothing else."""
    shipped()
    kept = cache_directory()
    patch.setenv("XDG_CACHE_HOME", str(home))
    if (kept / "matrix").is_dir():  # not where the package brings the matrix along
        shutil.copytree(kept / "matrix", cache_directory() / "matrix")
