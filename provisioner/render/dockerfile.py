"""Render a lock as a Dockerfile with base, builder and runtime stages; equal locks give equal bytes.

Layers that change rarely come first. Platforms with equal base images and variables share their stages; otherwise each platform
has its own stages, selected by the target architecture of the build.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING
from urllib.parse import quote as quote_path

from msgspec import Struct

from provisioner.accelerators import ACCELERATORS
from provisioner.errors import UsageError
from provisioner.lock.format.file import lock_digest
from provisioner.platforms import package_marker
from provisioner.render.base_image import PYTHON, base_of
from provisioner.render.entry_guard import entrypoint, has_guard, install_guard
from provisioner.render.header import UnrenderableError, header
from provisioner.render.instruction import Cmd, Comment, Copy, Env, From, Label, Mount, Run, User, Workdir

if TYPE_CHECKING:
    from provisioner.lock.format.model import Lock, LockedPackage, LockedStack
    from provisioner.render.base_image import Base
    from provisioner.render.instruction import Instruction

    Stage = tuple[Instruction, ...]

_FILE_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")

ENVIRONMENT = "/opt/venv"
"""The path of the packages' virtual environment, in the builder stage and in the image."""

_INSTALLER = "/opt/installer"
_CONTEXT = "/tmp/provision"  # noqa: S108 - a path inside the image, mounted for one step
_CACHE = "/var/cache/provision"
_USER_ID = 10001
_HOME = "/home/provision"

_SECRETS = (Mount("secret", (("id", "ca"),)), Mount("secret", (("id", "netrc"),)))
_USE_SECRETS = (
    "if [ -f /run/secrets/ca ]; then export PIP_CERT=/run/secrets/ca SSL_CERT_FILE=/run/secrets/ca; fi",
    "if [ -f /run/secrets/netrc ]; then export NETRC=/run/secrets/netrc; fi",
)
"""Shell commands that use the optional build secrets, if given; no secret is stored in a layer."""

_CURL = "--fail --silent --show-error --location --retry 3"

