"""Read what a shared library requires of the system: glibc, other libraries, an executable stack, and the C++ ABI."""

from __future__ import annotations

import re
from io import BytesIO
from typing import TYPE_CHECKING, Any

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import Dynamic, DynamicSection, DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
from msgspec import Struct

from provisioner.measure import UnreadableArtefactError
from provisioner.versions import numbers_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from elftools.elf.sections import Section

MAGIC = b"\x7fELF"

PF_X = 1
"""The flag of a segment whose memory is executable. Source: ELF specification, "Segment Permissions"."""

CXX11_MARK = b"NSt7__cxx11"
"""The namespace in the mangled names of strings and lists of the C++11 ABI (GCC 5 and later), which the older ABI lacks.

Source: GCC manual of libstdc++, "Dual ABI".
"""

OLD_STRING = re.compile(rb"\0_ZNK?Ss")
"""A pattern for methods of the older ABI's string, whose mangled name is `Ss`.

Source: Itanium C++ ABI, "Compression", abbreviations.
"""

_GLIBC_NAME = re.compile(rb"(?:GLIBC|GLIBCXX)_(\d+(?:\.\d+)+)\0")
_PATHS = frozenset({"DT_RPATH", "DT_RUNPATH"})
_OVERLAP = 64


class SharedLibrary(Struct, frozen=True, kw_only=True):
    """The requirements of one ELF shared library.

    `glibc` and `glibcxx` are the newest symbol versions that it needs, "" when it needs none. `needed` are the libraries that
    it links to (DT_NEEDED), `searched` the directories where it has the loader look for them (DT_RPATH, DT_RUNPATH). If
    `has_executable_stack` is True, newer glibc refuses to load the library into a running program.
    `cxx11_abi` is True for the C++11 ABI of libstdc++, False for the older ABI, None when the symbols show neither or both.
    """

    glibc: str = ""
    glibcxx: str = ""
    needed: tuple[str, ...] = ()
    soname: str = ""
    searched: tuple[str, ...] = ()
    has_executable_stack: bool = False
    cxx11_abi: bool | None = None


def read_library(content: bytes, *, name: str) -> SharedLibrary:
    """Parse the content of a shared library; raises `UnreadableArtefactError` when it is not an ELF file or is damaged."""
    try:
        file = ELFFile(BytesIO(content))
        sections = list(file.iter_sections())
        versions = dict(_needed_versions(sections))
        needed, soname, searched = _dynamic(file, sections)
        stacks = [segment for segment in file.iter_segments() if segment["p_type"] == "PT_GNU_STACK"]
        return SharedLibrary(
            glibc=newest(versions.get("GLIBC", ())),
            glibcxx=newest(versions.get("GLIBCXX", ())),
            needed=needed,
            soname=soname,
            searched=searched,
            # A library without the mark is given an executable stack on x86. Source: ld(1), "-z execstack".
            has_executable_stack=any(segment["p_flags"] & PF_X for segment in stacks),
            cxx11_abi=_cxx11_abi(sections),
        )
    except (ELFError, ValueError, KeyError, IndexError, TypeError, AttributeError, AssertionError, OverflowError) as error:
        # pyelftools checks little of what it reads, so damage shows as any of these exceptions.
        raise UnreadableArtefactError(f"`{name}` is not a readable ELF file: {str(error) or type(error).__name__}") from None


class VersionScanner:
    """Finds the glibc and libstdc++ versions that a library needs in its stream of bytes, for libraries too large for memory.

    The linker puts each version into the table of strings as a name of its own (`GLIBC_2.28`), and a library other than the C
    library itself has such names nowhere else.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._found: dict[str, set[str]] = {"GLIBC": set(), "GLIBCXX": set()}

    @property
    def glibc(self) -> str:
        """The newest glibc version named so far, "" for none."""
        return newest(self._found["GLIBC"])

    @property
    def glibcxx(self) -> str:
        """The newest libstdc++ version named so far, "" for none."""
        return newest(self._found["GLIBCXX"])

    def feed(self, piece: bytes) -> None:
        """Scan the next bytes of the library; `piece` may begin and end anywhere."""
        window = self._rest + piece
        # Looking for the rare word and then at what stands before it is ten times faster than looking for zeros.
        for match in _GLIBC_NAME.finditer(window):
            if match.start() and window[match.start() - 1] == 0:
                family, _, number = match[0][:-1].decode().partition("_")
                self._found[family].add(number)
        self._rest = window[-_OVERLAP:]


def newest(versions: Iterable[str]) -> str:
    """Return the newest of versions such as 2.28 and 2.4, "" for none."""
    return max(versions, key=numbers_of, default="")


def _needed_versions(sections: list[Section]) -> Iterator[tuple[str, set[str]]]:
    found: dict[str, set[str]] = {}
    for section in sections:
        if not isinstance(section, GNUVerNeedSection):
            continue
        for _, names in section.iter_versions():
            for one in names:
                family, _, number = str(one.name).rpartition("_")
                # GLIBC_PRIVATE and GLIBC_ABI_DT_RELR are no versions.
                if number and all(part.isdigit() for part in number.split(".")):
                    found.setdefault(family, set()).add(number)
    yield from found.items()


def _dynamic(file: ELFFile, sections: list[Section]) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    places: list[Dynamic] = [one for one in sections if isinstance(one, DynamicSection)]
    places += [one for one in file.iter_segments() if isinstance(one, DynamicSegment)]
    if not places:
        return (), "", ()
    tags: list[Any] = list(places[0].iter_tags())  # pyelftools adds `needed`, `soname` and others to tags at run time
    needed = tuple(str(tag.needed) for tag in tags if tag.entry.d_tag == "DT_NEEDED")
    soname = next((str(tag.soname) for tag in tags if tag.entry.d_tag == "DT_SONAME"), "")
    paths = [str(tag.rpath if tag.entry.d_tag == "DT_RPATH" else tag.runpath) for tag in tags if tag.entry.d_tag in _PATHS]
    return needed, soname, tuple(one for path in paths for one in path.split(":") if one)


def _cxx11_abi(sections: list[Section]) -> bool | None:
    """Return whether the dynamic symbols are of the C++11 ABI; None when they show neither ABI or, as in old libc10, both."""
    names = next((bytes(section.data()) for section in sections if section.name == ".dynstr"), b"")
    is_new, is_old = CXX11_MARK in names, OLD_STRING.search(names) is not None
    return is_new if is_new != is_old else None
