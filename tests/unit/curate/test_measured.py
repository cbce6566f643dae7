"""Facts read inside artefacts: which targets count, and how far a library is read for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.curate.readings import QUIET, fat_targets, target_fields
from tests.built_artefacts import fat_binary

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_targets_of_a_few_kernels_do_not_count() -> None:
    most = fat_binary("sm_80", "sm_90", "compute_90")
    rare = fat_binary("sm_80", "sm_90", "compute_90", "sm_90a")
    assert fat_targets([most, most, rare]) == ["compute_90", "sm_80", "sm_90"]
    assert fat_targets([most, rare]) == ["compute_90", "sm_80", "sm_90", "sm_90a"]


def test_reading_stops_when_nothing_new_comes() -> None:
    read = []

    def pieces() -> Iterator[bytes]:
        yield bytes(QUIET)  # what comes before the first container does not count
        yield fat_binary("sm_80")
        for number in range(4):
            read.append(number)
            yield bytes(QUIET // 2)

    assert fat_targets(pieces()) == ["sm_80"]
    assert read == [0, 1]


def test_a_new_target_makes_reading_go_on() -> None:
    half = bytes(QUIET // 2 + 1)
    first, second = fat_binary("sm_80"), fat_binary("sm_90")
    assert fat_targets([first, half, second, half, first]) == ["sm_80", "sm_90"]


def test_a_library_without_fat_binaries_has_no_targets() -> None:
    assert fat_targets([b"\x7fELF", bytes(100)]) == []
    assert target_fields([]) == {}


def test_machine_code_and_ptx_are_fields_of_their_own() -> None:
    assert target_fields(["sm_80", "sm_90a", "compute_90"]) == {"sass": ("sm_80", "sm_90a"), "ptx": ("compute_90",)}
    assert target_fields(["sm_80"]) == {"sass": ("sm_80",), "ptx": ()}
