"""Requirements of source distributions, found by building them in isolation, with a time limit, and only if policy allows.

A build runs the distribution's own code on this machine. PyPA `build` makes the isolated environment, installs the build
requirements with pip, and requests only the metadata from a build backend that can give it without building a wheel (PEP 517,
`prepare_metadata_for_build_wheel`). The distribution's code gets few environment variables, no login, no input and no home
directory; this is no sandbox: the code runs as this user and may read whatever the user may read.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from provisioner.errors import UnavailableError
from provisioner.index.address import credentials_in, public_url
from provisioner.index.metadata.core_metadata import (
    CoreMetadata,
    UnusableMetadataError,
    first_invalid,
    sdist_project,
    unusable,
)
from provisioner.index.routing import default_index
from provisioner.index.settings import variable_prefix

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import Popen

    from provisioner.index.activity import Activity
    from provisioner.index.cache import Cache
    from provisioner.index.model import IndexFile
    from provisioner.index.settings import IndexLocation, IndexSettings, Login

SCRIPT = Path(__file__).parent / "scripts" / "build_metadata.py"
"""The script that runs PyPA `build`, in a separate process."""

SECONDS = 600.0
"""The time limit of one build, including its downloads."""

LINES = 12
"""The number of last lines of a failed build that are logged with -v."""

FAILURES = 2
"""The number of failed builds of one project after which its other versions are not built in this run."""

_EXCEPTION = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception|Exit|Interrupt|Failure)\b.*")
_MISSING = re.compile(r"(?:ModuleNotFound|Import)Error: No module named '(\w+)")


class FailedBuilds:
    """Remembers the builds that failed in one run, for all its index clients; `lock` is held while one looks and builds.

    This Python runs a build, whatever the Python of the target, so a file that fails for one fails for all. A later run builds
    it again: what was missing may be installed then.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._errors: dict[str, UnusableMetadataError] = {}
        self._counts: Counter[str] = Counter()

    def require_none(self, file: IndexFile) -> None:
        """Raise `UnusableMetadataError` if the build of `file` failed, or those of `FAILURES` other versions of its project."""
        known = self._errors.get(_identity(file))
        if known is not None:
            raise known.with_traceback(None)
        if self._counts[sdist_project(file.filename)] >= FAILURES:
            raise unusable(file.filename, f"was not built: {FAILURES} builds of other versions of it failed before")

    def add(self, file: IndexFile, error: UnusableMetadataError) -> None:
        """Remember that the build of `file` raised `error`."""
        self._errors[_identity(file)] = error
        self._counts[sdist_project(file.filename)] += 1


