"""Say what the page of a lock says besides reasons, doubts and findings: its labels, and the sentences of its cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OWN_LINES = "your lines"
"""What is said to hold a component back if lines of the spec about the component itself do."""

_SHORT = 12
"""The number of characters of a hash that are shown where two of them are compared by eye."""


LABELS = {
    "name": "Environment",
    "target": "Target",
    "spec": "Spec",
    "tool": "Solved by",
    "matrix": "Matrix",
    "accelerator": "Accelerator",
    "basis": "CUDA runs",
    "runs": "Runs",
    "image": "Base image",
    "arch_list": "Compiled for",
    "host_requirements": "Asks of hosts",
    "environment": "Variables",
}
"""What a value is called on the page, in the order of the page."""


def labelled(values: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return values with their labels, those that are empty left out."""
    return [(label, values[name]) for name, label in LABELS.items() if values.get(name)]


def spec_words(file: str) -> str:
    """Return the spec of a lock by its file, or that it had none."""
    return file or "none; the packages were named on the command line"


def tool_words(version: str) -> str:
    """Return which program solved a lock."""
    return f"provision {version}"


def matrix_words(solved: str, now: str) -> str:
    """Return the matrix of a lock, as the beginning of its hash, and today's where it is another one."""
    before, after = (digest.removeprefix("sha256:")[:_SHORT] for digest in (solved, now))
    return after if solved == now else f"{before} when solved; explained with {after}"


def runs_words(runs: str) -> str:
    """Return where a stack runs."""
    return "in a container" if runs == "container" else "on the host"


def image_words(reference: str, digest: str | None) -> str:
    """Return a base image, and that it has no digest where it has none."""
    return f"{reference}@{digest}" if digest else f"{reference}, without a digest"


def accepted_words(doubt: str) -> str:
    """Return that a doubt, as a sentence, is accepted by the spec."""
    return f"accepted: {doubt}"


def stated_words(version: str, *, is_fact: bool) -> str:
    """Return what a host states of a component, or that it states nothing and which version is chosen."""
    return version if is_fact else f"nothing; {version} is chosen"


def slot_words(component: str, framework: str) -> str:
    """Return the name of a component that a framework's wheels bring for it alone."""
    return f"{component} for {framework}" if framework else component


def origin_words(*, is_fact: bool, is_of_host: bool) -> str:
    """Return where a version of the picture comes from; "" for one that is installed."""
    if is_fact:
        return "the host states it"
    return "chosen, for the host states none" if is_of_host else ""


def required_words(needs: Sequence[tuple[str, str]]) -> str:
    """Return which packages need one, each with its requirement: the first, and how many more; "" for none."""
    if not needs:
        return ""
    package, requirement = needs[0]
    more = f" and {len(needs) - 1} more" if len(needs) > 1 else ""
    return f"{package} needs {requirement}{more}"
