"""Read the inputs of `provision plan` from its command line: today's stack, the wanted stack, and the hosts."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.errors import UsageError
from provisioner.places import Place

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provisioner.lock.format.model import Lock
    from provisioner.plan.model import PlanRequest
    from provisioner.plan.state import StackSpec
    from provisioner.request import TargetHost
    from provisioner.spec.model import Spec
    from provisioner.workflow.inputs import Inputs

_REQUIREMENT = re.compile(r"\s*(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?P<extras>\[[^]]*\])?\s*(?P<range>[<>=!~].*)?", re.DOTALL)
_TYPO = 0.8
"""The least similarity to a component's name that makes an unknown name a typo; `transformers` is less like `tensorrt`."""

_LOCK, _SPECS = ".toml", (".yaml", ".yml")
KEEPABLE = ("driver", "driver_module", "kernel", "container_toolkit", "cuda_driver")
"""The components that `--keep` may name."""

CHANGED = ("os",)
"""The components that change only if `--may-change` names them: a new operating system replaces most of a machine."""


class Going(Struct, frozen=True, kw_only=True):
    """The goal of a plan, given with `--to`: a spec, a lock, or today's spec, with the requirements of `--to` applied.

    `inputs` are those of the wanted spec, `lock` and `lock_path` the wanted lock, None without one. `places` maps each key of
    the spec that an option sets (`requires.pytorch`) to this option (`--to 'pytorch>=2.9'`). `packages` are the requirements of
    `--to` on packages that are no component: a plan weighs none of them.
    """

    inputs: Inputs
    packages: tuple[str, ...] = ()
    lock: Lock | None = None
    lock_path: Path | None = None
    places: Mapping[str, Place]


def read_going(to: Sequence[str], today: Inputs, *, is_strict: bool = False) -> Going:
    """Read the values of `--to`; raises `UsageError` for one that is neither a file nor a requirement, and for two files.

    `today` are the inputs of today's spec, to which requirements are applied if `to` names no spec. With `is_strict`,
    the spec of the wanted stack has `policy.strict`.
    """
    files = [text for text in to if text.endswith((_LOCK, *_SPECS))]
    if len(files) > 1:
        raise UsageError(f"--to `{files[0]}` and --to `{files[1]}`: a plan has one goal", hints=("make one plan for each",))
    going = _read_file(Path(files[0]), today) if files else Going(inputs=today, places={})
    going = _laid_over(going, [text for text in to if text not in files])
    if not is_strict:
        return going
    spec = going.inputs.spec
    return replace(going, inputs=replace(going.inputs, spec=replace(spec, policy=replace(spec.policy, strict=True))))


def _read_file(path: Path, today: Inputs) -> Going:
    from provisioner.lock.format.file import read_lock
    from provisioner.workflow.inputs import read_inputs

    if path.suffix == _LOCK:
        return Going(inputs=today, lock=read_lock(path), lock_path=path, places={})
    wanted = read_inputs(path, target=today.target or None, is_target_optional=True)
    return Going(inputs=replace(wanted, hosts=today.hosts, matrix=today.matrix), places={})


def _laid_over(going: Going, texts: Sequence[str]) -> Going:
    """Return a goal with the requirements `texts`; these replace those of its spec on the same components and packages."""
    spec = going.inputs.spec
    requires: dict[str, str] = {}
    packages: dict[str, str] = {}
    places: dict[str, Place] = {}
    for text in texts:
        _lay(text, going.inputs, requires, packages)
        match = _REQUIREMENT.fullmatch(text)
        assert match is not None, "a requirement that was laid over was read"
        places[f"requires.{_component(match['name'], going.inputs) or match['name']}"] = Place(f"--to '{text}'")
    if not texts:
        return going
    kept = [one for one in spec.packages if _distribution(one) not in packages]
    named = {_component_of(one) for one in kept} & requires.keys()
    kept = [one for one in kept if _component_of(one) not in named]
    update = {"requires": {**spec.requires, **requires}, "packages": (*kept, *packages.values())}
    inputs = replace(going.inputs, spec=replace(spec, **update))
    return replace(going, inputs=inputs, places=places, packages=tuple(packages.values()))


