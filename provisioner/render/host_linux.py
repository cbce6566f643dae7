"""Write the script that sets up Linux hosts: with apt-get on Debian and Ubuntu, with dnf on RHEL and its family and on Fedora.

Sources of what the script does beyond installing packages: apt-secure(8) and sources.list(5) (keys by path); mokutil(1) and
dkms(8) (the key that signs modules built here); dnf's documentation of modularity; sysexits.h (78).
"""

from __future__ import annotations

import re
from textwrap import wrap
from typing import TYPE_CHECKING

from provisioner.platforms import PLATFORMS
from provisioner.render.entry_guard import REFUSED
from provisioner.render.gpu_check import NUMBER, gpu_check, in_ranges
from provisioner.render.header import UnrenderableError
from provisioner.render.node_affinity import drivers_of
from provisioner.render.shell import quoted
from provisioner.setups import INSTALLED, KERNEL, SYSTEM
from provisioner.versions import ranges_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from provisioner.lock.format.model import LockedStack
    from provisioner.setups import HostSetup, Repository, SetupStep

_START = """\
set -euf
umask 022

dry_run='' branch='' open='' failed=''
case $#:${1-} in
0:) ;;
1:--dry-run) dry_run=yes ;;
*)
    echo "usage: sh $0 [--dry-run]" >&2
    exit 2
    ;;
esac

say() { printf '%s\\n' "$*"; }
refuse_host() {
    printf '%s: %s\\n' "$lock" "$*" >&2
    exit REFUSED
}

# What is left to a person, and what the lock does not allow.
todo() {
    open=yes
    say "TO DO: $*"
}
wrong() {
    failed=yes
    say "WRONG: $*"
}

# The driver that runs; of one that is not loaded nvidia-smi says so on stdout.
driver() {
    if found=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null); then echo "$found" | head -n 1; fi
}

# Say a command, and run it unless this is a dry run.
run() {
    say "+ $*"
    [ -n "$dry_run" ] || "$@"
}

# Write a file with the given lines, unless it has them already.
write() {
    file=$1
    shift
    if [ -e "$file" ] && [ "$(cat "$file")" = "$(printf '%s\\n' "$@")" ]; then return 0; fi
    say "+ write $file:"
    printf '    %s\\n' "$@"
    [ -n "$dry_run" ] || { mkdir -p "${file%/*}" && printf '%s\\n' "$@" >"$file"; }
}

# Download to a file, whole or not at all, and compare with a SHA-256 where one is given.
fetch() {
    command -v curl >/dev/null || install ca-certificates curl
    run curl --fail --silent --show-error --location --output "$2.part" "$1"
    if [ -n "${3-}" ] && [ -z "$dry_run" ] && [ "$(sha256sum "$2.part" | cut -d ' ' -f 1)" != "$3" ]; then
        refuse_host "$1 has another SHA-256 than $3: nothing was installed from it"
    fi
    run mv "$2.part" "$2"
}

# Whether a package is there; with a driver branch, whether its version is of that branch, where its name does not say so.
is_there() {
    has "$1" || return 1
    case $branch:$1 in
    :* | "$branch":*"-$branch"*) return 0 ;;
    esac
    case $(version_of "$1") in
    "$branch".*) return 0 ;;
    *) return 1 ;;
    esac
}

# Install those of the packages that are not there.
install() {
    missing=''
    for package in "$@"; do is_there "$package" || missing="$missing $package"; done
    if [ -z "$missing" ]; then
        say "is there: $*"
    else
        # shellcheck disable=SC2086 # names of packages, separated by spaces
        install_now $missing
        # A package manager keeps what is newer.
        for package in $missing; do
            if [ -n "$dry_run" ] || [ -z "$branch" ] || is_there "$package"; then continue; fi
            todo "$package $(version_of "$package") stays, which is of another branch than $branch:" \\
                'remove that driver, and run this script again'
            exit 3
        done
    fi
}
"""

_FOR_KERNEL = """\
# End where a package for the kernel that runs is to be installed, and only those for newer kernels are published.
need_for_kernel() {
    if [ -n "$dry_run" ] || has "$1" || is_published "$1"; then return 0; fi
    todo "no repository has $1, for the kernel that runs: update the kernel, reboot, and run this script again"
    exit 3
}
"""

