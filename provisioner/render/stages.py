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
from provisioner.render.base_image import PYTHON, base_of
from provisioner.render.chosen_files import chosen_files, lines_by_file
from provisioner.render.container import HOME, USER_ID, container_stacks, installer_requirement, tag
from provisioner.render.entry_guard import GUARD, entrypoint, has_guard
from provisioner.render.helper import helper_path
from provisioner.render.instruction import Arg, Cmd, Comment, CopyContext, Env, From, Label, Mount, Run, User, Workdir, fill

if TYPE_CHECKING:
    from provisioner.lock.format.model import Lock, LockedPackage, LockedStack
    from provisioner.render.base_image import Base
    from provisioner.render.instruction import Instruction

    Stage = tuple[Instruction, ...]

ENVIRONMENT = "/opt/venv"
"""The path of the packages' virtual environment in the image."""

_HELPER = helper_path("install.py")
_GUARD = helper_path("guard.py")
_SCRATCH = "/tmp"  # noqa: S108 - a path inside the image
_HERE = f"{_SCRATCH}/install.py"
WHEELHOUSE = "wheelhouse"
_HOUSE = f"{_SCRATCH}/{WHEELHOUSE}"
_HOUSED_FILES = ("whl", "gz", "zip")

_ARCHIVE = f"{_SCRATCH}/python.tar.gz"
_LAYERS = "/opt/layers"
_BUILT = "/opt/built"
_LAST_LAYER = "packages"
_HUGE = 32 * 2**20
"""The size in bytes from which a wheel is in the layer of the frameworks: a second and more to ship."""

_LARGE = 2 * 2**20
"""The size in bytes from which a wheel is in a layer before the last one: most of the bytes are in few of the packages."""

_TIME = 315532800
"""The time of every file in a layer, as in the helper file: 1980-01-01, the first day that a zip archive can express."""

