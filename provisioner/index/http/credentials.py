"""Credentials for package indexes, each sent only to the index it belongs to.

They are looked up as pip does: in the URL, in netrc, and in the keyring, which is queried only after the index has answered
401. The variables `PROVISION_INDEX_<NAME>_USERNAME` and `_PASSWORD` come between the first two. Source: pip documentation,
"Authentication"; pip 26.3, `network/auth.py`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import threading
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct

from provisioner.index.address import credentials_in, is_remote, origin, public_url
from provisioner.index.settings import variable_prefix

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.index.settings import IndexSettings, Login

KEYRING_SECONDS = 30.0
"""The timeout of the `keyring` program: it may wait for somebody to unlock the keyring, whom a CI build does not have."""


class _Place(Struct, frozen=True, kw_only=True):
    """A URL prefix with the credentials from the URL or the environment; user and password are "" when neither has them.

    `name` is the name of the index, "" for find-links and direct references.
    """

    name: str
    url: str
    user: str
    password: str

    def covers(self, url: str) -> int:
        """Return the length of this prefix's path if `url` is below it, 0 if only the host is equal, -1 for another host."""
        if origin(url) != origin(self.url):
            return -1
        own, other = urlsplit(self.url).path.rstrip("/"), urlsplit(url).path
        return len(own) if other == own or other.startswith(f"{own}/") else 0


class Credentials:
    """Looks up the credentials for the requests of one run; threads may share it.

    When several indexes are on one host, a request gets the credentials of the index whose path contains its URL, as in pip. A
    URL outside all these paths, as the URLs of files often are, gets those of the first index on the host.
    """

    def __init__(self, settings: IndexSettings) -> None:
        self._provider = settings.keyring_provider
        self._places = tuple(_places(settings))
        self._lock = threading.Lock()
        self._from_keyring: dict[str, Login | None] = {}
        self._from_netrc: dict[tuple[str, str], Login | None] = {}

    def for_url(self, url: str) -> Login | None:
        """Return the login to send with the first request to a URL; None when there is none.

        A login from the keyring is returned only if `after_refusal` has found it before.
        """
        place = self._place(url)
        kept = self._from_keyring.get(_key(place, url))
        if kept is not None:
            return kept
        if place is not None and place.password:
            return place.user, place.password
        host = origin(url)
        if host not in self._from_netrc:
            self._from_netrc[host] = _netrc_login(url)
        found = self._from_netrc[host]
        if found is None and place is not None and place.user:
            return place.user, ""  # many indexes take a token as the user, and no password
        return found

    def after_refusal(self, url: str) -> Login | None:
        """Return the keyring's login for a URL that answered 401; None if the keyring has none or a password is configured.

        The keyring is queried once for each index.
        """
        place = self._place(url)
        if place is not None and place.password:
            return None
        key = _key(place, url)
        with self._lock:
            if key not in self._from_keyring:
                services = (*((place.url,) if place is not None else ()), origin(url)[1])
                user = place.user if place is not None else ""
                self._from_keyring[key] = _keyring_login(self._provider, services, user)
            return self._from_keyring[key]

    def looked_at(self, url: str) -> tuple[str, ...]:
        """Return a line of text for each source of credentials that was searched for a URL, with the outcome but no secrets."""
        place = self._place(url)
        sources = f"its URL and {variable_prefix(place.name)}_PASSWORD" if place is not None and place.name else "its URL"
        if place is not None and place.password:
            return (f"{sources}: a password, which it does not take",)
        host = origin(url)[1].partition(":")[0]
        return (
            f"{sources}: no password",
            f"netrc: {'a login' if _netrc_login(url) else 'no login'} for {host}",
            f"keyring: {self._keyring_state(has_login=self._from_keyring.get(_key(place, url)) is not None)}",
        )

    def _place(self, url: str) -> _Place | None:
        found = max(self._places, key=lambda place: place.covers(url), default=None)
        return found if found is not None and found.covers(url) >= 0 else None

    def _keyring_state(self, *, has_login: bool) -> str:
        if self._provider == "disabled":
            return "disabled"
        if has_login:
            return "a login, which it does not take"
        is_importable = importlib.util.find_spec("keyring") is not None and self._provider in {"auto", "import"}
        has_program = shutil.which("keyring") is not None and self._provider in {"auto", "subprocess"}
        return "no login" if is_importable or has_program else "not installed"


def _places(settings: IndexSettings) -> Iterator[_Place]:
    for location in settings.indexes:
        url = location.url.partition("{variant}")[0]
        if is_remote(url):
            user, password = credentials_in(url) or ("", "")
            if not password:
                stated = settings.logins.get(variable_prefix(location.name), ("", ""))
                user, password = stated[0] or user, stated[1]
            yield _Place(name=location.name, url=public_url(url), user=user, password=password)
    for url in (*settings.find_links, *settings.direct_urls):
        # One without a login has that of the index it lies within, or of the index on its host.
        found = credentials_in(url) if is_remote(url) else None
        if found is not None:
            yield _Place(name="", url=public_url(url), user=found[0], password=found[1])


def _key(place: _Place | None, url: str) -> str:
    return place.url if place is not None else "://".join(origin(url))


def _netrc_login(url: str) -> Login | None:
    """Return the login for a URL's host from the netrc file (NETRC or ~/.netrc); None if the file has none or is malformed."""
    import requests  # not a part of it: two threads that import parts in different orders see half of it

    return requests.utils.get_netrc_auth(url)


def _keyring_login(provider: str, services: tuple[str, ...], user: str) -> Login | None:
    """Return the first login that the keyring has for one of `services`; None when it has none, fails or is not installed."""
    for service in services:
        found = _imported_login(service, user) if provider in {"auto", "import"} else None
        if found is None and provider in {"auto", "subprocess"}:
            found = _program_login(service, user)
        if found is not None:
            return found
    return None


def _imported_login(service: str, user: str) -> Login | None:
    try:
        import keyring  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None
    try:
        found = keyring.get_credential(service, user or None)
    except Exception:  # noqa: BLE001 - a backend raises what it likes, and has no credentials then
        return None
    return (found.username, found.password) if found is not None else None


def _program_login(service: str, user: str) -> Login | None:
    """Return the login that the `keyring` program on PATH has for `service`; None when it has none.

    Before version 25.2.1 the program can only be queried with a user name.
    """
    program = shutil.which("keyring")
    if program is None:
        return None
    answer = _output([program, "--mode=creds", "--output=json", "get", service, *((user,) if user else ())])
    try:
        found = json.loads(answer) if answer else None
    except ValueError:
        found = None
    if isinstance(found, dict) and isinstance(found.get("password"), str):
        return str(found.get("username") or user), found["password"]
    password = _output([program, "get", service, user]).rstrip("\n") if user else ""
    return (user, password) if password else None


def _output(command: list[str]) -> str:
    import subprocess

    try:
        done = subprocess.run(  # noqa: S603 - a fixed program, no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=KEYRING_SECONDS,
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", errors="replace") if done.returncode == 0 else ""
