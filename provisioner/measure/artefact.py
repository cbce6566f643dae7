"""Everything one wheel tells about itself, measured: needs of its libraries, GPU targets, versions, host compilers."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - msgspec reads the annotation at run time
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from provisioner.index.metadata.core_metadata import parse_metadata
from provisioner.measure import texts
from provisioner.measure.elf import MAGIC, VersionScanner, newest, read_library
from provisioner.measure.fatbin import FatBinaryReader, target_key
from provisioner.measure.host_config import declares_rsqrt_noexcept, host_compilers
from provisioner.measure.offload import OffloadReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from provisioner.measure.wheel import RemoteWheel

VERSION = 3
"""Changes with what is measured: measurements kept under another number are taken again."""

MEBIBYTE = 1 << 20
SMALL = 24 * MEBIBYTE
"""A library whose packed size is up to this is always read to its end."""

FIRST = 24 * MEBIBYTE
"""A sample of a larger one ends when so many packed bytes brought no target at all."""

QUIET = 10 * MEBIBYTE
"""A sample ends when so many packed bytes after the last new target brought no other."""

IN_MEMORY = 64 * MEBIBYTE
"""A library that inflates to more than this is read piece by piece: several wheels are measured side by side."""

LARGEST_TEXT = 4 * MEBIBYTE


class Library(Struct, frozen=True, kw_only=True):
    """One shared library of a wheel. `is_whole`: it was read to its end, so that what is not named here is not in it.

    `sass` and `ptx` count the entries for each target (`sm_90` -> 476), `gfx` the bundles; `packed_bundles` could not be read.
    """

    path: str
    is_whole: bool = True
    glibc: str = ""
    glibcxx: str = ""
    cxx11_abi: bool | None = None
    has_executable_stack: bool = False
    needed: tuple[str, ...] = ()
    soname: str = ""
    sass: Mapping[str, int] = field(default_factory=dict)
    ptx: Mapping[str, int] = field(default_factory=dict)
    gfx: Mapping[str, int] = field(default_factory=dict)
    packed_bundles: int = 0


class Measurement(Struct, frozen=True, kw_only=True):
    """What one wheel holds. `is_whole`: every library was read to its end.

    `versions` are those the wheel states itself (`cuda`, `cudnn`, `nccl`, `nccl_cuda`, `torch`), `arch_flags` the targets its
    build was asked for, `compilers` the first major version of each host compiler its headers refuse.
    """

    filename: str
    libraries: tuple[Library, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    arch_flags: tuple[str, ...] = ()
    compilers: Mapping[str, int] = field(default_factory=dict)
    requires: tuple[str, ...] = ()
    rsqrt_noexcept: bool | None = None
    fetched: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether every library was read to its end."""
        return all(library.is_whole for library in self.libraries)

    @property
    def glibc(self) -> str:
        """The newest glibc any library asks for, and so the floor of all of them."""
        return newest(library.glibc for library in self.libraries if library.glibc)

    @property
    def cxx11_abi(self) -> bool | None:
        """The C++ ABI of the libraries that tell; None where none does, or they differ."""
        known = {library.cxx11_abi for library in self.libraries} - {None}
        return known.pop() if len(known) == 1 else None


def measure(wheel: RemoteWheel, *, is_full: bool, progress: Callable[[str], None] = lambda _: None) -> Measurement:
    """Measure a wheel; a sample reads large libraries only as far as they bring something new, `is_full` all of them.

    `progress` is told which member is read. Raises `UnavailableError` and `UnreadableArtefactError`.
    """
    versions: dict[str, str] = {}
    flags: tuple[str, ...] = ()
    compilers: dict[str, int] = {}
    requires: tuple[str, ...] = ()
    rsqrt: bool | None = None
    libraries = []
    for path in wheel.names():
        name = path.rpartition("/")[2]
        if _is_library(name):
            progress(path)
            library, stated, found = _library(wheel, path, is_full=is_full)
            libraries += [library] if library is not None else []
            versions |= stated
            flags = flags or found
        elif wheel.size(path) <= LARGEST_TEXT:
            if path == "torch/version.py":
                versions |= texts.torch_versions(_text(wheel, path))
            elif path == "tensorflow/python/platform/build_info.py":
                stated, found = texts.tensorflow_build(_text(wheel, path))
                versions, flags = versions | dict(stated), found or flags
            elif path.startswith("nvidia/") and name == "cudnn_version.h":
                versions["cudnn"] = texts.cudnn_version(_text(wheel, path))
            elif path.startswith("nvidia/") and path.endswith("crt/host_config.h"):
                compilers = _compilers(_text(wheel, path))
            elif path.startswith("nvidia/") and path.endswith("crt/math_functions.h"):
                rsqrt = declares_rsqrt_noexcept(_text(wheel, path))
            elif path.endswith(".dist-info/METADATA"):
                requires = parse_metadata(wheel.read(path)).requires
    return Measurement(
        filename=wheel.filename,
        libraries=tuple(libraries),
        versions={key: value for key, value in versions.items() if value},
        arch_flags=flags,
        compilers=compilers,
        requires=requires,
        rsqrt_noexcept=rsqrt,
        fetched=wheel.fetched,
    )