_MOUNTED = ("/dev", "/proc", "/sys", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf")
"""What an engine mounts in every step: it is in no layer, and `/sys` cannot be written."""


_SECRETS = tuple(Mount("secret", (("id", name), ("target", f"{_SCRATCH}/{name}"))) for name in ("ca", "netrc"))
"""Certificates and logins that a build may be given; no secret is stored in a layer."""

_CACHE = Mount("cache", (("target", f"{_SCRATCH}/cache"),))
_HOUSED = Mount("bind", (("from", WHEELHOUSE), ("target", _HOUSE)))
_HELPER_MOUNT = Mount("bind", (("source", _HELPER), ("target", _HERE)))
_WHEELS = Mount("bind", (("source", "wheels"), ("target", f"{_SCRATCH}/wheels")))
_NOTHING_ELSE = Mount("tmpfs", (("target", _SCRATCH),))

_CURL = "--fail --silent --show-error --location --retry 3"

_ARGUMENTS = (("LICENSES", "licenses"), ("REVISION", "revision"), ("SOURCE", "source"))
"""The build arguments for labels that only the caller knows, with the names of the labels."""


def all_stages(lock: Lock, lock_file_name: str) -> tuple[Stage, ...]:
    """Return the stages of the Dockerfile of a lock, of which the last one becomes the image.

    Raises `UnrenderableError` when no platform of the lock runs in a container, or when one lacks a base image or an installer.
    """
    stacks = container_stacks(lock, "a Dockerfile")
    if len({(base_of(stack), _variables(stack), _apt(stack)) for stack in stacks}) == 1:
        return (_wheelhouse(), *_stages(_Plan(lock, lock_file_name, stacks)))
    # No `ARG TARGETARCH` above: FROM has it without, and BuildKit of a 20.10 engine would set it to an empty value.
    separate = [
        stage
        for stack in stacks
        for stage in _stages(_Plan(lock, lock_file_name, (stack,), f"-{stack.platform.removeprefix('linux/')}"))
    ]
    return (_wheelhouse(), *separate, (_hadolint_ignore("DL3006"), From("runtime-${TARGETARCH}", "runtime")))


def _wheelhouse() -> Stage:
    """Return the stage with the files in the folder `wheelhouse` of the build context, which may be missing.

    An empty stage cannot be mounted, so the stage contains the helper file, too.
    """
    files = tuple(f"{WHEELHOUSE}*/*.{ending}" for ending in _HOUSED_FILES)
    return From("scratch", WHEELHOUSE), CopyContext((_HELPER, *files), "/")


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
        return base_of(self.stacks[0])

    @cached_property
    def platforms(self) -> tuple[str, ...]:
        return tuple(stack.platform for stack in self.stacks)

    @cached_property
    def packages(self) -> tuple[LockedPackage, ...]:
        return tuple(package for package in self.lock.packages if set(self.platforms) & set(package.platforms))

    @cached_property
    def sources(self) -> tuple[LockedPackage, ...]:
        """The packages that are built from their source distributions on some platform."""
        return tuple(package for package in self.packages if _is_source(package, self.platforms))

    @cached_property
    def layers(self) -> dict[str, tuple[str, ...]]:
        """The names of the packages in each layer of the image but the last; empty layers are left out.

        Compiled libraries of the accelerator's vendor come first, then frameworks and every other huge wheel, then large ones.
        """
        prefixes = tuple(prefix for stack in self.stacks for prefix in ACCELERATORS[stack.accelerator].wheel_prefixes)
        frameworks = {component.distribution for component in COMPONENTS.values()}
        layers: dict[str, list[str]] = {"libraries": [], "frameworks": [], "large": []}
        for package in self.packages:
            if package in self.sources:
                continue
            if package.name.startswith(prefixes) and not any(file.filename.endswith("-any.whl") for file in package.files):
                layers["libraries"].append(package.name)
                continue
            size = max((file.size or 0 for file in package.wheels), default=0)
            if package.name in frameworks or size >= _HUGE:
                layers["frameworks"].append(package.name)
            elif size >= _LARGE:
                layers["large"].append(package.name)
        return {name: tuple(dict.fromkeys(packages)) for name, packages in layers.items() if packages}


def _is_source(package: LockedPackage, platforms: tuple[str, ...]) -> bool:
    chosen = chosen_files(package)
    return any(not file.filename.endswith(".whl") for file, fitting in chosen.items() if set(fitting) & set(platforms))


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
        *(((From(f"base{suffix}", f"installer{suffix}"), *_installer(plan)),) if plan.packages else ()),
        *(((From(f"base{suffix}", f"builder{suffix}"), _build_wheels(plan)),) if plan.sources else ()),
        (From(f"base{suffix}", f"runtime{suffix}"), *_system_packages(plan), *_runtime(plan)),
    )


def _system_packages(plan: _Plan) -> Stage:
    """Return the instruction that installs the packages of the base image's distribution, in the stage that is shipped."""
    names = _apt(plan.stacks[0])
    return _install_packages(names) if names else ()


def _apt(stack: LockedStack) -> tuple[str, ...]:
    return tuple(one.name for one in stack.apt)


def _base(base: Base, python: str) -> Stage:
    """Return the instructions that all later stages share: they install the locked Python in the base image."""
    archive = Mount("bind", (("from", python), ("source", _ARCHIVE), ("target", _ARCHIVE)))
    unpack = (
        f"mkdir -p {PYTHON}",
        f"tar --extract --gzip --file {_ARCHIVE} --directory {PYTHON} --strip-components 1 --no-same-owner",
        f"touch -d @{_TIME} {PYTHON} {PYTHON.rpartition('/')[0]}",
    )
    return (
        _hadolint_ignore("DL3002", "DL3066"),
        User("root"),
        *(_install_packages(base.packages) if base.packages else ()),
        *((Run(unpack, (_NOTHING_ELSE, archive)),) if base.archive else ()),
    )


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
    install = " && ".join(_package_commands(("ca-certificates", "curl")))
    root = (_hadolint_ignore("DL3002", "DL3066"), User("root"))
    curl = (_hadolint_ignore("DL3008"), Run((f"[ -f {housed} ] || command -v curl || {{ {install}; }}",), (_HOUSED,)))
    return (*root, *curl, Run(commands, (_HOUSED, *_SECRETS)))


