"""The axes of the heat map: kinds of GPUs, driver branches and platforms, and the request behind each of its cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.accelerators import accelerator_of_target
from provisioner.browse.stacks import LABEL
from provisioner.host.model import Driver, Host, HostGpu
from provisioner.request import Request, TargetHost
from provisioner.resolver.rules.coverage import capability
from provisioner.resolver.rules.drivers import KernelSupport
from provisioner.spec.model import ImageSpec, Policy, Spec, TargetSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.accelerators import AcceleratorName
    from provisioner.matrix.model import Matrix
    from provisioner.platforms import PlatformName
    from provisioner.spec.model import Allowance
    from provisioner.versions import Version


class Device(Struct, frozen=True, kw_only=True):
    """One kind of GPU: what its code is compiled for, the market it was made for, and a product that stands for it."""

    target: str
    kind: str
    product: str

    @property
    def is_amd(self) -> bool:
        """Whether its target is one of AMD's."""
        return self.accelerator == "rocm"

    @property
    def accelerator(self) -> AcceleratorName:
        """The accelerator whose code it runs."""
        found = accelerator_of_target(self.target)
        assert found is not None, f"the matrix lists `{self.target}`, which is no target of a GPU"
        return found.name


def newest_of_branches(matrix: Matrix) -> tuple[Version, ...]:
    """The newest release of every driver branch, newest branch first."""
    driver = matrix.components.get("driver")
    newest: dict[int, Version] = {}
    for release in driver.releases if driver is not None else ():
        branch = release.version.release[0]
        newest[branch] = max(newest.get(branch, release.version), release.version)
    return tuple(newest[branch] for branch in sorted(newest, reverse=True))


def devices(matrix: Matrix) -> tuple[Device, ...]:
    """Every kind of GPU the matrix has products of, and capabilities without products; new ones first, AMD's last."""
    found: dict[tuple[str, str], str] = {}
    for gpu in matrix.gpus:
        found.setdefault((gpu.compute_capability or gpu.gfx, gpu.kind), gpu.name)
    named = {target for target, _ in found}
    gpu_component = matrix.components.get("gpu")
    for release in gpu_component.releases if gpu_component is not None else ():
        if str(release.version) not in named:
            found[str(release.version), ""] = ""
    made = (Device(target=target, kind=kind, product=product) for (target, kind), product in found.items())
    return tuple(sorted(made, key=_newest_first))


def _newest_first(device: Device) -> tuple[bool, tuple[int, ...], str, str]:
    numbers = () if device.is_amd else tuple(-number for number in capability(device.target))
    return device.is_amd, numbers, device.target, device.kind


def documented_kernels(matrix: Matrix, drivers: Sequence[Version]) -> dict[str, tuple[str, ...]]:
    """Driver -> the kernel series it is documented to build on, newest first."""
    support = KernelSupport(matrix)
    kernel = matrix.components.get("kernel")
    series = sorted((release.version for release in kernel.releases), reverse=True) if kernel is not None else []
    return {
        str(driver): tuple(str(one) for one in series if (allowed := support.of(driver)) is not None and allowed.allows(one))
        for driver in drivers
    }


ALLOWED: tuple[Allowance, ...] = ("minor-version", "forward-compat", "ptx-jit")


def request_for(
    device: Device, platform: PlatformName, *, driver: str | None = None, allow: tuple[Allowance, ...] = ALLOWED
) -> Request:
    """The request behind a cell: everything that can make it run is allowed, unless `allow` says less."""
    gpu = HostGpu.of_target(device.target, name=device.product or None)
    host = Host(
        platform=platform,
        gpus=(gpu,),
        driver=Driver(version=driver) if driver is not None else None,
    )
    return open_request(device.accelerator, platform, host, allow=allow)


def open_request(
    accelerator: AcceleratorName, platform: PlatformName, host: Host, *, allow: tuple[Allowance, ...] = ALLOWED
) -> Request:
    """A request of this accelerator on one host, whatever that states."""
    spec = Spec(
        target=TargetSpec(platform=platform),
        accelerator=accelerator,
        policy=Policy(allow=allow),
        image=ImageSpec(cuda_compat="any"),
        runs="container",
    )
    return Request(spec=spec, hosts=(TargetHost(label=LABEL, host=host),), platform=platform)
