"""Do the locked packages keep to the spec's policy? What the policy says of the system stack is judged by solving it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from provisioner.index.pages.selection import cutoff
from provisioner.lock.finding import Finding
from provisioner.resolver.rules.policy import uploads_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.lock.model import Lock, LockedPackage
    from provisioner.resolver.problem import Problem


def policy_findings(lock: Lock, problem: Problem, *, where: str) -> Iterator[Finding]:
    """Packages that the policy forbids: prereleases and source distributions by name, and what is newer than its last day.

    A prerelease that is only not allowed may be there because a project has nothing else, which no lock tells.
    """
    request = problem.request
    until = uploads_until(problem.matrix, request.spec.policy)
    forbid = request.spec.policy.forbid
    for package in lock.packages:
        has_wheel = any(file.filename.endswith(".whl") for file in package.files)
        for word, is_so in (("prerelease", Version(package.version).is_prerelease), ("sdist", not has_wheel)):
            if is_so and word in forbid:
                place = request.place(f"policy.forbid.{forbid.index(word)}")
                kind = {"prerelease": "a prerelease", "sdist": "a source distribution"}[word]
                text = f"{package.name} {package.version} is {kind}, and the spec forbids {word}  ({place})"
                yield Finding(code="stale-package", verdict="no", text=text, where=where)
        # A file that the spec names is taken whatever it is.
        if not (has_wheel or package.archive or {"sdist", "build"} & {*request.spec.policy.allow, *forbid}):
            text = f"{package.name} {package.version} is a source distribution, and no `allow: [sdist]` of the spec takes it"
            yield Finding(code="stale-package", verdict="no", text=text, where=where)
        if until is not None and not _is_in_time(package, until):
            key = "policy.strategy" if request.spec.policy.exclude_newer is None else "policy.exclude-newer"
            text = f"{package.name} {package.version} was uploaded after {until}, the last day of the policy"
            text = f"{text}  ({request.place(key)})"
            yield Finding(code="stale-package", verdict="no", text=text, where=where)


def _is_in_time(package: LockedPackage, until: str) -> bool:
    """Whether no file of a package is known to be newer than the policy's last day; a file without a time may be."""
    times = [file.upload_time for file in package.files if file.upload_time is not None]
    return all(time < cutoff(until) for time in times)
