"""What msgspec reads at once and what pydantic tells of a document are one judgement: none accepts what the other refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import ValidationError as Refused
from pydantic import ValidationError

from provisioner.host.model import Host
from provisioner.lock.format.tables import LockTable
from provisioner.spec.model import SpecFile
from provisioner.strict_model import read, twin

if TYPE_CHECKING:
    from collections.abc import Callable

    from msgspec import Struct

pytestmark = pytest.mark.property

SHA = "0" * 64
FILE = {"name": "a-1-py3-none-any.whl", "url": "https://x.example/a", "size": 1, "hashes": {"sha256": SHA}}
RIGHT: dict[type[Struct], dict[str, Any]] = {
    SpecFile: {
        "name": "all",
        "target": {"platform": ("linux/amd64", "linux/arm64"), "host": ("a.yaml", "b.yaml")},
        "targets": {"one": {"platform": "linux/amd64", "host": {"driver": {"version": "550"}}}},
        "accelerator": "cuda",
        "requires": {"python": "3.11"},
        "packages": ("numpy<2",),
        "packages-from": ("requirements.txt", {"file": "pyproject.toml", "extras": ("a",), "project": False}),
        "constraints": ("torch<2.7",),
        "indexes": ({"name": "own", "url": "https://x.example", "packages": ("a-*",)},),
        "policy": {"strategy": "stable", "allow": ("sdist",), "prefer": {"numpy": "<2"}, "exclude-newer": "2026-01-10"},
        "build": {"kind": "extension", "arch_list": ("9.0",)},
        "image": {"base": "auto", "cuda": "12.4"},
        "runs": "host",
        "outputs": ("dockerfile",),
    },
    Host: {
        "platform": "linux/amd64",
        "os": {"id": "ubuntu", "version": "22.04"},
        "driver": {"version": "550.54.15", "module": "open", "kind": "nvidia"},
        "gpus": ({"name": "NVIDIA H100", "compute_capability": "9.0", "count": 8}, {"gfx": "gfx942"}),
        "secure_boot": {"enabled": True, "mok_enrolled": None},
        "libraries": {"cudnn": "9.1", "on_path": ("/usr/lib",)},
        "loaded_modules": (),
        "virtualization": "wsl2",
    },
    LockTable: {
        "lock-version": "1.0",
        "created-by": "somebody",
        "packages": (
            {
                "name": "a",
                "version": "1",
                "wheels": (FILE,),
                "dependencies": ({"name": "b", "marker": "x"},),
                "attestation-identities": ({"kind": "GitHub"},),
                "tool": {"provision": {"platforms": ("linux/amd64",), "requires": ("b",)}, "other": 1},
            },
        ),
        "tool": {
            "provision": {
                "schema-version": 1,
                "name": "a",
                "tool-version": "1",
                "matrix-digest": "",
                "spec-digest": "",
                "spec-file": "",
                "digest": f"sha256:{SHA}",
                "platforms": (
                    {
                        "platform": "linux/amd64",
                        "accelerator": "cpu",
                        "runs": "host",
                        "stack": {"python": "3.11"},
                        "environment": {"A": "b"},
                        "image": {"reference": "x:1", "digest": f"sha256:{SHA}"},
                        "pins": ({"component": "python", "version": "3.11"},),
                    },
                ),
            }
        },
    },
}
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.just(10**30),
    st.sampled_from(
        [1.0, 0.5, "", "1", "9.0", "9.0\n", "٩.0", "gfx942\n", "a b", "a\x85b", "a\x1cb", "linux/amd64", "cuda", "none"]
    ),
    st.text(max_size=4),
    st.sampled_from([(), ("a",), (1,), {}, {"a": "b"}, {"a": 1}, {"A": "b\n"}, {1: "a"}]),
)


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The path of everything inside a document."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, tuple) else ()
    return [inner for key, item in below for inner in ((*path, key), *places(item, (*path, key)))]


def changed(value: Any, path: tuple[str | int, ...], change: Callable[[Any, Any], None]) -> Any:  # noqa: ANN401
    """A copy of a document in which `change` was made to the mapping, or list, that holds the last key of `path`."""
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    if len(path) == 1:
        change(copy, path[0])
    else:
        copy[path[0]] = changed(value[path[0]], path[1:], change)
    return copy if isinstance(value, dict) else tuple(copy)


def is_read(model: type[Struct], data: object) -> bool:
    try:
        read(data, model)
    except Refused:
        return False
    return True


def is_right(model: type[Struct], data: object) -> bool:
    try:
        twin(model).model_validate(data)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("model", RIGHT)
def test_what_is_right_is_right_to_both(model: type[Struct]) -> None:
    assert (is_read(model, RIGHT[model]), is_right(model, RIGHT[model])) == (True, True)


@settings(max_examples=1500, deadline=None)
@given(st.sampled_from(list(RIGHT)), st.data())
def test_both_judge_alike(model: type[Struct], data: st.DataObject) -> None:
    document = RIGHT[model]
    path = data.draw(st.sampled_from(places(document)))
    kind = data.draw(st.sampled_from(["another value", "another value", "no such key", "left out"]))
    value = data.draw(VALUES)

    def change(holder: Any, key: Any) -> None:  # noqa: ANN401
        if kind == "another value" or isinstance(holder, list):
            holder[key] = value
        elif kind == "left out":
            del holder[key]
        else:
            holder[f"{key}x"] = value

    found = changed(document, path, change)
    # pydantic compares literals with ==, so that to it `schema-version = true`, or 1.0, is 1; msgspec does not.
    is_one = path[-1] == "schema-version" and value == 1 and type(value) is not int
    assert is_read(model, found) == (is_right(model, found) and not is_one), (path, kind, value)
