"""Read an installed Python environment from its files: its Python, its distributions, and the build of its PyTorch.

Nothing of the environment is imported and no interpreter is started.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from packaging.utils import canonicalize_name

from provisioner.errors import UsageError
from provisioner.host import parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.host.machine import Machine
    from provisioner.host.parse import TorchBuild

_VARIABLES = ("VIRTUAL_ENV", "CONDA_PREFIX")
"""The variables in which activating an environment leaves its folder. Source: docs of venv and of conda."""

_USUAL = ".venv"
"""The folder in which `uv venv` makes an environment, and from which `uv pip` takes it where none is active.

Source: https://docs.astral.sh/uv/pip/environments/, "Discovery of Python environments".
"""

_PACKAGES = ("site-packages", "dist-packages")
_LIBRARY = re.compile(r"lib[\w.+-]+?\.so(?:\.\d+)*")


class Distribution(Struct, frozen=True, kw_only=True):
    """An installed distribution: its version, as its metadata spells it, and its requirements (Requires-Dist)."""

    version: str
    requires: tuple[str, ...] = ()


class PythonEnvironment(Struct, frozen=True, kw_only=True):
    """An installed environment: `found_by` is what named it, a variable, the option or `.venv`; `name` is that of its folder.

    `distributions` are by normalized name. `torch` is the build of PyTorch, None without it. `libraries` are the names of the
    shared libraries that CUDA's wheels and PyTorch brought.
    """

    name: str
    found_by: str
    python: str | None = None
    distributions: Mapping[str, Distribution] = field(default_factory=dict)
    torch: TorchBuild | None = None
    libraries: tuple[str, ...] = ()

    @property
    def python_series(self) -> str:
        """The major and minor version of the Python, as `3.11`; "" if it is unknown."""
        return ".".join(self.python.split(".")[:2]) if self.python else ""


def active_environment(machine: Machine, python: Path | None) -> PythonEnvironment | None:
    """Return the environment of the interpreter `python`, else one that `environments_here` yields; None without any.

    In a saved tree only `python` names one, by its path in the tree. Raises `UsageError` when `python` is in no environment.
    """
    if python is not None:
        # `bin/python` is a link to the interpreter that the environment was made with: its own place counts.
        path = Path(os.path.abspath(python)) if machine.is_live else python  # noqa: PTH100 - does not resolve symbolic links
        place = str(path.parent.parent).lstrip("/")
        is_there = not machine.is_live or path.exists()
        found = read_environment(machine, place, found_by="--python") if is_there else None
        if found is None:
            raise UsageError(
                f"--python `{python}` is no interpreter of an environment: "
                + ("no lib/python3.*/site-packages is beside its folder" if is_there else "it is not there"),
                hints=("name the interpreter in the `bin` folder of an environment, such as .venv/bin/python",),
            )
        return found
    if not machine.is_live:
        return None
    read = (read_environment(machine, str(place).lstrip("/"), found_by=name) for name, place in environments_here())
    return next((one for one in read if one is not None), None)


def environments_here() -> Iterator[tuple[str, Path]]:
    """Yield what names an environment and its folder: those that are active in this shell, then `.venv` of its folder."""
    for name in _VARIABLES:
        if os.environ.get(name, "").startswith("/"):
            yield name, Path(os.environ[name])
    yield _USUAL, Path.cwd() / _USUAL


def read_environment(machine: Machine, place: str, *, found_by: str) -> PythonEnvironment | None:
    """Return the environment in the folder `place` of a machine, without a leading slash; None if there is none."""
    folders = [
        f"{place}/lib/{name}/{packages}"
        for name in machine.names(f"{place}/lib") or ()
        if re.fullmatch(r"python3(\.\d+)?", name)
        for packages in _PACKAGES
        if machine.exists(f"{place}/lib/{name}/{packages}")
    ]
    if not folders:
        return None
    distributions = {name: one for folder in folders for name, one in _distributions(machine, folder)}
    torch = next((one for folder in folders if (one := parse.torch_version(machine.text(f"{folder}/torch/version.py")))), None)
    return PythonEnvironment(
        name=Path(place).name,
        found_by=found_by,
        python=_python(machine, place, folders),
        distributions=dict(sorted(distributions.items())),
        torch=torch,
        libraries=_libraries(machine, folders),
    )


def _python(machine: Machine, place: str, folders: list[str]) -> str | None:
    """Return the version of Python, from pyvenv.cfg, from conda's records, or from the name of the folder of its packages."""
    stated = parse.environment_python(machine.text(f"{place}/pyvenv.cfg"))
    names = machine.names(f"{place}/conda-meta") or ()
    stated = stated or next((version for name in names if (version := parse.conda_python(name))), None)
    return stated or next((match[1] for folder in folders if (match := re.search(r"/python(3\.\d+)/", folder))), None)


def _distributions(machine: Machine, folder: str) -> list[tuple[str, Distribution]]:
    """Return the distributions in a folder of packages, by `NAME-VERSION.dist-info/METADATA` (Recording installed projects)."""
    found: list[tuple[str, Distribution]] = []
    for name in machine.names(folder) or ():
        if not name.endswith(".dist-info"):
            continue
        head = machine.text(f"{folder}/{name}/METADATA").partition("\n\n")[0]
        fields = re.findall(r"(?m)^(Name|Version|Requires-Dist):[ \t]*(.+?)[ \t\r]*$", head)
        first = dict(reversed(fields))
        if "Name" in first and "Version" in first:
            requires = tuple(text for key, text in fields if key == "Requires-Dist")
            found.append((canonicalize_name(first["Name"]), Distribution(version=first["Version"], requires=requires)))
    return found


def _libraries(machine: Machine, folders: list[str]) -> tuple[str, ...]:
    """Return the names of the libraries in nvidia/*/lib and torch/lib."""
    names: set[str] = set()
    for folder in folders:
        places = [f"{folder}/torch/lib", *(f"{folder}/nvidia/{one}/lib" for one in machine.names(f"{folder}/nvidia") or ())]
        names.update(name for place in places for name in machine.names(place) or () if _LIBRARY.fullmatch(name))
    return tuple(sorted(names))
