"""Source distributions that must be built to know what they require: in isolation, for a limited time, where policy allows."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import tarfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from packaging.utils import canonicalize_name

from provisioner.errors import UnavailableError
from provisioner.index.client import PackageIndex, Shared
from provisioner.index.metadata import build
from provisioner.index.metadata.build import environment
from provisioner.index.metadata.core_metadata import UnusableMetadataError
from provisioner.index.model import Environment
from provisioner.index.read_limit import ReadLimit
from provisioner.index.settings import IndexLocation, IndexSettings
from tests.loopback_index import ServedFile

if TYPE_CHECKING:
    from tests.loopback_index import LoopbackIndex
    from tests.unit.index.conftest import OpenIndex

pytest.importorskip("build", reason="PyPA build is not installed")

DEMO = canonicalize_name("demo")
EXTRAS = ("", "more")

NOTE = "pathlib.Path({!r}).write_text(str(found.pid))"

BACKEND = """\
import os, pathlib, sys

METADATA = '''Metadata-Version: 2.1
Name: demo
Version: VERSION
Requires-Python: >=3.8
Requires-Dist: found-by-building>=2
Requires-Dist: on-{}; extra == "more"
'''.format(sys.platform)


def prepare_metadata_for_build_wheel(folder, settings=None):
    BODY
    info = pathlib.Path(folder) / "demo-VERSION.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    return info.name
"""


def add_sdist(served: LoopbackIndex, version: str = "1.0", *, body: str = "", requires: str = "") -> None:
    """List a source distribution with a backend of its own, whose metadata nobody knows before it runs."""
    backend = BACKEND.replace("VERSION", version).replace("BODY", body or "pass")
    project = f'[build-system]\nrequires = [{requires}]\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    members = {
        "PKG-INFO": f"Metadata-Version: 2.1\nName: demo\nVersion: {version}\n",
        "pyproject.toml": project,
        "backend.py": backend,
    }
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for path, text in members.items():
            entry = tarfile.TarInfo(f"demo-{version}/{path}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    filename = f"demo-{version}.tar.gz"
    file = ServedFile(
        filename=filename,
        path=f"/files/{filename}",
        content=gzip.compress(raw.getvalue(), mtime=0),
        metadata=None,
        requires_python=None,
        upload_time=None,
        yanked=None,
    )
    served.pages.setdefault("simple", {}).setdefault("demo", []).append(file)
    served.files[file.path] = file


def test_without_leave_nothing_is_built(served: LoopbackIndex, open_index: OpenIndex) -> None:
    add_sdist(served)
    client = open_index(allow_sdist=True)
    with pytest.raises(UnusableMetadataError) as caught:
        client.requirements(client.releases(DEMO)[0])
    assert caught.value.message == (
        "`demo-1.0.tar.gz` is a source distribution whose dependencies are decided when it is built; "
        "policy `allow: [build]` would build it to find out"
    )


def counting(path: Path) -> str:
    """Return a statement for a backend, by which each build adds a line to a file."""
    return f'pathlib.Path({str(path)!r}).open("a").write("built\\n")'


def test_a_build_finds_the_requirements_and_is_remembered(served: LoopbackIndex, open_index: OpenIndex, tmp_path: Path) -> None:
    builds = tmp_path / "builds"
    add_sdist(served, body=counting(builds))
    client = open_index(allow_sdist=True, allow_build=True)
    (release,) = client.releases(DEMO)
    assert release.file is not None
    assert not client.is_built(release.file)
    assert [str(one) for one in client.requirements(release, EXTRAS)] == ["found-by-building>=2", 'on-linux; extra == "more"']
    assert client.is_built(release.file)
    for is_offline in (False, True):
        client = open_index(allow_sdist=True, allow_build=True, offline=is_offline)
        (release,) = client.releases(DEMO)
        assert release.file is not None
        assert str(client.requirements(release)[0]) == "found-by-building>=2"
        assert client.is_built(release.file)
    assert builds.read_text() == "built\n"
    client = open_index(allow_sdist=True)
    with pytest.raises(UnusableMetadataError):
        client.requirements(client.releases(DEMO)[0])


def test_a_build_of_a_file_by_url_is_remembered_as_one(served: LoopbackIndex, open_index: OpenIndex) -> None:
    add_sdist(served)
    content = served.files["/files/demo-1.0.tar.gz"].content
    served.serve("/direct/demo-1.0.tar.gz", content, content_type="application/gzip")  # with an ETag
    for is_offline in (False, True):
        client = open_index(allow_build=True, offline=is_offline)
        release = client.direct(DEMO, f"{served.root}/direct/demo-1.0.tar.gz")
        assert release.file is not None
        assert client.is_built(release.file)
        assert str(client.requirements(release)[0]) == "found-by-building>=2"
    with pytest.raises(UnusableMetadataError):
        open_index().direct(DEMO, f"{served.root}/direct/demo-1.0.tar.gz")


def test_what_a_build_requires_comes_from_the_first_index_for_any_name(
    served: LoopbackIndex, open_index: OpenIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/elsewhere")
    served.add_wheel("helper", "1.0")
    add_sdist(served, requires='"helper==1.0"', body="import helper")
    client = open_index(allow_sdist=True, allow_build=True)
    assert len(client.requirements(client.releases(DEMO)[0], EXTRAS)) == 2
    assert served.requests["/simple/helper/"] >= 1


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("import torch", "it imports `torch` while it is built, and does not declare that it needs it"),
        ("raise RuntimeError('no CUDA here')", "RuntimeError: no CUDA here"),
    ],
)
def test_a_build_that_fails_says_why(served: LoopbackIndex, open_index: OpenIndex, body: str, told: str) -> None:
    add_sdist(served, body=body)
    client = open_index(allow_sdist=True, allow_build=True)
    with pytest.raises(UnusableMetadataError) as caught:
        client.requirements(client.releases(DEMO)[0])
    assert caught.value.message == f"the build of `demo-1.0.tar.gz` fails: {told}"
    assert caught.value.hints[0] == "what a build requires is taken from index `main` alone"


def is_running(process: int) -> bool:
    """Whether a process does anything; one that ended and that nobody asked about does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def ends(process: int) -> bool:
    """Whether a process ends within ten seconds: a signal is sent at once, and takes effect when its process has its turn."""
    until = time.monotonic() + 10
    while is_running(process) and time.monotonic() < until:
        time.sleep(0.05)
    return not is_running(process)


