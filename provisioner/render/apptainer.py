"""Render a lock as a definition file of Apptainer, which builds the environment on its base image without another engine.

Where a source distribution is built, a stage with compilers has the environment made, and another one is shipped with it.

Source: apptainer.org/docs/user/main/definition_files.html (sections, files, environment, multi-stage builds), 2026-11-24.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.accelerators import ACCELERATORS
from provisioner.errors import UsageError
from provisioner.lock.format.file import lock_digest
from provisioner.render.base_image import PYTHON, base_of, shipped_base
from provisioner.render.chosen_files import is_source
from provisioner.render.container import installer_requirement, only_workload, repository
from provisioner.render.header import UnrenderableError, header
from provisioner.render.helper import helper_path
from provisioner.render.shell import quoted, variables
from provisioner.render.stages import ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.lock.format.model import Lock
    from provisioner.render.base_image import Base
    from provisioner.render.container import Workload

_FILE_NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
_FILES, _INSTALLER = "/opt/provision", "/opt/installer"
_SNAPSHOT = helper_path("snapshot.sh")
_BUILD = "build"

_VARIABLES = {
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_CACHE_DIR": "1",
    "PIP_ROOT_USER_ACTION": "ignore",
    "UV_COMPILE_BYTECODE": "1",
    "UV_HTTP_TIMEOUT": "300",
    "UV_NO_CACHE": "1",
    "UV_NO_CONFIG": "1",
    "UV_PREVIEW_FEATURES": "pylock",
    "UV_PYTHON_DOWNLOADS": "never",
}
"""Variables of the installation. Bytecode is compiled now, because the image is read-only later."""


def render(lock: Lock, lock_file_name: str) -> str:
    """Return the definition file of a lock, to be built in the lock's folder.

    Raises `UnrenderableError` when the lock is not for containers, when its platforms have different base images or variables,
    or when one lacks an installer; `UsageError` for a file name that a definition file cannot express.
    """
    if not _FILE_NAME.fullmatch(lock_file_name):
        raise UsageError(
            f"`{lock_file_name}` cannot be the name of a lock in a definition file",
            hints=("give the file's own name, of letters, digits, `.`, `-` and `_`",),
        )
    workload = only_workload(lock, "a definition file")
    base = _shared_base(lock, workload)
    option = ACCELERATORS[workload.accelerator].apptainer_option
    run = " ".join(filter(None, ("apptainer run", option, f"{repository(lock)}.sif python train.py")))
    use = (f"To build the image: apptainer build {repository(lock)}.sif apptainer.def", f"To run a program: {run}")
    version = f"import sys; sys.exit(sys.version_info[:2] != {base.version})"
    closing = {
        "environment": [*_environment(workload)],
        "labels": [f"dev.provision.lock.digest {lock_digest(lock)}"],
        "runscript": [f'if [ "$#" -eq 0 ]; then set -- {ENVIRONMENT}/bin/python; fi', 'exec "$@"'],
        "test": [f"{ENVIRONMENT}/bin/python -c {quoted(version)}"],
    }
    stages = _stages(lock, lock_file_name, workload, base, closing)
    text = "\n".join((f"{header(lock, lock_file_name, *use)}\n", *stages))
    if "{{" in text:  # in a comment, too
        raise UnrenderableError(
            f"a value of lock `{lock.name}` holds `{{{{`, with which a template of a definition file begins"
        )
    return text


def _stages(
    lock: Lock, lock_file_name: str, workload: Workload, base: Base, closing: Mapping[str, list[str]]
) -> tuple[str, ...]:
    """Return the texts of the stages; the last one ends with the sections `closing`."""
    system_packages = tuple(one.name for one in workload.stacks[0].apt)
    files = [f"{name} {_FILES}/{name}" for name in (lock_file_name, *_local_files(lock, workload))]
    snapshot = f"{_SNAPSHOT} {_FILES}/snapshot.sh"
    environment = [*_install_environment(lock, lock_file_name, workload, base)]
    downloads = ("ca-certificates", "curl") if base.archive else ()
    if not _has_sources(lock, workload):
        packages = (*base.packages, *system_packages, *base.builder_packages, *downloads)
        files += [snapshot] if base.snapshot and packages else []
        post = [*_post(), *_install_packages(packages, base), *_install_python(base), *environment]
        return (_stage(base, "", {"files": files, "post": post, **closing}),)
    tools = (*base.packages, *base.builder_packages, *base.header_packages, *downloads)
    files += [snapshot] if base.snapshot and tools else []
    post = [*_post(), *_install_packages(tools, base), *_install_python(base), *environment]
    build = _stage(base, _BUILD, {"files": files, "post": post})
    (shipped,) = {shipped_base(lock, stack) for stack in workload.stacks}
    kept = (*shipped.packages, *system_packages)
    made = (ENVIRONMENT, *((PYTHON,) if base.archive else ()))
    sections = {f"files from {_BUILD}": [f"{folder} {folder}" for folder in made]}
    if kept:
        sections |= {"files": [snapshot]} if shipped.snapshot else {}
        sections["post"] = ["set -eu", "export DEBIAN_FRONTEND=noninteractive", *_install_packages(kept, shipped)]
    return build, _stage(shipped, "final", {**sections, **closing})


def _stage(base: Base, name: str, sections: Mapping[str, list[str]]) -> str:
    reference = f"{base.reference}@{base.digest}" if base.digest else base.reference
    stage = f"Stage: {name}\n" if name else ""
    body = "\n".join(f"%{title}\n" + "".join(f"    {line}\n" for line in lines) for title, lines in sections.items())
    return f"Bootstrap: docker\nFrom: {reference}\n{stage}\n{body}"


def _has_sources(lock: Lock, workload: Workload) -> bool:
    return any(is_source(package, workload.platforms) for package in lock.packages)


def _shared_base(lock: Lock, workload: Workload) -> Base:
    found = dict.fromkeys((base_of(stack), tuple(variables(stack).items()), stack.apt) for stack in workload.stacks)
    if len(found) > 1:
        raise UnrenderableError(
            f"the platforms of lock `{lock.name}` differ in base image, packages or variables; a definition file is for one",
            hints=("write a target for each platform in the specification and solve again",),
        )
    return next(base for base, _, _ in found)


def _local_files(lock: Lock, workload: Workload) -> tuple[str, ...]:
    """Return the paths of the files that lie beside the lock; raises `UnrenderableError` for one that cannot be named."""
    packages = (package for package in lock.packages if set(workload.platforms) & set(package.platforms))
    found = {file.path for package in packages for file in package.files if file.path}
    found |= {stack.installer.file.path for stack in workload.stacks if stack.installer and stack.installer.file.path}
    for path in sorted(found):
        if not re.fullmatch(r"[\w./+-]+", path, re.ASCII):
            raise UnrenderableError(f"`{path}` cannot be the path of a file in a definition file")
    return tuple(sorted(found))


def _post() -> Iterator[str]:
    """Yield the first lines of a script that installs something."""
    yield "set -eu"
    yield from (f"export {name}={value}" for name, value in _VARIABLES.items())


def _install_packages(packages: tuple[str, ...], base: Base) -> Iterator[str]:
    """Yield the lines that install packages of the distribution."""
    if packages and base.snapshot:
        yield f"sh {_FILES}/snapshot.sh {base.snapshot} {' '.join(packages)}"
        yield f"rm -rf /var/lib/apt/lists/* {_FILES}/snapshot.sh"
    elif packages:
        yield "apt-get update"
        yield f"apt-get install --yes --no-install-recommends {' '.join(packages)}"
        yield "rm -rf /var/lib/apt/lists/*"


def _install_python(base: Base) -> Iterator[str]:
    """Yield the lines that unpack a Python, if the base image and its distribution have none."""
    if base.archive:
        archive = "/opt/python.tar.gz"
        yield f"curl --fail --silent --show-error --location --retry 3 --output {archive} {quoted(base.archive)}"
        yield f"echo {quoted(f'{base.sha256}  {archive}')} | sha256sum --check --strict -"
        yield f"mkdir -p {PYTHON}"
        yield f"tar --extract --gzip --file {archive} --directory {PYTHON} --strip-components 1 --no-same-owner"
        yield f"rm {archive}"


def _install_environment(lock: Lock, lock_file_name: str, workload: Workload, base: Base) -> Iterator[str]:
    """Yield the lines that install the packages of a lock, by an installer that is left out of the image."""
    lines = dict.fromkeys(installer_requirement(stack, workload.stacks, folder=_FILES) for stack in workload.stacks)
    requirements = " ".join(map(quoted, lines))
    options = "" if _has_sources(lock, workload) else " --no-build"
    yield f"{base.python} -m venv --without-pip {ENVIRONMENT}"
    if any(set(workload.platforms) & set(package.platforms) for package in lock.packages):
        pip = f"{_INSTALLER}/bin/python -m pip install --require-hashes --no-deps --only-binary :all:"
        yield f"{base.python} -m venv {_INSTALLER}"
        yield f"printf '%s\\n' {requirements} > {_INSTALLER}/installer.txt"
        yield f"{pip} -r {_INSTALLER}/installer.txt"
        environment = f"--python {ENVIRONMENT}/bin/python{options}"
        yield f"{_INSTALLER}/bin/uv pip install {environment} --requirement {_FILES}/{lock_file_name}"
        yield f"rm -rf {_INSTALLER} {_FILES}/wheels"


def _environment(workload: Workload) -> Iterator[str]:
    """Yield the exports of the image.

    Raises `UnrenderableError` for a single quote: Apptainer 1.4.5 puts a backslash before it (measured).
    """
    yield f"export VIRTUAL_ENV={ENVIRONMENT}"
    yield f'export PATH="{ENVIRONMENT}/bin:$PATH"'
    for name, value in variables(workload.stacks[0]).items():
        if "'" in value:
            raise UnrenderableError(
                f"variable `{name}` holds a single quote, which Apptainer does not hand on as it is: {value!r}"
            )
        yield f"export {name}={quoted(value)}"
