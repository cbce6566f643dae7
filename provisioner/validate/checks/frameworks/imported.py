"""Any other package: import the modules that its wheel installs. The first argument is the name of the distribution."""

import re

NOT_FOR_IMPORT = re.compile(r"(tests?|testing|examples?|docs?|benchmarks?|scripts|setup|conftest)")


def measure(probe):
    from importlib import import_module, metadata

    distribution = metadata.distribution(probe.arguments[0])
    modules = importable(distribution)
    probe.fact("modules", " ".join(modules))
    for name in modules:
        module = import_module(name)
        stated = getattr(module, "__version__", None)
        if isinstance(stated, str) and probe.found["version"] is None:
            probe.version(stated)


def importable(distribution):
    """Return the packages and modules at the lowest depth at which a distribution has any that are meant for import."""
    from importlib.machinery import EXTENSION_SUFFIXES

    found = []
    for path in distribution.files or ():
        parts = list(path.parts)
        if parts[0] == ".." or parts[0].endswith((".dist-info", ".data")):
            continue
        suffix = next((one for one in [".py"] + EXTENSION_SUFFIXES if parts[-1].endswith(one)), None)
        if suffix is None:
            continue
        parts[-1] = parts[-1][: -len(suffix)]
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if parts and all(part.isidentifier() and part[0] != "_" and not NOT_FOR_IMPORT.fullmatch(part) for part in parts):
            found.append(parts)
    lowest = min([len(parts) for parts in found] or [0])
    return sorted({".".join(parts) for parts in found if len(parts) == lowest})
