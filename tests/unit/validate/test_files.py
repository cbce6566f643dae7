"""Which source a file of bytecode has, by its name alone."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.validate.measurement import check_source


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("one.cpython-313.pyc", "one.py"),
        ("one.cpython-313.opt-1.pyc", "one.py"),
        ("one.pypy39.pyc", "one.py"),
        ("__init__.tmpl.cpython-313.pyc", "__init__.tmpl.py"),
        ("__init__.tmpl.cpython-313.opt-2.pyc", "__init__.tmpl.py"),
    ],
)
def test_a_name_with_dots_is_that_of_a_source_too(name: str, source: str) -> None:
    program: dict[str, Any] = {"__name__": "files"}
    exec(check_source("files"), program)
    assert program["source_of_bytecode"](f"lib/package/__pycache__/{name}") == f"lib/package/{source}"
    assert program["source_of_bytecode"](f"lib/package/{name}") is None
