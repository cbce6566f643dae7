"""Remarks on machines as sentences, most of them behind the key of the host profile that they are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.host import remark as of
from provisioner.words.notation import listed

if TYPE_CHECKING:
    from provisioner.host.remark import Remark

_GPUS_UNKNOWN = {
    "macos": "not read on macOS; add them to the profile",
    "wsl": "WSL does not show the GPU on its PCI bus, and the driver's library did not answer",
    "pci": "the PCI bus cannot be read",
    "amdgpu": "an AMD GPU is on the PCI bus, but amdgpu does not offer it for computing (/sys/class/kfd)",
}
_UNLABELLED = {
    "nvidia": "GPU feature discovery writes nvidia.com/gpu.compute.major",
    "amd": "AMD's node labeller writes amd.com/gpu.product-name",
}
_UNAVAILABLE = {
    "not-ready": "the node is not ready",
    "cordoned": "the node takes no new pods (cordoned)",
    "down": "the node is down",
    "drained": "the node takes no new jobs (drained)",
}
_NVML = "libnvidia-ml.so.1"
_NVML_CODES = {
    4: "this user may not ask the driver",
    9: "the NVIDIA driver is not loaded",
    12: "the library could not find its own parts",
    15: "a GPU has fallen off the bus",
    18: "the loaded kernel module and the user-space driver are of different versions; reboot, or reload the module",
}
"""The meanings of codes of nvmlReturn_t (nvml.h); for any other code, the message has the number."""


def remark_words(remark: Remark) -> str:
    """Return a remark as one line."""
    match remark:
        case of.GpusUnknown(cause=cause):
            return f"gpus: {_GPUS_UNKNOWN[cause]}"
        case of.AmdGpusLeftOut(count=count):
            return f"gpus: {count} AMD GPU(s) stand beside NVIDIA's and are left out"
        case of.GpusNotRun(count=count):
            return f"gpus: the driver runs none of the {count} NVIDIA GPU(s) on the PCI bus"
        case of.UnknownGpus(devices=devices):
            return f"gpus: no product is known for PCI device {', '.join(devices)}"
        case of.GpusDivided(count=count, total=total):
            return (
                f"gpus: MIG divides {count} of {total}: a program sees a slice, of the same compute capability and less memory"
            )
        case of.GpusWithoutSlices(count=count, total=total):
            return f"gpus: MIG is on without an instance on {count} of {total}: no CUDA program runs there"
        case of.GpusNotListed(listed=count, attached=attached):
            return f"gpus: the report describes {count} of the {attached} GPUs of its machine"
        case of.GpuMemory(sizes=sizes):
            each = ", ".join(f"{count} with {mebibytes} MiB" for count, mebibytes in sizes)
            return f"gpus: {each}; no rule reads the memory, so that a profile has no key for it"
        case of.DriverNotLoaded(version=version, kernel=kernel):
            return f"driver: NVIDIA {version} is installed for kernel {kernel}, but not loaded"
        case of.WindowsDriver(version=version):
            return f"driver: {version} is the number of the Windows driver, which serves WSL"
        case of.AmdgpuModule(version=version):
            return (
                f"driver: {version} is what the amdgpu module calls itself, and no release of the driver; "
                "`dpkg -l amdgpu-dkms` or `rpm -q amdgpu-dkms` has it behind that number (.60404 is 6.4.4, .30200100 30.20.1)"
            )
        case of.SeveralLibcuda(versions=versions):
            return f"userspace_driver: several libcuda are installed: {', '.join(versions)}"
        case of.DriverMismatch(userspace=userspace, module=module):
            return f"userspace_driver: libcuda is {userspace}, but the loaded kernel module is {module}"
        case of.NvmlNotLoadable(problem=problem):
            return f"driver: {_NVML} cannot be loaded: {problem}"
        case of.NvmlFailed(step="initialise", code=code):
            return f"driver: {_NVML} answers {code}: {_NVML_CODES.get(code, 'see nvmlReturn_t in nvml.h')}"
        case of.NvmlFailed(code=code):
            return f"driver: {_NVML} cannot count the GPUs: {_nvml_error(code)}"
        case of.GpuSilent(index=index, count=count, code=code):
            return f"gpus: GPU {index} of {count} does not answer: {_nvml_error(code)}"
        case of.UnlabelledGpus(vendor=vendor):
            return f"gpu: no label tells which GPU it is; {_UNLABELLED[vendor]}"
        case of.MigSlices(profile=profile):
            return f"gpu: MIG {profile}: nvidia.com/gpu.count counts its slices, not GPUs"
        case of.MigNotOffered():
            return (
                "gpu: no pod gets one: MIG is on in a way that the strategy `single` cannot offer (a GPU without an instance, "
                "without MIG, or instances of several profiles); `nvidia.com/mig.config` or the strategy `mixed` mends it"
            )
        case of.MigChanging(state=state):
            return f"gpu: nvidia.com/mig.config.state is {state}: the labels may tell the instances that there were before"
        case of.VirtualGpu(host_driver=host_driver):
            return f"gpu: a virtual GPU; its host's driver is {host_driver or '?'}"
        case of.UnknownAcceleratorLabel(label=label, value=value):
            return f"gpu: the label {label} names {value}, which is no GPU the matrix knows"
        case of.MoreGpusThanLabelled(counted=counted, labelled=labelled):
            return f"gpu: kubelet counts {counted}, and the labels describe {labelled}: a node has one set of GPU labels"
        case of.NodeUnavailable(cause=cause):
            return _UNAVAILABLE[cause]
        case of.UntypedGres(gres=gres):
            return f"gpu: Gres {gres} does not tell which GPU it is; a type in slurm.conf (gpu:a100:4) or a profile does"
        case of.UnknownGresType(kind=kind):
            return f"gpu: the type `{kind}` of a Gres names no GPU that the matrix knows, or several of different targets"
        case of.MigGres(profile=profile):
            return f"gpu: MIG {profile}: a Gres counts its slices, not GPUs"
        case of.GroupedNodes(count=count):
            return (
                f"gpu: sinfo tells the Gres of the first of {count} nodes that it lists together; `sinfo --Node --json` of each"
            )
        case of.VariablesElsewhere(folder=folder):
            return f"variables in {folder}/ are not read here; `ansible-inventory --list` prints an inventory with all of them"
        case of.VariablesNotRead(names=names):
            are = " is read as no fact" if len(names) == 1 else " are read as no facts"
            plural = "s"[: len(names) - 1]
            return f"the variable{plural} {listed(names)}{are}: those of a host are provision_driver, provision_gpu, …"
        case of.LabelsNotRead(names=names):
            are = "is" if len(names) == 1 else "are"
            return (
                f"gpu: the label{'s'[: len(names) - 1]} {listed(names)} {are} none that is read; "
                "GPU Feature Discovery (nvidia.com/gpu.product), AMD's labeller or a profile tell the GPU"
            )


def _nvml_error(code: int) -> str:
    return _NVML_CODES.get(code, f"NVML error {code}")
