"""Install the packages of a lock into an image, in layers that are rebuilt only when their packages change.

The Dockerfile runs one of these commands in each step:

    install.py installer REQUIREMENT...         install uv, from its one file, with the pip that comes with Python
    install.py layers LOCK DIGEST --NAME A B... give each layer a folder with uv, this file and its part of the lock
    install.py build REQUIREMENT...             build wheels of source distributions
    install.py layer DIGEST BUILT==VERSION...   install the packages of such a folder, and wheels that were built
    install.py environment                      make an environment without packages

A digest is one hash of the hashes of all files: a lock and a Dockerfile that do not belong together end the build. pip and uv
compare each file with its hash in the lock. All files get the same time and bytecode does not depend on it, so two builds of a
lock give layers with the same digest. Runs on Python 3.7 and newer.
"""

import hashlib
import importlib.util
import os
import py_compile
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote, unquote

ENVIRONMENT = Path("/opt/venv")
INSTALLER = Path("/opt/installer")
LAYERS = Path("/opt/layers")
BUILT = Path("/opt/built")
SCRATCH = Path("/tmp")  # every mount of a step is below it
CACHE = SCRATCH / "cache"
WHEELHOUSE = SCRATCH / "wheelhouse"
LAST = "packages"
TIME = 315532800  # of every file in a layer: 1980-01-01, the first day that a zip archive can express
URL = re.compile(r"https?://[^\s\"]+")


def run(*command):
    """Run a program with the caches and, where they were handed in, the certificates and the logins of this build."""
    environment = dict(
        os.environ,
        PIP_CACHE_DIR=str(CACHE / "pip"),
        PIP_DISABLE_PIP_VERSION_CHECK="1",
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
    layer_of = {package: name for name, members in groups.items() for package in members}
    for package in packages:
        name = re.search(r'(?m)^name = "([^"]+)"$', package).group(1)
        parts[layer_of.get(name, LAST)] += package
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
            os.replace(partial, str(known))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(str(known), target)


def main(command, *arguments):
    """Run one command."""
    if command == "installer":
        pip("install", arguments, "--only-binary", ":all:", "--no-compile", "--target", INSTALLER)
    elif command == "layers":
        lock, digest, *words = arguments
        groups = " ".join(words).split("--")[1:]
        lay_out(lock, digest, {name: members for name, *members in map(str.split, groups)})
    elif command == "build":
        pip("wheel", arguments, "--wheel-dir", BUILT)
    elif command == "layer":
        install(Path(__file__).parent, *arguments)
    elif command == "environment":
        make_environment()
        finish()
    elif command == "compile":
        compile_modules(line.rstrip("\n") for line in sys.stdin)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
