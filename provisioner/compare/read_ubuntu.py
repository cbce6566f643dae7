"""Read the driver branches of which Ubuntu has signed kernel modules, from `Packages` of its archive or `apt-cache show`.

A package `linux-modules-nvidia-580-open-generic-6.8` names the newest modules of its branch, kernel flavour and kernel series.
They load with the libraries of their own driver release only, so a branch counts where its modules are of the release that the
archive's libraries are of: those for a kernel series that Ubuntu has left fall behind.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from provisioner.compare.claims import Claim
from provisioner.compare.read_debian import STANZA
from provisioner.versions import Version, numbers_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PACKAGE = re.compile(r"^Package: linux-modules-nvidia-", re.MULTILINE)
_FIELD = re.compile(r"^(Package|Architecture|Version|Depends): (.+)$", re.MULTILINE)
_META = re.compile(r"linux-modules-nvidia-\d+(?:-server)?(?:-open)?-[a-z]\S*")
_MODULES = re.compile(
    r"linux-modules-nvidia-(?P<variant>(?P<branch>\d+(?:-server)?)(?:-open)?)-"
    r"(?P<series>\d+\.\d+)\.\d+-\d+-(?P<flavour>\S+)"
)
_NEEDED_LIBRARIES = re.compile(r"nvidia-kernel-common-\S+ \(>= ([\d.]+)\)")
_LIBRARIES = re.compile(r"nvidia-kernel-common-(\d+(?:-server)?)")
_RELEASE = re.compile(r"ubuntu\d*\.(\d\d\.\d\d)(?:\.\d+)?$")
_PLATFORMS = {"amd64": "linux/amd64", "arm64": "linux/arm64"}


def is_ubuntu(text: str) -> bool:
    """Return whether a text describes Ubuntu packages, one of which has NVIDIA's kernel modules."""
    return _PACKAGE.search(text) is not None


def claims(text: str) -> Iterator[Claim]:
    """Yield a claim for each kernel series and flavour of one Ubuntu release: the branches with signed modules, newest first.

    Raises `ValueError` when the text does not show for which release of Ubuntu its packages are.
    """
    stanzas = tuple(_stanzas(text))
    libraries, release = _libraries(fields for _, fields in stanzas)
    branches: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    lines: dict[tuple[str, str, str], int] = {}
    for line, fields in stanzas:
        meta, depends = _META.fullmatch(fields.get("Package", "")), fields.get("Depends", "")
        modules, needed = _MODULES.search(depends), _NEEDED_LIBRARIES.search(depends)
        platform = _PLATFORMS.get(fields.get("Architecture", ""))
        if meta is None or modules is None or needed is None or platform is None:
            continue
        if meta[0] != f"linux-modules-nvidia-{modules['variant']}-{modules['flavour']}-{modules['series']}":
            continue  # a package of another branch, which a transition leaves, or a second name for the same modules
        kernel = platform, modules["flavour"], modules["series"]
        if libraries.get(modules["branch"]) == needed[1]:
            branches[kernel].add(modules["branch"].partition("-")[0])
            lines.setdefault(kernel, line)
    for (platform, flavour, series), found in sorted(branches.items(), key=lambda one: (one[0][:2], numbers_of(one[0][2]))):
        says = " ".join(sorted(found, key=int, reverse=True))
        subject = f"ubuntu {release} {platform} {flavour} {series}"
        yield Claim(question="signed-modules", subject=subject, says=says, line=lines[platform, flavour, series])


def _stanzas(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the packages of a text: the line on which each begins, and its fields by name."""
    line, end = 1, 0
    for stanza in STANZA.finditer(text):
        line += text.count("\n", end, stanza.start())
        end = stanza.start()
        yield line, dict(_FIELD.findall(stanza[0]))


def _libraries(packages: Iterator[Mapping[str, str]]) -> tuple[dict[str, str], str]:
    """Return the driver release of each branch's libraries, and the release of Ubuntu that most of them are built for.

    A branch whose libraries are those of a newer one, because its package only depends on the newer one's, is left out.
    """
    found: dict[str, tuple[Version, bool]] = {}
    releases: Counter[str] = Counter()
    for fields in packages:
        name = _LIBRARIES.fullmatch(fields.get("Package", ""))
        if name is None:
            continue
        version = fields["Version"].partition("-")[0]
        is_own = not fields.get("Depends", "").startswith("nvidia-kernel-common-")
        found[name[1]] = max(found.get(name[1], (Version.parse("0"), True)), (Version.parse(version), is_own), key=_newest)
        if release := _RELEASE.search(fields["Version"]):
            releases[release[1]] += 1
    if not releases:
        raise ValueError("no nvidia-kernel-common package shows the release of Ubuntu")
    own = {branch: version.text for branch, (version, is_own) in found.items() if is_own}
    return own, releases.most_common(1)[0][0]


def _newest(libraries: tuple[Version, bool]) -> tuple[Version, bool]:
    """Return the order of two states of a branch's libraries: of one release the transition to a newer branch is the later."""
    version, is_own = libraries
    return version, not is_own
