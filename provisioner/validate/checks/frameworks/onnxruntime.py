"""ONNX Runtime: its providers, and a model of one product run by the CPU's; by every other provider at level 4.

The model is written here byte by byte, because images for inference often lack the package onnx. Its messages and field numbers
are those of onnx.proto (ONNX IR version 7, operator set 13).
"""

import ctypes
import os
import struct

SIZE = 16

BUILT_FOR = {
    "onnxruntime-gpu": "CUDAExecutionProvider",
    "onnxruntime-migraphx": "MIGraphXExecutionProvider",
    "onnxruntime-openvino": "OpenVINOExecutionProvider",
    "onnxruntime-rocm": "ROCMExecutionProvider",
}
"""The provider that a distribution is installed for (onnxruntime.ai, "Install ONNX Runtime")."""


def measure(probe):
    import onnxruntime

    probe.version(onnxruntime.__version__)
    probe.fact("providers", " ".join(sorted(onnxruntime.get_available_providers())))
    probe.outcome("matmul", is_correct, onnxruntime, "CPUExecutionProvider")
    provider = BUILT_FOR.get(probe.arguments[0])
    if provider is not None:
        probe.outcome(provider, lambda: provider in onnxruntime.get_available_providers())
    if provider == "CUDAExecutionProvider":
        probe.outcome("libraries of " + provider, are_loaded, onnxruntime)


def are_loaded(onnxruntime):
    """Return whether the CUDA provider finds its libraries; without a driver, libcuda.so.1 is the one that is left."""
    if hasattr(onnxruntime, "preload_dlls"):
        onnxruntime.preload_dlls()
    folder = os.path.join(os.path.dirname(onnxruntime.__file__), "capi")
    ctypes.CDLL(os.path.join(folder, "libonnxruntime_providers_shared.so"), ctypes.RTLD_GLOBAL)
    ctypes.CDLL(os.path.join(folder, "libonnxruntime_providers_cuda.so"))
    return True


def measure_devices(probe):
    import onnxruntime

    cpus = ("CPUExecutionProvider", "AzureExecutionProvider")
    names = [name for name in onnxruntime.get_available_providers() if name not in cpus]
    # A provider that is compiled in may lack its libraries: TensorRT's is in every onnxruntime-gpu.
    wanted = BUILT_FOR.get(probe.arguments[0])
    for name in names:
        if name == wanted:
            probe.outcome("matmul " + name, is_correct, onnxruntime, name)
    return [name for name in names if probe.outcomes.get("matmul " + name)]


def is_correct(onnxruntime, provider):
    """Return whether the model gives the exact product through `provider`; a session that fell back to the CPU is an error."""
    import numpy

    left, right = integers(SIZE, SIZE, 3), integers(SIZE, SIZE, 5)
    session = onnxruntime.InferenceSession(model(right), providers=[provider])
    if session.get_providers()[0] != provider:
        raise RuntimeError("%s was not used: the session has %s" % (provider, ", ".join(session.get_providers())))
    (answer,) = session.run(None, {"x": numpy.array(left, numpy.float32)})
    return is_equal(answer, product(left, right))


def model(weights):
    """Return an ONNX model that multiplies its input `x` with `weights`, as `y`."""
    flat = struct.pack("<%df" % (SIZE * SIZE), *[value for row in weights for value in row])
    tensor = number(1, SIZE) + number(1, SIZE) + number(2, 1) + text(8, b"w") + text(9, flat)
    node = text(1, b"x") + text(1, b"w") + text(2, b"y") + text(4, b"MatMul")
    graph = text(1, node) + text(2, b"g") + text(5, tensor) + text(11, value(b"x")) + text(12, value(b"y"))
    return number(1, 7) + text(7, graph) + text(8, number(2, 13))


def value(name):
    """Return the type of an input or output: a square matrix of 32-bit floats."""
    shape = text(1, number(1, SIZE)) + text(1, number(1, SIZE))
    return text(1, name) + text(2, text(1, number(1, 1) + text(2, shape)))


def number(field, amount):
    """Return a field of a protocol buffer with a whole number."""
    return bytes([field << 3]) + varint(amount)


def text(field, content):
    """Return a field of a protocol buffer with bytes, text or a message."""
    return bytes([field << 3 | 2]) + varint(len(content)) + content


def varint(amount):
    low = amount & 127
    return bytes([low]) if amount < 128 else bytes([low | 128]) + varint(amount >> 7)
