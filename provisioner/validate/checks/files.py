"""Compare the files of an environment with the records of its packages, and print what differs as one line of JSON.

Runs in any container or environment with Python 3.7 or newer, with nothing but the standard library, and imports no package of the
environment: what is wrong with a file is known before anything loads it.

Three questions: has each file the hash that the RECORD of its wheel states ("Recording installed projects", packaging.python.org);
does a package own each file of the environment; does the loader find every library that an extension module needs, by the rules of
ld.so(8).

Usage: python -c FILES PINNED     (PINNED: a JSON object with the SHA-256 of further files of the image by their paths)
"""

import base64
import csv
import hashlib
import importlib.util
import io
import json
import mmap
import os
import platform
import re
import struct
import sys
import sysconfig

OF_THE_DRIVER = re.compile(r"lib(cuda|cudadebugger|nvcuvid|nvidia-[a-z-]+|nvoptix)\.so\.\d+")
"""Libraries that the host's driver brings into a container; no image has them."""

OF_THE_SYSTEM = frozenset(
    "libatomic.so.1 libgcc_s.so.1 libstdc++.so.6 libm.so.6 libanl.so.1 libdl.so.2 librt.so.1 libc.so.6 libnsl.so.1 libutil.so.1 "
    "libpthread.so.0 libX11.so.6 libXext.so.6 libXrender.so.1 libICE.so.6 libSM.so.6 libGL.so.1 libgobject-2.0.so.0 "
    "libgthread-2.0.so.0 libglib-2.0.so.0 libresolv.so.2 libexpat.so.1 libz.so.1 libmvec.so.1".split()
)
"""The libraries that a wheel may leave to the system (lib_whitelist of auditwheel's manylinux-policy.json).

A wheel that needs another one, which neither it nor another package brings, has an optional part: numba one for Intel's TBB, CuPy
one for cuTENSOR. Whether that part is wanted is known by importing it alone.
"""

OF_THE_ENVIRONMENT = re.compile(
    r"pyvenv\.cfg|\.gitignore|\.lock|CACHEDIR\.TAG|lib64|bin/(python[0-9.]*|pypy[0-9.]*|[Aa]ctivate[._a-z0-9]*|pydoc\.bat|deactivate\.bat"
    "|\U0001d70bthon"  # a link to the interpreter that the `venv` of Python 3.14 makes
    r"|activate_this\.py)|(.*/)?_virtualenv\.(py|pth)"
)
"""What `venv`, `virtualenv` and uv put into an environment, relative to it; no package owns it."""


def record_entries(folder, site):
    """Yield path, hash algorithm and digest (both "" if none) for each line of the RECORD in a `.dist-info` folder."""
    with io.open(os.path.join(folder, "RECORD"), encoding="utf-8", newline="") as lines:
        for row in csv.reader(lines):
            if row:
                algorithm, _, digest = (row[1] if len(row) > 1 else "").partition("=")
                yield os.path.normpath(os.path.join(site, row[0])), algorithm, digest


def digest_of(path, algorithm):
    """Return the digest of a file as RECORD spells it: urlsafe base64 without padding."""
    found = hashlib.new(algorithm)
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            found.update(block)
    return base64.urlsafe_b64encode(found.digest()).rstrip(b"=").decode()


def hex_digest_of(path):
    """Return the SHA-256 of a file in hexadecimal digits."""
    return base64.urlsafe_b64decode(digest_of(path, "sha256") + "=").hex()


def recorded(sites):
    """Return the digests stated for each recorded path, the packages that state it, and the packages that have no RECORD.

    Two packages may state the same path; the one installed last has overwritten it, so either digest will do. A package is the
    name of its folder of metadata without the suffix.
    """
    stated, owners, without = {}, {}, []
    for site in sites:
        for name in sorted(os.listdir(site)):
            folder = os.path.join(site, name)
            if name.endswith((".egg-info", ".egg-link", ".egg")):
                without.append(name)
            elif name.endswith(".dist-info"):
                try:
                    entries = list(record_entries(folder, site))
                except OSError:
                    without.append(name)
                    continue
                for path, algorithm, digest in entries:
                    stated.setdefault(path, set()).add((algorithm, digest))
                    owners.setdefault(path, set()).add(name[: -len(".dist-info")])
    return stated, owners, without


