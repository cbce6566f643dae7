"""Say which hosts of an inventory the stacks of some locks do not run on, and whether those of the last commit did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.document import read_text
from provisioner.errors import ProvisionError, UsageError
from provisioner.grounds.finding import StaleStack, StrandedHosts
from provisioner.grounds.requirement import AsksAccelerator, LockIsFor
from provisioner.host.inventory import read_inventory
from provisioner.lock.check.stack import stack_findings
from provisioner.lock.format.file import KIND, parse_lock
from provisioner.places import Place
from provisioner.request import listed_target, merge_equal_hosts
from provisioner.resolver.problem import join
from provisioner.workflow.git import committed
from provisioner.workflow.inputs import catalogue_of, in_place, read_locked_request, read_without_hosts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from provisioner.grounds.conflict import Conflict
    from provisioner.lock.format.model import Lock
    from provisioner.matrix.model import Matrix
    from provisioner.request import TargetHost
    from provisioner.resolver.requirement import Requirement
    from provisioner.workflow.inputs import Inputs


def read_targets_in(paths: Sequence[Path], matrix: Matrix) -> tuple[TargetHost, ...]:
    """Return the hosts in files and folders, those with equal facts as one; raises `UsageError` for none.

    Raises the errors of `read_inventory`, too.
    """
    listed = read_inventory(paths, catalogue=catalogue_of(matrix))
    if not listed:
        raise UsageError(f"there is no host in {', '.join(str(path) for path in paths)}")
    targets = list(map(listed_target, listed))
    return merge_equal_hosts(targets)


def stranded(path: Path, hosts: Sequence[TargetHost], matrix: Matrix) -> Iterator[StrandedHosts]:
    """Yield the hosts that the stack of a lock does not run on, those with the same conflict together.

    Of a lock that has changed since the last commit, the one there is tried as well. What the spec asks for is another question
    and left out. Raises the errors of reading the lock and its spec.
    """
    text = read_text(path, kind=KIND)
    lock = parse_lock(text, file=str(path))
    if lock.spec_file:
        inputs = read_without_hosts(path.parent / lock.spec_file, matrix=matrix, target=lock.target or None)
        inputs = in_place(inputs, "container" if any(stack.runs == "container" for stack in lock.stacks) else "host")
    else:
        inputs = read_locked_request(lock, path.parent, hosts=None, matrix=matrix)
    earlier = _committed(path, text)
    for platform in lock.platforms:
        for host in (one for one in hosts if one.host.platform in {None, platform}):
            conflict = _conflict(lock, platform, inputs, host)
            if conflict is None:
                continue
            before = None
            if earlier is not None and platform in earlier.platforms:
                before = _conflict(earlier, platform, inputs, host) is None
            yield StrandedHosts(hosts=host.names or (host.label,), platform=platform, conflict=conflict, before=before)


def _committed(path: Path, text: str) -> Lock | None:
    """Return the lock of the last commit; None without one, if it is unreadable, or if it is the same."""
    content = committed(path)
    if content is None or content == text.encode():
        return None
    try:
        return parse_lock(content.decode(), file=str(path))
    except (ProvisionError, UnicodeDecodeError):
        return None


def _conflict(lock: Lock, platform: str, inputs: Inputs, host: TargetHost) -> Conflict | None:
    """Return why the stack of a lock does not run on a host; None if it does, or if nothing is known that speaks against it."""
    one = lock.on(platform)
    spec = replace(inputs.spec, requires={}, packages=(), constraints=(), overrides=(), accelerator=one.stack.accelerator)
    problem = join(inputs.matrix, replace(inputs, spec=spec, hosts=(host,)).request(platform))
    file = f"pylock.{lock.name}.toml"
    if inputs.spec.accelerator is None:
        problem = replace(problem, roots=tuple(_of_lock(root, file) for root in problem.roots))
    found = stack_findings(one, problem, file=file, has_other_hosts=True)
    return next((finding.conflict for finding in found if isinstance(finding, StaleStack)), None)


def _of_lock(root: Requirement, file: str) -> Requirement:
    """Return a requirement of a problem, that of its accelerator as one of the lock in `file`: nobody asks for it."""
    if not isinstance(root.ground, AsksAccelerator):
        return root
    return replace(root, ground=LockIsFor(accelerator=root.ground.accelerator, place=Place(file)))