_APT = """\
use_apt() {
    fresh=''
    has() {
        found=$(dpkg-query --show --showformat '${db:Status-Status} ${Version}' "${1%%=*}" 2>/dev/null) || return 1
        case $1 in
        *=*) wanted="installed ${1#*=}" ;;
        *) wanted='installed *' ;;
        esac
        # shellcheck disable=SC2254 # a version may end in a pattern
        case $found in
        $wanted) return 0 ;;
        *) return 1 ;;
        esac
    }
    version_of() { dpkg-query --show --showformat '${Version}' "${1%%=*}" | sed 's/^[0-9]*://'; }
    refresh() {
        [ -n "$fresh" ] || run apt-get update
        fresh=yes
    }
    is_published() {
        refresh
        apt-cache show "$1" >/dev/null 2>&1
    }
    install_now() {
        refresh
        run env DEBIAN_FRONTEND=noninteractive apt-get install --yes "$@"
    }
    # Whether a list of apt has a word, such as an address, outside of comments.
    is_listed() {
        grep -rhs '' /etc/apt/sources.list /etc/apt/sources.list.d | awk -v wanted="$1" '
            !/^[[:space:]]*#/ { for (i = 1; i <= NF; i++) if ($i == wanted || $i == wanted "/") found = 1 }
            END { exit !found }'
    }
    # A repository of one line: its name, the line, its key (an address or a file), the word that tells it, and a pin.
    register() {
        list=/etc/apt/sources.list.d/provision-$1.list
        if [ ! -e "$list" ] && is_listed "$4"; then
            say "is registered: $2"
            return 0
        fi
        case $3 in
        http*)
            signed="[signed-by=/etc/apt/keyrings/provision-$1.asc] "
            if [ ! -e "/etc/apt/keyrings/provision-$1.asc" ]; then
                run mkdir -p /etc/apt/keyrings
                fetch "$3" "/etc/apt/keyrings/provision-$1.asc"
            fi
            ;;
        *)
            # apt refuses one repository with two values of Signed-By: take the one that the system's own list has.
            signed=''
            if is_listed "$3"; then signed="[signed-by=$3] "; fi
            ;;
        esac
        [ -e "$list" ] || fresh=''
        write "$list" "deb $signed$2"
        [ -z "$5" ] || write "/etc/apt/preferences.d/provision-$1" 'Package: *' "Pin: $5" 'Pin-Priority: 600'
    }
    # A repository that a package of its own registers: the package, its address and its SHA-256.
    register_package() {
        has "$1" && { say "is registered by $1"; return 0; }
        fetch "$2" "$work/$1.deb" "$3"
        run dpkg --install "$work/$1.deb"
        fresh=''
    }
}
"""

_DNF = """\
use_dnf() {
    has() {
        case $1 in
        *'*'*) dnf --quiet list --installed "$1" >/dev/null 2>&1 ;;
        *) rpm --query "$1" >/dev/null 2>&1 ;;
        esac
    }
    version_of() { rpm --query --queryformat '%{VERSION}' "$1"; }
    is_published() { dnf --quiet list "$1" >/dev/null 2>&1; }
    # What is there is of another branch, and `dnf install` would keep it if that is the newer one.
    install_now() {
        there='' new=''
        for package in "$@"; do
            if has "$package"; then there="$there $package"; else new="$new $package"; fi
        done
        # shellcheck disable=SC2086 # names of packages, separated by spaces
        [ -z "$there" ] || run dnf distro-sync --assumeyes $there
        # shellcheck disable=SC2086 # names of packages, separated by spaces
        [ -z "$new" ] || run dnf install --assumeyes $new
    }
    # A repository that a file registers: its name and address.
    register_file() {
        if [ -e "/etc/yum.repos.d/${1##*/}" ]; then
            say "is registered: $1"
        else
            fetch "$1" "/etc/yum.repos.d/${1##*/}"
        fi
    }
    # A repository without a file of its own: its name, address and key.
    register() {
        write "/etc/yum.repos.d/provision-$1.repo" "[provision-$1]" "name=$1" "baseurl=$2" enabled=1 gpgcheck=1 "gpgkey=$3"
    }
    register_package() {
        has "$1" && { say "is registered by $1"; return 0; }
        run dnf install --assumeyes "${2:-$1}"
    }
    # A module stream, such as nvidia-driver:580-open.
    enable_stream() {
        if grep -qsx "stream=${1#*:}" "/etc/dnf/modules.d/${1%%:*}.module"; then
            say "is enabled: $1"
        else
            [ ! -e "/etc/dnf/modules.d/${1%%:*}.module" ] || run dnf module reset --assumeyes "${1%%:*}"
            run dnf module enable --assumeyes "$1"
        fi
    }
    # Keep the packages of a pattern to the versions of a branch, where there are no module streams, and to no other branch.
    lock_versions() {
        if dnf --quiet versionlock list 2>/dev/null | grep -q ":$2\\."; then
            say "is locked: $1"
        else
            for other in $(dnf --quiet versionlock list 2>/dev/null \\
                | sed -n 's/.*nvidia.*-[0-9]*:\\([0-9]\\{3\\}\\)\\..*/\\1/p' | sort -u); do
                run dnf versionlock delete "*nvidia*-$other.*"
            done
            run dnf versionlock add "$1"
        fi
    }
}
"""

