"""Repositories that a requirement names (`name @ git+https://…@COMMIT`): the archive of a commit, which can be locked.

A checkout has no hash that an installer compares, and no mirror has it. Some hosts offer the files of a commit as an archive.

Sources: uv, `--require-hashes`: "Git dependencies are not supported"; GitHub documentation, "Downloading source code archives"
(read as stored copies, 2026-11-23).
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

ARCHIVES = {"github.com": "/archive/{commit}.tar.gz", "gitlab.com": "/-/archive/{commit}/{name}-{commit}.tar.gz"}
"""Hosts that offer each commit of a repository as an archive, with the path of the archive below that of the repository."""

IS_NO_FILE = "a repository is not a file that can be locked"

_SCHEME = re.compile(r"(?:git|hg|svn|bzr)\+", re.IGNORECASE)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_PART_OF_COMMIT = re.compile(r"(?=[a-f]*[0-9])[0-9a-f]{7,39}")
"""Seven digits or more of an id, as git shows it; a name such as `facade` has no numeral."""


class Repository(Struct, frozen=True, kw_only=True):
    """A repository as a requirement addresses it.

    `address` is its URL without the revision and with a login, if it has one; `revision` is a commit, tag or branch, "" for
    none. `project` is the name in the fragment (`#egg=…`), "" for none; `subdirectory` is that of the fragment.
    """

    scheme: str
    address: str
    revision: str = ""
    project: str = ""
    subdirectory: str = ""

    @property
    def name(self) -> str:
        """The last part of the repository's path, which is mostly the name of its project."""
        return self.address.rstrip("/").removesuffix(".git").rpartition("/")[2]

    @property
    def is_commit(self) -> bool:
        """Whether the revision is a whole commit id, which never moves."""
        return _COMMIT.fullmatch(self.revision) is not None

    def archive(self, commit: str = "") -> str:
        """Return the URL of the archive of a commit, by default of the revision; "" if the host is not known to offer it."""
        path = ARCHIVES.get((urlsplit(self.address).hostname or "").lower(), "")
        if not path or self.scheme != "git+https" or self.subdirectory:
            return ""
        top = self.address.rstrip("/").removesuffix(".git")
        return f"{top}{path.format(commit=commit or self.revision, name=self.name)}"


def repository(url: str) -> Repository | None:
    """Parse the address of a repository, `git+https://host/path@REVISION#egg=NAME`; None for any other URL."""
    if not _SCHEME.match(url):
        return None
    whole, _, fragment = url.strip().partition("#")
    scheme, _, rest = whole.partition("://")
    host, slash, path = rest.partition("/")
    path, _, revision = path.rpartition("@") if "@" in path else (path, "", "")
    options = parse_qs(fragment)
    return Repository(
        scheme=scheme.lower(),
        address=f"{scheme.partition('+')[2].lower()}://{host}{slash}{path}",
        revision=revision,
        project=options.get("egg", [""])[0].partition("[")[0],
        subdirectory=options.get("subdirectory", [""])[0],
    )


def locked_archive(url: str) -> str:
    """Return the URL of the archive that stands for a repository at a commit; "" for a URL that names no such archive."""
    found = repository(url)
    return found.archive() if found is not None and found.is_commit else ""


def archive_advice(found: Repository, name: str) -> str:
    """Return how to name a commit of a repository for the project `name`; "" if its host offers no archives of commits.

    The address of the archive is shown, because one with a revision looks like one with a login, and those are masked.
    """
    if not found.archive("COMMIT"):
        return ""
    if found.is_commit:
        return f"its archive is one: write `{name} @ {found.archive()}`"
    written = f"write `{name} @ {found.archive('COMMIT')}`"
    if _PART_OF_COMMIT.fullmatch(found.revision):
        rest = f"with all 40 digits, which `git rev-parse {found.revision}` tells in a clone"
        return f"`{found.revision}` looks like part of a commit id: {written} {rest}"
    which = f"`{found.revision}` may move" if found.revision else "its default branch moves"
    return f"{which}: {written} with the commit that `git ls-remote` tells"
