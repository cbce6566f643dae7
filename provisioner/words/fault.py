"""Faults of a machine and their remedies as sentences, and the names of the layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.components import COMPONENTS
from provisioner.grounds import fault as of
from provisioner.grounds.requirement import Ground
from provisioner.words.conflict import NO_STACK, contradiction_words, fix_words, member_line
from provisioner.words.doubt import doubt_words
from provisioner.words.finding import finding_words
from provisioner.words.ground import noun_words
from provisioner.words.notation import counted, listed
from provisioner.words.remark import remark_words
from provisioner.words.step import action_words, detail_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.grounds.conflict import Conflict
    from provisioner.grounds.fault import Act, Difference, Fault, Part
    from provisioner.grounds.step import Detail

LAYER_TITLES = {
    "gpu": "GPU",
    "system": "system",
    "kernel": "kernel",
    "driver": "driver",
    "cuda": "CUDA",
    "container": "container",
    "libraries": "libraries",
    "python": "Python",
    "framework": "framework",
    "packages": "packages",
}
"""The names of layers on the screen."""

MOST_NAMED = 3
"""The most distributions that a fault names."""


def layer_title(name: str, accelerator: str) -> str:
    """Return the name of a layer; that of the runtime is the accelerator's."""
    return "ROCm" if name == "cuda" and accelerator == "rocm" else LAYER_TITLES[name]


def fault_words(fault: Fault) -> str:
    """Return a fault as one sentence."""
    match fault:
        case of.Contradicts(conflict=conflict):
            return _contradiction(conflict)
        case of.Doubted(doubt=doubt):
            return doubt_words(doubt)
        case of.Reported(finding=finding) | of.Unsettled(finding=finding):
            return finding_words(finding)
        case of.Unlisted(subject=subject):
            return f"the matrix does not list {subject}, so nothing is known about it"
        case of.Seen(remark=remark) | of.Unseen(remark=remark):
            return remark_words(remark)
        case of.NotServed(platform=platform):
            return f"no environment can be locked for {platform.capitalize()}: locks are for Linux and macOS"
        case of.NoDriver(component=component):
            return f"no {COMPONENTS[component].label} is loaded"
        case of.NotBuilt(version=version, kernel=kernel, kernels=kernels, lacks_headers=lacks_headers):
            built = f"for {listed(kernels)}" if kernels else "for no kernel"
            why = ", whose headers are not installed" if lacks_headers else ""
            return f"DKMS has built driver {version} {built}, and not for the running kernel {kernel}{why}"
        case of.KeyNotEnrolled(version=version, builder=builder):
            key = f"the key with which {builder} signed driver {version}"
            return f"Secure Boot is on and does not know {key}, so its module is refused"
        case of.LinuxDriverInWsl(files=files):
            return f"{listed(files)} {'is' if len(files) == 1 else 'are'} of a driver for Linux, which hides that of Windows"
        case of.MissingDevices(files=files, accelerator="cuda", is_container=True):
            return f"{listed(files)} is not there: this container was given no GPU of its host"
        case of.MissingDevices(files=files, accelerator="cuda"):
            return f"{listed(files)} is not there, nor nvidia-modprobe, with which programs make it"
        case of.MissingDevices(files=files):
            return f"{listed(files)} {'is' if len(files) == 1 else 'are'} not there"
        case of.ForbiddenDevices(files=files, groups=groups):
            who = f"only {listed(groups)} may" if groups else "only root may"
            return f"this user may not open {listed(files)}; {who}"
        case of.NoWslLibrary():
            return "/usr/lib/wsl/lib/libcuda.so.1 is not there, which the driver of Windows brings into WSL 2"
        case of.NoContainerToolkit():
            return "no NVIDIA Container Toolkit is installed, without which no container is given a GPU"
        case of.StaleCdi(file=file, mounts=mounts, driver=driver):
            return f"{file} mounts the files of driver {mounts}, and driver {driver} is installed"
        case of.CpuBuild(subject=subject, lacks=lacks) if lacks:
            return f"{subject} is installed without {lacks}…, and so computes on the CPU, although this machine has a GPU"
        case of.CpuBuild(subject=subject):
            return f"{subject} is a build for the CPU alone, and this machine has a GPU"
        case of.OtherPython(locked=locked, installed=installed):
            return f"the environment has Python {installed}, the lock is for {locked}"
        case of.NotAsLocked(differences=differences, count=count):
            return f"{len(differences)} of {counted(count, 'locked package')} not as locked: {_differences(differences)}"
        case of.UnmetRequirements(differences=differences):
            return f"{counted(len(differences), 'requirement')} of installed packages not met: {_differences(differences)}"
    raise TypeError(f"no words for {type(fault).__name__}")


