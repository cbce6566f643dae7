"""CuPy: its CUDA libraries, and a kernel compiled by its NVRTC, which need no GPU; a product and that kernel on every GPU at level 4.

Packages such as cuDF bring CuPy for its arrays and kernels alone: its libraries are asked for if the spec names CuPy.
"""

from importlib import import_module

SOURCE = 'extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2.0f; }'

LIBRARIES = {
    "cublas": "cupy_backends.cuda.libs.cublas",
    "cufft": "cupy.cuda.cufft",
    "curand": "cupy_backends.cuda.libs.curand",
    "cusolver": "cupy_backends.cuda.libs.cusolver",
    "cusparse": "cupy_backends.cuda.libs.cusparse",
}
"""The modules of CuPy that load a library of the CUDA Toolkit, which CuPy requires (docs.cupy.dev, "Installation").

cuTENSOR and NCCL are not among them: those are "additional" there, and used if they are installed.
"""


def measure(probe):
    import cupy
    from cupy.cuda import nvrtc

    probe.version(cupy.__version__)
    probe.fact("nvrtc", "%d.%d" % nvrtc.getVersion())
    probe.outcome("compile", is_compiled, nvrtc)
    missing = missing_libraries()
    if probe.is_asked:
        probe.outcome("libraries", are_loaded, missing)
    elif missing:
        probe.fact("without", " ".join(sorted(missing)))


def missing_libraries():
    """Return the error of each library that does not load."""
    missing = {}
    for name, module in LIBRARIES.items():
        try:
            import_module(module)
        except ImportError as error:
            missing[name] = str(error)
    return missing


def are_loaded(missing):
    if missing:
        raise ImportError("; ".join(missing[name] for name in sorted(missing)))
    return True


def is_compiled(nvrtc):
    program = nvrtc.createProgram(SOURCE, "twice.cu", (), ())
    nvrtc.compileProgram(program, ("--gpu-architecture=compute_75",))
    return b".entry twice" in nvrtc.getPTX(program)


def measure_devices(probe):
    import cupy

    names = []
    left, right = integers(32, 32, 3), integers(32, 32, 5)
    for index in range(cupy.cuda.runtime.getDeviceCount()):
        with cupy.cuda.Device(index):
            names.append(cupy.cuda.runtime.getDeviceProperties(index)["name"].decode())
            arrays = [cupy.array(one, cupy.float32) for one in (left, right)]
            if "cublas" not in missing_libraries():
                probe.outcome(
                    "matmul cuda:%d" % index, lambda: is_equal(cupy.asnumpy(arrays[0] @ arrays[1]), product(left, right))
                )
            probe.outcome("kernel cuda:%d" % index, is_doubled, cupy)
    return names


def is_doubled(cupy):
    numbers = cupy.arange(32, dtype=cupy.float32)
    cupy.RawKernel(SOURCE, "twice")((1,), (32,), (numbers,))
    return cupy.asnumpy(numbers).tolist() == [2.0 * index for index in range(32)]
