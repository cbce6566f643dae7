"""Which servers cannot be reached in one run, each told once, and unknown host names told at once.

`requests` would be loaded, and a request retried, for a name that does not exist: most of the time of a run that reads
everything else from its cache, behind a firewall that lets through a mirror alone.
"""

from __future__ import annotations

import os
import sys
from urllib.parse import urlsplit

from provisioner.index.address import origin

UNKNOWN_NAME = "its host name cannot be resolved"
"""The reason why a server whose host name has no address is out of reach."""


class Reach:
    """The servers that were asked for in one run, and why some of them are out of reach; its index clients share it."""

    def __init__(self) -> None:
        self._reasons: dict[tuple[str, str], str] = {}

    def why_not(self, url: str, *, proxy: str) -> str:
        """Return the reason why the server of a URL cannot be reached; "" if none is known.

        The host name is looked up when the server is asked for first, unless a proxy would look it up: `proxy`, or one of the
        environment.
        """
        server = origin(url)
        if server not in self._reasons:
            is_unknown = not proxy and not _may_have_proxy() and _is_unknown(urlsplit(url).hostname or "")
            self._reasons[server] = UNKNOWN_NAME if is_unknown else ""
        return self._reasons[server]

    def refuse(self, url: str, reason: str) -> None:
        """Record that no connection to the server of a URL can be made."""
        self._reasons[origin(url)] = reason


def _may_have_proxy() -> bool:
    # Elsewhere the settings of the system may name one.
    return sys.platform != "linux" or any(name.lower().endswith("_proxy") for name in os.environ)


def _is_unknown(host: str) -> bool:
    """Return whether the answer about a host name is that it does not exist: a name server that does not answer may later."""
    import socket

    try:
        socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        return error.errno == socket.EAI_NONAME
    except (OSError, UnicodeError):  # a name of another alphabet, which requests encodes
        return False
    return False
