"""CuPy: a kernel compiled by its NVRTC, which needs no GPU; a product and that kernel on every GPU at level 4."""

SOURCE = 'extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2.0f; }'


def measure(probe):
    import cupy
    from cupy.cuda import nvrtc

    probe.version(cupy.__version__)
    probe.fact("nvrtc", "%d.%d" % nvrtc.getVersion())
    probe.outcome("compile", is_compiled, nvrtc)


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
            probe.outcome("matmul cuda:%d" % index, lambda: is_equal(cupy.asnumpy(arrays[0] @ arrays[1]), product(left, right)))
            probe.outcome("kernel cuda:%d" % index, is_doubled, cupy)
    return names


def is_doubled(cupy):
    numbers = cupy.arange(32, dtype=cupy.float32)
    cupy.RawKernel(SOURCE, "twice")((1,), (32,), (numbers,))
    return cupy.asnumpy(numbers).tolist() == [2.0 * index for index in range(32)]
