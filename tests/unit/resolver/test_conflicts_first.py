"""What is in conflict again and again is decided first, where neither search comes to an end in the order that was wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.resolver.search import complete, provider
from tests.unit.resolver.test_finder import Shelf, instance, solve

if TYPE_CHECKING:
    import pytest

PACKAGES = ["boto", "cli", "files", "maker"]


def shelf() -> Shelf:
    """The newest of `boto` and `cli` go with no `aio`, which `files` needs since 2; every `maker` needs some `boto`."""
    return Shelf({
        "boto": {str(number): [f"core=={number}"] for number in range(60)},
        "cli": {str(number): [f"core=={number}"] for number in range(60)},
        "files": {"1": [], **{str(number): ["aio"] for number in range(2, 12)}},
        "maker": {str(number): ["boto>=20"] for number in range(60)},
        "aio": {str(number): ["core<20"] for number in range(12)},
        "core": {str(number): [] for number in range(60)},
    })  # fmt: skip


def test_an_answer_is_found_where_the_usual_order_finds_none_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "PACKAGE_ROUNDS", 150)
    monkeypatch.setattr(complete, "MAX_READS", 5)
    assert provider.search(instance(shelf(), PACKAGES)) is None
    assert solve(shelf(), PACKAGES) == {"boto": "59", "cli": "59", "core": "59", "files": "1", "maker": "59"}
