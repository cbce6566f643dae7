"""Changes a hint proposes, carried out: the same request with another request, another policy or another fact of a host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from packaging.requirements import Requirement as Pep508
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from provisioner.host.model import Driver, Host, HostGpu, Jetson, OperatingSystem, SecureBoot
from provisioner.solve.rules.facts import FACTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provisioner.request import Request
    from provisioner.spec.model import Spec

LEFT_OUT = "left out"
"""What a request becomes of which no other value works either."""

LINES = ("constraints", "overrides")
"""Lists of the spec of which a change leaves out a line, the one in `instead`, about a distribution: `constraints.numpy`."""

TARGET = "target"
"""What a host is left out of."""

SIGNS = ("==", ">=", "<=")
KINDS = {"driver": "nvidia", "amdgpu": "amdgpu", "webdriver": "webdriver"}
SECURE_BOOT = {
    "disabled": SecureBoot(enabled=False),
    "enrolled": SecureBoot(enabled=True, mok_enrolled=True),
    "enforced": SecureBoot(enabled=True, mok_enrolled=False),
}


class Change(Struct, frozen=True, kw_only=True):
    """One thing a person would change.

    `text` is the new range (`==12.6.3`), bound (`>=525.60.13`) or line of a policy, or `left out`; `host` names the host whose
    fact it is, "" for what the spec asks; `package` the distribution of a line of `packages:`; `instead` what it says now;
    `names` what GPUs of that kind are called. Of the component `target` a host is left out.
    """

    component: str
    text: str
    host: str = ""
    package: str = ""
    instead: str = ""
    names: tuple[str, ...] = ()

    @property
    def value(self) -> str:
        """The new value; of a bound the end that was solved for."""
        return next((self.text.removeprefix(sign) for sign in SIGNS if self.text.startswith(sign)), self.text)


def line_left_out(request: Request, group: str) -> Change:
    """The change that leaves out a line of the spec that only rules versions out: a constraint, an override, hashes."""
    key, _, place = group.partition(".")
    if key == "hashes":
        return Change(component=group, text=LEFT_OUT, instead=f"the hashes of {place}")
    text = getattr(request.spec, key)[int(place)]
    component = f"{key}.{canonicalize_name(Pep508(text).name)}"
    return Change(component=component, text=LEFT_OUT, instead=f"the {key.removesuffix('s')} `{text}`")


def changed(request: Request, changes: Iterable[Change]) -> Request:
    """The request after some changes."""
    for change in changes:
        if change.component == TARGET:
            request = replace(request, hosts=tuple(target for target in request.hosts if target.label != change.host))
        elif change.host:
            hosts = (
                replace(target, host=_with_fact(target.host, change)) if target.label == change.host else target
                for target in request.hosts
            )
            request = replace(request, hosts=tuple(hosts))
        else:
            request = replace(request, spec=_with_request(request.spec, change))
    return request


def _with_request(spec: Spec, change: Change) -> Spec:
    if change.component == "policy":
        key, _, value = change.text.partition(": ")
        words: object = value if key == "strategy" else tuple(word for word in value.strip("[]").split(", ") if word)
        return replace(spec, policy=replace(spec.policy, **{key: words}))
    if change.component == "accelerator":
        return replace(spec, accelerator=change.value)
    if change.component == "image":
        return replace(spec, image=replace(spec.image, base=change.value))
    if change.component == "arch_list" and spec.build is not None:
        listed = tuple(change.value if one == change.instead else one for one in spec.build.arch_list)
        return replace(spec, build=replace(spec.build, arch_list=listed))
    key, _, name = change.component.partition(".")
    if key == "hashes":
        return replace(spec, **{key: {other: digests for other, digests in spec.hashes.items() if other != name}})
    if key == "requires-python":
        return replace(spec, requires_python=())
    if key in LINES:
        kept = (text for text in getattr(spec, key) if not change.instead.endswith(f" `{text}`"))
        return replace(spec, **{key: tuple(kept)})
    if change.package:
        lines = (_line(text, change) for text in spec.packages)
        return replace(spec, packages=tuple(line for line in lines if line))
    if change.text == LEFT_OUT:
        rest = {name: text for name, text in spec.requires.items() if name != change.component}
        return replace(spec, requires=rest)
    is_name = change.component == "pytorch_build" or not change.value[:1].isdigit()
    wanted = change.value if is_name else f"=={change.value}"
    return replace(spec, requires={**spec.requires, change.component: wanted})


def _line(text: str, change: Change) -> str:
    """A line of `packages:` with another version, if it is about the distribution of the change; "" for one left out."""
    requirement = Pep508(text)
    if canonicalize_name(requirement.name) != change.package:
        return text
    if change.text == LEFT_OUT:
        return ""
    requirement.specifier = SpecifierSet(change.text)
    requirement.url = None
    return str(requirement)


def _with_fact(host: Host, change: Change) -> Host:
    name, value = change.component, change.value
    if name in KINDS:
        driver = host.driver or Driver(kind=KINDS[name])  # type: ignore[arg-type]
        return replace(host, driver=replace(driver, version=value))
    if name == "driver_module":
        driver = host.driver or Driver()
        return replace(host, driver=replace(driver, module=value))
    if name == "gpu":
        return replace(host, gpus=tuple(_gpu(gpu, change) for gpu in host.gpus or ()))
    made: dict[str, object] = {
        "macos": _macos(value),
        "os": OperatingSystem(id=value.partition(" ")[0], version=value.partition(" ")[2] or None),
        "secure_boot": SECURE_BOOT.get(value),
        "loaded_modules": () if value == "free" else (value,),
        "jetson": Jetson(l4t=value),
    }
    return replace(host, **{FACTS[name].place: made.get(name, value)})


def _macos(value: str) -> OperatingSystem:
    version, _, build = value.partition("+")
    return OperatingSystem(id="macos", version=version, build=build or None)


def _gpu(gpu: HostGpu, change: Change) -> HostGpu:
    """A GPU of another kind; which card that is, a capability does not say."""
    stated = gpu.compute_capability or gpu.gfx
    if stated != change.instead and (stated is not None or gpu.name not in change.names):
        return gpu
    if change.value.startswith("gfx"):
        return HostGpu(gfx=change.value, count=gpu.count)
    return HostGpu(compute_capability=change.value, count=gpu.count)
