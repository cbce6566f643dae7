"""The steps of a plan as sentences: the action, how to carry it out, how to undo it, and notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.components import ABSENT, COMPONENTS
from provisioner.grounds import step as of
from provisioner.words.ground import say

if TYPE_CHECKING:
    from provisioner.grounds.step import Action, Detail, LastStackNeeds, PlanNote, Undo


def action_words(action: Action) -> str:
    """Return the action of a step as an instruction."""
    match action:
        case of.ChangeComponent(component=component, before=before, after=after):
            return _component_words(component, before, after)
        case of.ChangeDriver():
            return _driver_words(action)
        case of.ChangeWindowsDriver(branch=branch):
            return f"install a driver of branch {branch} on Windows; inside WSL no driver is installed"
        case of.InstallLock(is_image=is_image, changes=changes):
            text = "build the image from the new lock and roll it out" if is_image else "install the new lock"
            named = [f"{name} {before} -> {after}" if before else f"{name} {after}" for name, before, after in changes]
            return f"{text}: {', '.join(named)}" if named else text
        case of.DoTogether(actions=actions):
            return f"drain the node, then do together: {'; '.join(map(action_words, actions))}"
        case of.FindOut(component=component):
            wanted = COMPONENTS[component].how_to_find or f"{component} of this host"
            return f"find out {wanted}: the profile does not state it (`provision inspect` there)"
    raise TypeError(f"no words for {type(action).__name__}")


def _component_words(component: str, before: str, after: str) -> str:
    row = COMPONENTS[component]
    if component == "kernel" and after.count(".") < 2:
        return f"boot a kernel of the {after} series in place of {before}"
    if row.instruction:
        return row.instruction.format(before=before, after=after)
    return f"install {row.label} {after}{'' if before in {'', ABSENT} else f' in place of {before}'}"


def _driver_words(action: of.ChangeDriver) -> str:
    before, after, module, module_before = action.before, action.after, action.module, action.module_before
    if before == after:
        text = f"install the {module} kernel modules of driver {after} in place of the {module_before or 'other'} ones"
    else:
        modules = f"the {module} kernel modules" if module else "the kernel modules that its GPUs call for"
        text = f"install driver {after} with {modules}"
        text += f" in place of {_with_module(before, module_before)}" if before else ""
    followers = " and ".join(COMPONENTS[name].label for name in action.followers)
    return f"{text}, and {followers} of the same version" if followers else text


def _with_module(driver: str, module: str) -> str:
    return f"{driver} ({module})" if module else driver


def detail_words(detail: Detail) -> str:
    """Return a detail of a step as one line."""
    match detail:
        case of.NotAlwaysNeeded():
            return "not needed where the driver that is found meets this already"
        case of.BringsKernel():
            return "it brings a kernel of its own, for which the driver is built: `provision inspect`, then plan the rest"
        case of.InstallHeaders(kernel=kernel, packages=packages):
            names = f" ({', '.join(packages)})" if packages else ""
            return f"with the headers of kernel {kernel}{names}, to build modules with"
        case of.ExpectKernel():
            return "`provision inspect` must then report this kernel, and the driver as before"
        case of.ExpectDriver(driver=driver, module=module):
            return f"`provision inspect` must then report driver {driver}{f', module {module}' if module else ''}"
        case of.BranchSupport(branch=branch, designation=designation):
            named = f"a {designation}" if designation else ""
            return f"branch {branch}: {', '.join(part for part in (named, _support(detail)) if part)}"
        case of.UsePackage(name=name, kind=kind, is_signed=is_signed, headers=headers, packages=packages):
            signed = {True: ", signed", False: ", signed by this host", None: ""}[is_signed]
            others = ", ".join(one for one in packages if one != name)
            installed = f", with {others}" if name in packages else f": {others}"
            return f"as `{name}` ({kind}{signed}{f', needs {headers}' if headers else ''}){installed if others else ''}"
        case of.SolveAndValidate():
            return "`provision solve` writes the lock, `provision validate` tries it before it is rolled out"


def _support(support: of.BranchSupport) -> str:
    """Return when the support of a branch ends or ended; "" if that is unknown."""
    if not support.end:
        return ""
    return f"ended {support.end}" if support.is_over else f"supported until {support.end}"


def undo_words(undo: Undo) -> str:
    """Return how to undo a step."""
    match undo:
        case of.BootKernel(kernel=kernel):
            return f"undo: boot {kernel} again"
        case of.ReinstallDriver(driver=driver, module=module):
            return f"undo: install driver {_with_module(driver, module)} again"
        case of.ReturnToLock():
            return "undo: go back to today's lock, which still runs on the machine as it is then"


def plan_note_words(note: PlanNote) -> str:
    """Return a note on the plan of a machine."""
    match note:
        case of.DependsOnGpus():
            return "neither driver nor GPUs are stated: what is to be done depends on them"
        case of.UnlistedLock(components=components):
            return f"the matrix does not list {', '.join(components)} of today's lock, so its steps are not held to it"
        case of.LockDoesNotRun():
            return "the stack of today's lock does not run on this host as it is, so nothing has to go on running"
        case of.BrokenToday(ground=ground):
            return f"broken today, before any step: {say(ground)}"
        case of.KeepsEndedDriver(driver=driver, branch=branch, end=end):
            return f"driver {driver} stays, of branch {branch}, which ended {end}"


def last_stack_words(needs: LastStackNeeds | None) -> str:
    """Return what an excluded machine needs for the best stack that it can ever run; None stands for a machine without one."""
    if needs is None:
        return "no stack of this spec serves it, whatever is changed on it"
    support = f", branch {needs.support.branch} {_support(needs.support)}" if needs.support is not None else ""
    if needs.changes:
        named = (f"{name} {after} in place of {before or 'what is there'}" for name, before, after in needs.changes)
        text = f"with {' and '.join(named)}{support}"
    else:
        text = f"with driver {needs.driver} as it is{support}" if needs.driver else "as it is"
    return f"beyond what the spec asks for: {text}" if needs.is_beyond_spec else text
