"""Whom an index may be told we are: from its address, the environment, netrc or the keyring; each kept to its own index.

The order is pip's: what an address carries, netrc, and, only after an index has refused, the keyring. The environment comes
between the first two, by the name of the index. Source: pip documentation, "Authentication"; pip 26.3, `network/auth.py`.
"""

from __future__ import annotations

import importlib.util
import json
import os
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
"""A keyring may have to be unlocked by hand, which nobody is there for in a build."""


class _Place(Struct, frozen=True, kw_only=True):
    """An address that credentials belong to, and what is known of them without asking anybody."""

    name: str
    url: str
    user: str
    password: str

    def covers(self, url: str) -> int:
        """How many characters of a path lie below this place; -1 for another host."""
        if origin(url) != origin(self.url):
            return -1
        own, other = urlsplit(self.url).path.rstrip("/"), urlsplit(url).path
        return len(own) if other == own or other.startswith(f"{own}/") else 0


class Credentials:
    """Answers for the addresses of one run; threads share it.

    Of several indexes of one host the one whose path a request lies below is meant, as in pip; files often lie elsewhere on
    the host, and are asked for with what the first index of that host is asked with.
    """

    def __init__(self, settings: IndexSettings) -> None:
        self._provider = settings.keyring_provider
        self._places = tuple(_places(settings))
        self._lock = threading.Lock()
        self._kept: dict[str, Login | None] = {}
        self._stated: dict[tuple[str, str], Login | None] = {}

    def for_url(self, url: str) -> Login | None:
        """What to send along at once, None for nothing; the keyring has been asked only where the index had refused."""
        place = self._place(url)
        kept = self._kept.get(_key(place, url))
        if kept is not None:
            return kept
        if place is not None and place.password:
            return place.user, place.password
        host = origin(url)
        if host not in self._stated:
            self._stated[host] = _netrc_login(url)
        stated = self._stated[host]
        if stated is None and place is not None and place.user:
            # Many indexes take a token as the user, and nothing as the password.
            return place.user, ""
        return stated

    def after_refusal(self, url: str) -> Login | None:
        """What the keyring has for an address that refused what `for_url` gave; it is asked once for each place."""
        place = self._place(url)
        if place is not None and place.password:
            return None
        key = _key(place, url)
        with self._lock:
            if key not in self._kept:
                services = (*((place.url,) if place is not None else ()), origin(url)[1])
                self._kept[key] = _from_keyring(self._provider, services, place.user if place is not None else "")
            return self._kept[key]

    def looked_at(self, url: str) -> tuple[str, ...]:
        """Where credentials for an address were looked for, and what was found, in words that hold none."""
        place = self._place(url)
        name = place.name if place is not None else ""
        has_password = place is not None and bool(place.password)
        prefix = variable_prefix(name) if name else ""
        words = [f"its URL and {prefix}_PASSWORD" if prefix else "its URL"]
        if has_password:
            return (f"{words[0]}: a password, which it does not take",)
        host = origin(url)[1].partition(":")[0]
        words[0] += ": no password"
        words.append(f"netrc: {'a login' if _netrc_login(url) else 'no login'} for {host}")
        words.append(f"keyring: {_keyring_state(self._provider, found=self._kept.get(_key(place, url)) is not None)}")
        return tuple(words)

    def _place(self, url: str) -> _Place | None:
        found = max(self._places, key=lambda place: place.covers(url), default=None)
        return found if found is not None and found.covers(url) >= 0 else None


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
        # One without a login has that of the index above it, or of the index on its host.
        found = credentials_in(url) if is_remote(url) else None
        if found is not None:
            yield _Place(name="", url=public_url(url), user=found[0], password=found[1])


def _key(place: _Place | None, url: str) -> str:
    return place.url if place is not None else "://".join(origin(url))


def _netrc_login(url: str) -> Login | None:
    """The login of the netrc file that NETRC names, or of the user's own; a broken file states none."""
    from requests.utils import get_netrc_auth

    return get_netrc_auth(url)


def _from_keyring(provider: str, services: tuple[str, ...], user: str) -> Login | None:
    """The first login a keyring has; one that fails or is not there has none, as in pip."""
    for service in services:
        found = _imported(service, user) if provider in {"auto", "import"} else None
        if found is None and provider in {"auto", "subprocess"}:
            found = _asked_of_program(service, user)
        if found is not None:
            return found
    return None


def _imported(service: str, user: str) -> Login | None:
    try:
        import keyring  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None
    try:
        found = keyring.get_credential(service, user or None)
    except Exception:  # noqa: BLE001 - a backend raises what it likes, and has no credentials then
        return None
    return (found.username, found.password) if found is not None else None


def _asked_of_program(service: str, user: str) -> Login | None:
    """The `keyring` program of another environment; before 25.2.1 it answers for a known user only."""
    import shutil

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


def _keyring_state(provider: str, *, found: bool) -> str:
    if provider == "disabled":
        return "disabled"
    if found:
        return "a login, which it does not take"
    import shutil

    is_here = importlib.util.find_spec("keyring") is not None and provider in {"auto", "import"}
    has_program = shutil.which("keyring") is not None and provider in {"auto", "subprocess"}
    return "no login" if is_here or has_program else "not installed"
