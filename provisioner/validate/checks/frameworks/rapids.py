"""RAPIDS: the library of each of its packages, which loads without a GPU; a small computation on every GPU at level 4.

Which package it is, says the distribution: `cudf-cu12` is cuDF for CUDA 12.
"""

import os
import re
from importlib import import_module


def measure(probe):
    name = module_name(probe)
    module = import_module(name)
    probe.version(module.__version__)
    probe.outcome("library", is_loaded, name)


def module_name(probe):
    return re.sub("-cu[0-9]+$", "", probe.arguments[0])


def is_loaded(name):
    """Return whether the package's library in C++ is loaded: librmm.so, libcudf.so, libcuml++.so."""
    library = re.compile(r"lib%s(\+\+)?\.so" % re.escape(name))
    with open("/proc/self/maps") as maps:
        return any(library.match(os.path.basename(line.rstrip("\n").partition("/")[2])) for line in maps)


def measure_devices(probe):
    import cupy

    name, devices = module_name(probe), []
    for index in range(cupy.cuda.runtime.getDeviceCount()):
        with cupy.cuda.Device(index):
            devices.append("cuda:%d" % index)
            computation, is_right = COMPUTATIONS[name]
            probe.outcome("%s cuda:%d" % (computation, index), is_right)
    return devices


def is_summed():
    import cudf

    frame = cudf.DataFrame({"key": [0, 1, 0, 1], "value": [1, 2, 3, 4]})
    return frame.groupby("key").sum().sort_index()["value"].to_arrow().to_pylist() == [4, 6]


def is_kept():
    import rmm

    content = bytes(range(256))
    return rmm.DeviceBuffer.to_device(content).tobytes() == content


def is_fitted():
    import cupy
    from cuml.linear_model import LinearRegression

    x = cupy.arange(16, dtype=cupy.float32).reshape(16, 1)
    answer = LinearRegression().fit(x, 2 * x[:, 0] + 1).predict(x)
    return bool(abs(cupy.asarray(answer) - (2 * x[:, 0] + 1)).max() < 1e-2)


COMPUTATIONS = {"cudf": ("sums", is_summed), "rmm": ("copy", is_kept), "cuml": ("regression", is_fitted)}
"""By module: the name of its computation, and the function that returns whether it is right."""
