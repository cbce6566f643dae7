"""The instance types of clouds, which `instance_types.yaml` lists by family with the GPUs of each size."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from provisioner.document import parse_document, parse_model, read_text
from provisioner.host.model import Driver, Host, HostGpu
from provisioner.platforms import PlatformName
from provisioner.strict_model import StrictModel

if TYPE_CHECKING:
    from collections.abc import Mapping

KIND = "table of instance types"

_FILE = Path(__file__).parent / "instance_types.yaml"


class Source(StrictModel, frozen=True, kw_only=True):
    """A document that families cite; `where` is the place in it, `read` the date on which it was read."""

    title: str
    where: str
    url: str
    read: str


class Family(StrictModel, frozen=True, kw_only=True):
    """The instance types of a cloud that have the same GPU; `sizes` maps the name of each type to its number of GPUs.

    `source` are the keys, in `InstanceFile.sources`, of the documents that state GPU and sizes.
    """

    name: str
    cloud: str
    platform: PlatformName
    gpu: HostGpu
    sizes: dict[str, int]
    source: tuple[str, ...]


class InstanceFile(StrictModel, frozen=True, kw_only=True):
    """The content of `instance_types.yaml`: the families, and the documents that they cite, by key."""

    sources: dict[str, Source]
    families: tuple[Family, ...]


class InstanceType(NamedTuple):
    """One instance type: its name as its cloud spells it, and the facts that all machines of this type share."""

    name: str
    cloud: str
    host: Host


def instance_type(name: str) -> InstanceType | None:
    """Return an instance type (`p5.48xlarge`), or the largest of a family (`p5`, `ND_H100_v5`); None if `name` is neither.

    Case is ignored, and the `Standard_` of Azure's names may be left out.
    """
    return _by_name().get(_key(name))


def instance_file() -> InstanceFile:
    """Return the parsed content of `instance_types.yaml`."""
    text = read_text(_FILE, kind=KIND)
    return parse_model(parse_document(text, file=_FILE.name, kind=KIND), InstanceFile, kind=KIND)


@cache
def _by_name() -> Mapping[str, InstanceType]:
    found: dict[str, InstanceType] = {}
    for family in instance_file().families:
        sizes = sorted(family.sizes.items(), key=lambda size: size[1])
        for name, count in sizes:
            listed = found[_key(name)] = InstanceType(name, family.cloud, _host(family, name, count))
        found[_key(family.name)] = listed
    return found


def _host(family: Family, name: str, count: int) -> Host:
    gpu = HostGpu(name=family.gpu.name, compute_capability=family.gpu.compute_capability, gfx=family.gpu.gfx, count=count)
    return Host(
        platform=family.platform,
        driver=Driver(kind="amdgpu") if gpu.gfx else None,
        gpus=(gpu,),
        virtualization=None if name.endswith(("-metal", ".metal")) else "vm",
    )


def _key(name: str) -> str:
    return name.lower().removeprefix("standard_")
