"""Solve, lock, render and validate machine-learning environments, from the kernel up to the Python packages.

The words of the program: a spec is a user's requirements (provision.yaml), and a host profile the facts of a machine. A stack
is a choice of versions from the driver up; its system half is all but the Python packages. A lock is a stack with its files and
their hashes (pylock.NAME.toml). The matrix is the table, with sources, of the versions that work together.

The names below are the public Python API; `provisioner.api` documents them. They are imported on first use, so that `import
provisioner` alone is fast.
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing `typing` takes a tenth of the time of `provision --version`
if TYPE_CHECKING:
    from provisioner.api import (
        Diagnosis,
        Examination,
        Lock,
        NoStackError,
        ProvisionError,
        Report,
        Solution,
        Stack,
        UnavailableError,
        check,
        compare_locks,
        diagnose_log,
        examine_machine,
        explain,
        read_lock,
        render_lock,
        solve,
        solve_system,
    )

__version__ = "0.1.0"

__all__ = [
    "Diagnosis",
    "Examination",
    "Lock",
    "NoStackError",
    "ProvisionError",
    "Report",
    "Solution",
    "Stack",
    "UnavailableError",
    "check",
    "compare_locks",
    "diagnose_log",
    "examine_machine",
    "explain",
    "read_lock",
    "render_lock",
    "solve",
    "solve_system",
]


def __getattr__(name: str) -> object:
    """Import `provisioner.api` and return one of its names; raises `AttributeError` for any other name."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("provisioner.api"), name)
