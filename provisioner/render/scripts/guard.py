"""Entry point of a CUDA image: hold the host against NVIDIA_REQUIRE_*, then become the command.

Container runtimes that hand over devices by CDI check nothing (NVIDIA/nvidia-container-toolkit issue 1470). What the host
does not meet is said, and ends with exit code 78. What cannot be read is said too, and refuses nothing; without a visible
device nothing is checked. NVIDIA_DISABLE_REQUIRE=true, the runtime switch, turns this off. Runs on Python 3.7 and newer.
"""

import os
import re
import sys

REFUSED = 78
NVIDIA_ENTRYPOINT = "/opt/nvidia/nvidia_entrypoint.sh"
VERSION_FILE = "/proc/driver/nvidia/version"
DEVICES = ("/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-ctrl-gpu", "/dev/nvgpu")
TRUE = ("1", "t", "T", "TRUE", "true", "True")
BRANDS = {
    1: "quadro", 2: "tesla", 3: "nvs", 4: "grid", 5: "geforce", 6: "titan", 7: "vapps", 8: "vpc", 9: "vcs", 10: "vws",
    11: "cloudgaming", 12: "quadrortx", 13: "nvidiartx", 14: "nvidia", 15: "geforcertx", 16: "titanrtx",
}  # fmt: skip
WORDS = {"cuda": "the CUDA of the driver", "driver": "the driver", "arch": "the compute capability", "brand": "the brand"}
OPERATORS = {
    "=": lambda found, wanted: found == wanted,
    "!=": lambda found, wanted: found != wanted,
    "<": lambda found, wanted: found < wanted,
    "<=": lambda found, wanted: found <= wanted,
    ">": lambda found, wanted: found > wanted,
    ">=": lambda found, wanted: found >= wanted,
}


def say(text):
    """Tell the person at the terminal, or the log, and not what reads the output of the command."""
    sys.stderr.write("provision: %s\n" % text)
    sys.stderr.flush()


def requirements(environment):
    """The texts that must all be met, by the name of their variable."""
    if environment.get("NVIDIA_DISABLE_REQUIRE", "") in TRUE:
        return []
    names = [name for name in environment if name.startswith("NVIDIA_REQUIRE_")]
    found = [(name, environment[name]) for name in sorted(names) if not name.startswith("NVIDIA_REQUIRE_JETPACK")]
    version = re.match(r"v?(\d+)(?:\.(\d+))?", environment.get("CUDA_VERSION", ""))
    if version and not environment.get("NVIDIA_REQUIRE_CUDA"):
        found.append(("CUDA_VERSION", "cuda>=%s.%s" % (version.group(1), version.group(2) or "0")))
    return [(name, text) for name, text in found if text.strip()]


def numbers(text):
    """What a version is compared by: its leading numbers, without zeros at the end."""
    match = re.match(r"\d+(?:\.\d+)*", text)
    found = [int(part) for part in match.group().split(".")] if match else []
    while len(found) > 1 and found[-1] == 0:
        found.pop()
    return found


def holds(clause, facts):
    """Whether one comparison holds: True or False, or None when it cannot be told."""
    match = re.match(r"([^<>=!]+)(!=|<=|>=|=|<|>)([^<>=!].*)$", clause, re.DOTALL)
    name = match.group(1).lower() if match else ""
    fact = facts.get(name, "")
    if name not in WORDS or not fact:
        return None
    if name == "brand":
        return OPERATORS[match.group(2)](fact, match.group(3).lower()) if match.group(2) in ("=", "!=") else None
    if not re.match(r"\d+(\.\d+){0,2}$", match.group(3)) or not numbers(fact):
        return None
    return OPERATORS[match.group(2)](numbers(fact), numbers(match.group(3)))


def is_skipped(clause):
    """Whether a comparison is about something no runtime knows, which is passed over."""
    name = re.match(r"[^<>=!]*", clause).group().lower()
    return bool(name) and name not in WORDS and name != clause.lower()


def judge(text, facts):
    """Whether any alternative holds: True, False or None; and, when none does, the clauses of the nearest ones that fail."""
    alternatives = [[one for one in term.split(",") if one and not is_skipped(one)] for term in text.split(" ")]
    alternatives = [one for one in alternatives if one]
    answers = [[holds(clause, facts) for clause in clauses] for clauses in alternatives]
    if not answers or any(all(answer is True for answer in one) for one in answers):
        return True, []
    if any(False not in one for one in answers):
        return None, []
    fewest = min(one.count(False) for one in answers)
    failing = []
    for clauses, found in zip(alternatives, answers):
        if found.count(False) == fewest:
            failing.extend(clause for clause, answer in zip(clauses, found) if answer is False)
    return False, list(dict.fromkeys(failing))


def explain(failing, facts):
    """The failing clauses with the facts they fail on, those on one fact together."""
    parts = []
    for name, words in WORDS.items():
        clauses = [clause for clause in failing if clause.lower().startswith(name)]
        if clauses:
            more = " or %d more" % (len(clauses) - 3) if len(clauses) > 3 else ""
            parts.append("%s%s: %s is %s" % (" or ".join(clauses[:3]), more, words, facts[name]))
    return "; ".join(parts)