class MetadataBuilder:
    """Builds the metadata of source distributions; results are cached by file hash, Python version and machine."""

    def __init__(
        self,
        settings: IndexSettings,
        cache: Cache,
        *,
        activity: Activity,
        login_for: Callable[[str], Login | None] | None = None,
        failed: FailedBuilds | None = None,
    ) -> None:
        """Report what is being built to `activity`; `login_for` returns the login of an index by its URL.

        `failed` is shared by the builders of a run, None for builds of this builder alone.
        """
        self._settings = settings
        self._cache = cache
        self._activity = activity
        self._login_for = login_for
        self._failed = failed or FailedBuilds()

    def kept(self, file: IndexFile) -> CoreMetadata | None:
        """Return the cached metadata of an earlier build of `file`; None if there was none or policy does not allow builds."""
        if not (self._settings.allow_build and file.sha256):
            return None
        return self._cache.load(_key(file), CoreMetadata)

    def metadata(self, file: IndexFile, saved: Callable[[Path], Path]) -> CoreMetadata:
        """Return the metadata of a source distribution, from an earlier build or by building it now.

        `saved` returns the path of the file, which it may write to the path it is given; it is called only for a build. Raises
        `UnusableMetadataError` when the build fails or failed before in this run, and `UnavailableError` when a build is needed
        in offline mode.
        """
        kept = self.kept(file)
        if kept is not None:
            return kept
        if self._settings.offline:
            raise UnavailableError(
                f"offline: `{file.filename}` was not built before, and a build downloads what it requires",
                hints=("run once without --offline",),
            )
        with self._failed.lock:  # one at a time: a build may use every core there is
            found = self.kept(file) or self._recorded(file, saved)
        if file.sha256:
            self._cache.store(_key(file), found)
        return found

    def _recorded(self, file: IndexFile, saved: Callable[[Path], Path]) -> CoreMetadata:
        """Build the metadata of a source distribution and return it; raises `UnusableMetadataError` if the build fails.

        A failed build is remembered, and that error is raised without another build of the file, and, after `FAILURES` failed
        builds of a project, of any of its versions.
        """
        self._failed.require_none(file)
        try:
            return self._build(file, saved)
        except UnusableMetadataError as error:
            self._failed.add(file, error)
            raise

    def _build(self, file: IndexFile, saved: Callable[[Path], Path]) -> CoreMetadata:
        import tempfile

        login = self._login()
        with tempfile.TemporaryDirectory(prefix="provision-build-") as folder:
            archive = saved(Path(folder) / "archive")
            with self._activity.building(file.filename):
                source = _unpacked(archive, file.filename, Path(folder) / "source")
                # -P: the folder of the script is no place to import from.
                command = [sys.executable, "-P", str(SCRIPT), str(source)]
                code, out, err = _run(command, environment(self._settings, folder, login=login), Path(folder))
        if code is None:
            raise UnusableMetadataError(f"the build of `{file.filename}` was stopped after {SECONDS:g} s")
        if code:
            raise UnusableMetadataError(
                f"the build of `{file.filename}` fails: {_build_error(err, self._settings, login)}",
                hints=(self._where_from(), "build a wheel where it builds, and name its directory in find-links"),
            )
        return _metadata(out, file.filename)

    def _login(self) -> Login | None:
        """Return the login, from any source, for the index that pip uses in the build, where pip cannot read netrc itself.

        None when there is no such index or no login.
        """
        location = build_index(self._settings)
        return None if location is None or self._login_for is None else self._login_for(location.url)

    def _where_from(self) -> str:
        location = build_index(self._settings)
        return f"what a build requires is taken from {f'index `{location.name}`' if location else 'find-links'} alone"


def _identity(file: IndexFile) -> str:
    """Return what tells a file from others of a run: its hash, or where it is if its index states none."""
    return file.sha256 or file.path or file.url


def _key(file: IndexFile) -> str:
    """Return the cache key of a build's result, which depends on the Python version and the machine."""
    return f"built:{sys.platform}-{os.uname().machine}-{sys.version_info[0]}.{sys.version_info[1]}:{file.sha256}"


# fmt: off
PASSED_ON = frozenset({
    "PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH",
    "CC", "CXX", "CPP", "AR", "LD", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "ARCHFLAGS", "SDKROOT",
    "CUDA_HOME", "CUDA_PATH", "ROCM_PATH", "MAX_JOBS", "MAKEFLAGS", "SOURCE_DATE_EPOCH", "MACOSX_DEPLOYMENT_TARGET",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
})
# fmt: on
"""The environment variables passed on to a build; all others may hold tokens, keys or paths of the user."""


