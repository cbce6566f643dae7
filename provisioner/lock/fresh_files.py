"""Do the locked wheels still install where the environment must run? Hosts may have been exchanged since."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.grounds.requirement import HostFact
from provisioner.index.pages.tags import filename_ranks, glibc_needed, wheel_incompatibility
from provisioner.lock.artifact import fits
from provisioner.lock.finding import Finding
from provisioner.resolver.joint import Attempt, environment_of, known_glibc
from provisioner.words.ground import say_with_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.index.model import Environment
    from provisioner.lock.model import Lock
    from provisioner.resolver.requirement import Candidate, Key
    from provisioner.resolver.search.instance import ProblemInstance


def file_findings(lock: Lock, instance: ProblemInstance, pins: Mapping[Key, Candidate], *, where: str) -> Iterator[Finding]:
    """The wheels of a lock of one platform that the hosts, or the image, do not take by their tags.

    `pins` is the locked system half as it was chosen again on these hosts.
    """
    python = lock.stack.get("python", "")
    if not python:
        return
    attempt = Attempt(python=python, problem=instance.problem, system=dict(pins))
    environment = environment_of(attempt)
    ranks = filename_ranks(environment)
    for package in lock.packages:
        # Of several, one will do: the universal wheel of one macOS stands beside the older one's own.
        here = [wheel.filename for wheel in package.wheels if fits(wheel.filename, lock.platform)]
        if not here or any(ranks[_tag(filename)] is not None for filename in here):
            continue
        subject, needed = f"`{here[0]}` of {package.name} {package.version}", glibc_needed(here[0])
        if needed is not None and environment.glibc is not None and needed > environment.glibc and not known_glibc(attempt):
            text = f"{subject} needs glibc {needed[0]}.{needed[1]}, and which one the target has is not known"
            yield Finding(code="unverified", verdict="unverified", text=text, where=where)
        else:
            why = _glibc(here[0], environment, instance) or _tags(_tag(here[0]), environment)
            yield Finding(code="stale-package", verdict="no", text=f"{subject} {why}", where=where)


def _tag(filename: str) -> str:
    return "-".join(filename.removesuffix(".whl").rsplit("-", maxsplit=3)[1:])


def _glibc(filename: str, environment: Environment, instance: ProblemInstance) -> str:
    """That a wheel needs a newer glibc, and who has the older one; "" where that is not the reason."""
    needed = glibc_needed(filename)
    if needed is None or environment.glibc is None or needed <= environment.glibc:
        return ""
    has = f"{environment.glibc[0]}.{environment.glibc[1]}"
    facts = (root.ground for root in instance.roots if root.key.component == "glibc")
    oldest = next((fact for fact in facts if isinstance(fact, HostFact) and fact.value == has), None)
    stated = say_with_source(oldest) if oldest is not None else f"the target has glibc {has}"
    return f"needs glibc {needed[0]}.{needed[1]}, and {stated}"


def _tags(tag: str, environment: Environment) -> str:
    return f"does not install where the spec wants it: {wheel_incompatibility(frozenset({tag}), environment).text}"
