"""Small matrices, hosts and specs for tests of the solver; invented, and independent of the shipped data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provisioner.host.model import Host
from provisioner.matrix.model import Build, Citation, Component, DriverBranch, DriverMinimum, Matrix, Need, Release, Rule
from provisioner.solve.target import TargetHost, Wish
from provisioner.spec.model import Spec
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SOURCE = Citation(key="invented", title="an invented table", where="row 1", read="2026-01-01")


def need(component: str, value: str | Sequence[str]) -> Need:
    """A range, or a list of exact versions."""
    if isinstance(value, str):
        return Need(component=component, range=Range.parse(value))
    return Need(component=component, range=Range(), one_of=tuple(Version.parse(text) for text in value))


def needs(table: Mapping[str, str | Sequence[str]]) -> tuple[Need, ...]:
    """Every need of a table such as `{"driver": ">=525"}`."""
    return tuple(need(component, value) for component, value in table.items())


def release(version: str, table: Mapping[str, str | Sequence[str]], **more: Any) -> Release:  # noqa: ANN401 - any field
    """A release without builds."""
    return Release(version=Version.parse(version), needs=needs(table), sources=("invented",), **more)


def matrix(
    order: Sequence[str],
    components: Mapping[str, Mapping[str, Mapping[str, str | Sequence[str]]]],
    *,
    rules: Sequence[Rule] = (),
    branches: Mapping[str, str] | None = None,
    releases: Mapping[str, Sequence[Release]] | None = None,
    virtual: Sequence[str] = ("driver", "driver_module", "kernel", "gpu", "glibc"),
) -> Matrix:
    """A matrix from `{component: {version: {needed component: range or versions}}}`; `releases` adds richer ones."""
    found = {}
    for name in order:
        table = tuple(release(version, wanted) for version, wanted in components.get(name, {}).items())
        given = tuple((releases or {}).get(name, ()))
        is_named = name == "driver_module"
        found[name] = Component(name=name, title=name, releases=(*given, *table), is_virtual=name in virtual, is_named=is_named)
    return Matrix(
        order=tuple(order),
        components=found,
        rules=tuple(rules),
        branches=tuple(
            DriverBranch(branch=branch, native_cuda=Version.parse(cuda)) for branch, cuda in (branches or {}).items()
        ),
        gpus=(),
        images=(),
        citations={"invented": SOURCE},
        digest="0" * 64,
    )


def build(name: str, table: Mapping[str, str | Sequence[str]], **more: Any) -> Build:  # noqa: ANN401 - any field
    """A CUDA build for linux/amd64 unless `more` says otherwise."""
    fields: dict[str, Any] = {
        "platforms": ("linux/amd64",),
        "accelerator": "cuda",
        "index": "pypi",
        "sass": ("sm_70",),
        "ptx": (),
    }
    return Build(name=name, needs=needs(table), sources=("invented",), **{**fields, **more})


def cuda(version: str, floor: str | None, toolkit: str, forward: Sequence[str] = ()) -> Release:
    """A CUDA release with its driver minimums."""
    minimum = DriverMinimum(
        toolkit=Version.parse(toolkit),
        minor_version=Version.parse(floor) if floor else None,
        forward_compat=tuple(forward),
    )
    return Release(version=Version.parse(version), driver=minimum, sources=("invented",))


def wish(
    requires: Mapping[str, str],
    *hosts: Mapping[str, Any],
    packages: Sequence[str] = (),
    **spec: Any,  # noqa: ANN401 - any key of a spec
) -> Wish:
    """A wish for linux/amd64, on hosts given as profiles."""
    made = Spec.model_validate({"requires": dict(requires), "packages": tuple(packages), **spec})
    targets = tuple(
        TargetHost(label=f"host{index}", host=Host.model_validate_json(_json(profile))) for index, profile in enumerate(hosts)
    )
    return Wish(spec=made, hosts=targets, platform="linux/amd64")


def _json(profile: Mapping[str, Any]) -> str:
    import json

    return json.dumps(profile)
