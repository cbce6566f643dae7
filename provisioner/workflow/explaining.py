"""Explain: why one version and not a newer one, with the indexes or of the system stack alone."""

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
    """Return system and packages of a platform as `solve` chooses them; raises `NoStackError` or `UnavailableError`."""
    try:
        return solve_joint(problem_of(job, platform), session.open)
    except UnavailableError as error:
        raise _with_way_out(error) from None


def explain_joint_component(job: Job, platform: str, component: str, *, session: Session) -> tuple[Why, ...]:
    """Explain one component or package as `solve` chooses it, for a package may hold back a component.

    Raises as `why`, and `UnavailableError`.
    """
    try:
        return why(problem_of(job, platform), component, session.open)
    except UnavailableError as error:
        raise _with_way_out(error) from None


def _with_way_out(error: UnavailableError) -> UnavailableError:
    """Return an error with the way around it: the system half alone may have another answer, so a person must ask for it."""
    error.hints = (*error.hints, "--stack-only explains the system stack alone, without an index")
    return error
