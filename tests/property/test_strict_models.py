"""Reading a document and finding its mistakes are one judgement: what msgspec refuses has one, and what it reads has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import ValidationError

from provisioner.host.model import Host
from provisioner.lock.format.tables import LockTable
from provisioner.matrix.files import ComponentFile, GpuFile
from provisioner.spec.model import SpecFile
from provisioner.strict_model import mistakes, read
from tests.strategies import examples

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
RIGHT |= {
    ComponentFile: {
        "sources": {"notes": {"title": "release notes", "where": "Table 3", "read": "2026-01-01", "measured": True}},
        "branches": ({"branch": "560", "native_cuda": "12.6", "source": ("notes",)},),
        "releases": (
            {
                "version": "12.6.3",
                "driver": {"toolkit": "560.35.05", "minor_version": None, "forward_compat": ("470",)},
                "patched": ({"kernel": "==7.0.*", "by": "somebody", "source": ("notes",)},),
                "builds": (
                    {
                        "name": "cu126",
                        "platforms": ("linux/amd64",),
                        "default": True,
                        "accelerator": "cuda",
                        "requires": {"cuda": "==12.6.*", "python": ("3.11", "3.12"), "driver_module": "open", "nvcc": "same"},
                        "sass": ("sm_90",),
                        "ptx": (),
                        "cxx11_abi": False,
                        "sha256": SHA,
                    },
                ),
            },
        ),
        "rules": (
            {"name": "floor", "when": {"cuda": ">=12"}, "on": {"driver": "none"}, "require": {"gpu": "*"}, "because": "so"},
        ),
    },
    GpuFile: {
        "gpus": ({"name": "H100", "compute_capability": "9.0", "architecture": "Hopper", "first_driver": "525.60"},),
        "overrides": ({"name": "pass", "gfx": ("gfx1031",), "runs_as": "gfx1030", "set": {"HSA": "1"}, "because": "so"},),
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
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("model", RIGHT)
def test_a_right_document_is_read_and_has_no_mistake(model: type[Struct]) -> None:
    assert (is_read(model, RIGHT[model]), mistakes(RIGHT[model], model, {})) == (True, ())


@examples(1500)
@given(st.sampled_from(list(RIGHT)), st.data())
def test_a_document_is_refused_exactly_when_it_has_a_mistake(model: type[Struct], data: st.DataObject) -> None:
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
    wrong = mistakes(found, model, {})
    assert is_read(model, found) == (not wrong), (path, kind, value)
    # a mistake is where the change was made, or beside it: a key that is missing is one of the mapping
    assert all(one.path[: len(path) - 1] == path[:-1][: len(one.path)] for one in wrong), (path, kind, value, wrong)
