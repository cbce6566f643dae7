"""NCCL: the release that its library states, which needs neither a GPU nor a driver.

What it sums over processes is measured by PyTorch, at level 4.
"""

import ctypes
import re


def measure(probe):
    from importlib import metadata

    locked = metadata.version(probe.arguments[0])
    library = ctypes.CDLL(path_of(metadata.files(probe.arguments[0]) or (), probe.arguments[0]))
    number = ctypes.c_int()
    status = library.ncclGetVersion(ctypes.byref(number))
    if status != 0:
        raise RuntimeError("ncclGetVersion: %d" % status)
    said = spelled_release(number.value)
    probe.version(locked)
    probe.fact("library", said)
    probe.outcome("release", lambda: locked.split(".")[:3] == said.split("."))


def path_of(files, name):
    for file in files:
        if re.match(r"libnccl\.so\.\d+$", file.name):
            return str(file.locate())
    raise RuntimeError("%s contains no libnccl.so" % name)


def spelled_release(number):
    """Return `2.19.3` for 21903; before 2.9 the number had a digit less: 2708 is 2.7.8 (NCCL_VERSION of nccl.h)."""
    thousands = 10000 if number >= 10000 else 1000
    return "%d.%d.%d" % (number // thousands, number % thousands // 100, number % 100)
