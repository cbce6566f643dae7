"""Measure the software stack from inside its environment, and print one line of JSON: what is installed, loaded and working.

Runs in any container or environment with Python 3.7 or newer, and imports only the standard library and the stack itself. The
comparison with the lock is made outside. An error in a probe becomes an entry under `errors`, and the other probes still run.

Usage: python -c SMOKE LEVEL PROGRAMS     (level 2: files, 3 + imports and compute on the CPU, 4 + devices, 5 + health)

PROGRAMS (JSON) has `programs`, further checks that run in processes of their own, so that a crash ends none but itself: `name`,
`kind` ("files", "framework", "health" or "system"), `arguments`, and `parts`, whose texts are in `sources`. Each prints one line of JSON.
"""

import ctypes
import glob
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time

FOUND = {
    "schema": 2,
    "errors": {},
    "timing": {},
    "devices": [],
    "frameworks": {},
    "files": None,
    "health": None,
    "system": None,
}


def guarded(name, probe, *arguments):
    """Run one probe and return its result; an error is recorded as text under `errors`, and None is returned.

    BaseException is caught on purpose: a broken stack can raise anything.
    """
    sys.stderr.write("smoke: %s\n" % name)
    sys.stderr.flush()
    start = time.perf_counter()
    try:
        return probe(*arguments)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        FOUND["errors"][name] = "%s: %s" % (type(error).__name__, " ".join(lines[:4])[:600])
        return None
    finally:
        FOUND["timing"][name] = round(time.perf_counter() - start, 4)


def distributions():
    """Return the version of every installed distribution by its normalized name, from the metadata on disk."""
    try:
        from importlib import metadata
    except ImportError:
        import pkg_resources

        return {normalized(one.project_name): one.version for one in pkg_resources.working_set}
    found = {}
    for one in metadata.distributions():
        name = one.metadata["Name"]
        if name:
            # Python imports the first one on sys.path.
            found.setdefault(normalized(name), one.version)
    return found


def normalized(name):
    import re

    return re.sub(r"[-_.]+", "-", name).lower()


def glibc():
    name, version = os.confstr("CS_GNU_LIBC_VERSION").split()
    return version if name == "glibc" else None


def import_torch():
    import torch

    return torch