def test_a_build_that_takes_too_long_is_stopped_with_all_it_started(
    served: LoopbackIndex, open_index: OpenIndex, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    number = tmp_path / "number"
    add_sdist(served, body=f"pathlib.Path({str(number)!r}).write_text(str(os.getpid())); import time; time.sleep(600)")
    monkeypatch.setattr(build, "SECONDS", 8.0)
    client = open_index(allow_sdist=True, allow_build=True)
    with pytest.raises(UnusableMetadataError) as caught:
        client.requirements(client.releases(DEMO)[0])
    assert caught.value.message == "the build of `demo-1.0.tar.gz` was stopped after 8 s"
    assert ends(int(number.read_text()))


def test_a_daemon_that_a_build_leaves_behind_is_not_waited_for(
    served: LoopbackIndex, open_index: OpenIndex, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One in a session of its own, such as a compiler's cache server, is not stopped and keeps the pipes of the build open."""
    number = tmp_path / "number"
    daemon = f'import subprocess; found = subprocess.Popen(["sleep", "60"], start_new_session=True); {NOTE.format(str(number))}'
    add_sdist(served, body=f"{daemon}; import time; time.sleep(600)")
    monkeypatch.setattr(build, "SECONDS", 8.0)
    client = open_index(allow_sdist=True, allow_build=True)
    began = time.monotonic()
    try:
        with pytest.raises(UnusableMetadataError) as caught:
            client.requirements(client.releases(DEMO)[0])
        assert time.monotonic() - began < 30
    finally:
        os.kill(int(number.read_text()), signal.SIGKILL)
    assert caught.value.message == "the build of `demo-1.0.tar.gz` was stopped after 8 s"


def test_nor_is_one_that_is_left_behind_by_a_build_that_succeeds(
    served: LoopbackIndex, open_index: OpenIndex, tmp_path: Path
) -> None:
    number = tmp_path / "number"
    ways = ("start_new_session=True", "")
    body = "; ".join(
        [
            "import subprocess",
            *(
                f'found = subprocess.Popen(["sleep", "60"], {way}); {NOTE.format(f"{number}-{at}")}'
                for at, way in enumerate(ways)
            ),
        ]
    )
    add_sdist(served, body=body)
    client = open_index(allow_sdist=True, allow_build=True)
    began = time.monotonic()
    assert client.requirements(client.releases(DEMO)[0])
    assert time.monotonic() - began < 40
    apart, beside = (int((tmp_path / f"number-{at}").read_text()) for at in range(2))
    assert ends(beside)
    assert is_running(apart)
    os.kill(apart, signal.SIGKILL)


def test_after_two_failures_the_other_versions_are_not_tried(
    served: LoopbackIndex, open_index: OpenIndex, tmp_path: Path
) -> None:
    builds = tmp_path / "builds"
    for version in ("1.0", "2.0", "3.0"):
        add_sdist(served, version, body=f'{counting(builds)}; sys.exit("Error: no")')
    client = open_index(allow_sdist=True, allow_build=True)
    told = []
    for release in client.releases(DEMO):
        with pytest.raises(UnusableMetadataError) as caught:
            client.requirements(release)
        told.append(caught.value.message)
    assert told == [
        "the build of `demo-3.0.tar.gz` fails: Error: no",
        "the build of `demo-2.0.tar.gz` fails: Error: no",
        "`demo-1.0.tar.gz` was not built: 2 builds of other versions of it failed before",
    ]
    assert builds.read_text() == "built\n" * 2


def test_a_build_that_failed_is_not_tried_again_for_another_python(
    served: LoopbackIndex, settings: IndexSettings, tmp_path: Path
) -> None:
    builds = tmp_path / "builds"
    add_sdist(served, body=f'{counting(builds)}; sys.exit("Error: no")')
    shared = Shared(ReadLimit())
    told = []
    allowing = replace(settings, allow_sdist=True, allow_build=True)
    for python in ("3.11", "3.12", "3.13"):
        with (
            PackageIndex(allowing, Environment(platform="linux/amd64", python=python), shared=shared) as client,
            pytest.raises(UnusableMetadataError) as caught,
        ):
            client.requirements(client.releases(DEMO)[0])
        told.append(caught.value.message)
    assert told == ["the build of `demo-1.0.tar.gz` fails: Error: no"] * 3
    assert builds.read_text() == "built\n"


def test_offline_nothing_new_is_built(served: LoopbackIndex, open_index: OpenIndex, tmp_path: Path) -> None:
    add_sdist(served)
    (tmp_path / "demo-1.0.tar.gz").write_bytes(served.files["/files/demo-1.0.tar.gz"].content)
    client = open_index(allow_sdist=True, allow_build=True, offline=True, direct_folder=tmp_path)
    with pytest.raises(UnavailableError) as caught:
        client.direct(DEMO, "file:./demo-1.0.tar.gz")
    assert caught.value.message == ("offline: `demo-1.0.tar.gz` was not built before, and a build downloads what it requires")


def test_an_archive_cannot_write_beside_its_folder(served: LoopbackIndex, open_index: OpenIndex) -> None:
    add_sdist(served)
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for path in ("demo-1.0/PKG-INFO", "../../escaped"):
            entry = tarfile.TarInfo(path)
            entry.size = 3
            archive.addfile(entry, io.BytesIO(b"x:y"))
    served.serve("/evil/demo-1.0.tar.gz", gzip.compress(raw.getvalue(), mtime=0))
    with pytest.raises(UnusableMetadataError) as caught:
        open_index(allow_sdist=True, allow_build=True).direct(DEMO, f"{served.root}/evil/demo-1.0.tar.gz")
    assert "cannot be unpacked" in caught.value.message


def test_a_build_sees_one_index_and_no_other_login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROVISION_INDEX_OTHER_PASSWORD", "s3cret")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://extra.example/simple")
    own = IndexLocation(name="own", url="https://own.example/simple", packages=("acme-*",))
    main = IndexLocation(name="main", url="https://main.example/simple")
    other = IndexLocation(name="other", url="https://other.example/simple")
    logins = {"PROVISION_INDEX_OTHER": ("ada", "s3cret"), "PROVISION_INDEX_MAIN": ("ada", "p@ss")}
    found = environment(IndexSettings(indexes=(own, main, other), logins=logins), "/tmp")
    assert {key: value for key, value in found.items() if key.startswith("PIP_")} == {
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_INDEX_URL": "https://ada:p%40ss@main.example/simple",
        "PIP_NO_INPUT": "1",
        "PIP_KEYRING_PROVIDER": "disabled",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    assert "s3cret" not in repr(found)
    assert environment(IndexSettings(indexes=(own,)), "/tmp")["PIP_NO_INDEX"] == "1"


SEEN = (
    "import json; pathlib.Path({place!r}).write_text(json.dumps([dict(os.environ), sys.argv, sys.stdin.read(), os.getcwd()]))"
)


def test_what_a_distribution_runs_sees_no_token_no_login_and_no_home(
    served: LoopbackIndex, open_index: OpenIndex, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".netrc").write_text("machine 127.0.0.1 login ada password n3trc\n")
    for name in ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "HF_TOKEN", "PROVISION_INDEX_MAIN_PASSWORD", "SSH_AUTH_SOCK"):
        monkeypatch.setenv(name, "s3cret")
    monkeypatch.setenv("HTTPS_PROXY", "http://ada:s3cret@127.0.0.1:9")
    monkeypatch.setenv("CFLAGS", "-O1")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("NETRC", str(home / ".netrc"))
    served.credentials = "ada:n3trc"
    served.add_wheel("helper", "1.0")
    add_sdist(served, requires='"helper==1.0"', body=f"import helper; {SEEN.format(place=str(tmp_path / 'seen'))}")
    client = open_index(allow_sdist=True, allow_build=True)
    assert len(client.requirements(client.releases(DEMO)[0], EXTRAS)) == 2
    text = (tmp_path / "seen").read_text()
    variables, words, said, folder = json.loads(text)
    assert "s3cret" not in text
    assert "n3trc" not in text
    assert str(home) not in text
    assert variables["CFLAGS"] == "-O1"
    assert variables["HOME"].startswith(variables["TMPDIR"])
    assert not [name for name in variables if name.startswith(("PIP_", "PROVISION_", "AWS_", "GITHUB_", "HF_", "SSH_"))]
    assert said == ""
    assert not Path(folder).exists()
    assert all("@" not in word for word in words)


def test_the_login_of_the_builds_index_is_hidden_in_what_a_failed_build_says(
    served: LoopbackIndex,
    open_index: OpenIndex,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login ada password n3trc\n")
    monkeypatch.setenv("NETRC", str(netrc))
    served.credentials = "ada:n3trc"
    add_sdist(served, body="raise RuntimeError('https://ada:n3trc@index.example')")
    client = open_index(allow_sdist=True, allow_build=True)
    with caplog.at_level("INFO", logger="provisioner"), pytest.raises(UnusableMetadataError) as caught:
        client.requirements(client.releases(DEMO)[0])
    assert caught.value.message == "the build of `demo-1.0.tar.gz` fails: RuntimeError: https://***:***@index.example"
    assert "n3trc" not in caplog.text
