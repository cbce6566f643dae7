"""Write the script that leads through the setup of a Mac with NVIDIA's last drivers for macOS, which checks each step.

Everything that changes the Mac is left to a person, with the exact command or download: the drivers open windows and ask for
restarts. Where versions stand on a Mac is what `provision inspect` reads. Sources of what the script says beyond the steps of
the lock: sip.yaml, xcode.yaml and webdriver.yaml of the matrix, csrutil(8), nvram(8), dyld(1).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.render.entry_guard import REFUSED
from provisioner.render.header import UnrenderableError
from provisioner.render.shell import quoted, variables
from provisioner.versions import series

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from provisioner.lock.format.model import Lock, LockedStack
    from provisioner.setups import BuildFromSource, HostSetup, SetupStep

_START = """\
set -euf

case $#:${1-} in
0:) ;;
1:--dry-run) ;; # a run changes nothing: it checks, and says what to do
*)
    echo "usage: sh $0 [--dry-run]" >&2
    exit 2
    ;;
esac

open=''
say() { printf '%s\\n' "$*"; }
done_already() { say "ok: $*"; }
todo() {
    open=yes
    say "TO DO: $*"
}
refuse_host() {
    printf '%s: %s\\n' "$lock" "$*" >&2
    exit REFUSED
}
property() { /usr/libexec/PlistBuddy -c "Print :$2" "$1" 2>/dev/null || :; }