_SECURE_BOOT = """\
if command -v mokutil >/dev/null && mokutil --sb-state 2>/dev/null | grep -q enabled; then
    # Ubuntu's DKMS signs with the key of shim, that of others with a key of its own.
    for key in /var/lib/shim-signed/mok/MOK.der /var/lib/dkms/mok.pub; do
        if [ -e "$key" ] && ! mokutil --test-key "$key" 2>/dev/null | grep -q 'already enrolled'; then
            todo "Secure Boot is on, and modules that are built here load only once their key is enrolled: run" \\
                "mokutil --import $key, choose a password for one use, reboot, and confirm with it before the system starts"
            break
        fi
    done
fi
"""

_DOCKER = """\
# Podman needs no such entry, and Kubernetes is configured for all nodes at once.
if command -v docker >/dev/null && ! grep -qs nvidia /etc/docker/daemon.json; then
    run nvidia-ctk runtime configure --runtime=docker
    todo 'restart Docker when its containers may stop: systemctl restart docker'
fi
"""

_CUDA = "cuda"
"""The repository of NVIDIA that has toolkits, and drivers too."""

_KEEP_DRIVER = """\
# NVIDIA's repository has drivers, too: one that the distribution installed must not be replaced by half of another.
if IS_THERE; then
    write /etc/apt/preferences.d/provision-driver \\
        'Package: nvidia-* libnvidia-*' 'Pin: origin developer.download.nvidia.com' 'Pin-Priority: -1'
fi
"""

_AMD = """\
if [ -e /dev/kfd ]; then
    # The number of a loaded amdgpu is another one than that of its release: it is told, and not compared.
    say "amdgpu: $(cat /sys/module/amdgpu/version 2>/dev/null || echo 'the one of the kernel')"
    say 'users of the GPUs belong into the groups render and video: usermod --append --groups render,video USER'
fi
"""

_AMD_TARGETS = """\
# The targets of AMD's GPUs, from the kernel: 90010 is gfx90a, and 0 a processor.
amd_targets() {
    grep -rhs gfx_target_version /sys/class/kfd/kfd/topology/nodes \\
        | awk '$2 > 0 { printf "gfx%d%x%x\\n", $2 / 10000, int($2 / 100) % 100, $2 % 100 }' | sort -u
}
"""

_END = """\
[ -z "$failed" ] || exit 1
if [ -n "$open" ]; then
    say 'that is for a person to do: then run this script again, and it says whether the host meets the lock'
    exit 3
fi
say "this host meets $lock"
"""

_FACTS = {"kernel=$(uname -r)": "$kernel", "release=${system#* }": "$release"}
"""What the script asks the host, by how its steps use it."""

_ON_HOST = {KERNEL: '"$kernel"', SYSTEM: '"$release"'}

_WIDTH = 110
"""The width of a comment, in characters."""

