"""Which builds run on which Macs: the newest release of macOS of each series, and the rule or need that refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.browse.macs import OTHER, RUNS, MacGrid, mac_grid
from tests.unit.browse.test_stacks import small

if TYPE_CHECKING:
    from provisioner.matrix.model import Matrix


@pytest.fixture(scope="module")
def grid(matrix: Matrix) -> MacGrid:
    return mac_grid(matrix)


def verdict(grid: MacGrid, mac: tuple[str, str, str], build: tuple[str, str]) -> int:
    row = grid.table[next(i for i, one in enumerate(grid.macs) if (one.platform, one.macos, one.gpu) == mac)]
    return row[
        next(i for i, one in enumerate(grid.builds) if (str(one.release.version), one.build.name) == build and row[i] != OTHER)
    ]


@pytest.mark.parametrize(
    ("mac", "build", "refused"),
    [
        (("macos/arm64", "14.8.7", ""), ("2.7.1", "mps"), ()),
        (("macos/arm64", "12.7.6", ""), ("2.7.1", "mps"), ("pytorch needs macos",)),
        (("macos/x86_64", "10.13.6", ""), ("2.2.2", "cpu"), ()),
        (("macos/x86_64", "10.13.6", "6.1"), ("2.2.1", "cu102"), ()),
        (("macos/x86_64", "10.14", "6.1"), ("2.2.1", "cu102"), ("pytorch needs macos",)),
        (("macos/x86_64", "10.13.6", "5.2"), ("2.2.1", "cu102"), ("pytorch needs gpu",)),
    ],
)
def test_known_macs(grid: MacGrid, mac: tuple[str, str, str], build: tuple[str, str], refused: tuple[str, ...]) -> None:
    """PyTorch's wheels of 2.7.1 have mps for macOS 13 and newer; CUDA ended on macOS 10.13, and sm_61 is the one target."""
    found = verdict(grid, mac, build)
    assert (tuple(str(group) for group in grid.refusals[found]) if found != RUNS else ()) == refused


def test_a_matrix_without_macos_has_no_macs() -> None:
    assert mac_grid(small()).macs == []