def compare_with_records(stated):
    """Return the numbers of files compared, and the paths that are changed, missing or unreadable."""
    found = {"compared": 0, "changed": [], "missing": [], "unreadable": []}
    for path, entries in sorted(stated.items()):
        hashes = [entry for entry in entries if entry[0]]
        try:
            if not os.path.exists(path):
                # Bytecode is recorded without a hash, and may be left out.
                if not path.endswith(".pyc"):
                    found["missing"].append(path)
            elif hashes:
                found["compared"] += 1
                # An installer that compiles writes also bytecode anew that a wheel has; it is compared with its source.
                source = source_of_bytecode(path)
                is_compiled = source in stated and os.path.exists(source)
                if not is_compiled and all(digest_of(path, algorithm) != digest for algorithm, digest in hashes):
                    found["changed"].append(path)
        except OSError:
            found["unreadable"].append(path)
    return found


def source_of_bytecode(path):
    """Return the source that a file `__pycache__/NAME.TAG.pyc` is compiled from (PEP 3147, PEP 488), None for any other file."""
    folder, name = os.path.split(path)
    if not name.endswith(".pyc") or os.path.basename(folder) != "__pycache__":
        return None
    return os.path.join(os.path.dirname(folder), re.sub(r"\.[^.]+(\.opt-\w+)?\.pyc$", "", name) + ".py")


def is_stale(path, source):
    """Return whether Python runs bytecode although it is not that of its source: unchecked bytecode with another hash (PEP 552).

    Python compiles a source again that has another hash, time or size than checked bytecode states. False for a file that cannot
    be read: a source is then told as unreadable, and bytecode is not used.
    """
    try:
        with open(path, "rb") as stream:
            header = stream.read(16)
        if len(header) < 16 or header[:4] != importlib.util.MAGIC_NUMBER or struct.unpack("<I", header[4:8])[0] != 1:
            return False
        with open(source, "rb") as stream:
            return importlib.util.source_hash(stream.read()) != header[8:]
    except OSError:
        return False


def is_of_the_environment(path, relative):
    """Return whether `venv` made a file; its interpreters are links to the one that the environment was made with."""
    is_interpreter = os.path.basename(path).startswith(("python", "pypy", "\U0001d70bthon"))
    return bool(OF_THE_ENVIRONMENT.fullmatch(relative)) and (os.path.islink(path) or not is_interpreter)


def unowned_and_stale(root, stated):
    """Return the files of an environment that no package owns, and the bytecode that is not that of its source."""
    unowned, stale = [], []
    for folder, names, files in os.walk(root):
        for name in files + [name for name in names if os.path.islink(os.path.join(folder, name))]:
            path = os.path.join(folder, name)
            source = source_of_bytecode(path)
            if source in stated and os.path.exists(source):
                if is_stale(path, source):
                    stale.append(path)
            elif path not in stated and not is_of_the_environment(path, os.path.relpath(path, root)):
                unowned.append(path)
    return unowned, stale


