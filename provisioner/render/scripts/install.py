"""Install the packages of a lock into an image, in layers that are rebuilt only when their packages change.

The Dockerfile runs one of these commands in each step:

    install.py root ID HOME [GUARD]             lay out what every image has: its user and, if it is guarded, the guard
    install.py installer REQUIREMENT...         install uv, from its one file, with the pip that comes with Python
    install.py layers LOCK DIGEST --NAME A B... give each layer a folder with this file, uv and its part of the lock
    install.py build REQUIREMENT...             build wheels of source distributions
    install.py layer DIGEST BUILT==VERSION...   install the packages of such a folder, and wheels that were built
    install.py environment                      make an environment without packages
    install.py clean TIME                       remove what apt-get leaves of a build, since this Unix time

A package is in the first layer that has its name, the beginning of its name (`nvidia-*`, for compiled wheels), or a size that
one of its wheels reaches (`32MiB`); all others are in the last one. A digest is one hash of the hashes of all files: a lock and
a Dockerfile that do not belong together end the build. pip and uv compare each file with its hash in the lock. All files get
the same time and bytecode does not depend on it, so two builds of a lock give layers with the same digest. Runs on Python 3.7
and newer.
"""

import hashlib
import importlib.util
import marshal
import os
import py_compile
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote, unquote

ENVIRONMENT = Path("/opt/venv")
INSTALLER = Path("/opt/uv")
ROOT = Path("/opt/root")
LAYERS = Path("/layers")
BUILT = Path("/opt/built")
SCRATCH = Path("/tmp")  # every mount of a step is below it
CACHE = SCRATCH / "cache"
WHEELHOUSE = SCRATCH / "wheelhouse"
LAST = "packages"
TIME = 315532800  # of every file in a layer: 1980-01-01, the first day that a zip archive can express
MOUNTED = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf")  # by engines, in every step
URL = re.compile(r"https?://[^\s\"]+")


def run(*command):
    """Run a program with the caches and, where they were handed in, the certificates and the logins of this build.

    buildah before 1.29 has one cache for all users of a machine, which only the first can write (its issue 4404).
    """
    if CACHE.exists() and not os.access(str(CACHE), os.W_OK):
        sys.exit("error: the cache of this build belongs to another user: TMPDIR=$HOME podman build --no-cache . has its own")
    environment = dict(
        os.environ,
        PIP_CACHE_DIR=str(CACHE / "pip"),
        PIP_DISABLE_PIP_VERSION_CHECK="1",
        PIP_NO_INPUT="1",
        PIP_ROOT_USER_ACTION="ignore",
        PYTHONDONTWRITEBYTECODE="1",
        PYTHONHASHSEED="0",
        UV_CACHE_DIR=str(CACHE / "uv"),
        UV_HTTP_TIMEOUT="300",
        UV_LINK_MODE="copy",
        UV_NO_CONFIG="1",
        UV_NO_INSTALLER_METADATA="1",
        UV_PREVIEW_FEATURES="pylock",
        UV_PYTHON_DOWNLOADS="never",
    )
    for secret, names in (("ca", ("PIP_CERT", "SSL_CERT_FILE")), ("netrc", ("NETRC",))):
        if (SCRATCH / secret).exists():
            environment.update((name, str(SCRATCH / secret)) for name in names)
    code = subprocess.call([str(word) for word in command], env=environment, cwd=str(SCRATCH))
    if code:
        sys.exit(code)


def local(text, place):
    """The text with files of the wheelhouse in the place of the URLs that end with their names; `place` says where one is."""
    files = {file.name: file for file in WHEELHOUSE.iterdir()} if WHEELHOUSE.is_dir() else {}

    def replaced(match):
        file = files.get(unquote(match.group().rpartition("/")[2]))
        return match.group() if file is None else "file://" + quote(str(place(file)))

    return URL.sub(replaced, text)


def pip(command, requirements, *options):
    """Run a command of the pip in Python's ensurepip, out of its wheel, on requirements that name one file and its hash each."""
    ensurepip = importlib.util.find_spec("ensurepip")
    if ensurepip is None:
        sys.exit("error: %s in the base image lacks ensurepip" % sys.executable)
    folders = (Path(ensurepip.origin).parent / "_bundled", Path("/usr/share/python-wheels"))  # the second is Debian's
    os.environ["PYTHONPATH"] = str(next(wheel for folder in folders for wheel in sorted(folder.glob("pip-*.whl"))))
    file = SCRATCH / "requirements.txt"
    file.write_text(local("\n".join(requirements), lambda housed: housed), encoding="utf-8")
    run(sys.executable, "-m", "pip", command, "--require-hashes", "--no-deps", *options, "--requirement", file)