def _lay(text: str, inputs: Inputs, requires: dict[str, str], packages: dict[str, str]) -> None:
    from packaging.requirements import InvalidRequirement, Requirement

    from provisioner.names import nearest
    from provisioner.versions import range_as_written

    match = _REQUIREMENT.fullmatch(text)
    if match is None:
        hint = "write a requirement such as 'pytorch>=2.9', or the path of a spec (.yaml) or a lock (.toml)"
        raise UsageError(f"--to `{text}` is neither a requirement nor a spec nor a lock", hints=(hint,))
    name, bounds = match["name"], (match["range"] or "").strip()
    component = _component(name, inputs)
    if component:
        is_named = component == "pytorch_build" or inputs.matrix.components[component].named
        if is_named:
            value = bounds.removeprefix("==").strip()
            if not value or value[0] in "<>=!~":
                raise UsageError(f"--to `{text}`: {component} has names, not numbers", hints=(f"write {component}==NAME",))
            requires[component] = value
            return
        try:
            range_as_written(bounds)
        except ValueError as error:
            raise UsageError(f"--to `{text}`: {error}") from None
        joined = ",".join(part for part in (requires.get(component, ""), bounds) if part)
        requires[component] = joined or "*"
        return
    near = nearest(name, inputs.matrix.components)
    is_typo = near is not None and SequenceMatcher(a=name, b=near).ratio() >= _TYPO
    try:
        distribution = _distribution(text)
    except InvalidRequirement as error:
        raise UsageError(f"--to `{text}` is not a requirement: {error}") from None
    known = {_distribution(one) for one in inputs.spec.packages}
    if distribution not in known and is_typo:
        raise UsageError(f"--to `{text}`: `{name}` is not a component of the matrix; did you mean `{near}`?")
    packages[distribution] = str(Requirement(text))


def _component(name: str, inputs: Inputs) -> str:
    from provisioner.names import COMPONENT_OF_DISTRIBUTION

    known = {*inputs.matrix.components, "pytorch_build"}
    return name if name in known else COMPONENT_OF_DISTRIBUTION.get(name.lower(), "")


def _distribution(text: str) -> str:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    return canonicalize_name(Requirement(text).name)


def _component_of(text: str) -> str:
    from provisioner.names import COMPONENT_OF_DISTRIBUTION

    return COMPONENT_OF_DISTRIBUTION.get(_distribution(text), "")


def read_today(spec_path: Path, inputs: Inputs, given: Path | None) -> tuple[Lock | None, Path]:
    """Return today's lock and its path: the lock `given`, else the one that `solve` writes for the spec.

    The lock is None if `given` is None and `solve` has written none.

    Raises the errors of `read_lock`.
    """
    from provisioner.lock.format.file import lock_path, read_lock

    path = given if given is not None else spec_path.parent / inputs.target / lock_path(inputs.spec.name)
    if given is None and not path.exists():
        return None, path
    return read_lock(path), path


def package_changes(old: Lock | None, new: Lock | None, platform: str) -> tuple[tuple[str, str, str], ...]:
    """Return the packages that differ between two locks on one platform, as name, old and new version ("" if absent).

    Empty when a lock is missing or lacks the platform.
    """
    if old is None or new is None or platform not in old.platforms or platform not in new.platforms:
        return ()
    before, after = ({one.name: one.version for one in lock.on(platform).packages} for lock in (old, new))
    names = sorted({*before, *after})
    return tuple((name, before.get(name, ""), after.get(name, "")) for name in names if before.get(name) != after.get(name))


def read_hosts(inputs: Inputs, paths: Sequence[Path] | None) -> tuple[tuple[TargetHost, ...], tuple[int, ...]]:
    """Return the hosts to plan for, of `paths` or else of the spec, and the number of machines that each stands for.

    Remarks on the hosts, such as that a node is cordoned, are printed as warnings.
    """
    if not paths:
        return inputs.hosts, tuple(1 for _ in inputs.hosts)
    from provisioner.cli.display import warn
    from provisioner.cli.fleet_report import remark_lines
    from provisioner.host.inventory import read_inventory
    from provisioner.request import listed_target
    from provisioner.workflow.inputs import catalogue_of

    listed = read_inventory(paths, catalogue=catalogue_of(inputs.matrix))
    if not listed:
        raise UsageError(f"there is no host in {', '.join(str(path) for path in paths)}")
    for line in remark_lines(listed):
        warn(line)
    targets = tuple(map(listed_target, listed))
    return targets, tuple(one.count for one in listed)


