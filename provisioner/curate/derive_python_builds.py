"""The deriver of the matrix file about archives of CPython, from the newest release of python-build-standalone.

`latest` in the file itself is the address of a JSON document that names this release; its SHA256SUMS list the archives. A
release has archives of the series that are maintained; of older series the rows remain.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.curate.derive import GENERATED
from provisioner.errors import UnavailableError
from provisioner.index.http.transport import refusal
from provisioner.matrix.model import Citation, PythonBuild
from provisioner.versions import Version, numbers_of, series

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.curate.index_reader import IndexReader
    from provisioner.matrix.files import PythonBuildFile
    from provisioner.platforms import PlatformName

PYTHON_BUILDS = "python-builds"
"""The name that selects the archives of CPython in a refresh, used like the name of a component."""

HEADER = f"""\
Archives of CPython, as uv installs them, for base images that have another Python: the newest of each series.
{GENERATED} {PYTHON_BUILDS}`, not by hand, except `latest`, which names the newest release.
Every one needs glibc 2.17, which no base image is older than."""

SUMS = "python-build-standalone-sums"
RUNNING = "python-build-standalone"
MACHINES: dict[str, PlatformName] = {"x86_64": "linux/amd64", "aarch64": "linux/arm64"}
LARGEST_DOCUMENT = 4 << 20

_ARCHIVE = re.compile(
    r"([0-9a-f]{64}) [ *](cpython-(\d+\.\d+\.\d+)\+\d+-(x86_64|aarch64)-unknown-linux-gnu-install_only_stripped\.tar\.gz)"
)


def derive_python_builds(old: PythonBuildFile, index: IndexReader, *, today: str) -> PythonBuildFile:
    """Return the file `old` with the archives of the newest release; raises `UnavailableError`.

    A row stays as it is if the release has the same archive, or none that is newer of its series.
    """
    if not old.latest:
        return old
    rows = {_key(row, platform): row for row in old.builds for platform in row.platforms}
    is_changed = False
    for row in _archives(old.latest, index):
        key = _key(row, row.platforms[0])
        before = rows.get(key)
        is_older = before is not None and row.version < before.version
        if not is_older and (before is None or (before.url, before.sha256) != (row.url, row.sha256)):
            rows[key], is_changed = row, True
    if not is_changed:
        return old
    citation = Citation(
        title="python-build-standalone, the release in the address of each archive",
        where="SHA256SUMS: archives of cpython for linux and gnu, flavour install_only_stripped, no prerelease",
        url="https://github.com/astral-sh/python-build-standalone/releases",
        read=today,
    )
    builds = tuple(rows[key] for key in sorted(rows, key=lambda key: (tuple(-number for number in numbers_of(key[0])), key[1])))
    cited = {key for row in builds for key in row.source}
    sources = {key: entry for key, entry in {**old.sources, SUMS: citation}.items() if key in cited}
    return replace(old, sources=sources, builds=builds)


def _key(row: PythonBuild, platform: str) -> tuple[str, str]:
    return series(str(row.version)), platform


def _archives(latest: str, index: IndexReader) -> Iterator[PythonBuild]:
    """Yield a row for the newest archive of each series and platform in the release that the document `latest` names."""
    index.report("python-build-standalone: its newest release")
    text = _text(latest, index)
    try:
        release = json.loads(text)
    except (ValueError, RecursionError):
        release = None
    prefix = release.get("asset_url_prefix") if isinstance(release, dict) else None
    if not isinstance(prefix, str) or not prefix.startswith("https://"):
        raise UnavailableError(f"{latest} names no release: it has no `asset_url_prefix`")
    sums = f"{prefix}/SHA256SUMS"
    found: dict[tuple[str, str], PythonBuild] = {}
    for line in _text(sums, index).splitlines():
        match = _ARCHIVE.fullmatch(line.strip())
        if match is None:
            continue
        sha256, name, version, machine = match.groups()
        row = PythonBuild(
            version=Version.parse(version),
            platforms=(MACHINES[machine],),
            url=f"{prefix}/{name.replace('+', '%2B')}",
            sha256=sha256,
            source=(SUMS, RUNNING),
        )
        before = found.get(_key(row, row.platforms[0]))
        if before is None or before.version < row.version:
            found[_key(row, row.platforms[0])] = row
    if not found:
        raise UnavailableError(f"{sums} lists no archive of cpython for Linux")
    yield from found.values()


def _text(url: str, index: IndexReader) -> str:
    answer = index.online(url).request(url, source="python-build-standalone")
    if answer.status != 200:
        raise refusal(answer.status, url, source="python-build-standalone")
    body = answer.body
    if len(body) > LARGEST_DOCUMENT:
        raise UnavailableError(f"{url} answers with more than {LARGEST_DOCUMENT >> 20} MiB")
    return body.decode("utf-8", errors="replace")