_BUILD_VARIABLES = (
    ("PIP_CACHE_DIR", f"{_CACHE}/pip"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("PIP_ROOT_USER_ACTION", "ignore"),
    ("UV_CACHE_DIR", f"{_CACHE}/uv"),
    ("UV_COMPILE_BYTECODE", "1"),
    ("UV_HTTP_TIMEOUT", "300"),
    ("UV_LINK_MODE", "copy"),
    ("UV_NO_CONFIG", "1"),
    ("UV_PREVIEW_FEATURES", "pylock"),
    ("UV_PYTHON_DOWNLOADS", "never"),
)
"""Variables of the installation.

Files are copied, not linked, because the cache is not part of the image. Bytecode is compiled now, because the user of the
image may not write it later.
"""


def render(lock: Lock, lock_file_name: str) -> str:
    """Return the Dockerfile of a lock, to be built with the lock's folder as the build context.

    Raises `UnrenderableError` when the lock is not for containers, and `UsageError` for a file name that cannot be mounted.
    """
    if not _FILE_NAME.fullmatch(lock_file_name):
        raise UsageError(
            f"`{lock_file_name}` cannot be the name of a lock in a build",
            hints=("give the file's own name, of letters, digits, `.`, `-` and `_`",),
        )
    parts = [(header(lock, lock_file_name),), *_all_stages(lock, lock_file_name)]
    return "\n".join("".join(f"{instruction}\n" for instruction in part) for part in parts)


def _all_stages(lock: Lock, lock_file_name: str) -> tuple[Stage, ...]:
    """Return the stages of the Dockerfile, of which the last one becomes the image.

    Raises `UnrenderableError` when no platform of the lock runs in a container, or when one lacks a base image or an installer.
    """
    stacks = tuple(stack for stack in lock.stacks if stack.platform.startswith("linux/") and stack.runs == "container")
    if not stacks:
        raise UnrenderableError(
            f"lock `{lock.name}` runs on the host ({', '.join(lock.platforms)}), and a Dockerfile is for containers",
            hints=("write `runs: container` and a linux platform in the specification and solve again",),
        )
    if len({(base_of(stack), _variables(stack)) for stack in stacks}) == 1:
        return _stages(_Plan(lock, lock_file_name, stacks))
    # No `ARG TARGETARCH` above: FROM has it without, and BuildKit of a 20.10 engine would set it to an empty value.
    separate = [
        stage
        for stack in stacks
        for stage in _stages(_Plan(lock, lock_file_name, (stack,)), suffix=f"-{stack.platform.removeprefix('linux/')}")
    ]
    return (*separate, (_hadolint_ignore("DL3006"), From("runtime-${TARGETARCH}", "runtime")))


class _Plan(Struct, frozen=True):
    """The input of one sequence of stages: a lock, and those of its stacks that share base image and variables."""

    lock: Lock
    lock_file_name: str
    stacks: tuple[LockedStack, ...]

    @property
    def base(self) -> Base:
        return base_of(self.stacks[0])

    @property
    def packages(self) -> tuple[LockedPackage, ...]:
        platforms = {stack.platform for stack in self.stacks}
        return tuple(package for package in self.lock.packages if platforms & set(package.platforms))


def _stages(plan: _Plan, suffix: str = "") -> tuple[Stage, ...]:
    base = plan.base
    python = f"python{suffix}"
    return (
        *(((From(base.reference, python, base.digest), *_python(base)),) if base.archive else ()),
        (From(base.reference, f"base{suffix}", base.digest), *_base(base), *((Copy(PYTHON, python),) if base.archive else ())),
        (From(f"base{suffix}", f"builder{suffix}"), *_builder(plan)),
        (From(f"base{suffix}", f"runtime{suffix}"), *_runtime(plan, f"builder{suffix}")),
    )


def _base(base: Base) -> Stage:
    """Return the instructions that builder and runtime stage share: they install the locked Python in the base image."""
    install = _install_packages(base.packages) if base.packages else ()
    return (_hadolint_ignore("DL3002", "DL3066"), User("root"), *install)


def _python(base: Base) -> Stage:
    """Return the instructions that download a Python, compare it with its locked hash and unpack it.

    They have a stage of their own, so that the image does not contain curl.
    """
    file = "/tmp/python.tar.gz"  # noqa: S108 - a path inside the image
    commands = (
        "if [ -f /run/secrets/ca ]; then export CURL_CA_BUNDLE=/run/secrets/ca; fi",
        "netrc=/run/secrets/netrc",
        'if [ ! -f "$netrc" ]; then netrc=/dev/null; fi',
        f'curl {_CURL} --netrc-file "$netrc" --output {file} {shlex.quote(base.archive)}',
        f"echo {shlex.quote(f'{base.sha256}  {file}')} > {file}.sha256",
        f"sha256sum --check --strict {file}.sha256",
        f"mkdir -p {PYTHON}",
        f"tar --extract --gzip --file {file} --directory {PYTHON} --strip-components 1 --no-same-owner",
        f"rm {file} {file}.sha256",
    )
    install = " && ".join(_package_commands(("ca-certificates", "curl")))
    root = (_hadolint_ignore("DL3002", "DL3066"), User("root"))
    curl = (_hadolint_ignore("DL3008"), Run((f"command -v curl || {{ {install}; }}",)))
    return (*root, *curl, Run(commands, _SECRETS))


def _builder(plan: _Plan) -> Stage:
    """Return the instructions of the builder stage, of which the image gets only the virtual environment with the packages."""
    base = plan.base
    tools = _install_packages(base.builder_packages) if base.builder_packages else ()
    check = _check_python(base, plan.lock_file_name)
    if not plan.packages:
        return (*tools, check, Run((f"{base.python} -m venv --without-pip {ENVIRONMENT}",)))
    return (*tools, check, Env(_BUILD_VARIABLES), _install_installer(plan), _install_environment(plan))


def _hadolint_ignore(*rules: str) -> Comment:
    """Return a comment that disables hadolint rules for the next instruction, so that a project may lint the whole file.

    DL3002 and DL3066: stages that are not shipped run as root, which every image has; the shipped stage ends with a numeric
    user. DL3006: the image is an earlier stage. DL3008: distributions do not keep old package versions.
    """
    return Comment(f"hadolint ignore={','.join(rules)}")


def _install_packages(packages: tuple[str, ...]) -> Stage:
    return _hadolint_ignore("DL3008"), Run(_package_commands(packages))


def _package_commands(packages: tuple[str, ...]) -> tuple[str, ...]:
    return (
        "apt-get update",
        f"DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends {' '.join(packages)}",
        "rm -rf /var/lib/apt/lists/*",
    )


def _check_python(base: Base, lock_file_name: str) -> Run:
    """Return an instruction that fails with a message when the Python of the base image is not the locked one."""
    program = f"import ensurepip, sys, venv; sys.exit(sys.version_info[:2] != {base.version})"
    message = f"error: {lock_file_name} needs {base.python} with venv and ensurepip, and base image {base.reference} lacks it"
    return Run((f"{base.python} -c {shlex.quote(program)} || {{ echo {shlex.quote(message)} >&2; exit 1; }}",))


def _install_installer(plan: _Plan) -> Run:
    """Return the instruction that installs the installer into its own environment, from the locked file, without an index."""
    lines = dict.fromkeys(_installer_requirement(plan, stack) for stack in plan.stacks)
    has_local = any(stack.installer and stack.installer.file.path for stack in plan.stacks)
    mounts = (_cache("pip"), *((_wheels(),) if has_local else ()), *_SECRETS)
    commands = (
        *_USE_SECRETS,
        f"printf '%s\\n' {' '.join(shlex.quote(line) for line in lines)} > /tmp/installer.txt",
        f"{plan.base.python} -m venv {_INSTALLER}",
        f"{_INSTALLER}/bin/python -m pip install --require-hashes --no-deps --only-binary :all: -r /tmp/installer.txt",
    )
    return Run(commands, mounts)


def _installer_requirement(plan: _Plan, stack: LockedStack) -> str:
    """Return the installer of a platform as a requirement for pip, with a marker if another platform has another file.

    Raises `UnrenderableError` when the lock has no installer for the platform.
    """
    if stack.installer is None:
        raise UnrenderableError(
            f"the lock names no installer for {stack.platform}, and an image needs one to install its packages",
            hints=("solve again with this version of provision",),
        )
    file = stack.installer.file
    url = f"file://{_CONTEXT}/{quote_path(file.path)}" if file.path else file.url
    sharing = tuple(other.platform for other in plan.stacks if other.installer == stack.installer)
    marker = package_marker(sharing, tuple(other.platform for other in plan.stacks))
    condition = f" ; {marker}" if marker else ""
    return f"{stack.installer.name} @ {url}{condition} --hash=sha256:{file.sha256}"


def _install_environment(plan: _Plan) -> Run:
    """Return the instruction that installs the packages of the lock; the installer checks each file against its hash."""
    name = plan.lock_file_name
    has_local = any(file.path for package in plan.packages for file in package.files)
    has_sources = any(not file.filename.endswith(".whl") for package in plan.packages for file in package.files)
    lock_mount = Mount("bind", (("source", name), ("target", f"{_CONTEXT}/{name}")))
    mounts = (_cache("uv"), lock_mount, *((_wheels(),) if has_local else ()), *_SECRETS)
    options = "" if has_sources else " --no-build"
    commands = (
        *_USE_SECRETS,
        f"{plan.base.python} -m venv --without-pip {ENVIRONMENT}",
        f"{_INSTALLER}/bin/uv pip install --python {ENVIRONMENT}/bin/python{options} --requirement {_CONTEXT}/{name}",
    )
    return Run(commands, mounts)


def _cache(name: str) -> Mount:
    return Mount("cache", (("target", f"{_CACHE}/{name}"),))


def _wheels() -> Mount:
    return Mount("bind", (("source", "wheels"), ("target", f"{_CONTEXT}/wheels")))


def _runtime(plan: _Plan, builder: str) -> Stage:
    """Return the instructions of the final stage.

    Labels and variables change with every lock, so they come after the large layer.
    """
    variables = _variables(plan.stacks[0])
    is_guarded = has_guard(plan.stacks[0])
    return (
        _add_user(),
        Copy(ENVIRONMENT, builder),
        *(install_guard() if is_guarded else ()),
        Env((("VIRTUAL_ENV", ENVIRONMENT), ("PATH", f"{ENVIRONMENT}/bin:$PATH")), expands=True),
        *((Env(variables),) if variables else ()),
        Label(_labels(plan)),
        User(f"{_USER_ID}:{_USER_ID}"),
        Workdir(_HOME),
        *((entrypoint(ENVIRONMENT),) if is_guarded else ()),
        Cmd(("python",)),
    )


def _variables(stack: LockedStack) -> tuple[tuple[str, str], ...]:
    """Return the environment variables of the image, sorted.

    Beside those of the stack, a CUDA image has variables for the container runtime: the devices, the driver libraries and the
    requirement on the host.
    """
    variables = dict(ACCELERATORS[stack.accelerator].container_variables)
    if has_guard(stack):
        variables["NVIDIA_REQUIRE_CUDA"] = stack.require_cuda
    return tuple(sorted((variables | dict(stack.environment)).items()))


def _labels(plan: _Plan) -> tuple[tuple[str, str], ...]:
    """Return the image labels, as names and values, that describe the lock.

    A label about a stack is included only when it has the same value on all platforms of the plan.
    """
    lock, base = plan.lock, plan.base
    labels = {
        "dev.provision.lock.digest": lock_digest(lock),
        "dev.provision.matrix.digest": lock.matrix_digest,
        "org.opencontainers.image.base.digest": base.digest,
        "org.opencontainers.image.base.name": base.reference,
        "org.opencontainers.image.title": lock.name,
    }
    shared = set.intersection(*(set(_stack_labels(stack).items()) for stack in plan.stacks))
    return tuple(sorted((name, value) for name, value in {*labels.items(), *shared} if value))


def _stack_labels(stack: LockedStack) -> dict[str, str]:
    labels = {
        "dev.provision.accelerator": stack.accelerator,
        "dev.provision.basis": stack.basis,
        "dev.provision.platform": stack.platform,
        "dev.provision.verdict": "unverified" if stack.unverified else "yes",
    }
    labels |= {f"dev.provision.stack.{component}": version for component, version in stack.components.items()}
    return labels | {f"dev.provision.requires.{fact}": wanted for fact, wanted in stack.host_requirements.items()}


def _add_user() -> Run:
    """Return the instruction that adds a user with fixed ids, without useradd, which some base images lack."""
    group = f"provision:x:{_USER_ID}:"
    user = f"provision:x:{_USER_ID}:{_USER_ID}::{_HOME}:/bin/sh"
    commands = (
        f"{{ grep -q '^[^:]*:[^:]*:{_USER_ID}:' /etc/group || echo '{group}' >> /etc/group; }}",
        f"{{ grep -q '^[^:]*:[^:]*:{_USER_ID}:' /etc/passwd || echo '{user}' >> /etc/passwd; }}",
        f"mkdir -p {_HOME}",
        f"chown {_USER_ID}:{_USER_ID} {_HOME}",
    )
    return Run(commands)