def library(name):
    """A library of the driver, or None."""
    import ctypes

    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def from_nvml():
    """Driver, CUDA and GPUs as the management library states them, which is what the runtime itself asks; None without it."""
    import ctypes

    nvml = library("libnvidia-ml.so.1")
    if nvml is None or nvml.nvmlInit_v2() != 0:
        return None
    version, level, count = ctypes.create_string_buffer(96), ctypes.c_int(), ctypes.c_uint()
    host = {}
    if nvml.nvmlSystemGetDriverVersion(version, ctypes.c_uint(96)) == 0:
        host["driver"] = version.value.decode("ascii", "replace")
    if nvml.nvmlSystemGetCudaDriverVersion(ctypes.byref(level)) == 0:
        host["cuda"] = "%d.%d" % (level.value // 1000, level.value % 1000 // 10)
    gpus = []
    nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
    for index in range(count.value):
        device, major, minor, brand = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_int(), ctypes.c_uint()
        facts = dict(host)
        if nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(device)) == 0:
            if nvml.nvmlDeviceGetCudaComputeCapability(device, ctypes.byref(major), ctypes.byref(minor)) == 0:
                facts["arch"] = "%d.%d" % (major.value, minor.value)
            if nvml.nvmlDeviceGetBrand(device, ctypes.byref(brand)) == 0:
                facts["brand"] = BRANDS.get(brand.value, "unknown")
        gpus.append(facts)
    return gpus or [host]


def from_libcuda(host):
    """The GPUs as the CUDA driver library states them, which knows no brands; `host` alone without it."""
    import ctypes

    cuda = library("libcuda.so.1")
    level, count = ctypes.c_int(), ctypes.c_int()
    if cuda is None:
        return [host]
    if cuda.cuDriverGetVersion(ctypes.byref(level)) == 0:
        host["cuda"] = "%d.%d" % (level.value // 1000, level.value % 1000 // 10)
    if cuda.cuInit(ctypes.c_uint(0)) != 0 or cuda.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return [host]
    gpus = []
    for index in range(count.value):
        device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        facts = dict(host)
        # Attributes 75 and 76: CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR (cuda.h).
        wanted = ((major, 75), (minor, 76))
        calls = [cuda.cuDeviceGet(ctypes.byref(device), ctypes.c_int(index))]
        calls += [cuda.cuDeviceGetAttribute(ctypes.byref(one), ctypes.c_int(code), device) for one, code in wanted]
        if calls == [0, 0, 0]:
            facts["arch"] = "%d.%d" % (major.value, minor.value)
        gpus.append(facts)
    return gpus or [host]


def visible():
    """The facts of every visible GPU; the driver alone where none can be listed; [] without a device.

    Every container of a GPU machine sees the file of the kernel module, also one that was given no device.
    """
    if not any(os.path.exists(device) for device in DEVICES):
        return []
    host = {}
    try:
        with open(VERSION_FILE) as file:
            found = re.search(r"Kernel Module[^\n]*?\s(\d+(?:\.\d+)+)\s", file.read())
        host = {"driver": found.group(1)} if found else {}
    except OSError:
        pass
    try:
        return from_nvml() or from_libcuda(host)
    except AttributeError:  # a library without one of these functions
        return [host]


def check(environment):
    """Hold every visible GPU against every requirement: the exit code to end with, or 0."""
    wanted = requirements(environment)
    if not wanted:
        return 0
    gpus = visible()
    if not gpus:
        say("no NVIDIA device is visible here, so %s was not checked and nothing will run on a GPU" % wanted[0][0])
        return 0
    for index, facts in enumerate(gpus):
        for name, text in wanted:
            answer, failing = judge(text, facts)
            if answer is False:
                say("this image cannot run on GPU %d: %s" % (index, explain(failing, facts)))
                say("%s=%s" % (name, text))
                say("NVIDIA_DISABLE_REQUIRE=true starts it all the same")
                return REFUSED
            if answer is None:
                unknown = [words for known, words in WORDS.items() if known in text.lower() and not facts.get(known)]
                say("%s was not decided: %s cannot be read" % (name, ", ".join(unknown) or "part of its text"))
    return 0


def become(command, environment):
    """Replace this process by the command, with the signals and the environment it would have had without it."""
    import signal

    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and what is ignored stays so
    if hasattr(signal, "SIGXFSZ"):
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        with open("/proc/self/environ", "rb") as file:
            given = dict(one.split(b"=", 1) for one in file.read().split(b"\0") if b"=" in one)
        environment.pop("LC_CTYPE", None)  # Python sets it where the locale is C (PEP 538)
        if b"LC_CTYPE" in given:
            environment["LC_CTYPE"] = os.fsdecode(given[b"LC_CTYPE"])
    except OSError:
        pass
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        say("%s: %s" % (command[0], error.strerror))
        return 127 if isinstance(error, FileNotFoundError) else 126


def open_files():
    """The numbers of the open files, as the kernel lists them; that of the list itself is closed again."""
    found = set()
    for name in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        try:
            os.fstat(int(name))
            found.add(int(name))
        except OSError:
            pass
    return found


def main(command, environment):
    """The exit code when there is a reason not to become the command."""
    before = open_files()
    code = check(environment)
    for number in open_files() - before:
        try:
            os.set_inheritable(number, False)  # the libraries of the driver keep their devices open
        except OSError:
            pass
    if code or not command:
        return code
    if os.access(NVIDIA_ENTRYPOINT, os.X_OK):
        command = [NVIDIA_ENTRYPOINT] + command
    return become(command, environment)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], dict(os.environ)))
