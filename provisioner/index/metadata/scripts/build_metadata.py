"""Build a source tree's metadata and print it as JSON: a separate program, which imports nothing of `index/metadata/build.py`.

pip, which installs the build requirements, gets the index URLs, possibly with logins, from environment variables. Code of the
source tree itself gets none of these variables.
"""

# ruff: noqa: INP001 - a script
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from build import BuildBackendException, BuildException, FailedProcessError, ProjectBuilder
from build.env import DefaultIsolatedEnv
from packaging.metadata import parse_email

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FOR_PIP = ("PIP_", "PYTHONUSERBASE")
"""Prefixes of the environment variables that only pip needs."""


def run_hook(cmd: Sequence[str], cwd: str | None = None, extra_environ: Mapping[str, str] | None = None) -> None:
    """Run a build hook of the source tree without logins in its environment; its output goes to stderr."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(FOR_PIP) and not (name.lower().endswith("_proxy") and "@" in value)
    }
    subprocess.run(  # noqa: S603 - the Python of the isolated environment
        cmd,
        cwd=cwd,
        env={**variables, **(extra_environ or {})},
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        check=True,
    )


def metadata(source: str) -> bytes:
    """Return the METADATA file of the wheel that a source tree builds, made in an isolated environment."""
    with DefaultIsolatedEnv() as environment, tempfile.TemporaryDirectory() as folder:
        builder = ProjectBuilder.from_isolated_env(environment, source, runner=run_hook)
        environment.install(builder.build_system_requires)
        environment.install(builder.get_requires_for_build("wheel"))
        return (Path(builder.metadata_path(folder)) / "METADATA").read_bytes()


def main() -> int:
    """Print the metadata of the source tree in the first argument; returns 1, with the reason on stderr, if its build fails."""
    try:
        stated, _ = parse_email(metadata(sys.argv[1]))
    except (BuildException, BuildBackendException, FailedProcessError, subprocess.CalledProcessError) as error:
        inner = getattr(error, "exception", error)
        if isinstance(inner, subprocess.CalledProcessError):
            # what pip said; code of the source tree has said it already
            said = b"\n".join(text for text in (inner.stdout, inner.stderr) if text)
            sys.stderr.write(said.decode(errors="replace"))
        else:
            sys.stderr.write(f"\n{type(inner).__name__}: {inner}\n")
        return 1
    json.dump(stated, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