def loaded_library(name):
    """Return the path of a loaded shared library whose file name begins with `name`; None if this process has loaded none."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")[2]
            if os.path.basename(path).startswith(name):
                return "/" + path
    return None


def nccl_version():
    """Return the version number of the loaded libnccl, None if it is not loaded.

    `torch.cuda.nccl.version()` is a constant of the build, and no measurement.
    """
    path = loaded_library("libnccl.so")
    if path is None:
        return None
    number = ctypes.c_int()
    status = ctypes.CDLL(path).ncclGetVersion(ctypes.byref(number))
    if status != 0:
        raise RuntimeError("ncclGetVersion returned %d" % status)
    return number.value


def arch_flags(torch):
    """Return the targets that the kernels were compiled for.

    `torch.cuda.get_arch_list()` is empty without a GPU on older releases.
    """
    flags = getattr(torch._C, "_cuda_getArchFlags", None)
    if flags is not None:
        return (flags() or "").split()
    return list(torch.cuda.get_arch_list())


def unresolved_libraries(torch):
    """Return `FILE needs LIBRARY` for each library that the loader cannot find for a file of PyTorch.

    Other packages ship optional plug-ins whose libraries may be missing. The two libraries of the driver come from the host at
    run time.
    """
    root = os.path.dirname(torch.__file__)
    files = sorted(glob.glob(os.path.join(root, "lib", "*.so*")) + glob.glob(os.path.join(root, "_C*.so")))
    provided_by_host = ("libcuda.so.1", "libnvidia-ml.so.1")
    output = subprocess.run(["ldd"] + files, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True).stdout
    missing, current = set(), os.path.basename(files[0])
    for line in output.splitlines():
        if line.endswith(":") and not line[0].isspace():
            current = os.path.basename(line[:-1])
        elif "=> not found" in line and line.split()[0] not in provided_by_host:
            missing.add("%s needs %s" % (current, line.split()[0]))
    return sorted(missing)


def measure_torch(torch):
    found = {"version": str(torch.__version__), "cuda": torch.version.cuda, "hip": getattr(torch.version, "hip", None)}
    accelerated = bool(found["cuda"] or found["hip"])
    found["cudnn"] = guarded("cudnn", torch.backends.cudnn.version) if accelerated else None
    found["nccl"] = guarded("nccl", nccl_version) if accelerated and os.path.exists("/proc/self/maps") else None
    found["arch_flags"] = guarded("arch_flags", arch_flags, torch) if accelerated else []
    compiled = getattr(torch._C, "_cuda_getCompiledVersion", None)
    found["compiled_cuda"] = guarded("compiled_cuda", compiled) if compiled is not None else None
    found["unresolved"] = guarded("unresolved", unresolved_libraries, torch) if sys.platform.startswith("linux") else None
    return found


def integers(rows, columns, seed):
    """Return a matrix of small whole numbers, the same on every machine.

    Their products and sums are exact in every float type used.
    """
    return [[(seed * 31 + row * 7 + column * 13 + row * column) % 5 - 2 for column in range(columns)] for row in range(rows)]


def product(left, right):
    columns = list(zip(*right))
    return [[sum(a * b for a, b in zip(row, column)) for column in columns] for row in left]


def matmul_is_exact(torch, device, size=64):
    """Return whether a matrix product on `device` equals, in every element, the one computed in Python with whole numbers."""
    left, right = integers(size, size, 3), integers(size, size, 5)
    answer = torch.tensor(left, dtype=torch.float32, device=device) @ torch.tensor(right, dtype=torch.float32, device=device)
    # This uses an element-wise kernel of PyTorch itself, while the product uses the vendor's library.
    answer = (answer * 2 + 1 - 1) / 2
    return [[int(value) for value in row] for row in answer.cpu().tolist()] == product(left, right)


def nvml():
    """Return the driver release, the device names and hashes of their UUIDs that NVML, the management library, reports.

    A UUID names one GPU of the world, so it is hashed before it leaves this process; it is random enough not to be guessed. NVML
    needs no CUDA context.
    """
    library = ctypes.CDLL("libnvidia-ml.so.1")
    status = library.nvmlInit_v2()
    if status != 0:
        library.nvmlErrorString.restype = ctypes.c_char_p
        raise RuntimeError("nvmlInit returned %d (%s)" % (status, (library.nvmlErrorString(status) or b"").decode()))
    text, count = ctypes.create_string_buffer(96), ctypes.c_uint()
    library.nvmlSystemGetDriverVersion(text, 96)
    found = {"driver": text.value.decode(), "names": [], "identities": []}
    library.nvmlDeviceGetCount_v2(ctypes.byref(count))
    for index in range(count.value):
        handle = ctypes.c_void_p()
        if library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) == 0:
            library.nvmlDeviceGetName(handle, text, 96)
            found["names"].append(text.value.decode())
            status = library.nvmlDeviceGetUUID(handle, text, 96)
            found["identities"].append("sha256:" + hashlib.sha256(text.value).hexdigest() if status == 0 else "")
    library.nvmlShutdown()
    return found


def cuda_driver():
    """Return the CUDA version of libcuda (12040 is 12.4) and the number of devices it can open."""
    library = ctypes.CDLL("libcuda.so.1")
    number = ctypes.c_int()
    library.cuDriverGetVersion(ctypes.byref(number))
    found = {"level": number.value, "count": 0}
    status = library.cuInit(0)
    if status != 0:
        raise RuntimeError("cuInit returned %d" % status)
    library.cuDeviceGetCount(ctypes.byref(number))
    found["count"] = number.value
    return found


def visible_devices(torch):
    """Return one entry for each device that the framework can open.

    `torch.cuda.is_available()` is not used, because it is known to err in both directions.
    """
    if torch.version.cuda or getattr(torch.version, "hip", None):
        devices = []
        for index in range(torch.cuda.device_count()):
            properties = torch.cuda.get_device_properties(index)
            capability = "%d.%d" % (properties.major, properties.minor)
            name = "cuda:%d" % index
            devices.append(
                {
                    "device": name,
                    "name": properties.name,
                    "compute_capability": capability,
                    "gfx": getattr(properties, "gcnArchName", "").split(":")[0],
                    "memory": properties.total_memory,
                }
            )
        return devices
    if getattr(getattr(torch.backends, "mps", None), "is_built", bool)() and torch.backends.mps.is_available():
        return [{"device": "mps", "name": platform.processor(), "compute_capability": "", "gfx": "", "memory": 0}]
    return []


def matmul_is_close(torch, device, dtype):
    """Return whether a matrix product in a short float type on the device equals the CPU's in float32, within rounding."""
    left, right = (torch.tensor(integers(256, 256, seed), dtype=torch.float32) for seed in (3, 5))
    answer = (left.to(device, dtype) @ right.to(device, dtype)).float().cpu()
    expected = left @ right
    return bool(((answer - expected).abs().max() <= expected.abs().max() / 128).item())