def _contradiction(conflict: Conflict) -> str:
    """Return the facts of a conflict as a sentence: they exclude each other, or the only one does not fit what is wanted."""
    grounds = [clause for member in conflict.members for clause in member.clauses if isinstance(clause, Ground)]
    facts = list(dict.fromkeys(filter(None, (noun_words(one) for one in grounds if one.kind == "fact"))))
    if len(facts) == 1:
        return f"{facts[0]} does not fit what is wanted"
    return f"{listed(facts)} do not go together" if facts else contradiction_words(conflict) or NO_STACK


def _differences(differences: Sequence[Difference]) -> str:
    named = [_difference(one) for one in differences[:MOST_NAMED]]
    more = len(differences) - MOST_NAMED
    return f"{', '.join(named)}{f' and {more} more' if more > 0 else ''}"


def _difference(one: Difference) -> str:
    has = one.installed or "missing"
    return f"{one.by} needs {one.needed} ({has})" if one.by else f"{one.name} {one.needed} ({has})"


def fault_details(fault: Fault) -> tuple[str, ...]:
    """Return the lines below a fault: the rules of a conflict, with their sources; () for any other fault."""
    return tuple(_rules(fault.conflict)) if isinstance(fault, of.Contradicts) else ()


def _rules(conflict: Conflict) -> Iterator[str]:
    for member in conflict.members:
        if member.kind == "rule" or not all(isinstance(one, Ground) for one in member.clauses):
            yield member_line(member)


def act_words(act: Act) -> str:
    """Return what a remedy does as an instruction."""
    match act:
        case of.Mend(fix=fix):
            return fix_words(fix)
        case of.Carry(action=action):
            return action_words(action)
        case of.LoadModule(name=name):
            return f"load the module: {name}"
        case of.BuildModule(kernel=kernel, needs_headers=needs_headers):
            headers = "install the headers of the running kernel, and " if needs_headers else ""
            return f"{headers}build the driver for kernel {kernel}"
        case of.WriteCdi():
            return "write the CDI specification anew for the driver that is installed"
        case of.InstallToolkit(engine=engine):
            known = f", and make it known to {engine.capitalize()}" if engine else ", and write a CDI specification"
            return f"install the NVIDIA Container Toolkit{known}"
        case of.JoinGroups(groups=groups):
            return (
                f"add this user to {listed(groups)}, and log in again"
                if groups
                else "run it as root, or open the devices to a group"
            )
        case of.EnrolKey():
            return "enrol the key that signs modules built on this host, and confirm it on the next boot"
        case of.MakeDevices():
            return "install nvidia-modprobe, and make the device files"
        case of.PassGpus():
            return "start the container with GPUs: docker run --gpus all, podman run --device nvidia.com/gpu=all"
        case of.RemovePackages():
            return "remove the driver for Linux from WSL; the one of Windows is all that it needs"
        case of.ProvideDevices(files=files):
            return f"load the driver; a container is given {listed(files)} with --device"
        case of.RestartWsl():
            return "update the NVIDIA driver on Windows, then restart WSL; inside WSL no driver is installed"
        case of.UseWsl():
            return (
                "run the job in WSL 2, or in a Linux container of Docker Desktop: the driver of Windows serves both; "
                "`provision doctor` in that Linux says what it can run"
            )
        case of.InstallBuild(requirement=requirement):
            return f"install {requirement}, which uses the GPU"
        case of.InstallLock(python=python):
            return f"install the lock into an environment of Python {python}" if python else "install the lock"
        case of.SolveAnew():
            return "no change of this machine's software makes the lock run: solve its spec for this machine"
        case of.InstallMissing():
            return "install what is required"
    raise TypeError(f"no words for {type(act).__name__}")


def act_details(act: Act) -> tuple[str, ...]:
    """Return the details of the step of a plan; () for any other remedy."""
    return tuple(map(_detail, act.details)) if isinstance(act, of.Carry) else ()


def _detail(detail: Detail) -> str:
    return detail_words(detail)


