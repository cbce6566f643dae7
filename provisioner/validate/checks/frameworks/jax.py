"""JAX: a compiled product and a gradient on the CPU; the same on every GPU at level 4."""

import ctypes
import os
import re
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules


def measure(probe):
    if probe.level < 4:
        # Without this, a plug-in looks for its devices, and fails where there are none.
        os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jaxlib

    probe.version(jax.__version__)
    probe.fact("jaxlib", jaxlib.version.__version__)
    compute(probe, "", jax.devices("cpu")[0])
    for name in ("jax_cuda12_plugin", "jax_cuda13_plugin"):
        if find_spec(name) is not None:
            probe.outcome("libraries of " + name, are_loaded, probe, name)
    for module in iter_modules():
        if re.match(r"jax_rocm\d+_plugin$", module.name):
            probe.outcome("libraries of " + module.name, are_importable, module.name)


def are_loaded(probe, plugin):
    """Return whether the plug-in loads its CUDA libraries, which needs no GPU, and record their versions.

    The driver is asked at level 4; JAX does not ask cuSOLVER for its version either (jax_plugins/xla_cuda12/__init__.py).
    """
    versions = import_module(plugin + "._versions")
    names = [name for name in dir(versions) if name.endswith("_get_version")]
    for name in sorted(set(names) - {"cuda_driver_get_version", "cusolver_get_version"}):
        library = name[: -len("_get_version")]
        try:
            probe.fact(library, getattr(versions, name)())
        except RuntimeError:
            # CUPTI asks the driver for its own version (nvidia-cuda-cupti 13.3.35 and later; 13.1.115 does not).
            if is_found("libcuda.so.1") or not is_loaded("lib" + library):
                raise
            probe.fact(library, "loaded")
    return True


def are_importable(plugin):
    """Return whether each extension module of a plug-in loads, which needs the libraries of ROCm and no GPU."""
    folder = os.path.dirname(import_module(plugin).__file__)
    names = sorted(name.partition(".")[0] for name in os.listdir(folder) if name.endswith(".so"))
    for name in names:
        import_module(plugin + "." + name)
    return bool(names)


def is_found(library):
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def is_loaded(library):
    with open("/proc/self/maps") as maps:
        return any(os.path.basename(line.rstrip("\n").partition("/")[2]).startswith(library + ".so") for line in maps)


def compute(probe, suffix, device):
    import jax

    left, right = integers(32, 32, 3), integers(32, 32, 5)
    with jax.default_device(device):
        numpy = jax.numpy
        multiply = jax.jit(lambda a, b: numpy.matmul(a, b, precision="highest"))
        arrays = [numpy.array(one, numpy.float32) for one in (left, right)]
        probe.outcome("matmul" + suffix, lambda: is_equal(multiply(*arrays), product(left, right)))
        gradient = jax.jit(jax.grad(lambda x: (x**3).sum()))
        probe.outcome("gradient" + suffix, lambda: gradient(numpy.arange(4.0)).tolist() == [0.0, 3.0, 12.0, 27.0])


def measure_devices(probe):
    import jax

    devices = [device for device in jax.devices() if device.platform != "cpu"]
    for device in devices:
        compute(probe, " %s:%d" % (device.platform, device.id), device)
    return [device.device_kind for device in devices]