_WHY = {
    "kernel_headers": "The modules of the driver are built here, with the headers of the very kernel that runs.",
    "nvcc": "The toolkit: nvcc, and the headers and libraries of CUDA, for what is compiled or runs without wheels.",
    "cudnn": "cuDNN, as no wheel of this stack brings it.",
    "nccl": "NCCL, as no wheel of this stack brings it.",
    "container_toolkit": "The container toolkit hands GPUs to containers, which bring everything above the driver.",
    "amdgpu": "AMD's driver, which is built here by DKMS.",
    "rocm": "ROCm, as no wheel of this stack brings it.",
}


def linux_script(pairs: Sequence[tuple[LockedStack, HostSetup]], lock_file_name: str) -> str:
    """Return the script without its header, for setups of different systems or processors."""
    name = "".join(filter(str.isprintable, lock_file_name))
    managers = "\n".join(dict.fromkeys(_APT if _has_apt(setup) else _DNF for _, setup in pairs))
    functions = [_Function(index, stack, setup) for index, (stack, setup) in enumerate(pairs, start=1)]
    systems = ", or ".join(f"{setup.os} on {PLATFORMS[stack.platform].machine}" for stack, setup in pairs)
    steps, cases = ("".join(parts) for parts in zip(*((one.text, one.case) for one in functions), strict=True))
    facts = "".join(f"{fact}\n" for fact, use in _FACTS.items() if use in steps)
    return f"""\
# shellcheck disable=SC1091 # /etc/os-release is read where the script runs
# shellcheck disable=SC2016 # apt fills in $(ARCH), and dpkg-query ${{Version}}
lock={quoted(name)}
{_START.replace("REFUSED", str(REFUSED))}
{NUMBER}

{managers}
{f"{_FOR_KERNEL}{chr(10)}" if "need_for_kernel" in steps else ""}\
{f"{_AMD_TARGETS}{chr(10)}" if "amd_targets" in steps else ""}\
{steps}\
system=$([ ! -r /etc/os-release ] || (. /etc/os-release && echo "${{ID-}} ${{VERSION_ID-}}"))
[ -n "$system" ] || refuse_host 'this host has no /etc/os-release, which says what it runs'
{facts}case "$(uname -m) $system" in
{cases}*) refuse_host {quoted(f"it is for {systems}; this host runs")} "$system on $(uname -m)" ;;
esac
"""


def _has_apt(setup: HostSetup) -> bool:
    return setup.os.partition(" ")[0] in {"ubuntu", "debian"}


