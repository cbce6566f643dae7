"""Small matrices, hosts and specs for tests of the solver; invented, and independent of the shipped data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.json import decode

from provisioner.host.model import Host
from provisioner.matrix.model import Build, Citation, Component, DriverBranch, DriverMinimum, Matrix, Release, Rule
from provisioner.matrix.need import Need, Needs, read_needs
from provisioner.request import Request, TargetHost
from provisioner.spec.model import Spec
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Table = Mapping[str, str | Sequence[str]]

VIRTUAL = (
    "driver", "driver_module", "kernel", "gpu", "glibc", "amdgpu", "kernel_headers", "secure_boot", "fabric_manager", "os",
    "macos", "webdriver", "cuda_driver", "gcc", "clang", "loaded_modules",
)  # fmt: skip
NAMED = (
    "driver_module", "secure_boot", "os", "loaded_modules", "platform", "accelerator", "runs", "build", "gpu_kind",
    "virtualization", "python_arch",
)  # fmt: skip
SOURCE = Citation(title="an invented table", where="row 1", read="2026-01-01")


def need(component: str, value: str | Sequence[str]) -> Need:
    """A need as its YAML says it: a range, a name, a list of exact versions or names, `same`."""
    return needs({component: value})[0]


def needs(table: Table) -> Needs:
    """Every need of a table such as `{"driver": ">=525"}`."""
    return read_needs(dict(table))


def release(version: str, table: Table, **more: Any) -> Release:  # noqa: ANN401 - any field
    """A release without builds."""
    return Release(version=Version.parse(version), requires=needs(table), source=("invented",), **more)


def matrix(
    order: Sequence[str],
    components: Mapping[str, Mapping[str, Mapping[str, str | Sequence[str]]]],
    *,
    rules: Sequence[Rule] = (),
    branches: Mapping[str, str] | None = None,
    releases: Mapping[str, Sequence[Release]] | None = None,
    virtual: Sequence[str] = VIRTUAL,
    **more: Any,  # noqa: ANN401 - any field of a matrix
) -> Matrix:
    """A matrix from `{component: {version: {needed component: range or versions}}}`; `releases` adds richer ones."""
    found = {}
    for name in order:
        table = tuple(release(version, wanted) for version, wanted in components.get(name, {}).items())
        given = tuple((releases or {}).get(name, ()))
        is_named = name in NAMED
        found[name] = Component(name=name, title=name, releases=(*given, *table), virtual=name in virtual, named=is_named)
    fields: dict[str, Any] = {"gpus": (), "images": ()}
    return Matrix(
        order=tuple(order),
        components=found,
        rules=tuple(rules),
        branches=tuple(
            DriverBranch(branch=branch, native_cuda=Version.parse(cuda)) for branch, cuda in (branches or {}).items()
        ),
        citations={"invented": SOURCE},
        digest="0" * 64,
        **{**fields, **more},
    )


def rule(name: str, when: Table, require: Table, *, on: Table | None = None) -> Rule:
    """A rule as its YAML says it: `same`, `none` and names included."""
    return Rule(
        name=name,
        when=needs(when)[0],
        on=needs(on or {}),
        require=needs(require),
        because=f"{name} says so",
        source=("invented",),
    )


def names(*values: str) -> tuple[Release, ...]:
    """The values of a component whose values are names."""
    return tuple(Release(version=Version.named(value), source=("invented",)) for value in values)


def build(name: str, table: Table, **more: Any) -> Build:  # noqa: ANN401 - any field
    """A CUDA build for linux/amd64 unless `more` says otherwise."""
    fields: dict[str, Any] = {
        "platforms": ("linux/amd64",),
        "accelerator": "cuda",
        "index": "pypi",
        "sass": ("sm_70",),
        "ptx": (),
    }
    return Build(name=name, requires=needs(table), source=("invented",), **{**fields, **more})


def cuda(version: str, floor: str | None, toolkit: str, forward: Sequence[str] = ()) -> Release:
    """A CUDA release with its driver minimums."""
    minimum = DriverMinimum(
        toolkit=Version.parse(toolkit),
        minor_version=Version.parse(floor) if floor else None,
        forward_compat=tuple(forward),
    )
    return Release(version=Version.parse(version), driver=minimum, source=("invented",))


def request(
    requires: Mapping[str, str],
    *hosts: Mapping[str, Any],
    packages: Sequence[str] = (),
    platform: str = "linux/amd64",
    **spec: Any,  # noqa: ANN401 - any key of a spec
) -> Request:
    """A request for one platform, on hosts given as profiles."""
    made = decode(_json({"requires": dict(requires), "packages": list(packages), **spec}), type=Spec)
    targets = tuple(
        TargetHost(label=f"host{index}", host=decode(_json(profile), type=Host)) for index, profile in enumerate(hosts)
    )
    return Request(spec=made, hosts=targets, platform=platform)


def _json(profile: Mapping[str, Any]) -> str:
    import json

    return json.dumps(profile)


def plain_build(name: str) -> Build:
    """A build that is no framework's: a macOS by its build number."""
    return Build(name=name, source=("invented",))
