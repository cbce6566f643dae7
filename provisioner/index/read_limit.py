"""The limit on the bytes that one run may read from package indexes, and what they were spent on; thread-safe."""

from __future__ import annotations

import threading
from collections import Counter
from urllib.parse import unquote, urlsplit

from provisioner.errors import UnavailableError
from provisioner.index.activity import readable_size

VARIABLE = "PROVISION_READ_LIMIT"
"""The environment variable that sets the limit, such as `2GB`."""

LIMIT = 1_000_000_000
"""The bytes that a run may read unless `VARIABLE` says otherwise; a large spec takes a tenth of it with an empty cache."""

NAMED = 3
"""The number of files that the error names, those with the most bytes."""


class ReadLimitError(UnavailableError):
    """A run has read as much as it may, so the answer is not known."""

    code = "read-limit"


class ReadLimit:
    """Counts the bytes that all index clients of a run receive, by file, and refuses more beyond `limit`."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._spent: Counter[str] = Counter()
        self._total = 0

    def spend(self, url: str, count: int) -> None:
        """Count bytes received from a URL."""
        with self._lock:
            self._spent[_file(url)] += count
            self._total += count

    def require_rest(self) -> None:
        """Raise `ReadLimitError` if nothing is left."""
        if self._total < self._limit:
            return
        with self._lock:
            most = [f"{name} ({readable_size(count)})" for name, count in self._spent.most_common(NAMED)]
        limit = readable_size(self._limit)
        raise ReadLimitError(
            f"{readable_size(self._total)} were read from package indexes, and one run may read {limit}",
            causes=(f"most of it: {', '.join(most)}",),
            hints=(
                "narrow what the spec leaves open, so that fewer versions are read",
                f"{VARIABLE}={readable_size(2 * self._limit).replace(' ', '')} allows twice as much",
            ),
        )


def _file(url: str) -> str:
    return unquote(urlsplit(url).path.rstrip("/").rpartition("/")[2]) or url