def require(digest, text, name):
    """End the build if the files that a lock, or a part of it, names have another digest than in the Dockerfile."""
    hashes = set(re.findall(r'\bsha256 = "([0-9a-f]{64})"', text))
    if hashlib.sha256("".join(sorted(hashes)).encode()).hexdigest() != digest:
        sys.exit("error: %s has changed since the Dockerfile was rendered: provision render %s --out Dockerfile" % (name, name))


def lay_out(lock, digest, groups):
    """Write the part of the lock of each layer, with the files for it that are here, into a folder of its own."""
    text = Path(lock).read_text(encoding="utf-8")
    head, *packages = re.split(r"(?m)^(?=\[\[packages\]\]$)", text)
    packages = [re.split(r"(?m)^\[+tool\b", package)[0] for package in packages]
    require(digest, "".join(packages), Path(lock).name)
    parts = {name: "" for name in [*groups, LAST]}
    for package in packages:
        parts[layer_of(package, groups)] += package
    for name, tables in parts.items():
        folder = LAYERS / name
        folder.mkdir(parents=True)

        def take(file, name="", folder=folder):
            target = folder / (name or file.name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(str(file), str(target))
            return SCRATCH / "layer" / target.relative_to(folder)

        for path in re.findall(r'(?m)^path = "([^"]+)"$', tables):
            take(Path(lock).parent / path, path)
        (folder / "pylock.toml").write_text(local(head + tables, take), encoding="utf-8")
        take(Path(__file__))
        os.link(str(INSTALLER / "bin" / "uv"), str(folder / "uv"))


def layer_of(package, groups):
    """The name of the layer of a package, which is its table in the lock."""
    name = re.search(r'(?m)^name = "([^"]+)"$', package).group(1)
    wheels = re.findall(r"(?ms)^\[\[packages\.wheels\]\]$(.*?)(?=^\[|\Z)", package)
    size = max([int(number) for wheel in wheels for number in re.findall(r"(?m)^size = (\d+)$", wheel)], default=0)

    def has(member):
        if member.endswith("*"):
            return name.startswith(member[:-1]) and '-any.whl"' not in package
        return size >= int(member[:-3]) * 2**20 if re.fullmatch(r"\d+MiB", member) else name == member

    return next((layer for layer, members in groups.items() if any(map(has, members))), LAST)


def install(folder, digest, *built):
    """Install the packages of a layer, compile them, and give every new file the same time."""
    part = folder / "pylock.toml"
    text = part.read_text(encoding="utf-8")
    require(digest, text, "the lock")
    make_environment()
    uv = (folder / "uv", "pip", "install", "--python", ENVIRONMENT / "bin" / "python", "--no-build")
    if "[[packages]]" in text:
        run(*uv, "--requirement", part)
    if built:
        run(*uv, "--no-deps", "--no-cache", "--no-index", "--find-links", SCRATCH / "built", *built)
    finish()


def make_environment():
    """Make the environment, unless an earlier layer has it."""
    if not ENVIRONMENT.exists():
        run(sys.executable, "-B", "-m", "venv", "--without-pip", ENVIRONMENT)


def make_root(identifier, home, guard=""):
    """Lay out what an image has beside its packages, to be copied to its `/`: a user, without useradd, and the guard.

    Engines mount /etc/hosts and /etc/resolv.conf in each step. Where a base image lacks them, BuildKit before 0.11 makes and
    removes them, which leaves the time of the build in each layer; so every image gets them.
    """
    entries = {"group": "provision:x:{0}:\n", "passwd": "provision:x:{0}:{0}::{1}:/bin/sh\n"}
    folder = ROOT / "etc"
    folder.mkdir(parents=True)
    for name, entry in entries.items():
        text = Path("/etc", name).read_text(encoding="utf-8", errors="surrogateescape")
        if identifier not in [line.split(":")[2] for line in text.splitlines() if line.count(":") > 2]:
            text += entry.format(identifier, home)
        (folder / name).write_text(text, encoding="utf-8", errors="surrogateescape")
        shutil.copystat("/etc/" + name, str(folder / name))
    (folder / "hosts").write_text("127.0.0.1 localhost\n::1 localhost\n", encoding="utf-8")
    (folder / "resolv.conf").write_text("", encoding="utf-8")
    place = Path(str(ROOT) + home)
    place.mkdir(parents=True)
    # OpenShift gives a container any user, of the group root.
    os.chown(str(place), int(identifier), 0)
    place.chmod(0o775)
    if guard:
        target = Path(str(ROOT) + guard)
        target.parent.mkdir(parents=True)
        target.write_bytes(Path(__file__).with_name(target.name).read_bytes())
    for path in new_files(ROOT):
        known = "/" + os.path.relpath(path, str(ROOT))
        if os.path.isdir(path) and os.path.isdir(known):
            shutil.copystat(known, path)
        os.utime(path, (TIME, TIME))


def clean(start):
    """Remove the lists, caches and logs of apt-get, and give what it wrote the one time, so that two builds give the same.

    Logs of the base image are emptied, because the mark of a file that is gone has the time of the build.
    """
    for path in [*Path("/var/lib/apt/lists").glob("*"), *Path("/var/cache/apt").glob("*.bin")]:
        shutil.rmtree(str(path)) if path.is_dir() else path.unlink()
    device = os.lstat("/").st_dev
    for top, folders, files in os.walk("/"):
        folders[:] = [name for name in folders if os.lstat(os.path.join(top, name)).st_dev == device]  # no mount points
        for path in [top, *(os.path.join(top, name) for name in files)]:
            state = os.lstat(path)
            if path in MOUNTED:
                continue
            if path.startswith(("/var/log/", "/var/cache/ldconfig/")) and stat.S_ISREG(state.st_mode) and state.st_size:
                os.truncate(path, 0)
                state = os.lstat(path)
            if state.st_mtime >= int(start) - 1:  # the clock of files is some milliseconds behind
                os.utime(path, (TIME, TIME), follow_symlinks=False)


def new_files(folder):
    """Files, links and folders that do not have the one time yet, each after what is in it."""
    for path, folders, files in os.walk(str(folder), topdown=False):
        yield from (os.path.join(path, name) for name in files + folders if os.lstat(os.path.join(path, name)).st_mtime != TIME)


def finish():
    """Compile the modules of a layer, then set the time of all its files."""
    lock = ENVIRONMENT / ".lock"  # uv's, while it installs
    if lock.exists():
        lock.unlink()
    modules = [path for path in new_files(ENVIRONMENT / "lib") if path.endswith(".py") and not os.path.islink(path)]
    count = os.cpu_count() or 1
    command = [sys.executable, "-B", "-W", "ignore", __file__, "compile"]
    workers = [subprocess.Popen(command, stdin=subprocess.PIPE, env=dict(os.environ, PYTHONHASHSEED="0")) for _ in range(count)]
    for index, worker in enumerate(workers):
        worker.stdin.write(b"".join(os.fsencode(module) + b"\n" for module in modules[index::count]))
        worker.stdin.close()
    if any([worker.wait() for worker in workers]):
        sys.exit(1)
    for path in [*new_files(ENVIRONMENT), str(ENVIRONMENT), str(ENVIRONMENT.parent)]:
        os.utime(path, (TIME, TIME), follow_symlinks=False)


def compile_modules(paths):
    """Compile modules that nobody will change: Python does not look at their sources again. What was compiled before is kept."""
    cache = CACHE / "bytecode" / sys.implementation.cache_tag
    cache.mkdir(parents=True, exist_ok=True)
    for path in paths:
        source = Path(path).read_bytes()
        known = cache / hashlib.sha256(os.fsencode(path) + b"\0" + source).hexdigest()
        target = importlib.util.cache_from_source(path)
        if not known.exists():
            partial = "%s.%d" % (known, os.getpid())
            try:
                mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
                py_compile.compile(path, cfile=partial, dfile=path, doraise=True, invalidation_mode=mode)
            except (py_compile.PyCompileError, SyntaxError, ValueError, RecursionError):
                continue  # a template, or of another Python
            if sys.version_info < (3, 11) and not is_reproducible(marshal.loads(Path(partial).read_bytes()[16:])):
                os.unlink(partial)
                continue  # it is compiled when it is imported
            os.replace(partial, str(known))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(str(known), target)


def is_reproducible(code):
    """Return whether two runs of a Python before 3.11 write the same bytecode: sets as they are iterated, so by their hashes.

    That of None is its address (bpo-37596, and gh-99540 of Python 3.12).
    """
    return all(
        is_reproducible(constant)
        if isinstance(constant, type(code))
        else not isinstance(constant, frozenset) or is_hashed_by_value(constant)
        for constant in code.co_consts
    )


def is_hashed_by_value(constant):
    """Return whether no part of a constant is hashed by its address."""
    if isinstance(constant, (tuple, frozenset)):
        return all(map(is_hashed_by_value, constant))
    return constant is not None and constant is not Ellipsis


def main(command, *arguments):
    """Run one command."""
    if command == "root":
        make_root(*arguments)
    elif command == "installer":
        # What uv requires of Python is for its module: the program installs for Python 3.7, too.
        options = ("--only-binary", ":all:", "--no-compile", "--ignore-requires-python")
        pip("install", arguments, *options, "--target", INSTALLER)
    elif command == "layers":
        lock, digest, *words = arguments
        groups = " ".join(words).split("--")[1:]
        lay_out(lock, digest, {name: members for name, *members in map(str.split, groups)})
    elif command == "build":
        pip("wheel", arguments, "--find-links", WHEELHOUSE, "--wheel-dir", BUILT)
    elif command == "layer":
        install(Path(__file__).parent, *arguments)
    elif command == "environment":
        make_environment()
        finish()
    elif command == "clean":
        clean(*arguments)
    elif command == "compile":
        compile_modules(line.rstrip("\n") for line in sys.stdin)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