class Library:
    """What the loader reads of a 64-bit ELF file for little-endian machines (System V gABI, "Dynamic Section")."""

    def __init__(self, path):
        with open(path, "rb") as stream:
            if stream.read(6) != b"\x7fELF\x02\x01":
                raise ValueError("no ELF file of 64 bits")
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
                self.path, self.machine = path, struct.unpack_from("<H", data, 18)[0]
                tags, names = self._dynamic(data)

        def name(offset):
            return names[offset : names.index(b"\0", offset)].decode()

        self.needed = [name(value) for tag, value in tags if tag == 1]
        self.soname = next((name(value) for tag, value in tags if tag == 14), os.path.basename(path))
        self.rpath = next((name(value) for tag, value in tags if tag == 15), "")
        self.runpath = next((name(value) for tag, value in tags if tag == 29), "")
        self.is_extension = b"\0PyInit_" in names
        self.glibc = max([tuple(map(int, found.split(b"."))) for found in re.findall(rb"GLIBC_(\d+\.\d+)", names)] or [(0, 0)])

    def _dynamic(self, data):
        """Return the dynamic section as tags and values, and the string table it refers to."""
        (start,), (size, count) = struct.unpack_from("<Q", data, 32), struct.unpack_from("<HH", data, 54)
        segments = [struct.unpack_from("<IIQQQQ", data, start + index * size) for index in range(count)]
        tags = []
        for kind, _, offset, _, _, length in segments:
            if kind == 2:
                tags = [struct.unpack_from("<qQ", data, offset + 16 * index) for index in range(length // 16)]
        known = dict(reversed(tags))
        for kind, _, offset, address, _, length in segments:
            if kind == 1 and address <= known.get(5, -1) < address + length:
                first = known[5] - address + offset
                return tags[: tags.index((0, 0))] if (0, 0) in tags else tags, data[first : first + known[10]]
        return [], b""

    def folders(self, paths):
        """Return the folders of an RPATH or RUNPATH of this file."""
        own = os.path.dirname(self.path)
        return [path.replace("${ORIGIN}", own).replace("$ORIGIN", own) for path in paths.split(":") if path]


def loader_cache():
    """Return the paths in /etc/ld.so.cache by name (cache format of glibc 2.2 and newer, sysdeps/generic/dl-cache.h)."""
    found = {}
    try:
        with open("/etc/ld.so.cache", "rb") as stream:
            data = stream.read()
    except OSError:
        return found
    data = data[max(data.find(b"glibc-ld.so.cache1.1"), 0) :]
    if data.startswith(b"glibc-ld.so.cache1.1"):
        for index in range(struct.unpack_from("<I", data, 20)[0]):
            _, key, value = struct.unpack_from("<iII", data, 48 + 24 * index)
            name, path = (data[at : data.index(b"\0", at)].decode() for at in (key, value))
            found.setdefault(name, []).append(path)
    return found


class Loader:
    """Resolves libraries as ld.so(8) does: RPATH of the file and its loaders, LD_LIBRARY_PATH, RUNPATH, cache, default folders."""

    def __init__(self):
        multiarch = sysconfig.get_config_var("MULTIARCH") or ""
        self.cache = loader_cache()
        self.variable = [path for path in re.split("[:;]", os.environ.get("LD_LIBRARY_PATH", "")) if path]
        self.default = [os.path.join(path, multiarch) for path in ("/lib", "/usr/lib")] + [
            "/lib64",
            "/usr/lib64",
            "/lib",
            "/usr/lib",
        ]
        self.machine = Library(os.path.realpath(sys.executable)).machine
        self.read = {}

    def library(self, path):
        """Return what is at a path, None if that is no library for this machine; the loader goes on to the next folder then."""
        path = os.path.realpath(path)
        if path not in self.read:
            try:
                found = Library(path)
            except (OSError, ValueError, struct.error):
                found = None
            self.read[path] = found if found is not None and found.machine == self.machine else None
        return self.read[path]

    def find(self, name, chain):
        """Return the library that the last file of a chain of loaders gets by a name, and whether a file or variable names its folder.

        The library is None if there is none.
        """
        if "/" in name:
            return self.library(name), True
        own, folders = chain[-1], []
        if not own.runpath:
            folders += [path for one in reversed(chain) if not one.runpath for path in one.folders(one.rpath)]
        folders += self.variable + own.folders(own.runpath)
        for is_named, paths in (
            (True, [os.path.join(folder, name) for folder in folders]),
            (False, self.cache.get(name, []) + [os.path.join(folder, name) for folder in self.default]),
        ):
            for found in map(self.library, paths):
                if found is not None:
                    return found, is_named
        return None, False

    def load(self, root):
        """Yield each library that loading a file brings in: the file that needs it, its name, and what `find` returns."""
        loaded, waiting = {root.soname: root}, [[root]]
        while waiting:
            chain = waiting.pop(0)
            for name in chain[-1].needed:
                if name in loaded:
                    continue
                found, is_named = self.find(name, chain)
                loaded[name] = found
                yield chain[-1], name, found, is_named
                if found is not None:
                    loaded.setdefault(found.soname, found)
                    waiting.append(chain + [found])


def compare_libraries(root, paths):
    """Return what the loader does not find for the extension modules among `paths`, and what it takes from outside of `root`.

    What another package of the environment has counts as found: frameworks load such libraries before they import their modules.
    For the same reason, one that the system has as well does not count as taken from there: it is the one that is loaded first,
    and what a framework has loaded is looked at after its import. A folder of RPATH, RUNPATH or LD_LIBRARY_PATH does count.
    """
    loader = Loader()
    glibc = tuple(int(number) for number in platform.libc_ver()[1].split(".")[:2] if number.isdigit())
    libraries = [path for path in paths if ".so" in os.path.basename(path) and not os.path.islink(path)]
    within = {os.path.basename(path) for path in libraries}
    found = {"modules": 0, "unresolved": set(), "optional": set(), "shadowed": set()}
    for path in sorted(libraries):
        try:
            module = Library(path)
        except (OSError, ValueError, struct.error):
            continue
        if not module.is_extension:
            continue
        found["modules"] += 1
        if module.machine != loader.machine:
            found["unresolved"].add("%s is for another machine" % os.path.relpath(path, root))
        if glibc and module.glibc > glibc:
            found["unresolved"].add("%s needs GLIBC_%d.%d" % ((os.path.relpath(path, root),) + module.glibc))
        for needing, name, library, is_named in loader.load(module):
            shown = os.path.relpath(needing.path, root)
            if library is None and name in OF_THE_SYSTEM:
                found["unresolved"].add("%s needs %s" % (shown, name))
            elif library is None and name not in within and not OF_THE_DRIVER.fullmatch(name):
                found["optional"].add("%s needs %s" % (shown, name))
            elif is_named and name in within and not library.path.startswith(os.path.realpath(root) + os.sep):
                found["shadowed"].add("%s gets %s" % (shown, library.path))
    return {key: sorted(value) if isinstance(value, set) else value for key, value in found.items()}


def preloaded():
    """Return the libraries that every program is made to load first: LD_PRELOAD and /etc/ld.so.preload."""
    names = os.environ.get("LD_PRELOAD", "")
    if os.path.exists("/etc/ld.so.preload"):
        with io.open("/etc/ld.so.preload", encoding="utf-8") as stream:
            names += " " + re.sub("#.*", "", stream.read())
    return re.split("[ :\n]+", names.strip()) if names.strip() else []


def main():
    root = os.path.realpath(sys.prefix)
    sites = sorted({os.path.realpath(sysconfig.get_path(name)) for name in ("purelib", "platlib")})
    stated, owners, without = recorded([site for site in sites if os.path.isdir(site)])
    found = compare_with_records(stated)
    found["unrecorded"] = without
    # What was changed, to be compared with the wheels themselves: some were published with a RECORD that is wrong.
    found["contents"] = {
        os.path.relpath(path, root): {"packages": sorted(owners[path]), "sha256": hex_digest_of(path)}
        for path in found["changed"]
    }
    for path, digest in sorted(json.loads(sys.argv[1] if len(sys.argv) > 1 else "{}").items()):
        if not os.path.exists(path):
            found["missing"].append(path)
        elif digest_of(path, "sha256") != base64.urlsafe_b64encode(bytes.fromhex(digest)).rstrip(b"=").decode():
            found["changed"].append(path)
    is_environment = sys.prefix != sys.base_prefix
    unowned, stale = unowned_and_stale(root, stated) if is_environment else (None, [])
    found["unowned"], found["stale"] = unowned, stale
    for key in ("changed", "missing", "unreadable", "unowned", "stale"):
        found[key] = sorted(os.path.relpath(path, root) for path in found[key]) if found[key] is not None else None
    if sys.platform.startswith("linux"):
        found["libraries"] = compare_libraries(root, [path for path in stated if os.path.exists(path)])
        found["libraries"]["preloaded"] = preloaded()
    found["prefix"] = sys.prefix
    found["path"] = [path for path in sys.path if path]
    print(json.dumps(found, sort_keys=True))


if __name__ == "__main__":
    main()
