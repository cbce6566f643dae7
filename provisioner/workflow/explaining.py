"""Explain why the solver chose one version and not a newer one, with the packages from the indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.errors import UnavailableError
from provisioner.resolver.joint import solve_joint
from provisioner.resolver.why import why
from provisioner.workflow.solving import problem_of

if TYPE_CHECKING:
    from provisioner.resolver.stack import Stack
    from provisioner.resolver.why import Why
    from provisioner.workflow.session import Session
    from provisioner.workflow.solving import Job


def explain_joint_stack(job: Job, platform: str, session: Session) -> Stack:
    """Choose the system stack and packages of one platform as `solve` does; raises `NoStackError` or `UnavailableError`."""
    try:
        return solve_joint(problem_of(job, platform), session.open)
    except UnavailableError as error:
        raise _with_way_out(error) from None


def explain_joint_component(job: Job, platform: str, component: str, *, session: Session) -> tuple[Why, ...]:
    """Explain the version of one component or package in a solution with packages, once for each host or slot with it.

    The packages may hold back a component. Raises `UnavailableError`, and the errors of `resolver.why.why`.
    """
    try:
        return why(problem_of(job, platform), component, session.open)
    except UnavailableError as error:
        raise _with_way_out(error) from None


def _with_way_out(error: UnavailableError) -> UnavailableError:
    """Return an error with a hint about `--stack-only`.

    There is no automatic fallback, because the system stack without packages may have another answer.
    """
    error.add(hints=("--stack-only explains the system stack alone, without an index",))
    return error