def _installer(plan: _Plan) -> Stage:
    """Return the instructions of the stage with the installer, and with a folder for each layer: what is installed in it."""
    base = plan.base
    packages = base.builder_packages
    tools = (_hadolint_ignore("DL3008"), Run(_package_commands(packages))) if packages else ()
    return (*tools, _install_installer(plan), _lay_out(plan))


def _hadolint_ignore(*rules: str) -> Comment:
    """Return a comment that disables hadolint rules for the next instruction, so that a project may lint the whole file.

    DL3002 and DL3066: stages that are not shipped run as root, which every image has; the shipped stage ends with a numeric
    user. DL3006: the image is an earlier stage. DL3008: distributions do not keep old package versions.
    """
    return Comment(f"hadolint ignore={','.join(rules)}")


def _install_packages(packages: tuple[str, ...]) -> Stage:
    """Return the instructions that install distribution packages in a stage that is shipped: two builds give the same files."""
    words = ("find / -xdev -newermt @$start", *(f"! -path {path}" for path in _MOUNTED))
    commands = (
        "start=$(($(date +%s) - 1))",
        *_package_commands(packages),
        # Logs and caches have times in them, so that two builds would differ; those of the base image are emptied, because the
        # mark of a file that is gone has the time of the build.
        "find /var/log /var/cache/ldconfig -type f -exec truncate --size 0 {} +",
        _wrapped((*words, f"-exec touch --no-dereference -d @{_TIME} {{}} +")),
    )
    return _hadolint_ignore("DL3008"), Run(commands)


def _package_commands(packages: tuple[str, ...]) -> tuple[str, ...]:
    return (
        "apt-get update",
        _wrapped(("DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends", *packages)),
        "rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin",
    )


def _wrapped(words: tuple[str, ...]) -> str:
    return " \\\n      ".join(fill(words, 112))


def _install_installer(plan: _Plan) -> Run:
    """Return the instruction that installs the installer into its own environment, from the locked file, without an index."""
    lines = dict.fromkeys(installer_requirement(stack, plan.stacks, folder=_SCRATCH) for stack in plan.stacks)
    has_local = any(stack.installer and stack.installer.file.path for stack in plan.stacks)
    mounts = (_CACHE, _HOUSED, *((_WHEELS,) if has_local else ()), _HELPER_MOUNT, *_SECRETS)
    return _help(plan, "installer", *lines, mounts=mounts)


def _help(plan: _Plan, command: str, *arguments: str, mounts: tuple[Mount, ...], path: str = _HERE) -> Run:
    """Return the instruction that runs a command of the helper file, which says what each of its commands does."""
    words = (f"{plan.base.python} -B {path} {command}", *(shlex.quote(argument) for argument in arguments))
    return Run((_wrapped(words),), mounts)


def _lay_out(plan: _Plan) -> Run:
    """Return the instruction that gives each layer a folder with its part of the lock.

    A layer is built again only when that folder changes.
    """
    layers = {**plan.layers, "sources": tuple(package.name for package in plan.sources)}
    groups = [word for name, packages in layers.items() if packages for word in (f"--{name}", *packages)]
    has_local = any(file.path for package in plan.packages for file in package.files)
    target = f"{_SCRATCH}/{plan.lock_file_name}"
    lock_mount = Mount("bind", (("source", plan.lock_file_name), ("target", target)))
    mounts = (_HOUSED, *((_WHEELS,) if has_local else ()), _HELPER_MOUNT, lock_mount)
    return _help(plan, "layers", target, _digest(plan.lock.packages), *groups, mounts=mounts)


def _build_wheels(plan: _Plan) -> Run:
    """Return the instruction that builds wheels of the source distributions, in a stage that is not shipped."""
    requirements = [
        line.replace(" \\\n   ", "")
        for package in plan.sources
        for line in lines_by_file(replace(package, platforms=_common(package, plan)), plan.platforms)
    ]
    has_local = any(file.path for package in plan.sources for file in package.files)
    mounts = (_CACHE, _HOUSED, *((_WHEELS,) if has_local else ()), _HELPER_MOUNT, *_SECRETS)
    return _help(plan, "build", *requirements, mounts=mounts)


