"""Ranges in Poetry's notation, as its documentation explains them."""

from __future__ import annotations

import pytest

from provisioner.importers.poetry import requirement_specifier


@pytest.mark.parametrize(
    ("text", "specifier"),
    [
        ("^1.2.3", ">=1.2.3,<2"), ("^1.2", ">=1.2,<2"), ("^1", ">=1,<2"), ("^0.2.3", ">=0.2.3,<0.3"),
        ("^0.0.3", ">=0.0.3,<0.0.4"),
        ("^0.0", ">=0.0,<0.1"), ("^0", ">=0,<1"), ("^0.46b0", ">=0.46b0,<0.47"), ("~1.2.3", ">=1.2.3,<1.3"),
        ("~1.2", ">=1.2,<1.3"),
        ("~1", ">=1,<2"), ("*", ""), ("", ""), ("1.*", "==1.*"), ("1.2.*", "==1.2.*"), ("1.2.3", "==1.2.3"), ("=1.2", "==1.2"),
        ("==1.2.3", "==1.2.3"), (">= 1.2, < 1.5", ">=1.2,<1.5"), (">=1.2 <1.5", ">=1.2,<1.5"), ("!=1.2.*", "!=1.2.*"),
        ("~=1.2", "~=1.2"), ("^1.0 || ^2.0", None), ("^x", None), ("latest!", None),
    ],
)  # fmt: skip
def test_a_range_is_one_of_python(text: str, specifier: str | None) -> None:
    assert requirement_specifier(text) == specifier