class _Function:
    """The shell function that takes the steps of one setup and compares the host with the lock; `index` counts from 1."""

    def __init__(self, index: int, stack: LockedStack, setup: HostSetup) -> None:
        self._name, self._stack, self._setup = f"set_up_{index}", stack, setup
        self._check = f"reason=$(check_{index})"
        self._index = index

    @property
    def case(self) -> str:
        """The branch of a `case` for the system and processor of the setup; of RHEL's family it is for all minor releases."""
        setup, machine = self._setup, PLATFORMS[self._stack.platform].machine
        has_minors = not _has_apt(setup) and "." not in setup.os
        patterns = [quoted(f"{machine} {setup.os}"), *([f"{quoted(f'{machine} {setup.os}.')}*"] if has_minors else [])]
        return f"{' | '.join(patterns)}) {self._name} ;;\n"

    @property
    def text(self) -> str:
        """The function, after the one that it checks the driver with."""
        lines = [
            'if [ -z "$dry_run" ] && [ "$(id -u)" -ne 0 ]; then refuse_host \'run it as root, or with --dry-run\'; fi',
            "work=TEMPORARY",
            'if [ -z "$dry_run" ]; then work=$(mktemp -d) && trap \'rm -rf "$work"\' EXIT; fi',
            "use_apt" if _has_apt(self._setup) else "use_dnf",
        ]
        for step in self._setup.steps:
            if taken := tuple(self._step(step)):
                lines += ["", *taken]
        lines += ["", *self._checks(), *_END.splitlines()]
        body = "".join(f"    {line}\n" if line else "\n" for line in lines)
        return f"{self._driver_check()}{self._name}() {{\n{body}}}\n\n"

    def _driver_check(self) -> str:
        """Return the function that says what is wrong with driver and GPUs; "" for a setup without a driver."""
        if self._setup.step("driver") is None:
            return ""
        served = drivers_of(self._stack)
        if any(those for _, those in served):
            lines = list(gpu_check(served, of_gpu="unfit"))[1:]  # the first defines `number`, which the script has already
        else:
            wanted = self._stack.host_requirements.get("driver", "")
            lines = [
                "driver=$(driver)",
                "[ -n \"$driver\" ] || refuse 'nvidia-smi lists no GPU'",
                'driver=$(number "$driver")',
                *([f"{in_ranges(ranges_of(wanted))} || refuse 'it needs driver {wanted}'"] if wanted else []),
            ]
        body = "".join(f"    {line}\n" for line in lines)
        return f"""\
# Succeed if the stack runs with the driver and the GPUs of this host, else say why it does not.
check_{self._index}() (
    refuse() {{
        say "$*"
        exit 1
    }}
    # No driver helps a GPU for which the stack has no code.
    unfit() {{
        say "$*"
        exit 2
    }}
    command -v nvidia-smi >/dev/null || refuse 'there is no nvidia-smi'
{body})
"""

    def _step(self, step: SetupStep) -> Iterator[str]:
        if step.kind == INSTALLED:
            name = f"{step.component} {step.version}".replace("driver ", "the driver ")
            yield f"# The host has {name} already, and the matrix does not say how it is installed: it is compared below."
            return
        if step.component == "driver":
            yield from self._driver(step)
            return
        if step.component == "kernel_headers" and self._setup.step("driver") is not None:
            return  # the driver's lines install them, where a driver is needed
        if step.component not in _WHY:
            raise UnrenderableError(f"it is not known how {step.component} is installed on {self._setup.os}")
        yield from self._why(step)
        yield from self._repositories(step)
        yield from (f"need_for_kernel {_words((name,))}" for name in step.packages if KERNEL in name)
        yield from (f"install {_words(names)}" for names in (step.first, step.packages) if names)
        if step.component == "container_toolkit":
            yield from _DOCKER.splitlines()
        if step.component == "amdgpu":
            yield "[ -e /dev/kfd ] || todo 'reboot, so that the driver of AMD is loaded'"

    def _why(self, step: SetupStep) -> Iterator[str]:
        """Yield the comment of a step: what it is for, and the sources of its packages."""
        version = f" Version {step.version}." if step.version else ""
        yield from _commented(f"{_WHY[step.component]}{version}", step.sources)

    def _driver(self, step: SetupStep) -> Iterator[str]:
        branch, wanted = step.version.partition(".")[0], self._stack.host_requirements.get("driver", "")
        built = "built here" if step.kind != "precompiled" else "prebuilt and signed by the distribution"
        yield from _commented(
            f"The driver, of branch {branch}, with the {self._setup.driver_module} kernel modules, {built}. "
            f"Any driver {wanted} that runs already will do.".replace("  ", " "),
            step.sources,
        )
        yield f"if {self._check}; then"
        yield '    say "the driver that runs will do: $(driver)"'
        yield "else"
        yield '    [ "$?" -ne 2 ] || refuse_host "$reason"'
        yield '    say "a driver is needed: $reason"'
        if step.kernel:
            yield "    case $kernel in"
            yield f"    {step.kernel}) ;;"
            yield "    *)"
            yield f'        refuse_host "the modules of the driver are for kernels {step.kernel}, and $kernel runs:" \\'
            yield "            'boot such a kernel, or state the one that runs in the specification and solve again'"
            yield "        ;;"
            yield "    esac"
        if (headers := self._setup.step("kernel_headers")) is not None:
            yield from (f"    {line}" for line in self._why(headers))
            yield from (f"    need_for_kernel {_words((name,))}" for name in headers.packages if KERNEL in name)
            yield f"    install {_words(headers.packages)}"
        yield from (f"    {line}" for line in self._repositories(step))
        if step.stream:
            yield f"    enable_stream {quoted(step.stream)}"
        if step.first:
            yield f"    install {_words(step.first)}"
        if step.lock:
            yield f"    lock_versions {quoted(step.lock)} {branch}"
        yield f"    branch={branch}"
        yield f"    install {_words(step.packages)}"
        yield "    branch=''"
        if step.kind != "precompiled":
            yield from (f"    {line}" for line in _SECURE_BOOT.splitlines())
        yield "    todo 'reboot, so that the driver that was installed is loaded'"
        yield "fi"

    def _repositories(self, step: SetupStep) -> Iterator[str]:
        """Yield the lines that register the repositories of a step which no earlier step has."""
        steps, has_apt = self._setup.steps, _has_apt(self._setup)
        registered = {name for earlier in steps[: steps.index(step)] for name in earlier.repositories}
        by_name = {one.name: one for one in self._setup.repositories}
        driver = self._setup.step("driver")
        for name in step.repositories:
            if name not in registered:
                yield from _repository(by_name[name], has_apt=has_apt)
                if has_apt and name == _CUDA and driver is not None and _CUDA not in driver.repositories:
                    # Of a driver that the matrix does not tell how to install, no package is known.
                    is_there = f"has {quoted(driver.packages[0])}" if driver.packages else "[ -e /proc/driver/nvidia/version ]"
                    yield from (line.replace("IS_THERE", is_there) for line in _KEEP_DRIVER.splitlines())

    def _checks(self) -> Iterator[str]:
        """Yield the lines that compare the host with the lock after all steps; a dry run passes them over."""
        yield "# Compare the host with the lock."
        yield 'if [ -n "$dry_run" ]; then'
        yield "    say 'dry run: nothing was changed'"
        yield "    exit 0"
        yield "fi"
        setup, wanted = self._setup, self._stack.host_requirements
        if setup.step("driver") is not None:
            yield 'if [ -n "$open" ]; then'
            yield "    say 'driver: not compared before it is loaded'"
            yield f"elif {self._check}; then"
            yield '    say "driver: $(driver)"'
            yield "else"
            yield '    wrong "$reason"'
            yield "fi"
        if (toolkit := setup.step("nvcc")) is not None:
            series = ".".join(toolkit.version.split(".")[:2])
            nvcc = f"/usr/local/cuda-{series}/bin/nvcc"
            yield f"if {nvcc} --version 2>/dev/null | grep -q 'release {series},'; then"
            yield f"    say 'toolkit: {nvcc}'"
            yield "else"
            yield f"    wrong '{nvcc} is not of CUDA {series}'"
            yield "fi"
        if setup.step("container_toolkit") is not None:
            yield "nvidia-ctk --version || wrong 'nvidia-ctk does not start'"
        if (amdgpu := setup.step("amdgpu")) is not None:
            yield from _AMD.splitlines()
            if amdgpu.kind == INSTALLED:
                yield "[ -e /dev/kfd ] || wrong 'amdgpu is not loaded: there is no /dev/kfd'"
            if wanted.get("gpu"):
                targets = quoted("|".join(wanted["gpu"].split(", ")))
                yield f"if [ -e /dev/kfd ] && ! amd_targets | grep -Eqx {targets}; then"
                told = quoted(f"no GPU is one of {wanted['gpu']}; the kernel lists:")
                yield f"    wrong {told} \"$(amd_targets | paste -s -d ' ' -)\""
                yield "fi"


