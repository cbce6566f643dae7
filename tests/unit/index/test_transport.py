"""Servers that are busy, break off, fall silent or send elsewhere: tried again within bounds, or said in words."""

from __future__ import annotations

import gzip
import os
import socket
import subprocess
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from packaging.utils import canonicalize_name

from provisioner.errors import UnavailableError
from provisioner.index.activity import Activity, progress_line, readable_size
from provisioner.index.client import PackageIndex, Shared
from provisioner.index.http import session
from provisioner.index.http.transport import THREADS, Transport
from provisioner.index.model import Environment
from provisioner.index.read_limit import ReadLimit
from provisioner.index.settings import IndexLocation, IndexSettings
from tests.scripted_server import Answer, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from packaging.utils import NormalizedName


SOURCE = "index `main`"
NETWORK = ("check the network, the proxy and the installer's configuration; --offline uses what is cached",)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> IndexSettings:
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setattr(session, "BACKOFF_SECONDS", 0.01)
    return IndexSettings(indexes=(), retries=3, timeout=5, cache_directory=tmp_path / "cache", keyring_provider="disabled")


@pytest.fixture
def opened(settings: IndexSettings) -> Iterator[Callable[..., Transport]]:
    made: list[Transport] = []

    def make(**changes: object) -> Transport:
        made.append(Transport(replace(settings, **changes)))
        return made[-1]

    yield make
    for transport in made:
        transport.close()


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_busy_server_is_asked_again(opened: Callable[..., Transport], status: int) -> None:
    with ScriptedServer({"/a": [Answer(status=status), Answer(status=status), Answer(body=b"at last")]}) as server:
        assert opened().request(server.url("/a"), source=SOURCE).body == b"at last"
        assert server.paths() == ["/a"] * 3


def test_a_server_that_stays_busy_is_asked_as_often_as_the_settings_say(opened: Callable[..., Transport]) -> None:
    with ScriptedServer({"/a": [Answer(status=503)]}) as server:
        assert opened(retries=2).request(server.url("/a"), source=SOURCE).status == 503
        assert len(server.seen) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 407, 410, 501])
def test_an_answer_that_is_final_is_taken_at_once(opened: Callable[..., Transport], status: int) -> None:
    with ScriptedServer({"/a": [Answer(status=status), Answer(body=b"changed its mind")]}) as server:
        assert opened().request(server.url("/a"), source=SOURCE).status == status
        assert len(server.seen) == 1


def test_pauses_double_and_are_the_same_every_time(settings: IndexSettings) -> None:
    tried = session.retries(settings)
    pauses = []
    for _ in range(3):
        tried = tried.increment("GET", "/")
        pauses.append(tried.get_backoff_time())
    assert pauses == [0, 0.02, 0.04]


def test_retry_after_is_waited_for(opened: Callable[..., Transport]) -> None:
    busy = Answer(status=429, headers={"Retry-After": "1"})
    with ScriptedServer({"/a": [busy, Answer(body=b"now")]}) as server:
        assert opened().request(server.url("/a"), source=SOURCE).body == b"now"
        first, second = server.seen
        assert second.moment - first.moment > 0.9


@pytest.mark.parametrize("wanted", ["86400", "Fri, 31 Dec 2100 23:59:59 GMT"])
def test_retry_after_is_bounded(opened: Callable[..., Transport], monkeypatch: pytest.MonkeyPatch, wanted: str) -> None:
    monkeypatch.setattr(session, "LONGEST_PAUSE_SECONDS", 0.2)
    busy = Answer(status=503, headers={"Retry-After": wanted})
    with ScriptedServer({"/a": [busy, Answer(body=b"now")]}) as server:
        started = time.monotonic()
        assert opened().request(server.url("/a"), source=SOURCE).body == b"now"
        assert time.monotonic() - started < 15


def test_a_retry_after_that_cannot_be_read_asks_for_nothing(opened: Callable[..., Transport]) -> None:
    busy = Answer(status=503, headers={"Retry-After": "when it suits you"})
    with ScriptedServer({"/a": [busy, Answer(body=b"now")]}) as server:
        assert opened().request(server.url("/a"), source=SOURCE).body == b"now"