def compute(torch, entry):
    device = entry["device"]
    entry["matmul"] = guarded("%s matmul" % device, matmul_is_exact, torch, device, 96)
    if device.startswith("cuda"):
        guarded("%s synchronize" % device, torch.cuda.synchronize, device)
    major = int(entry["compute_capability"].partition(".")[0] or 0)
    entry["float16"] = guarded("%s float16" % device, matmul_is_close, torch, device, torch.float16)
    # bfloat16 units begin with compute capability 8.0 (CUDA C++ Programming Guide, Arithmetic Instructions).
    if major >= 8 or entry["gfx"]:
        entry["bfloat16"] = guarded("%s bfloat16" % device, matmul_is_close, torch, device, torch.bfloat16)


def attention_is_close(torch, device):
    """Return whether attention in float16 on the device equals the CPU's in float32, within rounding.

    None for a PyTorch before 2.0, which has none of its own.
    """
    attention = getattr(torch.nn.functional, "scaled_dot_product_attention", None)
    if attention is None:
        return None
    query, key, value = (
        torch.tensor(integers(128, 64, seed), dtype=torch.float32).reshape(1, 1, 128, 64) / 4 for seed in (2, 3, 5)
    )
    there = attention(*(one.to(device, torch.float16) for one in (query, key, value))).float().cpu()
    return bool(((there - attention(query, key, value)).abs().max() <= 0.01).item())


def convolution_is_exact(torch, device):
    """Return whether a convolution of whole numbers through cuDNN (MIOpen on AMD) equals that of the CPU."""
    image = torch.tensor(integers(32, 32, 2), dtype=torch.float32).reshape(1, 1, 32, 32).repeat(2, 8, 1, 1)
    kernel = torch.tensor(integers(3, 3, 4), dtype=torch.float32).reshape(1, 1, 3, 3).repeat(8, 8, 1, 1)
    if not torch.backends.cudnn.is_acceptable(image.to(device)):
        raise RuntimeError("cuDNN does not accept a float32 tensor on %s" % device)
    answer = torch.nn.functional.conv2d(image.to(device), kernel.to(device), padding=1).cpu()
    expected = torch.nn.functional.conv2d(image, kernel, padding=1)
    return bool(((answer - expected).abs().max() <= 0.01).item())


ALL_REDUCE = """
import sys
import torch
import torch.distributed as distributed

backend, rank, world = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
device = "cuda:%d" % rank if backend == "nccl" else "cpu"
if backend == "nccl":
    torch.cuda.set_device(rank)
distributed.init_process_group(backend, init_method="file://" + sys.argv[4], rank=rank, world_size=world)
tensor = torch.full((1024,), float(rank + 1), device=device)
distributed.all_reduce(tensor)
answer = tensor.cpu()
distributed.destroy_process_group()
sys.exit(0 if bool((answer == world * (world + 1) // 2).all()) else 9)
"""
"""A process of a group: it adds its tensor to those of the others. Exit code 9 is a wrong sum."""


def all_reduce(backend, world, seconds=120):
    """Return whether the sum of one tensor per device is right in every one of `world` processes, one for each device.

    `backend` is nccl (NCCL, RCCL on AMD) or gloo, which needs no device. Raises RuntimeError if a process fails, or does not end
    within `seconds`.
    """
    with tempfile.TemporaryDirectory() as folder:
        arguments = [str(world), os.path.join(folder, "store")]
        command = [sys.executable, "-c", ALL_REDUCE, backend]
        ranks = [
            subprocess.Popen(command + [str(rank)] + arguments, stderr=subprocess.PIPE, universal_newlines=True)
            for rank in range(world)
        ]
        try:
            ended = [(rank, rank.communicate(timeout=seconds)[1]) for rank in ranks]
        except subprocess.TimeoutExpired:
            raise RuntimeError("%d processes did not agree on a sum within %d s" % (world, seconds))
        finally:
            for rank in ranks:
                if rank.poll() is None:
                    rank.kill()
    for rank, said in ended:
        if rank.returncode not in (0, 9):
            lines = [line.strip() for line in said.splitlines() if line.strip()] or ["nothing was printed"]
            raise RuntimeError("a process ended with exit code %d: %s" % (rank.returncode, lines[-1][:300]))
    return all(rank.returncode == 0 for rank, _ in ended)


