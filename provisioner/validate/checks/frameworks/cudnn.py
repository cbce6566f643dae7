"""cuDNN: the release that its library states, and its parts, which it opens by name when they are used; neither needs a GPU.

What it convolves is measured by PyTorch, at level 4.
"""

import ctypes
import os
import re

MAIN = re.compile(r"libcudnn\.so\.(\d+)$")
PART = re.compile(rb"libcudnn_\w+\.so")
OF_OTHERS = re.compile(r"lib(?!cudnn)[^/:\s]+: ")
"""How the loader begins to say that it does not find a library; a part itself it calls by its path."""

CHECK = re.compile(rb"cudnn\w+VersionCheck(?=\0)")
OF_GRAPHS = ("libcudnn_engines_precompiled.so", "libcudnn_engines_runtime_compiled.so", "libcudnn_heuristic.so")
"""What libcudnn_graph opens, in wheels of cuDNN 9.1 to 9.28; it names libcudnn_engines_tensor_ir, too, which not all of them have."""


def measure(probe):
    from importlib import metadata

    locked = metadata.version(probe.arguments[0])
    path = path_of(metadata.files(probe.arguments[0]) or (), probe.arguments[0])
    with open(path, "rb") as stream:
        content = stream.read()
    probe.version(locked)
    waiting = []
    probe.outcome("parts", lambda: are_loaded(path, content, waiting))
    if not probe.outcomes["parts"]:
        return  # cuDNN ends the process that asks it for its release without them
    library = ctypes.CDLL(path)
    library.cudnnGetVersion.restype = ctypes.c_size_t
    said = spelled_release(library.cudnnGetVersion())
    probe.fact("library", said)
    checks = [] if waiting else sorted(set(name.decode() for name in CHECK.findall(content)))
    probe.outcome("release", lambda: locked.split(".")[:3] == said.split(".") and agree(library, checks))


def path_of(files, name):
    for file in files:
        if MAIN.match(file.name):
            return str(file.locate())
    raise RuntimeError("%s contains no libcudnn.so" % name)


def spelled_release(number):
    """Return `9.10.2` for 91002; before 9 the number had a digit less: 8902 is 8.9.2 (CUDNN_VERSION of cudnn_version.h)."""
    thousands = 10000 if number >= 10000 else 1000
    return "%d.%d.%d" % (number // thousands, number % thousands // 100, number % 100)


def are_loaded(path, content, waiting):
    """Return whether each part that the library names is there and loads; those that lack another package's library wait.

    They are loaded by their paths: the library itself of cuDNN 8 has no RUNPATH to them, and finds what is loaded by its name.
    """
    names = set(name.decode() for name in PART.findall(content))
    if "libcudnn_graph.so" in names:
        names.update(OF_GRAPHS)
    suffix = "." + MAIN.match(os.path.basename(path)).group(1)
    for name in sorted(names):
        try:
            ctypes.CDLL(os.path.join(os.path.dirname(path), name + suffix))
        except OSError as error:
            if not OF_OTHERS.match(str(error)):
                raise
            waiting.append(name)  # the check of files looks for the libraries of other packages
    return bool(names)


def agree(library, checks):
    """Return whether each part says that it is of the release of the others."""
    return all(getattr(library, check)() == 0 for check in checks if hasattr(library, check))