def _is_library(name: str) -> bool:
    return name.endswith(".so") or ".so." in name


def _flags(path: str, content: bytes) -> tuple[str, ...]:
    return texts.arch_flags(content) if path.endswith("libtorch_python.so") else ()


def _text(wheel: RemoteWheel, path: str) -> str:
    return wheel.read(path).decode("utf-8", errors="replace")


def _compilers(header: str) -> dict[str, int]:
    found = host_compilers(header)
    return {name: limit for name, limit in (("gcc", found.gcc), ("clang", found.clang)) if limit is not None}


def _library(wheel: RemoteWheel, path: str, *, is_full: bool) -> tuple[Library | None, Mapping[str, str], tuple[str, ...]]:
    """A library, the versions it states, and the targets its build was asked for; None for what is no ELF file."""
    if wheel.packed_size(path) <= SMALL and wheel.size(path) <= IN_MEMORY:
        content = wheel.read(path)
        if not content.startswith(MAGIC):
            return None, {}, ()
        return _whole_library(content, path), texts.nccl_versions(content), _flags(path, content)
    return _streamed_library(wheel, path, is_full=is_full)


def _whole_library(content: bytes, path: str) -> Library:
    reader, bundles = FatBinaryReader(), OffloadReader()
    reader.feed(content)
    bundles.feed(content)
    bundles.finish()
    found = read_library(content, name=path)
    return Library(
        path=path,
        glibc=found.glibc,
        glibcxx=found.glibcxx,
        cxx11_abi=found.cxx11_abi,
        has_executable_stack=found.has_executable_stack,
        needed=found.needed,
        soname=found.soname,
        **_targets(reader, bundles),
    )


def _streamed_library(
    wheel: RemoteWheel, path: str, *, is_full: bool
) -> tuple[Library | None, Mapping[str, str], tuple[str, ...]]:
    reader, bundles, scanner = FatBinaryReader(), OffloadReader(), VersionScanner()
    last_new, known = wheel.fetched, 0
    versions: dict[str, str] = {}
    is_whole, is_first = True, True
    may_stop = not is_full and wheel.packed_size(path) > SMALL
    rest = b""
    for piece in wheel.stream(path):
        if is_first and not piece.startswith(MAGIC):
            return None, {}, ()
        is_first = False
        for one in (reader, bundles, scanner):
            one.feed(piece)
        versions = versions or dict(texts.nccl_versions(rest + piece))
        rest = piece[-128:]
        if len(reader.targets) + len(bundles.targets) > known:
            known, last_new = len(reader.targets) + len(bundles.targets), wheel.fetched
        patience = QUIET if known else FIRST
        if may_stop and wheel.fetched - last_new >= patience and reader.position < wheel.size(path):
            is_whole = False
            break
    bundles.finish()
    library = Library(path=path, is_whole=is_whole, glibc=scanner.glibc, glibcxx=scanner.glibcxx, **_targets(reader, bundles))
    return library, versions, ()


def _targets(reader: FatBinaryReader, bundles: OffloadReader) -> dict[str, Any]:
    return {
        "sass": {name: count for name, count in reader.targets.items() if name.startswith("sm_")},
        "ptx": {name: count for name, count in reader.targets.items() if name.startswith("compute_")},
        "gfx": dict(bundles.targets),
        "packed_bundles": bundles.unread,
    }


def all_targets(libraries: Iterable[Library], kind: str) -> Mapping[str, int]:
    """The entries for each target, added up over libraries."""
    found: dict[str, int] = {}
    for library in libraries:
        for name, count in getattr(library, kind).items():
            found[name] = found.get(name, 0) + count
    return {name: found[name] for name in sorted(found, key=target_key)}