@pytest.mark.parametrize(
    "broken",
    [
        Answer(body=b"0123456789", cut=4),
        Answer(body=b"0123456789", cut=4, reset=True),
        Answer(body=b"0123456789", cut=0, reset=True),
    ],
    ids=["closed", "reset", "reset before the body"],
)
def test_a_body_that_breaks_off_is_asked_for_again(opened: Callable[..., Transport], broken: Answer) -> None:
    with ScriptedServer({"/a": [broken, broken, Answer(body=b"0123456789")]}) as server:
        assert opened().request(server.url("/a"), source=SOURCE).body == b"0123456789"
        assert len(server.seen) == 3


def test_a_body_that_always_breaks_off_is_no_answer(opened: Callable[..., Transport]) -> None:
    with ScriptedServer({"/a": [Answer(body=b"0123456789", cut=4)]}) as server:
        with pytest.raises(UnavailableError) as caught:
            opened(retries=1).request(server.url("/a"), source=SOURCE)
        assert caught.value.message == "index `main` cannot be reached: the connection broke"
        assert caught.value.causes == (server.url("/a"),)
        assert caught.value.hints == NETWORK
        assert len(server.seen) == 2


@pytest.mark.parametrize("silent", [Answer(body=b"0123456789", silence=30.0), Answer(body=b"0123456789", delay=30.0)])
def test_a_server_that_falls_silent_is_given_up_after_the_timeout(opened: Callable[..., Transport], silent: Answer) -> None:
    with ScriptedServer({"/a": [silent]}) as server:
        started = time.monotonic()
        with pytest.raises(UnavailableError) as caught:
            opened(retries=0, timeout=0.3).request(server.url("/a"), source=SOURCE)
        assert time.monotonic() - started < 15
        assert caught.value.message == "index `main` cannot be reached: no answer within 0.3 s"


TRICKLES = [
    pytest.param(Answer(body=b"." * 400, drip=0.05), id="body"),
    pytest.param(Answer(body=b"." * 400, drip=0.05, headers={"Content-Encoding": "gzip"}), id="packed body"),
    pytest.param(Answer(body=b"ok", drip=0.05, drips_head=True), id="head"),
]


@pytest.mark.parametrize("slow", TRICKLES)
def test_an_answer_that_trickles_in_is_given_up_though_it_never_falls_silent(
    opened: Callable[..., Transport], slow: Answer
) -> None:
    with ScriptedServer({"/a": [slow]}) as server:
        started = time.monotonic()
        with pytest.raises(UnavailableError) as caught:
            opened(retries=1, timeout=0.4).request(server.url("/a"), source=SOURCE)
        assert time.monotonic() - started < 15
        assert caught.value.message == "index `main` cannot be reached: it sends less than 1000 bytes a second"
        assert (caught.value.causes, caught.value.hints) == ((server.url("/a"),), NETWORK)
        assert len(server.seen) == 2


def test_a_file_that_trickles_in_is_given_up(opened: Callable[..., Transport]) -> None:
    with ScriptedServer({"/a": [Answer(body=b"." * 400, drip=0.05)]}) as server:
        with pytest.raises(UnavailableError) as caught:
            list(opened(timeout=0.4).chunks(server.url("/a"), source=SOURCE))
        assert caught.value.message == "index `main` cannot be reached: it sends less than 1000 bytes a second"


def test_an_answer_that_trickled_in_once_is_asked_for_again(opened: Callable[..., Transport]) -> None:
    with ScriptedServer({"/a": [Answer(body=b"." * 400, drip=0.05), Answer(body=b"in time")]}) as server:
        assert opened(timeout=0.4).request(server.url("/a"), source=SOURCE).body == b"in time"


def test_an_answer_that_takes_many_timeouts_and_keeps_coming_is_read_to_its_end(opened: Callable[..., Transport]) -> None:
    body = b"." * 60_000
    with ScriptedServer({"/a": [Answer(body=body, drip=0.02, drop=1000)]}) as server:
        assert opened(retries=0, timeout=0.5).request(server.url("/a"), source=SOURCE).body == body


def test_an_answer_that_trickles_through_a_proxy_is_given_up(opened: Callable[..., Transport]) -> None:
    with ScriptedServer({"http://index.example/a": [Answer(body=b"." * 400, drip=0.05)]}) as proxy:
        with pytest.raises(UnavailableError) as caught:
            opened(retries=0, timeout=0.4, proxy=proxy.url("")).request("http://index.example/a", source=SOURCE)
        assert caught.value.message == "index `main` cannot be reached: it sends less than 1000 bytes a second"


