"""Run one check of a framework in a process of its own, and print what it measured as one line of JSON.

The text of a check follows the text of this module in one program, for Python 3.7 or newer. A check is a module of
`checks/frameworks`, or of a plug-in, that defines `measure(probe)`: it imports the framework, and states through `probe` the
version (`probe.version`), facts (`probe.fact`) and results of small computations (`probe.outcome`). If it defines
`measure_devices(probe)`, this is called from level 4 on and does the same on every device of the framework; it returns their
names.

Usage: python -c PROGRAM LEVEL DISTRIBUTION ORIGIN ACCELERATOR
ORIGIN is `asked` if the spec names the distribution, else `brought along`; ACCELERATOR is the lock's, such as `cuda`.
"""

import json
import os
import sys
import time


def integers(rows, columns, seed):
    """Return a matrix of small whole numbers, the same on every machine; their products and sums are exact in every float type."""
    return [[(seed * 31 + row * 7 + column * 13 + row * column) % 5 - 2 for column in range(columns)] for row in range(rows)]


def product(left, right):
    """Return the product of two matrices, the reference of each check: computed in Python, with whole numbers."""
    columns = list(zip(*right))
    return [[sum(a * b for a, b in zip(row, column)) for column in columns] for row in left]


def is_equal(measured, expected):
    """Return whether a matrix of floats, as a nested list or array, has exactly these whole numbers."""
    rows = measured.tolist() if hasattr(measured, "tolist") else measured
    return [[float(value) for value in row] for row in rows] == [[float(value) for value in row] for row in expected]


def spelled(error):
    """Return an error in one line, with its type."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return "%s: %s" % (type(error).__name__, " ".join(lines[:4])[:600])


class Probe(object):
    """Collects what a check measures."""

    def __init__(self, level, arguments):
        self.level, self.arguments = level, arguments
        self.is_asked = arguments[1:2] == ["asked"]
        self.accelerator = "".join(arguments[2:3])
        self.found = {
            "version": None,
            "facts": {},
            "outcomes": {},
            "errors": {},
            "devices": None,
            "on_devices": {},
            "shadowed": [],
        }
        self.outcomes = self.found["outcomes"]

    def version(self, text):
        self.found["version"] = str(text)

    def fact(self, name, text):
        self.found["facts"][name] = str(text)

    def outcome(self, name, compute, *arguments):
        """Record whether `compute` returned True; an error is recorded, and what follows still runs."""
        outcomes = self.outcomes
        outcomes[name] = None
        self.attempt(name, lambda: outcomes.update({name: bool(compute(*arguments))}))

    def attempt(self, name, action, *arguments):
        """Return what `action` returns; record an error under `name` and return None, because a broken stack can raise anything."""
        try:
            return action(*arguments)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            self.found["errors"][name] = spelled(error)
            return None


def shadowed_libraries():
    """Return the loaded libraries that do not come from the environment although it has one of the same name."""
    if not os.path.exists("/proc/self/maps"):
        return []
    root = os.path.realpath(sys.prefix) + os.sep
    with open("/proc/self/maps") as maps:
        loaded = {"/" + line.rstrip("\n").partition("/")[2] for line in maps if ".so" in line}
    outside = {
        os.path.basename(path): path
        for path in loaded
        if os.path.basename(path).startswith("lib") and not path.startswith(root)
    }
    own = {name for _, _, names in os.walk(root) for name in names if name in outside} if outside else set()
    return sorted(outside[name] for name in own)


def run(check):
    """Run a check, the namespace of its module, and print its result."""
    # Libraries may print anything, also from C: redirect stdout to stderr, and keep a copy for the result.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    start = time.time()
    probe = Probe(int(sys.argv[1]), sys.argv[2:])
    probe.attempt("import", check["measure"], probe)
    if probe.level >= 4 and "import" not in probe.found["errors"] and "measure_devices" in check:
        probe.outcomes = probe.found["on_devices"]
        probe.found["devices"] = probe.attempt("devices", check["measure_devices"], probe) or []
    probe.found["shadowed"] = probe.attempt("shadowed", shadowed_libraries) or []
    probe.found["seconds"] = round(time.time() - start, 3)
    answer.write(json.dumps(probe.found, sort_keys=True) + "\n")
    answer.flush()
    # Some libraries crash while the interpreter shuts down, after everything has been measured.
    os._exit(0)