def questions(
    today: Inputs, going: Going, *, lock: tuple[Lock | None, Path], hosts: tuple[tuple[TargetHost, ...], tuple[int, ...]]
) -> list[PlanRequest]:
    """Return a plan request for each platform with hosts; a host without a platform gets the first one of the spec.

    `today` are the inputs of today's spec, `lock` is today's lock with its path, and `hosts` are the hosts with the number of
    machines behind each. Raises `UsageError` for a host with another platform.
    """
    from provisioner.plan.model import PlanRequest
    from provisioner.request import Request

    found = []
    platforms = going.inputs.platforms
    found_of = [one.host.platform_among(platforms) for one in hosts[0]]
    refused = next((one for one, platform in zip(hosts[0], found_of, strict=True) if platform not in platforms), None)
    if refused is not None:
        system = refused.host.os.id if refused.host.os is not None else ""
        raise UsageError(
            f"host `{refused.label}` is {refused.host.platform or system}, but the spec is for {', '.join(platforms)}",
            hints=("name every platform under target.platform, or leave this host out",),
        )
    for platform in platforms:
        chosen = [index for index, one in enumerate(found_of) if one == platform]
        targets = tuple(hosts[0][index] for index in chosen)
        if not targets:
            continue
        accelerator = Request(spec=going.inputs.spec, hosts=targets, platform=platform).accelerator
        found.append(
            PlanRequest(
                hosts=targets,
                counts=tuple(hosts[1][index] for index in chosen),
                current=_today(today, lock, platform, accelerator),
                base=_stack_spec(today, today.spec, platform, accelerator),
                wanted=_wanted(going, platform, accelerator),
            )
        )
    return found


def _stack_spec(inputs: Inputs, spec: Spec, platform: str, accelerator: str) -> StackSpec:
    from provisioner.plan.state import StackSpec

    request = inputs.request(platform)
    return StackSpec(spec=spec, platform=platform, accelerator=accelerator, places=request.places)


def _today(inputs: Inputs, lock: tuple[Lock | None, Path], platform: str, accelerator: str) -> StackSpec:
    """Return the requirements of today's stack: the versions of its lock, if any, and not the spec's, which may be newer."""
    spec = replace(inputs.spec, requires={}, packages=())
    found, path = lock
    if found is None or platform not in found.platforms:
        return _stack_spec(inputs, spec, platform, accelerator)
    one = found.on(platform)
    return _stack_spec(inputs, spec, platform, one.stack.accelerator).fixed(one, file=path.name)


def _wanted(going: Going, platform: str, accelerator: str) -> StackSpec:
    inputs = going.inputs
    stack_spec = _stack_spec(inputs, inputs.spec, platform, accelerator)
    stack_spec = replace(stack_spec, places={**stack_spec.places, **going.places})
    if going.lock is None or going.lock_path is None:
        return stack_spec
    lock = going.lock.on(platform)
    names = {"pytorch_build", *lock.stack.components}
    requires = {name: text for name, text in inputs.spec.requires.items() if name not in names}
    spec = replace(inputs.spec, requires=requires, packages=())
    return replace(stack_spec, spec=spec, accelerator=lock.stack.accelerator).fixed(lock, file=going.lock_path.name)


def with_changes(question: PlanRequest, *, keep: Sequence[str] | None, may_change: Sequence[str] | None) -> PlanRequest:
    """Return the plan request with the values of `--keep` and `--may-change`.

    Raises `UsageError` for a component that the option does not accept.
    """
    for option, words, known in (("--keep", keep, KEEPABLE), ("--may-change", may_change, CHANGED)):
        unknown = [word for word in words or () if word not in known]
        if unknown:
            raise UsageError(f"{option} `{unknown[0]}` is not one of {', '.join(known)}")
    return replace(question, keep=frozenset(keep or ()), may_change=frozenset(may_change or ()))
