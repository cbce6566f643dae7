"""Conversion of the tags and requirements of wheels to needs, the matrix's requirements on components; pure.

Sources: PyPA specifications, "Platform compatibility tags", "Version specifiers" and "Dependency specifiers".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet

from provisioner.index.pages.tags import glibc_needed, platform_of
from provisioner.platforms import MACOS_PLATFORMS, PLATFORM_NAMES, PlatformName
from provisioner.versions import dotted, numbers_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from packaging.requirements import Requirement

    from provisioner.curate.wheel_index import Wheel
    from provisioner.index.model import IndexFile
    from provisioner.matrix.need import NeedText

HONEST_GLIBC = (2, 12)
"""The oldest glibc in a tag that is trusted: wheels tagged manylinux1 (2.5) were never checked and often need a newer one."""

_INTERPRETER = re.compile(r"cp(\d)(\d+)")
_MACOS = re.compile(r"macosx_(\d+)_(\d+)_(\w+)")
_ORDER = (">=", ">", "~=", "==", "===", "!=", "<=", "<")
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64", "x86_64": "x86_64"}


def platforms(wheel: Wheel) -> tuple[PlatformName, ...]:
    """Return the platforms of the matrix that a wheel is for; all platforms for the tag `any`."""
    found = {platform_of(tag) for tag in wheel.platform_tags}
    if "any" in found:
        return PLATFORM_NAMES
    if "macos/universal2" in found:
        found |= set(MACOS_PLATFORMS)
    if "macos/intel" in found:
        # x86_64 and i386 in one file, which Macs with x86_64 install. Source: PEP 425 and packaging.tags.mac_platforms
        found.add("macos/x86_64")
    return tuple(platform for platform in PLATFORM_NAMES if platform in found)


def is_ordinary(wheel: Wheel) -> bool:
    """Return whether a wheel is for the standard CPython, not for PyPy or a free-threaded build."""
    return not wheel.abi.endswith("t") and any(name.startswith(("cp", "py")) for name in wheel.interpreters)


def minors(wheel: Wheel) -> tuple[str, ...]:
    """Return the CPython feature releases (`3.12`) in a wheel's tag; empty for a tag such as `py3`."""
    found = [match for name in wheel.interpreters if (match := _INTERPRETER.fullmatch(name))]
    return tuple(f"{match[1]}.{match[2]}" for match in found)


def newest_minor(wheels: Iterable[Wheel]) -> tuple[int, ...]:
    """Return the newest CPython in the tags of wheels as numbers (3, 12); (0,) when no tag names a CPython."""
    return max((numbers_of(minor) for wheel in wheels for minor in minors(wheel)), default=(0,))


def pythons(wheels: Sequence[Wheel], *, newest: tuple[int, ...]) -> NeedText:
    """Return the Pythons that tags and Requires-Python of the wheels allow: a list, or a range for pure Python wheels.

    A stable-ABI (abi3) wheel supports the Python in its tag and all later ones, here up to `newest`, the newest Python that any
    wheel of the project was built for.
    """
    usable = [wheel for wheel in wheels if is_ordinary(wheel)]
    if any(not minors(wheel) for wheel in usable):
        return as_range(SpecifierSet(usable[0].file.requires_python or ">=3"))
    found: set[str] = set()
    for wheel in usable:
        named = minors(wheel)
        if wheel.abi == "abi3":
            major, minor = numbers_of(min(named, key=numbers_of))
            named = tuple(f"{major}.{number}" for number in range(minor, max(newest[-1], minor) + 1))
        found.update(minor for minor in named if welcome(minor, wheel.file))
    return tuple(sorted(found, key=numbers_of))


def welcome(minor: str, file: IndexFile) -> bool:
    """Return whether a wheel's Requires-Python allows any patch release of a CPython (`3.12`)."""
    # `>=3.11.2` still welcomes 3.11, and `<3.12.1` still 3.12: a feature release counts when any patch release of it does.
    allowed = SpecifierSet(file.requires_python or "")
    return any(allowed.contains(f"{minor}.{patch}") for patch in (0, 50))


