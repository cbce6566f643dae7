"""NVRTC: CUDA code compiled at run time, which needs no GPU; on a GPU, its binary and the driver's own compiler of PTX.

PyTorch's fusions, CuPy, Numba and JAX compile kernels that way.
"""

import ctypes
import re

SOURCE = b"""
extern "C" __global__ void twice(float *x) { x[threadIdx.x] = x[threadIdx.x] * 2.0f; }
"""
PTX = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry twice(.param .u64 x)
{
    .reg .f32 %f<3>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [x];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.f32 %f1, [%rd4];
    add.f32 %f2, %f1, %f1;
    st.global.f32 [%rd4], %f2;
    ret;
}
"""
"""For the oldest GPU that CUDA 12 drivers run, in the PTX of CUDA 9: every later driver compiles it for the GPU that is there."""

COUNT = 32


def measure(probe):
    from importlib import metadata

    locked = metadata.version(probe.arguments[0])
    library = opened(probe.arguments[0])
    major, minor = ctypes.c_int(), ctypes.c_int()
    check(library, "nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
    said = "%d.%d" % (major.value, minor.value)
    probe.version(locked)
    probe.fact("compiler", said)
    probe.outcome("release", lambda: locked.split(".")[:2] == said.split("."))
    probe.outcome("compile", lambda: b".visible .entry twice" in compiled(library, "compute_75", "PTX"))


def measure_devices(probe):
    library, names = opened(probe.arguments[0]), []
    cuda = Driver()
    for index in range(cuda.count()):
        name = "cuda:%d" % index
        names.append(name)
        probe.outcome("%s kernel" % name, lambda: cuda.is_doubled(index, compiled(library, cuda.target(index), "CUBIN")))
        probe.outcome("%s PTX" % name, lambda: cuda.is_doubled(index, PTX + b"\0"))
    return names


def opened(distribution):
    """Return the library that a distribution contains, after that of its builtins.

    NVRTC opens its builtins by name. In the wheels of CUDA 13.0 it has no RUNPATH to them (nvidia-cuda-nvrtc 13.0.48 and 13.0.88;
    all of CUDA 12, and from 13.1 on, have one), so that those who use it load them first: PyTorch in `_preload_cuda_deps`
    (torch/__init__.py). A library that is loaded is found by its name.
    """
    from importlib import metadata

    found = {}
    for file in metadata.files(distribution) or ():
        match = re.match(r"libnvrtc(-builtins)?\.so\.\d+(\.\d+)?$", file.name)
        if match:
            found["builtins" if match.group(1) else "compiler"] = str(file.locate())
    if "compiler" not in found:
        raise RuntimeError("%s contains no libnvrtc.so" % distribution)
    for name in sorted(found):
        library = ctypes.CDLL(found[name])
    return library


def check(library, function, *arguments):
    """Call a function of NVRTC; raises RuntimeError for an error."""
    status = getattr(library, function)(*arguments)
    if status != 0:
        raise RuntimeError("%s: %s" % (function, spelled_status(library, status)))


def spelled_status(library, status):
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return (library.nvrtcGetErrorString(status) or b"").decode()


def compiled(library, target, kind):
    """Return the kernel compiled for a target, as `kind` PTX or CUBIN; a CUBIN is for an `sm_` target."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    check(library, "nvrtcCreateProgram", ctypes.byref(program), SOURCE, b"twice.cu", 0, None, None)
    options = (ctypes.c_char_p * 1)(("--gpu-architecture=" + target).encode())
    status = library.nvrtcCompileProgram(program, 1, options)
    if status != 0:
        # The log has the cause, such as a library that is not found; the status only a number.
        check(library, "nvrtcGetProgramLogSize", program, ctypes.byref(size))
        said = ctypes.create_string_buffer(size.value)
        check(library, "nvrtcGetProgramLog", program, said)
        raise RuntimeError("%s: %s" % (spelled_status(library, status), said.value.decode("utf-8", "replace")))
    check(library, "nvrtcGet%sSize" % kind, program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    check(library, "nvrtcGet" + kind, program, text)
    return text.raw


class Driver(object):
    """libcuda, which loads binaries and compiles PTX."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(status, ctypes.byref(text))
            raise RuntimeError("%s: %s" % (name, (text.value or b"%d" % status).decode()))

    def count(self):
        number = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(number))
        return number.value

    def target(self, index):
        """Return the target of a GPU, such as `sm_90`."""
        device, numbers = ctypes.c_int(), [ctypes.c_int(), ctypes.c_int()]
        self.call("cuDeviceGet", ctypes.byref(device), index)
        # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR of cuda.h.
        for number, attribute in zip(numbers, (75, 76)):
            self.call("cuDeviceGetAttribute", ctypes.byref(number), attribute, device)
        return "sm_%d%d" % (numbers[0].value, numbers[1].value)

    def is_doubled(self, index, image):
        """Return whether a kernel, as a binary or PTX, doubles the numbers of an array on a GPU."""
        device, context, module, kernel = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        memory = ctypes.c_ulonglong()
        values = (ctypes.c_float * COUNT)(*range(COUNT))
        size = ctypes.c_size_t(ctypes.sizeof(values))
        self.call("cuDeviceGet", ctypes.byref(device), index)
        self.call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
        try:
            self.call("cuModuleLoadData", ctypes.byref(module), image)
            self.call("cuModuleGetFunction", ctypes.byref(kernel), module, b"twice")
            self.call("cuMemAlloc_v2", ctypes.byref(memory), size)
            self.call("cuMemcpyHtoD_v2", memory, values, size)
            arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.pointer(memory), ctypes.c_void_p))
            self.call("cuLaunchKernel", kernel, 1, 1, 1, COUNT, 1, 1, 0, None, arguments, None)
            self.call("cuCtxSynchronize")
            self.call("cuMemcpyDtoH_v2", values, memory, size)
        finally:
            self.call("cuCtxDestroy_v2", context)
        return list(values) == [2.0 * number for number in range(COUNT)]
