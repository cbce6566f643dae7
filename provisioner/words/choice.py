"""Reasons why one version was chosen and not another, and cautions, as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.components import COMPONENTS
from provisioner.grounds import choice as of
from provisioner.words.ground import say
from provisioner.words.notation import listed, source_words
from provisioner.words.notice import source_notice_words

if TYPE_CHECKING:
    from provisioner.grounds.choice import (
        Caution,
        HeldBack,
        InstallDriver,
        InstalledForGpu,
        Move,
        MoveReason,
        PassedOver,
        ShownByDriver,
        StepReason,
        Unread,
    )

MOST_EXTRAS = 8
"""The most extras of a distribution that the caution about an unknown extra lists."""


def move_reason_words(reason: MoveReason) -> str:
    """Return why a locked version changed, or did not change although an upgrade was requested."""
    match reason:
        case of.AskedFor():
            return "it was asked for"
        case of.NoLongerOffered(name=name, label=label, is_distribution=True):
            return f"no index offers {name} {label} any longer"
        case of.NoLongerOffered(name=name, label=label):
            return f"the matrix has no {name} {label}"
        case of.NotInstallable(name=name, label=label, problem=problem):
            return f"{name} {label}: {problem}"
        case of.RuledOut(ground=ground, has=has):
            return f"{say(ground)}, and it is {has}" if has else say(ground)
        case of.NothingHolds(is_newer=is_newer):
            return "nothing holds together with a newer one" if is_newer else "nothing holds together with it kept"


def move_source(move: Move) -> str:
    """Return the source of the reason for a change of version; "" when there is none to cite."""
    return source_words(move.reason.ground.source) if isinstance(move.reason, of.RuledOut) else ""


def step_reason_words(reason: StepReason) -> str:
    """Return why a step of a plan is needed, or has its position in the plan."""
    if reason.is_stop:
        return f"a stop on the way: {say(reason.ground)}"
    if reason.changed_first:
        return f"with the {reason.changed_first} changed first this would not hold: {say(reason.ground)}"
    return say(reason.ground)


def install_driver_words(install: InstallDriver) -> str:
    """Return which driver must be installed on a host that states none."""
    modules = f" ({install.module} modules)" if install.module else ""
    return f"{install.component} {install.version}{modules} is to be installed: {install.host} states none"


def held_back_words(held: HeldBack) -> str:
    """Return the requirement that holds a framework or a package back."""
    also = f", and {held.more} more like it" if held.more else ""
    why = f"; {say(held.because)}" if held.because is not None else ""
    of_python = f", which has no file for python {held.python}" if held.python else ""
    return f"{held.component} {held.chosen} rather than {held.newest}: {say(held.by)}{also}{why}{of_python}"


def passed_over_words(reason: PassedOver) -> str:
    """Return why a newer release that would work was not taken."""
    match reason:
        case of.LockKeeps(name=name, label=label):
            return f"it would work, but the lock has {name} {label}; --upgrade-package {name} lets it move"
        case of.PolicyPrefers(table=table, name=name, range=wanted, place=place):
            return f"it would work, but policy.{table} says {name} {wanted}  ({place})"
        case of.StrategyIsOldest(place=place):
            return f"it would work, but policy.strategy is oldest  ({place})"
        case of.ComesFirst(name=name, before=before, after=after):
            instead = f" instead of {before}" if before else ""
            with_it = f"{name} {after or 'left out'}{instead}"
            return f"it would work, but with {with_it}, and {name} comes first in the order of preference"
        case of.NotFirst():
            return "it would work, but is not what the order of preference takes first"
        case of.BundledVersion(distribution=name, version=version):
            return f"it is what {name} {version} carries; `provision explain {name}` says more of that"
        case of.CannotTell(problem=problem):
            return f"whether it would work cannot be told: {problem}"


def shown_words(shown: ShownByDriver) -> str:
    """Return which unstated facts a running driver shows to be sufficient."""
    facts = listed(tuple(COMPONENTS[name].label for name in shown.facts))
    be = "are" if len(shown.facts) > 1 else "is"
    return f"{shown.host} runs driver {shown.driver}, so its {facts} {be} as that driver needs"


def unread_words(unread: Unread) -> str:
    """Return which stated facts of a host the stack does not depend on."""
    them = "them" if len(unread.keys) > 1 else "it"
    return f"{unread.host} states {listed(unread.keys)}, and nothing in this stack depends on {them}"


def installed_for_gpu_words(installed: InstalledForGpu) -> str:
    """Return as what a framework is installed for the GPUs of a target, why, and what would leave that out."""
    extras = f"[{','.join(installed.extras)}]" if installed.extras else ""
    brings = f"which brings the {installed.accelerator} libraries" if extras else "the package"
    without = f"`{installed.cpu_twin}`" if installed.cpu_twin else "`accelerator: cpu`"
    return f"{installed.name} is installed as {installed.distribution}{extras}, {brings} for a GPU; {without} is without"


def caution_words(caution: Caution) -> str:
    """Return a caution about an answer, which is valid all the same."""
    match caution:
        case of.Yanked(name=name, version=version, reason=reason):
            return f"{name} {version} is yanked{f': {reason}' if reason else ', with no reason given'}"
        case of.UnknownExtra(name=name, version=version, extra=extra, known=known, nearest=nearest, requested_by=requested_by):
            more = f" and {len(known) - MOST_EXTRAS} more" if len(known) > MOST_EXTRAS else ""
            has = f"it has {', '.join(known[:MOST_EXTRAS])}{more}" if known else "it has none"
            if nearest:
                has = f"did you mean `{nearest}`?"
            who = "nobody" if requested_by is None else say(requested_by)
            if requested_by is not None and requested_by.is_request:
                who = f"{who}, {source_words(requested_by.source)}"
            return f"{name} {version} has no extra `{extra}`; {has}  ({who})"
        case of.LoweredTarget(device=device, target=target, nvcc=nvcc):
            runs = "which its driver compiles at start" if target.endswith("+PTX") else "whose code runs there"
            return f"nvcc {nvcc} does not know gpu {device}: compile for {target}, {runs}"
        case of.MissingKernels(subject=subject, devices=devices, because=because):
            return f"{subject} has no kernels for {listed(devices)}: {because}"
        case of.WithoutLibraries(name=name, version=version, sonames=sonames, gives=gives):
            return f"{name} {version} is without {listed(sonames)}, needed by {gives} alone"
        case of.IndexLeftOut(indexes=indexes, problem=problem):
            return f"pytorch: what {', '.join(indexes)} may have was left out: {problem}"
        case of.UnlistedRelease(component=component, versions=versions):
            unknown = f"the index has {listed(versions)}, which the matrix does not know yet"
            return f"{component}: {unknown}: `provision matrix refresh {component}`"
    return source_notice_words(caution)