# Say what to do with a download: where it is, or whether the file of that name in this folder is the right one.
download() {
    file=${1##*/}
    if [ ! -e "$file" ]; then
        say "    download $1 into this folder"
    elif [ -z "$2" ]; then
        say "    $file is here; no hash of it is known to compare it with"
    elif [ "$(shasum -a 256 "$file" | cut -d ' ' -f 1)" = "$2" ]; then
        say "    $file is here, and has the right SHA-256"
    else
        say "    $file is here, and is NOT the right one: its SHA-256 must be $2. Delete it"
    fi
}
"""

_OF_CUDA = {"CUDA_HOME": "/usr/local/cuda", "DYLD_LIBRARY_PATH": "/usr/local/cuda/lib"}
"""Where the toolkit's installer links its release, for programs that look for CUDA."""

_MODULES = {"pytorch": "torch"}
"""The Python module of a component, where it has another name."""

_PLAIN = re.compile(r"[A-Za-z0-9_./:+-]+")

_SIP = """\
# System Integrity Protection. NVIDIA's signed drivers load with it; patched ones and eGPU extensions do not.
case $(csrutil status 2>/dev/null) in
*Custom*) done_already 'System Integrity Protection is partly on: it keeps DYLD_LIBRARY_PATH from programs that it protects' ;;
*enabled*)
    done_already "System Integrity Protection is on, with which NVIDIA's signed drivers load"
    say '    a patched driver, or an eGPU, needs: restart with Command-R, Utilities, Terminal, csrutil enable --without kext'
    ;;
*) done_already 'System Integrity Protection is off' ;;
esac
"""


def macos_script(lock: Lock, pairs: Sequence[tuple[LockedStack, HostSetup]], lock_file_name: str) -> str:
    """Return the script without its header; raises `UnrenderableError` when it is for several builds of macOS."""
    if len(pairs) != 1:
        raise UnrenderableError(
            f"lock `{lock.name}` is for several builds of macOS, and a Web Driver is for one",
            hints=("write a target for each Mac in the specification and solve again",),
        )
    ((stack, setup),) = pairs
    release, _, build = setup.os.partition(" ")[2].partition("+")
    name = "".join(filter(str.isprintable, lock_file_name))
    parts = [_SIP.rstrip("\n"), *("\n".join(_step(step)) for step in setup.steps)]
    of_stack = {name: value for name, value in variables(stack).items() if name not in _OF_CUDA}
    if toolkit := setup.step("nvcc"):
        parts.append("\n".join(_exports(toolkit, {} if setup.build else of_stack)))
    if setup.build is not None:
        parts.append("\n".join(_build(setup.build, of_stack)))
    wanted = f"macOS {release}{f' ({build})' if build else ''}"
    tests = [f'[ "$(sw_vers -productVersion)" = {quoted(release)} ]']
    tests += [f'[ "$(sw_vers -buildVersion)" = {quoted(build)} ]'] if build else []
    body = "\n\n".join(parts)
    return f"""\
lock={quoted(name)}
{_START.replace("REFUSED", str(REFUSED))}
# A Web Driver loads on one build of macOS only: after a security update it needs another driver, and the lock another answer.
[ "$(uname -s)" = Darwin ] || refuse_host {quoted(f"it is for {wanted}; this host runs")} "$(uname -s)"
{{ {" && ".join(tests)}; }} ||
    refuse_host {quoted(f"it is for {wanted}; this Mac has")} \\
        "$(sw_vers -productVersion) ($(sw_vers -buildVersion)): state that build under target.host and solve again"
done_already {quoted(wanted)}

{body}

if [ -n "$open" ]; then
    say 'then run this script again: it goes on where this run found something to do'
    exit 3
fi
say "this Mac meets $lock"
"""


def _step(step: SetupStep) -> Iterator[str]:
    """Yield the lines that check a step and tell how to take it; raises `UnrenderableError` for an unknown one."""
    if step.component not in _STEPS:
        raise UnrenderableError(f"the guide for macOS has no step for {step.component}")
    yield from (f"# {title}" for title in step.sources)
    yield from _STEPS[step.component](step)


def _web_driver(step: SetupStep) -> Iterator[str]:
    yield "found=$(property /Library/Extensions/NVDAStartupWeb.kext/Contents/Info.plist CFBundleGetInfoString)"
    yield "case $found in"
    yield f"*{quoted(step.version)}) done_already 'Web Driver {step.version}' ;;"
    yield "*)"
    yield f'    todo "install the Web Driver {step.version}, which is for this build (found: ${{found:-none}}), and restart"'
    yield f"    download {quoted(step.url)} {quoted(step.sha256)}"
    yield f"    say '    sudo installer -pkg {_file(step)} -target /'"
    yield "    say '    allow it in System Preferences, Security & Privacy, if macOS blocks it'"
    yield "    ;;"
    yield "esac"
    yield 'if [ -n "$found" ] && ! nvram nvda_drv 2>/dev/null | grep -q 1; then'
    yield "    todo 'select the NVIDIA Web Driver in the NVIDIA Driver Manager (or: sudo nvram nvda_drv=1), and restart'"
    yield "fi"


def _cuda_driver(step: SetupStep) -> Iterator[str]:
    yield "found=$(property /Library/Frameworks/CUDA.framework/Versions/A/Resources/Info.plist CFBundleVersion)"
    yield f'if [ "$found" = {quoted(step.version)} ]; then'
    yield f"    done_already 'CUDA driver {step.version}'"
    yield "else"
    yield f'    todo "install the CUDA driver {step.version} beside the Web Driver (found: ${{found:-none}}), and restart"'
    yield f"    download {quoted(step.url)} {quoted(step.sha256)}"
    yield "fi"


def _xcode(step: SetupStep) -> Iterator[str]:
    version = step.version
    yield "# Xcode, or its command line tools of that number: the only host compiler that nvcc has on macOS."
    yield "found=$(property /Applications/Xcode.app/Contents/version.plist CFBundleShortVersionString)"
    yield "tools=$(pkgutil --pkg-info=com.apple.pkg.CLTools_Executables 2>/dev/null | sed -n 's/^version: //p')"
    yield 'case " $found $tools " in'
    yield f'*" {version} "* | *" {version}."*) done_already "Xcode ${{found:-none}}, command line tools ${{tools:-none}}" ;;'
    yield "*)"
    yield f'    todo "install Xcode {version}, or its command line tools (found: ${{found:-none}}, tools ${{tools:-none}})"'
    yield "    say '    from https://developer.apple.com/download/all/ (Apple ID); then: sudo xcode-select --switch PATH'"
    yield "    ;;"
    yield "esac"


def _toolkit(step: SetupStep) -> Iterator[str]:
    yield f"toolkit=/Developer/NVIDIA/CUDA-{series(step.version)}"
    yield f"if \"$toolkit/bin/nvcc\" --version 2>/dev/null | grep -q 'V{step.version}'; then"
    yield f"    done_already 'CUDA toolkit {step.version}'"
    yield "else"
    yield f"    todo 'install the CUDA toolkit {step.version}, without the driver of its package: the one above is newer'"
    yield f"    download {quoted(step.url)} {quoted(step.sha256)}"
    yield f"    say '    hdiutil attach {_file(step)}'"
    yield "    say '    sudo /Volumes/CUDAMacOSXInstaller/CUDAMacOSXInstaller.app/Contents/MacOS/CUDAMacOSXInstaller' \\"
    yield "        '--no-window --silent --accept-eula --install-package=cuda-toolkit'"
    yield "fi"


def _cudnn(step: SetupStep) -> Iterator[str]:
    yield f"cudnn=/usr/local/cuda/lib/libcudnn.{step.version.partition('.')[0]}.dylib"
    yield 'if [ -e "$cudnn" ]; then'
    yield f'    done_already "cuDNN: $cudnn (the lock has {step.version}; see cudnn.h)"'
    yield "else"
    yield f"    todo 'unpack cuDNN {step.version} into the toolkit'"
    yield f"    download {quoted(step.url or step.file)} {quoted(step.sha256)}"
    yield "    say '    it is in the cuDNN archive of https://developer.nvidia.com, for members'"
    yield f"    say '    sudo tar -xzf {_file(step)} -C /usr/local'"
    yield "fi"


_STEPS: Mapping[str, Callable[[SetupStep], Iterator[str]]] = {
    "webdriver": _web_driver,
    "cuda_driver": _cuda_driver,
    "xcode": _xcode,
    "nvcc": _toolkit,
    "cudnn": _cudnn,
}


def _file(step: SetupStep) -> str:
    """Return the name of the file that a step downloads."""
    return step.file or step.url.rpartition("/")[2]


def _exports(toolkit: SetupStep, more: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines that tell the variables, and `more`, for every shell in which programs run."""
    yield "# Programs that macOS protects, such as /bin/sh and /usr/bin/env, do not hand DYLD_LIBRARY_PATH on to others."
    yield "say 'every shell in which programs run needs, in ~/.bash_profile:'"
    yield "# shellcheck disable=SC2016 # a line for another shell"
    yield f"say '    export PATH=/Developer/NVIDIA/CUDA-{series(toolkit.version)}/bin:$PATH'"
    yield from _told({**_OF_CUDA, **more})


def _build(build: BuildFromSource, of_stack: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines that find the framework installed, or tell how it is compiled, with the variables of the stack."""
    yield from (f"# {title}" for title in build.sources)
    yield f"# {build.because}"
    version, module = quoted(build.version), _MODULES.get(build.component, build.component)
    yield f"found=$(python -c 'import {module}; print({module}.__version__, {module}.version.cuda)' 2>/dev/null || :)"
    yield "case $found in"
    yield f"{version}*' None' | '')"
    what = quoted(f"compile {build.component} {build.version}, which nobody publishes with CUDA for macOS")
    yield f'    todo {what} "(found: ${{found:-none}})"'
    yield f"    say '    git clone --recursive --branch v{build.version} {build.repository} && cd {build.component}'"
    for patch in build.patches:
        yield "    say '    a patch of others, to read, and to apply (git apply) where the build stops without it:'"
        yield f"    say '        {patch}'"
    yield from (f"    {line}" for line in _told({**of_stack, **build.environment}))
    yield "    say '    python setup.py bdist_wheel && pip install dist/*.whl'"
    yield "    ;;"
    yield f'{version}*) done_already "{build.component} $found" ;;'
    yield f'*) todo {quoted(f"another {build.component} is installed than {build.version}:")} "$found" ;;'
    yield "esac"


def _told(values: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines that tell the exports of variables."""
    for name, value in sorted(values.items()):
        yield f"say {quoted(f'    export {name}={value if _PLAIN.fullmatch(value) else quoted(value)}')}"