def _common(package: LockedPackage, plan: _Plan) -> tuple[str, ...]:
    return tuple(platform for platform in package.platforms if platform in plan.platforms)


def _install_layers(plan: _Plan) -> Stage:
    """Return one instruction for each layer of packages; the installer compares each file with its hash in the lock."""
    if not plan.packages:
        return (_help(plan, "environment", mounts=(_NOTHING_ELSE, _HELPER_MOUNT)),)
    apart = {name: layer for layer, names in plan.layers.items() for name in names}
    apart |= {package.name: "sources" for package in plan.sources}
    run = []
    for layer in (*plan.layers, _LAST_LAYER):
        packages = tuple(package for package in plan.lock.packages if apart.get(package.name, _LAST_LAYER) == layer)
        built = plan.sources if layer == _LAST_LAYER else ()
        if not packages and not built:
            continue
        source = f"{_LAYERS}/{layer}"
        folder = Mount("bind", (("from", f"installer{plan.suffix}"), ("source", source), ("target", f"{_SCRATCH}/layer")))
        wheels = Mount("bind", (("from", f"builder{plan.suffix}"), ("source", _BUILT), ("target", f"{_SCRATCH}/built")))
        mounts = (_NOTHING_ELSE, _CACHE, folder, *((wheels,) if built else ()), *_SECRETS)
        versions = [f"{package.name}=={package.version}" for package in built]
        run.append(_help(plan, "layer", _digest(packages), *versions, mounts=mounts, path=f"{_SCRATCH}/layer/install.py"))
    return tuple(run)


def _runtime(plan: _Plan) -> Stage:
    """Return the instructions of the final stage.

    Labels and variables change with every lock, so they come after the large layers.
    """
    variables = _variables(plan.stacks[0])
    is_guarded = has_guard(plan.stacks[0])
    return (
        *_install_layers(plan),
        _finish(is_guarded=is_guarded),
        Env((("VIRTUAL_ENV", ENVIRONMENT), ("PATH", f"{ENVIRONMENT}/bin:$PATH")), expands=True),
        *((Env(variables),) if variables else ()),
        Label(_labels(plan)),
        Arg(tuple(name for name, _ in _ARGUMENTS)),
        Label(tuple((f"org.opencontainers.image.{label}", f"${name}") for name, label in _ARGUMENTS), expands=True),
        User(f"{USER_ID}:{USER_ID}"),
        Workdir(HOME),
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


def _finish(*, is_guarded: bool) -> Run:
    """Return the instruction that adds a user with fixed ids, without useradd, which some base images lack, and the guard."""
    group = f"provision:x:{USER_ID}:"
    user = f"provision:x:{USER_ID}:{USER_ID}::{HOME}:/bin/sh"
    commands = [
        f"{{ grep -q '^[^:]*:[^:]*:{USER_ID}:' /etc/group || echo '{group}' >> /etc/group; }}",
        f"{{ grep -q '^[^:]*:[^:]*:{USER_ID}:' /etc/passwd || echo '{user}' >> /etc/passwd; }}",
        f"install -d -o {USER_ID} -g {USER_ID} {HOME}",
    ]
    written = ["/etc/group", "/etc/passwd", "/etc", HOME, HOME.rpartition("/")[0]]
    source = f"{_SCRATCH}/guard.py"
    if is_guarded:
        folder = GUARD.rpartition("/")[0]
        commands.append(f"install -D -m 0644 {source} {GUARD}")
        written += [GUARD, folder, folder.rpartition("/")[0]]
    commands.append(f"touch -d @{_TIME} {' '.join(written)}")
    guard = Mount("bind", (("source", _GUARD), ("target", source)))
    return Run(tuple(commands), (_NOTHING_ELSE, *((guard,) if is_guarded else ())))