def follows_words(layers: Sequence[str], cause: str, accelerator: str) -> str:
    """Return that some layers wait for another one, which is to be mended first."""
    titles = [layer_title(layer, accelerator) for layer in layers]
    return f"{listed(titles)} {'follows' if len(titles) == 1 else 'follow'} from the {layer_title(cause, accelerator)} layer"


_UNNAMED = frozenset(
    {
        "driver",
        "webdriver",
        "amdgpu",
        "driver_module",
        "kernel",
        "os",
        "macos",
        "cuda",
        "rocm",
        "python",
        "gpu",
        "engine",
        "platform",
        "python_arch",
        "virtualization",
    }
)
"""Components whose values are told without their names, because the name of the layer says it or the value does."""

PROVEN = "as the driver proves"
"""What is told of a kernel that is not stated, on a machine whose driver runs."""

_WAYS = {"minor-version": "by minor-version compatibility", "forward-compat": "by the image's cuda-compat"}

IN_IMAGE = "in the image"
"""What is told in place of values that the machine does not have, because the image of a lock has them."""

_TITLES = {
    "pytorch_build": "build",
    "userspace_driver": "libcuda",
    "loaded_modules": "held by",
    "fabric_manager": "Fabric Manager",
    "container_toolkit": "toolkit",
    "kernel_headers": "headers",
    "secure_boot": "Secure Boot",
    "kernel_gcc": "built with GCC",
    "gcc": "GCC",
    "nvswitch": "NVSwitch",
    "mig": "MIG",
    "cuda_driver": "CUDA driver",
    "xcode": "Xcode",
    "sip": "SIP",
    "cudnn": "cuDNN",
    "nccl": "NCCL",
    "jetson": "Jetson Linux",
}


def part_words(part: Part, *, most: int) -> str:
    """Return a value that was found or is wanted, behind its name where the layer does not say it.

    Of a list of more than `most` targets, the first two and the last are told.
    """
    if part.name == "gpu" and part.title:
        text = f"{part.title} ({part.value})" if part.value else part.title
        return f"{part.count}x {text}" if part.count > 1 else text
    value = part.value
    if part.name == "gpu" and value.count(",") >= most:
        targets = value.split(", ")
        value = f"{targets[0]}, {targets[1]}, … {targets[-1]}"
    if part.name == "packages":
        return counted(int(value), "package")
    if part.name == "cuda" and part.title in _WAYS:
        return f"{value} {_WAYS[part.title]}"
    if part.origin == "driver":
        return f"driver runs up to {value}"
    if part.name == "loaded_modules" and value == "free":
        return "no other module on the GPU"
    if part.name in _UNNAMED:
        return value
    return f"{_TITLES.get(part.name, part.name)} {value}".rstrip()


def subject_words(lock_file: str, spec: str) -> str:
    """Return what shall run, a lock or a spec; "" for what is installed."""
    if lock_file:
        return lock_file
    return f"the spec `{spec}`" if spec else ""


def answer_words(verdict: str, host: str, subject: str, *, first: str, has_judged: bool) -> str:
    """Return the answer in one sentence; `first` is the layer to mend first, `subject` what shall run, if anything."""
    what = f"{host} runs {subject}" if subject else f"the layers of {host} go together"
    if verdict == "yes":
        return what
    if verdict == "no":
        what = f"{host} does not run {subject}" if subject else f"the layers of {host} do not go together"
        return f"{what}: mend the {first} layer first" if first else what
    return f"whether {what} cannot be told" if has_judged else f"there is nothing to judge on {host}"


def advice_words(
    *, has_judged: bool, is_asked: bool, is_recorded: bool, lacks_environment: bool, is_container: bool
) -> tuple[str, ...]:
    """Return what would tell more: a lock, an environment, the machine itself."""
    found = []
    if is_container:
        found.append(
            "this is a container: kernel, driver and devices are those of its host; `provision doctor` there sees more"
        )
    if not has_judged and not is_asked:
        found.append("nothing here computes on a GPU and no framework is installed; `provision doctor LOCK` asks about a lock")
    if lacks_environment and not is_recorded:
        found.append("no Python environment was looked at: activate one, or name its interpreter with --python")
    if is_recorded:
        found.append(
            "a recorded profile tells its facts alone: modules, CDI specifications and environments are seen on the machine"
        )
    return tuple(found)
