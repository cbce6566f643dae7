"""Finds the facts of a Mac: its release and build, NVIDIA's Web Driver and CUDA driver, Xcode, and system protection."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from provisioner.host.model import Driver, Host, OperatingSystem
from provisioner.host.parse import parse_plist_string, parse_sip, parse_web_driver
from provisioner.host.program import ask

if TYPE_CHECKING:
    from provisioner.host.tree import Tree

_SYSTEM = "System/Library/CoreServices/SystemVersion.plist"
_CUDA = "Library/Frameworks/CUDA.framework/Versions/A/Resources/Info.plist"
_XCODE = "Applications/Xcode.app/Contents/version.plist"
_WEB_DRIVER = "Library/Extensions/NVDAStartupWeb.kext/Contents/Info.plist"


def is_macos(tree: Tree) -> bool:
    """Whether the tree is a Mac's."""
    return tree.exists(_SYSTEM)


def inspect_mac(tree: Tree) -> Host:
    """Read what a Mac's property lists say; the rest is asked only of the running machine."""
    system = tree.text(_SYSTEM) or ""
    driver = parse_web_driver(parse_plist_string(tree.text(_WEB_DRIVER) or "", "CFBundleGetInfoString") or "")
    return Host(
        platform=_platform() if tree.is_live else None,
        os=OperatingSystem(
            id="macos",
            version=parse_plist_string(system, "ProductVersion"),
            build=parse_plist_string(system, "ProductBuildVersion"),
        ),
        kernel=os.uname().release if tree.is_live else None,
        driver=Driver(kind="webdriver", version=driver) if driver else None,
        python_arch=os.uname().machine if tree.is_live else None,
        cuda_driver=parse_plist_string(tree.text(_CUDA) or "", "CFBundleVersion"),
        sip=parse_sip(ask("csrutil", "status") or "") if tree.is_live else None,
        xcode=parse_plist_string(tree.text(_XCODE) or "", "CFBundleShortVersionString"),
    )


def _platform() -> Literal["macos/x86_64", "macos/arm64"] | None:
    machine = os.uname().machine
    return "macos/x86_64" if machine == "x86_64" else "macos/arm64" if machine == "arm64" else None
