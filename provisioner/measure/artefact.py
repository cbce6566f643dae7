"""Measure one wheel: the requirements, GPU targets and versions of its libraries, and the host compilers its headers refuse.

A large library may be read in part only: the sample ends when it has brought no new GPU target for some time.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - msgspec reads the annotation at run time
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from provisioner.index.metadata.core_metadata import parse_metadata
from provisioner.measure import texts
from provisioner.measure.elf import MAGIC, VersionScanner, newest, read_library
from provisioner.measure.fatbin import FatBinaryReader, target_key
from provisioner.measure.offload import OffloadReader
from provisioner.measure.scan import Scanner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from provisioner.measure.wheel import RemoteWheel

VERSION = 6
"""The version of the measuring code, a part of the cache key: a wheel measured by another version is measured again."""

MEBIBYTE = 1 << 20
SMALL = 24 * MEBIBYTE
"""The packed size in bytes up to which a library is always read to its end."""

FIRST = 24 * MEBIBYTE
"""The number of packed bytes without any GPU target after which the sample of a larger library ends.

One that contains a CUDA runtime or links to it has code for GPUs, mostly behind all other code, and some have PTX before it:
its sample does not end before the first machine code. Measured: libmxnet.so of mxnet-cu112 1.9.1, libcudf.so of libcudf-cu13
26.10.2 and, with PTX first, of libcudf-cu12 26.8.1.
"""

QUIET = 10 * MEBIBYTE
"""The number of packed bytes without a new GPU target after which a sample ends."""

IN_MEMORY = 64 * MEBIBYTE
"""The unpacked size in bytes above which a library is read piece by piece, because several wheels are measured at once."""

COMPILERS = frozenset({"ptxas", "ptxas-blackwell"})
"""The filenames of compilers, which are programs but are measured like libraries."""

LARGEST_TEXT = 4 * MEBIBYTE
"""The size in bytes up to which a text member is read."""


class Library(Struct, frozen=True, kw_only=True):
    """The measurement of one shared library of a wheel.

    `is_whole` is True if the library was read to its end, so that the numbers of targets are complete. `glibc` and `glibcxx`
    are the newest symbol versions that the library needs, "" if it needs none. `needed` are the libraries that it links to; for
    a library that was read piece by piece, only those of CUDA, PyTorch and ROCm. `named` are all libraries of these three that
    it names, because it links to them or loads them at run time. `searched` are the directories where it has the loader look
    for them, mostly relative to its own (`$ORIGIN/../nvidia/cublas/lib`). `has_runtime` is True if it contains a CUDA runtime,
    whose CUDA release is `runtime`, "" if unknown. `compiler` is the CUDA release of the compiler that it contains, "" if it
    contains none; `tools` are the CUDA releases of the compilers named in its GPU code. `ptx_isa` maps each target in `ptx` to
    the newest PTX ISA of its code.

    `sass` and `ptx` map each target to its number of entries in fat binaries (`sm_90` -> 476), `gfx` to its number of offload
    bundles; `packed_bundles` is the number of bundles that could not be unpacked.
    """

    path: str
    is_whole: bool = True
    glibc: str = ""
    glibcxx: str = ""
    cxx11_abi: bool | None = None
    has_executable_stack: bool = False
    needed: tuple[str, ...] = ()
    soname: str = ""
    searched: tuple[str, ...] = ()
    sass: Mapping[str, int] = field(default_factory=dict)
    ptx: Mapping[str, int] = field(default_factory=dict)
    gfx: Mapping[str, int] = field(default_factory=dict)
    packed_bundles: int = 0
    ptx_isa: Mapping[str, str] = field(default_factory=dict)
    named: tuple[str, ...] = ()
    has_runtime: bool = False
    runtime: str = ""
    compiler: str = ""
    tools: tuple[str, ...] = ()
    needs_numpy_1: bool = False


class Measurement(Struct, frozen=True, kw_only=True):
    """The measurement of one wheel.

    `versions` are the versions recorded in the wheel's files (`cuda`, `cudnn`, `nccl`, `nccl_cuda`, `torch`), `arch_flags` the
    targets recorded there that the wheel was compiled for, `assembled` the targets that its ptxas compiles for, and `compilers`
    maps each host compiler that its headers check to the first major version that they refuse. `requires` are the wheel's
    Requires-Dist texts. `rsqrt_noexcept` is the result of `declares_rsqrt_noexcept` for its headers, None without them.
    `fetched` is the number of bytes read.
    """

    filename: str
    libraries: tuple[Library, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    arch_flags: tuple[str, ...] = ()
    assembled: tuple[str, ...] = ()
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
        """The oldest glibc with which all libraries of the wheel run, "" when no library needs a version."""
        return newest(library.glibc for library in self.libraries if library.glibc)

    @property
    def cxx11_abi(self) -> bool | None:
        """Whether the libraries have the C++11 ABI; None when no library shows its ABI, or they differ."""
        known = {library.cxx11_abi for library in self.libraries} - {None}
        return known.pop() if len(known) == 1 else None


def measure(wheel: RemoteWheel, *, is_full: bool, progress: Callable[[str], None] = lambda _: None) -> Measurement:
    """Measure a wheel; with `is_full`, each library is read to its end, else a large one until it brings no new targets.

    `progress` is called with the path of each library. Raises `UnavailableError` and `UnreadableArtefactError`.
    """
    versions: dict[str, str] = {}
    flags: tuple[str, ...] = ()
    assembled: tuple[str, ...] = ()
    compilers: dict[str, int] = {}
    requires: tuple[str, ...] = ()
    rsqrt: bool | None = None
    libraries = []
    for path in wheel.names():
        name = path.rpartition("/")[2]
        if name.endswith(".so") or ".so." in name or name in COMPILERS:
            progress(path)
            read = _read_library(wheel, path, is_full=is_full)
            libraries += [read.library] if read.library is not None else []
            versions |= read.versions
            flags = flags or read.arch_flags
            assembled = assembled or read.assembled
        elif wheel.size(path) <= LARGEST_TEXT:
            if path == "torch/version.py":
                versions |= texts.torch_versions(_text(wheel, path))
            elif path == "tensorflow/python/platform/build_info.py":
                found, targets = texts.tensorflow_build(_text(wheel, path))
                versions, flags = versions | dict(found), targets or flags
            elif path.startswith("nvidia/") and name == "cudnn_version.h":
                versions["cudnn"] = texts.cudnn_version(_text(wheel, path))
            elif path.startswith("nvidia/") and path.endswith("crt/host_config.h"):
                compilers = texts.refused_compilers(_text(wheel, path))
            elif path.startswith("nvidia/") and path.endswith("crt/math_functions.h"):
                rsqrt = texts.declares_rsqrt_noexcept(_text(wheel, path))
            elif path.endswith(".dist-info/METADATA"):
                requires = parse_metadata(wheel.read(path)).requires
    return Measurement(
        filename=wheel.filename,
        libraries=tuple(libraries),
        versions={key: value for key, value in versions.items() if value},
        arch_flags=flags,
        assembled=assembled,
        compilers=compilers,
        requires=requires,
        rsqrt_noexcept=rsqrt,
        fetched=wheel.fetched,
    )


class _ReadLibrary(NamedTuple):
    """The result of reading a member of a wheel as a library; `library` is None if the member is no ELF file.

    `versions` are what `nccl_versions` found in the member, `arch_flags` the targets listed in PyTorch's libtorch_python.so,
    `assembled` those that ptxas compiles for.
    """

    library: Library | None = None
    versions: Mapping[str, str] = MappingProxyType({})
    arch_flags: tuple[str, ...] = ()
    assembled: tuple[str, ...] = ()


def _text(wheel: RemoteWheel, path: str) -> str:
    return wheel.read(path).decode("utf-8", errors="replace")


def _read_library(wheel: RemoteWheel, path: str, *, is_full: bool) -> _ReadLibrary:
    """Read a member of a wheel as a library: whole if it is small or a compiler, else piece by piece."""
    is_compiler = path.rpartition("/")[2] in COMPILERS
    if not is_compiler and (wheel.packed_size(path) > SMALL or wheel.size(path) > IN_MEMORY):
        return _streamed_library(wheel, path, is_full=is_full)
    content = wheel.read(path)
    if not content.startswith(MAGIC):
        return _ReadLibrary()
    flags = texts.arch_flags(content) if path.endswith("libtorch_python.so") else ()
    assembled = texts.ptxas_targets(content) if is_compiler else ()
    return _ReadLibrary(_whole_library(content, path), texts.nccl_versions(content), flags, assembled)


def _whole_library(content: bytes, path: str) -> Library:
    reader, bundles, scanner = FatBinaryReader(), OffloadReader(), Scanner()
    for one in (reader, bundles, scanner):
        one.feed(content)
    bundles.finish()
    found = read_library(content, name=path)
    library = Library(
        path=path,
        glibc=found.glibc,
        glibcxx=found.glibcxx,
        cxx11_abi=found.cxx11_abi,
        has_executable_stack=found.has_executable_stack,
        needed=found.needed,
        soname=found.soname,
        searched=found.searched,
    )
    return _with_targets(library, reader, bundles, scanner)


def _streamed_library(wheel: RemoteWheel, path: str, *, is_full: bool) -> _ReadLibrary:
    """Read a large library piece by piece; unless `is_full`, stops when it brings no new targets (`FIRST`, `QUIET`)."""
    reader, bundles, versions_scanner, scanner = FatBinaryReader(), OffloadReader(), VersionScanner(), Scanner()
    last_new, known = wheel.fetched, 0
    versions: dict[str, str] = {}
    is_whole, is_first = True, True
    may_stop = not is_full and wheel.packed_size(path) > SMALL
    rest = b""
    for piece in wheel.stream(path):
        if is_first and not piece.startswith(MAGIC):
            return _ReadLibrary()
        is_first = False
        for one in (reader, bundles, versions_scanner, scanner):
            one.feed(piece)
        versions = versions or dict(texts.nccl_versions(rest + piece))
        rest = piece[-128:]
        if len(reader.targets) + len(bundles.targets) > known:
            known, last_new = len(reader.targets) + len(bundles.targets), wheel.fetched
        limit = QUIET if known else FIRST
        is_quiet = scanner.knows_links and wheel.fetched - last_new >= limit
        may_end = not scanner.uses_runtime or any(name.startswith("sm_") for name in reader.targets)
        if may_stop and is_quiet and may_end and reader.position < wheel.size(path):
            is_whole = False
            break
    bundles.finish()
    library = Library(
        path=path,
        is_whole=is_whole,
        glibc=versions_scanner.glibc,
        glibcxx=versions_scanner.glibcxx,
        needed=scanner.linked,
        searched=scanner.searched,
    )
    return _ReadLibrary(_with_targets(library, reader, bundles, scanner), versions)


def _with_targets(library: Library, reader: FatBinaryReader, bundles: OffloadReader, scanner: Scanner) -> Library:
    return replace(
        library,
        sass={name: count for name, count in reader.targets.items() if name.startswith("sm_")},
        ptx={name: count for name, count in reader.targets.items() if name.startswith("compute_")},
        gfx=dict(bundles.targets),
        packed_bundles=bundles.unread,
        ptx_isa=dict(reader.isa),
        named=scanner.named,
        has_runtime=scanner.has_runtime,
        runtime=scanner.runtime,
        compiler=scanner.compiler,
        tools=scanner.tools,
        needs_numpy_1=scanner.needs_numpy_1,
    )


def all_targets(libraries: Iterable[Library], kind: str) -> Mapping[str, int]:
    """Return the number of entries for each target of a kind (`sass`, `ptx`, `gfx`) in all libraries, sorted by target."""
    found: dict[str, int] = {}
    for library in libraries:
        for name, count in getattr(library, kind).items():
            found[name] = found.get(name, 0) + count
    return {name: found[name] for name in sorted(found, key=target_key)}
