"""Triton, from its wheels."""

from __future__ import annotations

from provisioner.curate.derive import Deriver, Sitting, build_entry, by_version, component_file, for_platform, joined, needs
from provisioner.curate.wheel_facts import glibc, newest_minor, pythons, released
from provisioner.matrix.schema import ComponentFile, ReleaseEntry
from provisioner.platforms import LINUX_PLATFORMS

PROJECT = "triton"
SOURCE = "triton-wheels"
OLDEST = (2, 0)
"""Before 2.0 it was another program, which PyTorch never required."""


def derive(sitting: Sitting) -> ComponentFile:
    """Every release from 2.0 on: its Pythons, platforms and glibc."""
    wheels = [wheel for wheel in sitting.shelf.wheels(PROJECT) if wheel.version.release >= OLDEST]
    newest = newest_minor(wheels)
    releases = []
    for found in by_version(wheels).values():
        builds = []
        for platform in LINUX_PLATFORMS:
            some = for_platform(found, platform)
            if some:
                requires = needs(python=pythons(some, newest=newest), glibc=glibc(some))
                wheel = sitting.representative(some)
                builds.append(build_entry("wheel", wheel, platforms=(platform,), requires=requires, source=(SOURCE,)))
        if builds:
            releases.append(ReleaseEntry(version=found[0].text, released=released(found), builds=joined(builds)))
    source = sitting.source("triton wheels on the package index", "tags and Requires-Python of the wheels", PROJECT)
    return component_file({SOURCE: source}, releases)


TRITON = Deriver(
    component="triton",
    about="Triton, as PyTorch pins it.",
    edit="facts that no wheel holds belong in a file beside this one.",
    derive=derive,
)
