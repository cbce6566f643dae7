"""The base, installer and runtime stages of the image of a lock, as instructions; equal locks give equal stages.

Layers that change rarely come first: libraries of the accelerator, frameworks, other packages by size. Platforms with equal
base images and variables share their stages; otherwise each platform has its own stages, selected by the target architecture of
the build.

Every mount of a step is below `/tmp`, which is a mount, too, in the stages that are shipped: a mount point in a layer would
have the time of the build.
"""

from __future__ import annotations

import hashlib
import shlex
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import unquote

from msgspec import Struct
from msgspec.structs import replace

from provisioner.accelerators import ACCELERATORS
from provisioner.components import COMPONENTS
from provisioner.lock.format.file import lock_digest
from provisioner.render.base_image import PYTHON, base_of, shipped_base
from provisioner.render.chosen_files import is_source, lines_by_file
from provisioner.render.container import HOME, USER_ID, container_stacks, installer_requirement, tag
from provisioner.render.entry_guard import GUARD, entrypoint, has_guard
from provisioner.render.helper import helper_path
from provisioner.render.instruction import (
    Arg,
    Cmd,
    Comment,
    CopyContext,
    CopyStage,
    Env,
    From,
    Label,
    Mount,
    Run,
    User,
    Workdir,
    fill,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.lock.format.model import Lock, LockedPackage, LockedStack
    from provisioner.render.base_image import Base
    from provisioner.render.instruction import Instruction

    Stage = tuple[Instruction, ...]

ENVIRONMENT = "/opt/venv"
"""The path of the packages' virtual environment in the image."""

_HELPER = helper_path("install.py")
_GUARD = helper_path("guard.py")
_SNAPSHOT = helper_path("snapshot.sh")
_SCRATCH = "/tmp"  # noqa: S108 - a path inside the image
_HERE = f"{_SCRATCH}/install.py"
WHEELHOUSE = "wheelhouse"
_HOUSE = f"{_SCRATCH}/{WHEELHOUSE}"
_HOUSED_FILES = ("whl", "gz", "zip")

_ARCHIVE = f"{_SCRATCH}/python.tar.gz"
_LAYERS = "/layers"
_BUILT = "/opt/built"
_ROOT = "/opt/root"
_SOURCES = "sources"
_LAST_LAYER = "packages"
_HUGE = 32
"""The size in MiB from which a wheel is in the layer of the frameworks: a second and more to ship."""

_LARGE = 2
"""The size in MiB from which a wheel is in a layer before the last one: most of the bytes are in few of the packages."""

_TIME = 315532800
"""The time of every file in a layer, as in the helper file: 1980-01-01, the first day that a zip archive can express."""

_SECRETS = tuple(Mount("secret", (("id", name), ("target", f"{_SCRATCH}/{name}"))) for name in ("ca", "netrc"))
"""Certificates and logins that a build may be given; no secret is stored in a layer."""

_CACHE = Mount("cache", (("target", f"{_SCRATCH}/cache"),))
_HOUSED = Mount("bind", (("from", WHEELHOUSE), ("target", _HOUSE)))
_HOUSED_HELPER = f"{_HOUSE}/install.py"
_HELPER_MOUNT = Mount("bind", (("source", _HELPER), ("target", _HERE)))
_SNAPSHOT_MOUNT = Mount("bind", (("source", _SNAPSHOT), ("target", f"{_SCRATCH}/snapshot.sh")))
_WHEELS = Mount("bind", (("source", "wheels"), ("target", f"{_SCRATCH}/wheels")))
_NOTHING_ELSE = Mount("tmpfs", (("target", _SCRATCH),))

_FILES = Comment(f"Files of the build: the programs that it runs, and what a folder `{WHEELHOUSE}` has.")
_INSTALLER = Comment("Not shipped: uv, and a folder for each layer with its part of the lock.")
_BUILDER = Comment("Not shipped: wheels of source distributions.")
_RUNTIME = Comment("The image. A layer is built again when the hashes of its files change; what changes least comes first.")

_REMOVE_LISTS = "rm -rf /var/lib/apt/lists/*"

_CURL = "--fail --silent --show-error --location --retry 3"

_ARGUMENTS = (("LICENSES", "licenses"), ("REVISION", "revision"), ("SOURCE", "source"))
"""The build arguments for labels that only the caller knows, with the names of the labels."""


def all_stages(lock: Lock, lock_file_name: str) -> tuple[Stage, ...]:
    """Return the stages of the Dockerfile of a lock, of which the last one becomes the image.

    Raises `UnrenderableError` when no platform of the lock runs in a container, or when one lacks a base image or an installer.
    """
    stacks = container_stacks(lock, "a Dockerfile")
    if len({(base_of(stack), shipped_base(lock, stack), _variables(stack), _apt(stack)) for stack in stacks}) == 1:
        return (_wheelhouse(stacks), *_stages(_Plan(lock, lock_file_name, stacks)))
    # No `ARG TARGETARCH` above: FROM has it without, and BuildKit of a 20.10 engine would set it to an empty value.
    separate = [
        stage
        for stack in stacks
        for stage in _stages(_Plan(lock, lock_file_name, (stack,), f"-{stack.platform.removeprefix('linux/')}"))
    ]
    return (_wheelhouse(stacks), *separate, (From("runtime-${TARGETARCH}", "runtime"),))


def _wheelhouse(stacks: tuple[LockedStack, ...]) -> Stage:
    """Return the stage with the helper files, and those in the folder `wheelhouse` of the build context, if it is there."""
    is_dated = any(stack.image is not None and stack.image.snapshot for stack in stacks)
    helpers = (*((_GUARD,) if any(map(has_guard, stacks)) else ()), _HELPER, *((_SNAPSHOT,) if is_dated else ()))
    files = tuple(f"{WHEELHOUSE}*/*.{ending}" for ending in _HOUSED_FILES)
    return _FILES, From("scratch", WHEELHOUSE), CopyContext((*helpers, *files), "/")


class _Plan(Struct, frozen=True, dict=True):
    """The input of one sequence of stages: a lock, and those of its stacks that share base image and variables.

    `suffix` is the end of the names of these stages.
    """

    lock: Lock
    lock_file_name: str
    stacks: tuple[LockedStack, ...]
    suffix: str = ""

    @property
    def base(self) -> Base:
        """The base image that is shipped."""
        return shipped_base(self.lock, self.stacks[0])

    @cached_property
    def platforms(self) -> tuple[str, ...]:
        return tuple(stack.platform for stack in self.stacks)

    @cached_property
    def packages(self) -> tuple[LockedPackage, ...]:
        return tuple(package for package in self.lock.packages if set(self.platforms) & set(package.platforms))

    @cached_property
    def sources(self) -> tuple[LockedPackage, ...]:
        """The packages that are built from their source distributions on some platform."""
        return tuple(package for package in self.packages if is_source(package, self.platforms))

    @cached_property
    def rules(self) -> dict[str, tuple[str, ...]]:
        """The members of each layer of the image but the last, as the helper file reads them, by the name of the layer.

        A member is the name of a package, the beginning of one (`nvidia-*`, for compiled wheels) or the least size of a wheel.
        Compiled libraries of the accelerator's vendor come first, then frameworks and every other huge wheel, then large ones.
        """
        prefixes = {prefix for stack in self.stacks for prefix in ACCELERATORS[stack.accelerator].wheel_prefixes}
        frameworks = {component.distribution for component in COMPONENTS.values()} & {one.name for one in self.lock.packages}
        return {
            _SOURCES: tuple(package.name for package in self.sources),
            "libraries": tuple(f"{prefix}*" for prefix in sorted(prefixes)),
            "frameworks": (*sorted(frameworks), f"{_HUGE}MiB"),
            "large": (f"{_LARGE}MiB",),
        }

    @cached_property
    def layers(self) -> dict[str, tuple[LockedPackage, ...]]:
        """The packages in each layer of the image, in the order of the layers; those of `sources` are in the last one."""
        layers: dict[str, list[LockedPackage]] = {name: [] for name in (*self.rules, _LAST_LAYER)}
        for package in self.lock.packages:
            layers[_layer_of(package, self.rules)].append(package)
        return {name: tuple(packages) for name, packages in layers.items()}


def _layer_of(package: LockedPackage, rules: Mapping[str, tuple[str, ...]]) -> str:
    """Return the name of a package's layer, as the helper file determines it from the text of the lock."""
    size = max((file.size or 0 for file in package.wheels), default=0)
    is_compiled = not any(file.filename.endswith("-any.whl") for file in package.files)

    def has(member: str) -> bool:
        if member.endswith("*"):
            return is_compiled and package.name.startswith(member[:-1])
        return size >= int(member[:-3]) * 2**20 if member.endswith("MiB") else package.name == member

    return next((layer for layer, members in rules.items() if any(map(has, members))), _LAST_LAYER)


def _digest(packages: tuple[LockedPackage, ...]) -> str:
    """Return one hash for all files of some packages, as the helper file computes it."""
    files = [file for package in packages for file in (*package.files, package.variants) if file is not None]
    return hashlib.sha256("".join(sorted({file.sha256 for file in files})).encode()).hexdigest()


def _stages(plan: _Plan) -> tuple[Stage, ...]:
    base, suffix = plan.base, plan.suffix
    python = f"python{suffix}"
    return (
        *(((From(base.reference, python, base.digest), *_python(base)),) if base.archive else ()),
        (From(base.reference, f"base{suffix}", base.digest), *_base(base, python)),
        (_INSTALLER, From(f"base{suffix}", f"installer{suffix}"), *_installer(plan)),
        *((_builder(plan, python),) if plan.sources else ()),
        (_RUNTIME, From(f"base{suffix}", f"runtime{suffix}"), *_runtime(plan)),
    )


def _apt(stack: LockedStack) -> tuple[str, ...]:
    return tuple(one.name for one in stack.apt)


def _base(base: Base, python: str) -> Stage:
    """Return the instructions that all later stages share: they install the locked Python in the base image."""
    return (User("root"), *_install_packages(base.packages, base), *_unpacked_python(base, python))


def _unpacked_python(base: Base, python: str) -> Stage:
    """Return the instruction that unpacks the Python of the stage `python`; () if the base image or its packages have one."""
    if not base.archive:
        return ()
    archive = Mount("bind", (("from", python), ("source", _ARCHIVE), ("target", _ARCHIVE)))
    commands = (
        f"mkdir -p {PYTHON}",
        f"tar --extract --gzip --file {_ARCHIVE} --directory {PYTHON} --strip-components 1 --no-same-owner",
        f"touch -d @{_TIME} {PYTHON} {PYTHON.rpartition('/')[0]}",
    )
    return (Run(commands, (_NOTHING_ELSE, archive)),)


def _python(base: Base) -> Stage:
    """Return the instructions that download a Python and compare it with its locked hash.

    They have a stage of their own, so that the image does not contain curl.
    """
    housed = shlex.quote(f"{_HOUSE}/{unquote(base.archive.rpartition('/')[2])}")
    download = f'curl {_CURL} --netrc-file "$netrc" --output {_ARCHIVE} {shlex.quote(base.archive)}'
    ca, netrc = f"{_SCRATCH}/ca", f"{_SCRATCH}/netrc"
    commands = (
        f"if [ -f {ca} ]; then export CURL_CA_BUNDLE={ca}; fi",
        f"if [ -f {netrc} ]; then netrc={netrc}; else netrc=/dev/null; fi",
        f"if [ -f {housed} ]; then cp {housed} {_ARCHIVE}; else {download}; fi",
        f"echo {shlex.quote(f'{base.sha256}  {_ARCHIVE}')} > {_ARCHIVE}.sha256",
        f"sha256sum --check --strict {_ARCHIVE}.sha256",
    )
    install = " && ".join((*_package_commands(("ca-certificates", "curl"), base, _HOUSE), _REMOVE_LISTS))
    curl = Run((f"[ -f {housed} ] || command -v curl || {{ {install}; }}",), (_HOUSED,))
    return (User("root"), curl, Run(commands, (_HOUSED, *_SECRETS)))


def _installer(plan: _Plan) -> Stage:
    """Return the instructions of the stage with what the image gets: a user, the guard, the packages of each layer."""
    tools = _install_tools(plan.base.builder_packages, plan.base)
    guard = (GUARD,) if has_guard(plan.stacks[0]) else ()
    root = _help(plan, "root", str(USER_ID), HOME, *guard)
    if not plan.packages:
        return (*tools, Run((root,), (_HOUSED,)))
    # The installer comes from its locked file, without an index.
    lines = dict.fromkeys(installer_requirement(stack, plan.stacks, folder=_SCRATCH) for stack in plan.stacks)
    has_local = any(stack.installer and stack.installer.file.path for stack in plan.stacks)
    mounts = (_CACHE, _HOUSED, *((_WHEELS,) if has_local else ()), *_SECRETS)
    return (*tools, Run((root, _help(plan, "installer", *lines)), mounts), _lay_out(plan))


def _install_packages(packages: tuple[str, ...], base: Base) -> Stage:
    """Return the instructions that install distribution packages in a stage that is shipped: two builds give the same files."""
    if not packages:
        return ()
    first, *others = _package_commands(packages, base, _SCRATCH)
    mounts = (_NOTHING_ELSE, _HELPER_MOUNT, *((_SNAPSHOT_MOUNT,) if base.snapshot else ()))
    return (Run((f"start=$(date +%s) && {first}", *others, f'{base.python} -B {_HERE} clean "$start"'), mounts),)


def _install_tools(packages: tuple[str, ...], base: Base) -> Stage:
    """Return the instructions that install distribution packages in a stage that is not shipped."""
    if not packages:
        return ()
    return (Run((*_package_commands(packages, base, _HOUSE), _REMOVE_LISTS), (_HOUSED,) if base.snapshot else ()),)


def _package_commands(packages: tuple[str, ...], base: Base, folder: str) -> tuple[str, ...]:
    """Return the commands that install distribution packages: of one time by the helper file in `folder`, or today's."""
    if base.snapshot:
        return (_wrapped((f"sh {folder}/snapshot.sh {base.snapshot}", *packages)),)
    install = "DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends"
    return "apt-get update", _wrapped((install, *packages))


def _wrapped(words: tuple[str, ...]) -> str:
    return " \\\n      ".join(fill(words, 120))


def _help(plan: _Plan, command: str, *arguments: str, path: str = _HOUSED_HELPER) -> str:
    """Return a command of the helper file, which says what each of its commands does."""
    words = (f"{plan.base.python} -B {path} {command}", *(shlex.quote(argument) for argument in arguments))
    return _wrapped(words)


def _lay_out(plan: _Plan) -> Run:
    """Return the instruction that gives each layer a folder with the installer and its part of the lock.

    A layer is built again only when that folder changes.
    """
    groups = [word for name, members in plan.rules.items() if members for word in (f"--{name}", *members)]
    has_local = any(file.path for package in plan.packages for file in package.files)
    target = f"{_SCRATCH}/{plan.lock_file_name}"
    lock_mount = Mount("bind", (("source", plan.lock_file_name), ("target", target)))
    mounts = (_HOUSED, *((_WHEELS,) if has_local else ()), lock_mount)
    return Run((_help(plan, "layers", target, _digest(plan.lock.packages), *groups),), mounts)


def _builder(plan: _Plan, python: str) -> Stage:
    """Return the stage that builds wheels of the source distributions, on the image with compilers, which is not shipped."""
    base, suffix = base_of(plan.stacks[0]), plan.suffix
    packages = (*base.builder_packages, *base.header_packages)
    start: Stage = (_BUILDER, From(f"base{suffix}", f"builder{suffix}"))
    if base != plan.base:
        packages = (*base.packages, *packages)
        start = (_BUILDER, From(base.reference, f"builder{suffix}", base.digest), User("root"), *_unpacked_python(base, python))
    return (*start, *_install_tools(packages, base), _build_wheels(plan))


def _build_wheels(plan: _Plan) -> Run:
    requirements = [
        line.replace(" \\\n   ", "")
        for package in plan.sources
        for line in lines_by_file(replace(package, platforms=_common(package, plan)), plan.platforms)
    ]
    has_local = any(file.path for package in plan.sources for file in package.files)
    mounts = (_CACHE, _HOUSED, *((_WHEELS,) if has_local else ()), *_SECRETS)
    return Run((_help(plan, "build", *requirements),), mounts)


def _common(package: LockedPackage, plan: _Plan) -> tuple[str, ...]:
    return tuple(platform for platform in package.platforms if platform in plan.platforms)


def _install_layers(plan: _Plan) -> Stage:
    """Return one instruction for each layer of packages; the installer compares each file with its hash in the lock."""
    if not plan.packages:
        return (Run((_help(plan, "environment"),), (_NOTHING_ELSE, _HOUSED)),)
    stage = ("from", f"installer{plan.suffix}")
    wheels = Mount("bind", (("from", f"builder{plan.suffix}"), ("source", _BUILT), ("target", f"{_SCRATCH}/built")))
    run = []
    for layer, packages in plan.layers.items():
        built = plan.sources if layer == _LAST_LAYER else ()
        if layer == _SOURCES or not (built or set(packages) & set(plan.packages)):
            continue
        folder = Mount("bind", (stage, ("source", f"{_LAYERS}/{layer}"), ("target", f"{_SCRATCH}/layer")))
        ca, netrc = _SECRETS
        mounts = (_NOTHING_ELSE, _CACHE, netrc, folder, ca, *((wheels,) if built else ()))
        versions = [f"{package.name}=={package.version}" for package in built]
        command = _help(plan, "layer", _digest(packages), *versions, path=f"{_SCRATCH}/layer/install.py")
        run.append(Run((command,), mounts))
    return tuple(run)


def _runtime(plan: _Plan) -> Stage:
    """Return the instructions of the final stage.

    Labels and variables change with every lock, so they come after the large layers.
    """
    variables = _variables(plan.stacks[0])
    return (
        CopyStage(f"installer{plan.suffix}", f"{_ROOT}/", "/"),
        *_install_packages(_apt(plan.stacks[0]), plan.base),
        *_install_layers(plan),
        Env((("VIRTUAL_ENV", ENVIRONMENT), ("HOME", HOME), ("PATH", f"{ENVIRONMENT}/bin:$PATH")), expands=True),
        *((Env(variables),) if variables else ()),
        Label(_labels(plan)),
        Arg(tuple(name for name, _ in _ARGUMENTS)),
        Label(tuple((f"org.opencontainers.image.{label}", f"${name}") for name, label in _ARGUMENTS), expands=True),
        User(f"{USER_ID}:{USER_ID}"),
        Workdir(HOME),
        *((entrypoint(ENVIRONMENT),) if has_guard(plan.stacks[0]) else ()),
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
        "org.opencontainers.image.version": tag(lock),
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
