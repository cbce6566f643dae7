"""Diagnoses as sentences: facts of a log, conditions of failures, and the steps of remedies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.components import COMPONENTS
from provisioner.grounds import diagnosis as of
from provisioner.words.conflict import contradiction_words, fix_line
from provisioner.words.notation import counted, listed
from provisioner.words.step import action_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.grounds.diagnosis import Disagreement, KnownFact, Remedy

_LABELS = {
    "cuda_of_driver": "CUDA of the driver",
    "cuda_of_pytorch": "CUDA that PyTorch was built with",
    "gpus_of_build": "GPUs that the build has code for",
    "gpu_name": "GPU",
    "gpu": "compute capability of the GPU",
    "libstdcxx_wanted": "GLIBCXX that is needed",
    "gcc_ceiling": "newest GCC that nvcc takes",
    "platform_wanted": "platform that is needed",
    "xid": "Xid",
    "error": "error number",
}
_ROLES = {"_wanted": " that is needed", "_other": " of the other part"}
_BASES = {
    "minor-version": ", CUDA through minor-version compatibility",
    "forward-compat": ", CUDA through the image's cuda-compat package",
}


def fact_label(name: str) -> str:
    """Return the label of a fact."""
    if name in _LABELS:
        return _LABELS[name]
    for role, words in _ROLES.items():
        if name.endswith(role):
            return f"{fact_label(name[: -len(role)])}{words}"
    row = COMPONENTS.get(name)
    return row.label if row is not None else name.replace("_", " ")


def fact_words(fact: KnownFact) -> str:
    """Return a fact of a log, with the text that it was decoded from."""
    written = f' (written "{fact.text}")' if fact.text else ""
    if fact.by == "cuda_of_driver":
        return f"driver branch {fact.value} (by its CUDA)"
    if fact.by:
        return f"{fact_label(fact.name)} {fact.value} (by the name of the GPU)"
    return f"{fact_label(fact.name)} {fact.value}{written}"


def disagreement_words(one: Disagreement) -> str:
    """Return that a log and a host profile state different values."""
    name = fact_label(one.name)
    return f"{name} is {one.in_log} in the log (line {one.line}) and {one.in_profile} in the profile; the log counts here"


def condition_words(conditions: Sequence[tuple[str, str]]) -> str:
    """Return the conditions of a failure as a clause, each a component and its range or name: `if driver is <545.23.06`."""
    found = [f"{fact_label(name)} is {'of any version' if value == '*' else value}" for name, value in conditions]
    return f"if {listed(found)}" if found else ""


def more_words(count: int, quoted: int) -> str:
    """Return how many lines of a failure are not quoted; "" for none."""
    return f"and {counted(count - quoted, 'more line')} like it" if count > quoted else ""


def left_words(skipped: int, lines: int) -> str:
    """Return how much of the beginning of a log was not read."""
    return f"the first {lines:,} lines ({skipped / 2**20:,.1f} MB) were not read; --last MB reads more"


def unexplained_words(count: int) -> str:
    """Return how many lines speak of an error and are not known."""
    return f"{counted(count, 'line')} {'speaks' if count == 1 else 'speak'} of an error that no row of the matrix knows"


TRANSLATED = "messages are known in English alone: run the command again with LC_ALL=C, and diagnose what it says then"


def nothing_words(lines: int) -> str:
    """Return that nothing in a log was recognised."""
    return f"nothing recognised in {counted(lines, 'line')}" if lines else "the log is empty"


def harmless_words(count: int) -> str:
    """Return that all that was recognised in a log is harmless."""
    verbs = ("looks", "harms") if count == 1 else ("look", "harm")
    return f"nothing wrong found: {counted(count, 'message')} that {verbs[0]} like an error and {verbs[1]} nothing"


def remedy_words(remedy: Remedy) -> str:
    """Return one line of a remedy."""
    match remedy:
        case of.Run(command=command, note=note):
            return f"{note}: `{command}`" if note else f"`{command}`"
        case of.Advice(text=text):
            return text
        case of.DriverRuns(branch=branch, cuda=cuda):
            return f"drivers of branch {branch} run CUDA {cuda} and older natively"
        case of.CudaNeeds():
            return _cuda_needs_words(remedy)
        case of.BuildsFor():
            return _builds_words(remedy)
        case of.KernelOutOfRange(driver=driver, kernel=kernel, range=known):
            return f"driver {driver} builds on kernels {known} and not on {kernel}: that is why"
        case of.DriversFor():
            return _drivers_words(remedy)
        case of.BroughtBy():
            return _brought_words(remedy)
        case of.RunsHere():
            return _runs_words(remedy)
        case of.NothingRuns(host=host, conflict=conflict):
            because = contradiction_words(conflict)
            fixes = "".join(f"; {fix_line(fix)}" for fix in conflict.fixes[:1])
            return f"no stack runs with {_host_words(host)}{f': {because}' if because else ''}{fixes}"
        case of.ChangeHost(action=action, wanted=wanted, is_reboot=is_reboot):
            return f"for {wanted}: {action_words(action)}{' [reboot]' if is_reboot else ''}"
        case of.NothingToChange(wanted=wanted):
            return f"for {wanted} nothing has to change on this machine, as far as it is known"
        case of.CannotFollow(wanted=wanted, conflict=conflict):
            because = contradiction_words(conflict)
            return f"no change of this machine lets it run {wanted}{f': {because}' if because else ''}"
        case of.FactWanted(names=names):
            known = listed([fact_label(name) for name in names], "or")
            return f"the solver can say more with the {known}: give --host FILE, or --host auto on that machine"
    raise TypeError(f"no words for {type(remedy).__name__}")


def _host_words(host: Sequence[tuple[str, str]]) -> str:
    return listed([f"{name} {value}" for name, value in host])


def _cuda_needs_words(needs: of.CudaNeeds) -> str:
    oldest = f"driver >={needs.minor_version} (minor-version compatibility)" if needs.minor_version else ""
    native = f"a driver of branch {needs.native_branch} or newer (native)" if needs.native_branch else ""
    return f"CUDA {needs.cuda} needs {listed([part for part in (oldest, native) if part], 'or')}"


def _builds_words(builds: of.BuildsFor) -> str:
    name = fact_label(builds.framework)
    if builds.framework == "nvcc":
        found = f"those of CUDA {builds.oldest} to {builds.newest} do" if builds.newest else "the matrix lists none that does"
        return f"an nvcc that compiles for GPUs of {builds.gpu} is needed: {found}"
    if not builds.newest:
        return f"no build of {name} that the matrix lists has code for GPUs of {builds.gpu}"
    if builds.newest == builds.oldest:
        return f"of {name} only {builds.newest} has machine code for GPUs of {builds.gpu}"
    return f"{name} has builds with machine code for GPUs of {builds.gpu} from {builds.oldest} to {builds.newest}"


def _drivers_words(drivers: of.DriversFor) -> str:
    kernel = f"kernel {drivers.kernel}"
    if not drivers.same_branch and not drivers.others:
        return f"the matrix lists no driver that is known to build on {kernel}: boot an older kernel"
    same = f"driver {drivers.same_branch}, of the same branch, builds on {kernel}" if drivers.same_branch else ""
    is_one = len(drivers.others) == 1
    verb = ("does too" if is_one else "do too") if same else f"{'builds' if is_one else 'build'} on {kernel}"
    others = f"{listed(drivers.others)} {verb}"
    return "; ".join(part for part in (same, others if drivers.others else "") if part)


def _brought_words(brought: of.BroughtBy) -> str:
    wheels = f"in {listed(brought.distributions, 'or')} of the package index" if brought.distributions else ""
    packages = [f"in {name} of {listed(systems)}" for name, systems in brought.packages]
    return f"{brought.library} is {'; '.join(part for part in (wheels, *packages) if part)}"


def _runs_words(stack: of.RunsHere) -> str:
    verb = "runs" if stack.verdict == "yes" else "should run"
    doubts = f" ({counted(stack.doubts, 'point')} unverified)" if stack.doubts else ""
    named = ", ".join(f"{name} {value}" for name, value in stack.components)
    text = f"with {_host_words(stack.host)} {verb}, at the newest, {named}{_BASES.get(stack.basis, '')}{doubts}"
    if not stack.requirement:
        return text
    index = f" --index-url {stack.index}" if stack.index else ""
    return f"{text}: `pip install '{stack.requirement}'{index}`"
