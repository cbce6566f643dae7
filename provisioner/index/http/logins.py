"""The logins that the environment states, each under the name of its index; pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

Login = tuple[str, str]
"""A user name and a password."""

_VARIABLE = re.compile(r"PROVISION_INDEX_(\w+)_(USERNAME|PASSWORD)")


def variable_prefix(name: str) -> str:
    """What the variables of an index begin with: `PROVISION_INDEX_MY_INDEX` for `my-index`."""
    return f"PROVISION_INDEX_{re.sub(r'[^A-Za-z0-9]', '_', name).upper()}"


def logins_from(environ: Mapping[str, str]) -> dict[str, Login]:
    """The logins that `PROVISION_INDEX_<NAME>_USERNAME` and `_PASSWORD` state, by their common beginning."""
    found: dict[str, dict[str, str]] = {}
    for key, value in environ.items():
        match = _VARIABLE.fullmatch(key)
        if match is not None and value:
            found.setdefault(f"PROVISION_INDEX_{match[1]}", {})[match[2]] = value
    return {prefix: (parts.get("USERNAME", ""), parts.get("PASSWORD", "")) for prefix, parts in found.items()}
