"""vLLM: the engine with all that it imports, and its kernels, as far as they load without a driver; one kernel on every GPU at level 4."""

import glob
import os
import re
from importlib import import_module

OF_THE_DRIVER = re.compile(r"lib(cuda|nvidia-[a-z-]+)\.so\.\d+")


def measure(probe):
    import vllm

    probe.version(vllm.__version__)
    # `import vllm` alone is lazy: the name of the engine imports it, with transformers and whatever else serving needs.
    probe.outcome("engine", lambda: callable(vllm.LLM))
    waiting = []
    probe.outcome("kernels", lambda: has_those_of(vllm, probe.accelerator) and are_loaded(vllm, waiting))
    if waiting:
        probe.fact("kernels that need the driver", len(waiting))


def has_those_of(vllm, platform):
    """Return True if the modules that vLLM's code for a platform imports, come what may, are there; raises ImportError if not."""
    folder = os.path.dirname(vllm.__file__)
    path = os.path.join(folder, "platforms", platform + ".py")
    if os.path.exists(path):
        with open(path, "rb") as stream:
            wanted = re.findall(rb"^import vllm\.(_\w+)", stream.read(), re.MULTILINE)
        for name in sorted(set(one.decode() for one in wanted)):
            if not glob.glob(os.path.join(folder, name + ".*")):
                raise ImportError("vllm.%s is not there, and vllm/platforms/%s.py imports it" % (name, platform))
    return True


def are_loaded(vllm, waiting):
    """Return whether each extension module loads, or lacks nothing but the driver; those that do are put into `waiting`."""
    found = 0
    for path in sorted(glob.glob(os.path.join(os.path.dirname(vllm.__file__), "*.so"))):
        found += 1
        name = os.path.basename(path).partition(".")[0]
        try:
            import_module("vllm." + name)
        except ImportError as error:
            if not OF_THE_DRIVER.search(str(error)):
                raise
            waiting.append(name)
    return found > 0


def measure_devices(probe):
    import torch
    import vllm

    waiting = []
    are_loaded(vllm, waiting)
    if waiting:
        raise RuntimeError("libcuda.so.1: cannot open shared object file, which %s needs" % waiting[0])
    names = ["cuda:%d" % index for index in range(torch.cuda.device_count())]
    for name in names:
        probe.outcome("activation " + name, is_activated, torch, name)
    return names


def is_activated(torch, device):
    """Return whether a kernel of vLLM computes silu(a) * b as PyTorch does on the CPU."""
    numbers = torch.tensor(integers(4, 64, 3), dtype=torch.float32)
    answer = torch.empty(4, 32, dtype=torch.float32, device=device)
    torch.ops._C.silu_and_mul(answer, numbers.to(device))
    expected = torch.nn.functional.silu(numbers[:, :32]) * numbers[:, 32:]
    return bool(((answer.cpu() - expected).abs().max() < 1e-4).item())