def test_a_reader_that_takes_its_time_is_not_taken_for_a_slow_server(opened: Callable[..., Transport]) -> None:
    body = b"." * (2 << 18)
    with ScriptedServer({"/a": [Answer(body=body)]}) as server:
        read = b""
        for chunk in opened(timeout=0.5).chunks(server.url("/a"), source=SOURCE):
            time.sleep(0.6)
            read += chunk
        assert read == body


def test_a_server_that_was_silent_once_is_asked_again(opened: Callable[..., Transport]) -> None:
    with ScriptedServer({"/a": [Answer(body=b"late", silence=30.0), Answer(body=b"in time")]}) as server:
        assert opened(timeout=0.3).request(server.url("/a"), source=SOURCE).body == b"in time"


def test_a_login_stays_with_its_host(opened: Callable[..., Transport]) -> None:
    with ScriptedServer({"/file": [Answer(body=b"content")]}) as other:
        away = Answer(status=302, headers={"Location": other.url("/file")})
        near = Answer(status=302, headers={"Location": "/file"})
        with ScriptedServer({"/away": [away], "/near": [near], "/file": [Answer(body=b"own")]}) as server:
            index = IndexLocation(name="main", url=server.url("/").replace("//", "//me:s3cret@"))
            transport = opened(indexes=(index,))
            answer = transport.request(server.url("/away"), source=SOURCE)
            assert (answer.body, answer.url) == (b"content", other.url("/file"))
            assert transport.request(server.url("/near"), source=SOURCE).body == b"own"
            assert [("authorization" in one.headers) for one in server.seen] == [True, True, True]
            assert [("authorization" in one.headers) for one in other.seen] == [False]


