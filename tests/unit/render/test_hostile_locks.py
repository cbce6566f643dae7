"""Locks with a hostile key or value, whose digest was made again, are refused before anything of them is written."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
import tomli_w

from provisioner.errors import ProvisionError
from provisioner.lock.format.file import digest_of, parse_lock, write_lock
from provisioner.render import render
from tests.lock_examples import cuda_stack, lock_of, with_setups


@pytest.mark.parametrize(
    ("path", "key", "value", "output"),
    [
        (("stack",), "cuda\nRUN evil", "1", "dockerfile"),
        (("host-requirements",), "x\nRUN evil", "1", "dockerfile"),
        (("host-requirements",), "driver", "$(evil)", "kubernetes"),
        (("host-setups", 0, "repositories", 0), "name", "other", "host-script"),
        (("host-setups", 0, "steps", 1), "component", "other", "host-script"),
        (("installer", "file"), "url", "--index-url=https://evil.example", "dockerfile"),
        (("environment",), "A", "x\u202ey", "environment"),
        (("environment",), "A", "x\u200by", "dockerfile"),
        (("environment",), "A", "x ##[error]y", "dockerfile"),
        (("installer", "file"), "url", "https://x.example/${SECRET}/uv.whl", "requirements"),
        (("installer", "file"), "path", "wheels/uv.whl --index-url=https://evil.example", "requirements"),
        (("installer", "file"), "path", "wheels/..", "requirements"),
    ],
)
def test_it_is_refused(path: tuple[str | int, ...], key: str, value: str, output: str) -> None:
    table = tomllib.loads(write_lock(with_setups(lock_of(cuda_stack()))))
    holder: Any = table["tool"]["provision"]["platforms"][0]
    for part in path:
        holder = holder[part]
    holder[key] = value
    table["tool"]["provision"]["digest"] = digest_of(table)
    with pytest.raises(ProvisionError):
        render(parse_lock(tomli_w.dumps(table), file="pylock.x.toml"), output)