def peer_copies_are_exact(torch, devices):
    """Return whether a tensor that goes from each device to each other one is the same there, without a detour over the host.

    Where PCIe access control redirects such copies, they can be zeros although every call succeeds.
    """
    for here in devices:
        source = torch.arange(1 << 20, dtype=torch.int32, device=here)
        for there in devices:
            if there != here and not bool((source.to(there).cpu() == source.cpu()).all().item()):
                return False
    return True


def measure_devices(torch):
    accelerated = bool(torch.version.cuda or getattr(torch.version, "hip", None))
    devices = FOUND["devices"] = guarded("devices", visible_devices, torch) or []
    if devices and accelerated:
        # Before this process has a context: a GPU may be set to serve one process at a time.
        FOUND["all_reduce"] = guarded("all_reduce", all_reduce, "nccl", len(devices))
    for entry in devices:
        compute(torch, entry)
    if devices and accelerated:
        for entry in devices:
            entry["attention"] = guarded("%s attention" % entry["device"], attention_is_close, torch, entry["device"])
            entry["convolution"] = guarded("%s convolution" % entry["device"], convolution_is_exact, torch, entry["device"])
        if len(devices) > 1:
            FOUND["peers"] = guarded("peers", peer_copies_are_exact, torch, [entry["device"] for entry in devices])


def run_program(program, sources):
    """Run one program of PROGRAMS and return what it printed; raises RuntimeError if it ends without an answer."""
    text = "\n".join(sources[part] for part in program["parts"])
    command = [sys.executable, "-c", text] + program["arguments"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    printed, said = process.communicate()
    sys.stderr.write(said)
    if process.returncode != 0:
        last = ([line.strip() for line in said.splitlines() if line.strip()] or ["nothing was printed"])[-1]
        ended = "exit code %d" % process.returncode if process.returncode > 0 else "signal %d" % -process.returncode
        raise RuntimeError("ended with %s; the last line was: %s" % (ended, last[:300]))
    return json.loads(printed.splitlines()[-1])


def import_and_measure_torch():
    """Import PyTorch, measure its libraries and a product on the CPU, and return it; None if it cannot be imported."""
    torch = guarded("import torch", import_torch)
    if torch is not None:
        FOUND["torch"] = guarded("torch", measure_torch, torch)
        FOUND["cpu_matmul"] = guarded("cpu_matmul", matmul_is_exact, torch, "cpu")
    return torch


def main(level, programs=(), sources=None):
    # Libraries may print anything, also from C: redirect stdout to stderr, and keep a copy for the result.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    FOUND["level"] = level
    FOUND["python"] = platform.python_version()
    FOUND["machine"] = platform.machine()
    FOUND["kernel"] = platform.release()
    FOUND["glibc"] = guarded("glibc", glibc) if sys.platform.startswith("linux") else None
    FOUND["distributions"] = guarded("distributions", distributions)
    FOUND["torch"] = torch = None
    for program in programs:
        found = guarded(program["name"], run_program, program, sources)
        if program["kind"] in ("files", "health", "system"):
            FOUND[program["kind"]] = found
        elif found is not None:
            FOUND["frameworks"][program["name"]] = found
    if level >= 3 and "torch" in (FOUND["distributions"] or {}):
        torch = import_and_measure_torch()
    if level >= 4 and sys.platform.startswith("linux") and (torch is None or torch.version.cuda):
        FOUND["nvml"] = guarded("nvml", nvml)
        FOUND["cuda_driver"] = guarded("cuda_driver", cuda_driver)
    if level >= 4 and torch is not None:
        guarded("accelerator", measure_devices, torch)
    answer.write(json.dumps(FOUND, sort_keys=True) + "\n")
    answer.flush()
    # Some libraries crash while the interpreter shuts down, after everything has been measured.
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2, **(json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}))