def test_a_redirect_gets_the_login_that_netrc_has_for_where_it_leads(opened: Callable[..., Transport], tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machine localhost login you password theirs\n")
    with ScriptedServer({"/file": [Answer(body=b"content")]}) as other:
        away = Answer(status=302, headers={"Location": other.url("/file", host="localhost")})
        with ScriptedServer({"/away": [away]}) as server:
            assert opened().request(server.url("/away"), source=SOURCE).body == b"content"
            assert "authorization" not in server.seen[0].headers
            assert other.seen[0].headers["authorization"] == "Basic eW91OnRoZWlycw=="


def test_a_circle_of_redirects_is_named(opened: Callable[..., Transport]) -> None:
    with ScriptedServer({"/a": [Answer(status=302, headers={"Location": "/a"})]}) as server:
        with pytest.raises(UnavailableError) as caught:
            opened().request(server.url("/a"), source=SOURCE)
        assert caught.value.message == "index `main` cannot be reached: it redirects in a circle"


def test_proxies_of_the_environment_are_used_and_no_proxy_is_honoured(
    opened: Callable[..., Transport], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = {"http://index.example/a": [Answer(body=b"through the proxy")]}
    with ScriptedServer(script) as proxy, ScriptedServer({"/a": [Answer(body=b"directly")]}) as server:
        monkeypatch.setenv("http_proxy", proxy.url(""))
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        transport = opened()
        assert transport.request("http://index.example/a", source=SOURCE).body == b"through the proxy"
        assert transport.request(server.url("/a"), source=SOURCE).body == b"directly"


@pytest.fixture
def failing_names(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[str]]:
    """Make every look-up of a host name fail with an error; returns the list of the names that are looked up."""

    def fail(error: int) -> list[str]:
        asked: list[str] = []

        def look_up(host: str, *_: object, **__: object) -> list[object]:
            asked.append(host)
            raise socket.gaierror(error, "no address")

        for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
            monkeypatch.delenv(name)
        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        return asked

    return fail


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system may have a proxy")
def test_a_host_name_that_nobody_has_is_told_at_once_and_looked_up_once(
    opened: Callable[..., Transport], failing_names: Callable[[int], list[str]]
) -> None:
    asked = failing_names(socket.EAI_NONAME)
    transport = opened(proxy="")
    for path in ("/whl/cu126/torch/", "/whl/cu128/torch/"):
        with pytest.raises(UnavailableError) as caught:
            transport.request(f"https://index.example{path}", source=SOURCE)
        assert caught.value.message == "index `main` cannot be reached: its host name cannot be resolved"
        assert caught.value.causes == (f"https://index.example{path}",)
        assert caught.value.hints == NETWORK
    with pytest.raises(UnavailableError) as caught, transport.opened("https://index.example/a", source=SOURCE):
        pass
    assert asked == ["index.example"]


def test_a_name_server_that_does_not_answer_may_the_next_time(
    opened: Callable[..., Transport], failing_names: Callable[[int], list[str]]
) -> None:
    asked = failing_names(socket.EAI_AGAIN)
    with pytest.raises(UnavailableError) as caught:
        opened(retries=3, proxy="").request("https://index.example/a", source=SOURCE)
    assert caught.value.message == "index `main` cannot be reached: its host name cannot be resolved"
    assert len(asked) >= 4


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system may have a proxy")
def test_nothing_is_loaded_for_a_host_name_that_nobody_has() -> None:
    code = """
import os, socket, sys
from pathlib import Path
from provisioner.errors import UnavailableError
from provisioner.index.http.transport import Transport
from provisioner.index.settings import IndexSettings

def look_up(*_, **__):
    raise socket.gaierror(socket.EAI_NONAME, "no address")

socket.getaddrinfo = look_up
try:
    Transport(IndexSettings(indexes=(), cache_directory=Path())).request("https://index.example/a", source="it")
except UnavailableError as error:
    print(error.message)
print({"requests", "urllib3", "ssl", "http.client"} & set(sys.modules))
"""
    result = subprocess.run([sys.executable, "-I", "-c", code], env={}, capture_output=True, text=True, check=True)
    assert result.stdout == "it cannot be reached: its host name cannot be resolved\nset()\n"


def test_certificates_are_left_unchecked_for_trusted_hosts_alone(settings: IndexSettings) -> None:
    made = session.new_session(replace(settings, trusted_hosts=("index.example", "files.example:8443")), connections=1)
    ordinary = made.get_adapter("https://pypi.org/simple/")
    trusting = {
        url: made.get_adapter(url) is not ordinary
        for url in (
            "https://index.example/simple/",
            "https://index.example:444/simple/",
            "https://index.example.evil/simple/",
            "https://files.example:8443/a",
            "https://files.example/a",
        )
    }
    made.close()
    assert list(trusting.values()) == [True, True, False, True, False]


def test_what_is_sent_packed_is_kept_packed(opened: Callable[..., Transport]) -> None:
    body = b"a page " * 1000
    packed = Answer(body=gzip.compress(body[:3000]) + gzip.compress(body[3000:]), headers={"Content-Encoding": "gzip"})
    with ScriptedServer({"/a": [packed]}) as server:
        answer = opened().request(server.url("/a"), source=SOURCE)
        assert server.seen[0].headers["accept-encoding"] == "gzip"
        assert (answer.body, answer.content, answer.encoding) == (body, packed.body, "gzip")


@pytest.mark.parametrize(
    "content", [b"not packed at all", gzip.compress(b"a page " * 1000, mtime=0)[:-9]], ids=["plain", "cut off"]
)
def test_what_cannot_be_unpacked_is_no_answer(opened: Callable[..., Transport], content: bytes) -> None:
    with ScriptedServer({"/a": [Answer(body=content, headers={"Content-Encoding": "gzip"})]}) as server:
        answer = opened().request(server.url("/a"), source=SOURCE)
        with pytest.raises(UnavailableError) as caught:
            _ = answer.body
        assert (caught.value.message, caught.value.causes) == ("an answer cannot be unpacked", (server.url("/a"),))


@pytest.mark.parametrize(("sent", "asked"), [("ETag", "if-none-match"), ("Last-Modified", "if-modified-since")])
def test_a_page_is_asked_for_on_the_condition_that_it_changed(settings: IndexSettings, sent: str, asked: str) -> None:
    value = '"v1"' if sent == "ETag" else "Fri, 20 Nov 2026 10:00:00 GMT"
    page = b'<a href="demo-1.0-py3-none-any.whl">demo</a>'
    first = Answer(body=page, headers={sent: value, "Content-Type": "text/html", "Cache-Control": "max-age=0"})
    with ScriptedServer({"/simple/demo/": [first, Answer(status=304, headers={"Cache-Control": "max-age=60"})]}) as server:
        for wanted in ([], [value], [value]):
            with client_of(server, settings) as client:
                assert [str(one.version) for one in client.releases(name("demo"))] == ["1.0"]
            assert [one.headers[asked] for one in server.seen if asked in one.headers] == wanted
        assert len(server.seen) == 2


def test_requests_at_once_are_bounded_by_the_threads(settings: IndexSettings) -> None:
    names = [f"demo-{number}" for number in range(80)]
    script = {f"/simple/{one}/": [Answer(body=b"<html></html>")] for one in names}
    with ScriptedServer(script) as server, client_of(server, settings) as client:
        server.may_answer.clear()
        client.prefetch(name(one) for one in names)
        deadline = time.monotonic() + 30
        while server.at_once < THREADS and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.3)  # for one request too many
        assert server.at_once == THREADS
        server.may_answer.set()
        for one in names:
            assert client.releases(name(one)) == ()
        assert sorted(server.paths()) == sorted(script)


def test_activity_says_what_was_read_and_what_is_waited_for() -> None:
    activity, other = Activity(), Activity()
    assert progress_line([activity, other]) == "0 projects, metadata of 0 files"
    activity.count(projects=1, metadata=2, received=12_345_678)
    other.count(projects=2, received=4)
    with other.waiting_for("https://me:s3cret@index.example/simple/num%2Bpy/"), other.waiting_for("https://y.example/b"):
        words = progress_line([activity, other])
    assert words == "3 projects, metadata of 2 files, 12.3 MB; waiting for num+py from index.example"
    assert progress_line([activity]) == "1 project, metadata of 2 files, 12.3 MB"
    with activity.building("demo-1.0.tar.gz"), activity.waiting_for("https://y.example/b"):
        words = progress_line([other, activity])
    assert words.endswith(", 12.3 MB; building demo-1.0.tar.gz to learn what it requires")
    assert activity.built == ""
    assert [readable_size(size) for size in (1, 999, 1000, 2_500_000_000)] == ["1 byte", "999 bytes", "1.0 kB", "2.5 GB"]


def name(text: str) -> NormalizedName:
    from packaging.utils import canonicalize_name

    return canonicalize_name(text)


def client_of(server: ScriptedServer, settings: IndexSettings) -> PackageIndex:
    index = IndexLocation(name="main", url=server.url("/simple"))
    return PackageIndex(replace(settings, indexes=(index,)), Environment(platform="linux/amd64", python="3.12"))


def test_a_server_without_a_connection_is_tried_once_a_run(settings: IndexSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each Python has an index client of its own, with retries and pauses of its own."""
    tried: list[object] = []
    monkeypatch.setattr("urllib3.util.connection.create_connection", partial(_refused, tried))
    shared = Shared(ReadLimit())
    for python in ("3.12", "3.13"):
        environment = Environment(platform="linux/amd64", python=python, glibc=(2, 35), macos=None)
        location = IndexLocation(name="pypi", url="http://127.0.0.1/simple")
        settings = replace(settings, indexes=(location,))
        with PackageIndex(settings, environment, shared=shared) as client:
            with pytest.raises(UnavailableError) as caught:
                client.releases(canonicalize_name("demo"))
            assert caught.value.message == "index `pypi` cannot be reached: connection refused"
            assert caught.value.hints == NETWORK
    assert len(tried) == 1 + settings.retries


def test_a_server_whose_packets_are_dropped_is_waited_for_once(
    opened: Callable[..., Transport], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A firewall that drops what it does not let through: 15 seconds, and not four times as many."""
    tried: list[object] = []

    def dropped(address: object, *_: object, **__: object) -> None:
        tried.append(address)
        raise TimeoutError

    monkeypatch.setattr("urllib3.util.connection.create_connection", dropped)
    transport = opened(retries=3, timeout=7, proxy="")
    for _ in range(2):
        with pytest.raises(UnavailableError) as caught:
            transport.request("http://127.0.0.1:9/a", source=SOURCE)
        assert caught.value.message == "index `main` cannot be reached: no answer within 7 s"
    assert tried == [("127.0.0.1", 9)]


def test_a_server_that_refused_a_request_alone_is_asked_for_others(opened: Callable[..., Transport]) -> None:
    with ScriptedServer({"/a": [Answer(body=b"0123456789", cut=4)], "/b": [Answer(body=b"here")]}) as server:
        transport = opened(retries=0)
        with pytest.raises(UnavailableError):
            transport.request(server.url("/a"), source=SOURCE)
        assert transport.request(server.url("/b"), source=SOURCE).body == b"here"


def _refused(tried: list[object], address: object, *_: object, **__: object) -> None:
    tried.append(address)
    raise ConnectionRefusedError(111, "Connection refused")