def _repository(one: Repository, *, has_apt: bool) -> Iterator[str]:
    yield from _commented("", one.sources)
    match one.kind:
        case "keyring" | "package":
            if one.kind == "keyring" and not one.sha256:
                yield "# No hash of this download is known: HTTPS vouches for it, and its key for the packages."
            yield f"register_package {quoted(one.package)} {quoted(one.url)} {quoted(one.sha256)}"
        case "repo-file":
            yield f"register_file {quoted(one.url)}"
        case "apt-line" | "yum":
            words = one.line.split(" ")
            told_by = words[0 if one.key.startswith("http") else -1]
            yield f"register {_words((one.name, one.line, one.key, *((told_by, one.pin) if has_apt else ())))}"


def _commented(text: str, sources: Iterable[str]) -> Iterator[str]:
    yield from (f"# {line}" for line in wrap(text, _WIDTH))
    yield from (f"#   {line}" for source in sources for line in wrap(source, _WIDTH))


def _words(texts: Iterable[str]) -> str:
    """Return texts as words of the shell, in which what only the host knows is a variable."""
    return " ".join(_quoted(text) for text in texts)


def _quoted(text: str) -> str:
    parts = re.split(f"({KERNEL}|{SYSTEM})", text)
    return "".join(_ON_HOST.get(part) or quoted(part) for part in parts if part) or "''"