def environment(settings: IndexSettings, folder: str, *, login: Login | None = None) -> dict[str, str]:
    """Return the environment variables of a build, whose pip uses only the default index of this run, with `login` if given.

    pip takes the highest version of all its indexes, so with several any of them could supply code that the build runs. pip's
    configuration files are switched off, because their indexes, certificates and proxies are in `settings` already. The home
    directory is replaced with `folder`.
    """
    import site

    kept = {name: value for name, value in os.environ.items() if name.upper() in PASSED_ON}
    location = build_index(settings)
    stated = None if location is None else login or settings.logins.get(variable_prefix(location.name))
    url = "" if location is None else _with_login(location.url, stated)
    own = {
        "HOME": folder,
        "USERPROFILE": folder if os.name == "nt" else "",
        "TMPDIR": folder,
        "PYTHONUSERBASE": site.getuserbase(),  # `build` may be installed there; code of the distribution is not told
        "PYTHONNOUSERSITE": os.environ.get("PYTHONNOUSERSITE", ""),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": url,
        "PIP_NO_INDEX": "" if url else "1",
        "PIP_FIND_LINKS": " ".join(settings.find_links),
        "PIP_CERT": settings.ca_bundle,
        "PIP_CLIENT_CERT": settings.client_certificate,
        "PIP_PROXY": settings.proxy,
        "PIP_TRUSTED_HOST": " ".join(settings.trusted_hosts),
        "PIP_NO_INPUT": "1",
        "PIP_KEYRING_PROVIDER": "disabled",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    return {key: value for key, value in (kept | own).items() if value}


def build_index(settings: IndexSettings) -> IndexLocation | None:
    """Return the index from which build requirements are installed: the default index; None when there is none."""
    return default_index(settings)


def _with_login(url: str, login: tuple[str, str] | None) -> str:
    from urllib.parse import quote, urlsplit

    parts = urlsplit(url)
    if login is None or not login[1] or parts.scheme not in {"http", "https"}:
        return url
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{quote(login[0], safe='')}:{quote(login[1], safe='')}@{host}").geturl()


def _unpacked(path: Path, filename: str, folder: Path) -> Path:
    """Unpack a source distribution into `folder` and return its top-level directory; writes nothing outside `folder`.

    Raises `UnusableMetadataError` when the archive is damaged or does not hold exactly one directory.
    """
    import tarfile
    import zipfile

    folder.mkdir()
    try:
        if filename.endswith(".zip"):
            with zipfile.ZipFile(path) as archive:
                archive.extractall(folder)  # noqa: S202 - zipfile drops `..` and roots of member names
        else:
            with tarfile.open(path, mode="r:*") as archive:
                archive.extractall(folder, filter="data")
    except (tarfile.TarError, zipfile.BadZipFile, OSError, EOFError, RuntimeError) as error:
        raise unusable(filename, f"cannot be unpacked: {error}") from None
    tops = sorted(folder.iterdir())
    if len(tops) != 1 or not tops[0].is_dir():
        raise unusable(filename, "does not hold one folder, as a source distribution does")
    return tops[0]


def _run(command: list[str], variables: dict[str, str], folder: Path) -> tuple[int | None, str, str]:
    """Run a command and return its exit code, stdout and stderr; the code is None when it was stopped after `SECONDS`.

    Processes that the command leaves behind in its process group are killed. Its output goes to files, because a daemon that
    the command started in another session could hold a pipe open.
    """
    import subprocess
    import tempfile

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(  # noqa: S603 - this Python, with arguments of our own
            command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        try:
            process.wait(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return None, "", ""
        finally:
            _stop(process)
        return process.returncode, _text(out), _text(err)


def _stop(process: Popen[bytes]) -> None:
    import signal

    with suppress(ProcessLookupError, PermissionError):  # nothing is left
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _build_error(text: str, settings: IndexSettings, used: Login | None) -> str:
    """Return the error of a failed build in one line, and log its last lines, which -v shows; logins are masked."""
    import logging

    lines = [line.strip("|<>* \t") for line in _without_logins(text, settings, used).splitlines()]
    lines = [line for line in lines if line and not line.startswith("TIP ")]
    logging.getLogger("provisioner.build").info("the last lines of the build:\n%s", "\n".join(lines[-LINES:]))
    missing = next((match[1] for line in reversed(lines) if (match := _MISSING.match(line))), "")
    if missing:
        return f"it imports `{missing}` while it is built, and does not declare that it needs it"
    found = [line for line in lines if _EXCEPTION.fullmatch(line)]
    return (found or lines or ["it says nothing"])[-1]


def _without_logins(text: str, settings: IndexSettings, used: Login | None) -> str:
    for url in (*(location.url for location in settings.indexes), *settings.find_links, settings.proxy):
        found = credentials_in(url)
        for secret in found or ():
            text = text.replace(secret, "***") if secret else text
        text = text.replace(url, public_url(url)) if url else text
    for secret in (part for login in (*settings.logins.values(), *((used,) if used else ())) for part in login):
        text = text.replace(secret, "***") if secret else text
    return text


def _metadata(text: str, filename: str) -> CoreMetadata:
    """Parse the JSON that the build script prints; raises `UnusableMetadataError` when it is malformed."""
    try:
        found = json.loads(text)
        requires = tuple(str(one) for one in found.get("requires_dist", ()))
        return CoreMetadata(
            name=str(found["name"]),
            version=str(found["version"]),
            requires_python=str(found.get("requires_python", "")),
            requires=requires,
            invalid=first_invalid(requires),
            is_built=True,
        )
    except (ValueError, KeyError, AttributeError, TypeError):
        raise UnusableMetadataError(f"the build of `{filename}` gives no metadata that can be read") from None