def glibc(wheels: Iterable[Wheel]) -> str:
    """Return the range of glibc releases on which all `wheels` run, as their tags promise (`>=2.28`).

    "" when the tag of a wheel is not of manylinux, or names a glibc older than `HONEST_GLIBC`.
    """
    floors = [glibc_needed(wheel.file.filename) for wheel in wheels]
    known = [floor for floor in floors if floor is not None and floor >= HONEST_GLIBC]
    return ">=" + dotted(max(known)) if known and len(known) == len(floors) else ""


def macos(wheels: Iterable[Wheel], platform: str) -> str:
    """Return the range of macOS releases on which all wheels run, as their tags promise (`>=11.0`); "" without such tags."""
    machine = platform.rpartition("/")[2]
    found = [
        (int(match[1]), int(match[2]))
        for wheel in wheels
        for tag in wheel.platform_tags
        if (match := _MACOS.fullmatch(tag)) and match[3] in {machine, "universal2", "intel"}
    ]
    return ">=" + dotted(max(found)) if found else ""


def required(
    requirements: Iterable[Requirement], *, platform: str, python: str, extras: Iterable[str] = ("",)
) -> dict[str, Requirement]:
    """Return the requirements that apply on a platform and Python with any of `extras`, by the normalized name of the project.

    Several applying requirements on one project are merged into one.
    """
    from packaging.utils import canonicalize_name

    found: dict[str, Requirement] = {}
    environments = [_environment(platform, python, extra) for extra in extras]
    for requirement in requirements:
        if requirement.marker is not None and not any(requirement.marker.evaluate(one) for one in environments):
            continue
        name = canonicalize_name(requirement.name)
        if name in found:
            joined = type(requirement)(str(found[name]).partition(";")[0])
            joined.specifier &= requirement.specifier
            joined.extras |= requirement.extras
            found[name] = joined
        else:
            found[name] = requirement
    return found


def _environment(platform: str, python: str, extra: str) -> dict[str, str]:
    system, _, machine = platform.partition("/")
    is_linux = system == "linux"
    return {
        "extra": extra,
        "implementation_name": "cpython",
        "implementation_version": f"{python}.0",
        "os_name": "posix",
        "platform_machine": _MACHINES[machine] if is_linux else machine,
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux" if is_linux else "Darwin",
        "platform_version": "",
        "python_full_version": f"{python}.0",
        "python_version": python,
        "sys_platform": "linux" if is_linux else "darwin",
    }


def as_range(specifier: SpecifierSet) -> str:
    """Return a PEP 440 specifier as a range of the matrix, its lower bound first: `>=9.8,<10.0`."""
    parts = sorted(specifier, key=lambda one: (_ORDER.index(one.operator), one.version))
    return ",".join(f"{one.operator}{one.version}" for one in parts)


def floor(specifier: SpecifierSet) -> str:
    """Return the lower bound of a specifier, without `.*`; "" when it has none."""
    found = [one.version.removesuffix(".*") for one in specifier if one.operator in {"==", ">=", "~="}]
    return found[0] if found else ""


def cuda_of_runtime(specifier: SpecifierSet, major: str) -> str:
    """Return the CUDA range for a pin of its runtime library: `==12.6.77` gives `==12.6.*`, `>=12.1.105` gives `>=12.1,<13`.

    The third number of the runtime library is a build number, not the toolkit's. Without a lower bound, it is `==MAJOR.*`.
    """
    numbers = floor(specifier).split(".")
    if len(numbers) < 2:
        return f"=={major}.*"
    level = ".".join(numbers[:2])
    is_exact = any(one.operator in {"==", "==="} for one in specifier)
    return f"=={level}.*" if is_exact else f">={level},<{int(numbers[0]) + 1}"


def released(wheels: Iterable[Wheel]) -> str:
    """Return the ISO date of the first upload of these wheels; "" when the index gives no upload times."""
    days = sorted(wheel.file.upload_time[:10] for wheel in wheels if wheel.file.upload_time)
    return days[0] if days else ""
