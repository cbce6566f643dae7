from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from provisioner.validate.builder import CommandBuilder, build_failure, docker_builder, failed_step, proxy_arguments, reason_of
from provisioner.validate.engine import BuildFailedError, BuildRequest, EngineError

HOST = "unix:///run/engine.sock"

RECORDED = """\
#4 [1/2] FROM docker.io/library/debian:bookworm
#4 sha256:b575a1cf82c4c7519224c78ec3dc978cc4e7a2385f8d08a2d4bd875f02b8abb3
#4 CACHED

#5 [2/2] RUN echo bad; exit 3
#5 sha256:1f4a50e7f371420f213df52e09b51f48f3786d48c11a982439ade029b76d9635
#5 0.227 bad
#5 ERROR: executor failed running [/bin/sh -c echo bad; exit 3]: exit code: 3
------
 > [2/2] RUN echo bad; exit 3:
------
executor failed running [/bin/sh -c echo bad; exit 3]: exit code: 3
""".splitlines()
"""What Docker 20.10.24 printed."""


def client(folder: Path, *, version: str, buildx: str = "") -> str:
    """A program that answers as a Docker client of this version does, and records how it is called to build."""
    folder.mkdir()
    has_buildx = f"echo 'github.com/docker/buildx {buildx} 28c90ea'" if buildx else "exit 1"
    program = folder / "docker"
    program.write_text(
        "#!/bin/sh\n"
        f'case "$*" in\n"buildx version") {has_buildx};;\n--version) echo "Docker version {version}, build 297e128";;\n'
        f'*) echo "$DOCKER_HOST $DOCKER_BUILDKIT $*" > {folder}/called\n'
        'while [ $# -gt 1 ]; do [ "$1" = --iidfile ] && printf sha256:abc > "$2"; shift; done;;\nesac\n'
    )
    program.chmod(0o755)
    return str(folder)


def request(folder: Path) -> BuildRequest:
    return BuildRequest(
        context=folder, dockerfile=folder / "Dockerfile", tag="t:1", secrets={"ca": Path("/ca.pem")}, network="host"
    )


def test_buildx_comes_first_wherever_on_path_it_is(tmp_path: Path) -> None:
    path = ":".join(
        [client(tmp_path / "a", version="20.10.24+dfsg1"), client(tmp_path / "b", version="28.2.2", buildx="v0.13.1")]
    )
    builder = docker_builder(HOST, path)
    assert builder.method == "docker buildx 0.13.1"
    built = builder.build(request(tmp_path), lambda _: None)
    assert (built.image, built.tag) == ("sha256:abc", "t:1")
    called = (tmp_path / "b/called").read_text()
    assert called.startswith(f"{HOST}  buildx build --load --progress=plain --file {tmp_path}/Dockerfile --tag t:1 --iidfile ")
    assert called.endswith(f" --network host --secret id=ca,src=/ca.pem {tmp_path}\n")


def test_a_client_before_23_is_told_to_use_the_buildkit_in_it(tmp_path: Path) -> None:
    path = ":".join([client(tmp_path / "new", version="28.2.2"), client(tmp_path / "old", version="20.10.24+dfsg1")])
    builder = docker_builder(HOST, path)
    assert builder.method == "docker 20.10.24 with BuildKit"
    builder.build(request(tmp_path), lambda _: None)
    assert (tmp_path / "old/called").read_text().startswith(f"{HOST} 1 build --progress=plain ")


def test_a_new_client_without_buildx_cannot_build(tmp_path: Path) -> None:
    with pytest.raises(EngineError) as caught:
        docker_builder(HOST, client(tmp_path / "new", version="28.2.2"))
    assert caught.value.message == "no Docker client here can build with BuildKit"
    assert caught.value.causes == (f"`{tmp_path}/new/docker` 28.2.2 has no buildx plug-in",)
    assert caught.value.exit_code == 3
    with pytest.raises(EngineError) as caught:
        docker_builder(HOST, str(tmp_path / "empty"))
    assert caught.value.causes == ("there is no `docker` on PATH",)


def test_a_failed_step_is_shown_without_the_steps_around_it() -> None:
    assert failed_step(RECORDED) == (
        "[2/2] RUN echo bad; exit 3",
        "0.227 bad",
        "ERROR: executor failed running [/bin/sh -c echo bad; exit 3]: exit code: 3",
    )


def test_a_step_that_fails_is_a_no() -> None:
    error = build_failure("t:1", RECORDED)
    assert isinstance(error, BuildFailedError)
    assert (error.message, error.exit_code) == ("the image `t:1` does not build from its lock", 1)


@pytest.mark.parametrize(
    ("line", "sign"),
    [
        ("failed to do request: Head https://registry-1.docker.io/v2/: dial tcp: lookup registry-1.docker.io", "dial tcp"),
        ("  Caused by: dns error: failed to lookup address information", "dns error"),
        ("urllib3 Failed to establish a new connection: [Errno 111]", "Failed to establish a new connection"),
        ("E: Temporary failure resolving 'deb.debian.org'", "Temporary failure resolving"),
        ("ERROR: Cannot connect to the Docker daemon at unix:///x", "Cannot connect to the Docker daemon"),
        ("invalid peer certificate: UnknownIssuer", "invalid peer certificate"),
        ("  Caused by: HTTP status client error (401 Unauthorized) for url (https://index/simple/x)", "401 Unauthorized"),
        ("ERROR: 403 Client Error: Forbidden for url: https://index/simple/x", "403 Client Error"),
        ("  Caused by: HTTP status server error (503 Service Unavailable) for url (https://i/)", "503 Service Unavailable"),
        ("ERROR: pull access denied, repository does not exist or may require authorization", "pull access denied"),
        ("unexpected status: 429 Too Many Requests", "429 Too Many Requests"),
    ],
)
def test_a_build_that_could_not_reach_what_it_needs_tells_nothing_about_the_lock(line: str, sign: str) -> None:
    error = build_failure("t:1", [*RECORDED[:3], line])
    assert isinstance(error, EngineError)
    assert error.message == f"the build of `t:1` could not reach what it needs: {sign}"
    assert error.exit_code == 3


@pytest.mark.parametrize(
    "line",
    [
        "write /var/lib/docker/x: no space left on device",
        "8.4   cause: failed to write to file `/tmp/cache/uv/.tmp/ptxas`: No space left on device (os error 28)",
    ],
)
def test_a_full_disk_tells_nothing_about_the_lock_and_is_no_matter_of_the_network(line: str) -> None:
    error = build_failure("t:1", [*RECORDED[:3], line])
    assert isinstance(error, EngineError)
    assert (error.message, error.exit_code) == ("the engine has no space left to build `t:1`", 3)
    assert error.hints == (
        "docker system df shows what its disk holds, and docker system prune removes what nobody uses any more",
    )


DAMAGED = (
    "#18 exporting layers done",
    "#18 ERROR: layer does not exist",
    "#14 ERROR: failed to prepare w5efgiw8jf: open /var/lib/docker/overlay2/y2ognsp3/committed: no such file or directory",
)
"""What Docker 20.10 printed when its cache named layers that had been removed: the first line is no error."""


@pytest.mark.parametrize("line", DAMAGED[1:])
def test_a_damaged_cache_tells_nothing_about_the_lock(line: str) -> None:
    error = build_failure("t:1", [*RECORDED[:3], line])
    assert isinstance(error, EngineError)
    assert (error.message, error.exit_code) == ("the engine lost layers while it built `t:1`", 3)


@pytest.mark.parametrize(("is_healed", "error"), [(True, None), (False, EngineError)])
def test_a_build_with_a_damaged_cache_is_done_again_without_it(
    *, is_healed: bool, error: type[EngineError] | None, tmp_path: Path
) -> None:
    builder = tmp_path / "builder"
    healed = "for word; do case $last in --iidfile) printf sha256:1 >$word;; esac; last=$word; done; exit 0"
    builder.write_text(
        f"""#!/bin/sh
echo "$*" >>{tmp_path}/calls
case $* in *--no-cache*) {healed if is_healed else ""};; esac
echo '{DAMAGED[1]}' >&2; exit 1
"""
    )
    builder.chmod(0o755)
    request = BuildRequest(context=tmp_path, dockerfile=tmp_path / "Dockerfile", tag="t:1")
    lines: list[str] = []
    with pytest.raises(error) if error else nullcontext():
        assert CommandBuilder("trial", (str(builder),)).build(request, lines.append).image == "sha256:1"
    assert [call.startswith("--no-cache ") for call in (tmp_path / "calls").read_text().splitlines()] == [False, True]
    assert "the engine's build cache names layers that are gone: building again without the cache" in lines


def test_a_build_for_an_architecture_that_is_not_emulated_tells_nothing_about_the_lock() -> None:
    error = build_failure("t:1", [*RECORDED[:3], "#8 0.276 exec /bin/sh: exec format error", *RECORDED[3:]])
    assert isinstance(error, EngineError)
    assert error.message == "the engine of `t:1` does not run programs of the image's architecture: exec format error"
    assert error.hints == (
        "validate on a machine of that platform, or let this one emulate it: apt-get install qemu-user-static binfmt-support",
    )


UNKNOWN = (
    "failed to solve with frontend dockerfile.v0: failed to create LLB definition: dockerfile parse error line 2: "
    "unknown instruction: RUNS"
)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (
            ("0.9   x Failed to download `demo==1.2`", "0.9   ╰─▶ Hash mismatch for `demo==1.2`", "0.9       Expected: 0"),
            "Hash mismatch for `demo==1.2`",
        ),
        (("1.2 error: Failed to fetch", "1.2   Caused by: a", "1.2   Caused by: no file"), "no file"),
        (("3.1 Reading package lists...", "3.1 E: Unable to locate package libnone"), "Unable to locate package libnone"),
        (("2.0 ERROR: No distribution for uv", "ERROR: executor failed running [x]"), "No distribution for uv"),
        (RECORDED, "bad"),
        (("[2/2] RUN false", "ERROR: executor failed running [/bin/sh -c false]: exit code: 1"), ""),
        (
            ("[2/2] RUN x", "0.2 Traceback:", "0.2 ImportError: no y", "ERROR: executor failed running [x]"),
            "ImportError: no y",
        ),
        (("#1 [internal] load build definition", UNKNOWN), "dockerfile parse error line 2: unknown instruction: RUNS"),
    ],
)  # fmt: skip
def test_the_line_that_says_why_a_build_failed_comes_first(lines: tuple[str, ...], reason: str) -> None:
    assert reason_of(failed_step(list(lines))) == reason
    causes = build_failure("t:1", list(lines)).causes
    assert causes[0] == (reason or failed_step(list(lines))[0])


def test_a_step_that_is_killed_tells_nothing_about_the_lock() -> None:
    error = build_failure("t:1", ["#5 [2/2] RUN x", "#5 9.1 Killed", "#5 ERROR: executor failed running [x]: exit code: 137"])
    assert isinstance(error, EngineError)
    assert (error.message, error.exit_code) == ("a step of `t:1` was killed, most often for want of memory", 3)


@pytest.mark.parametrize(
    ("network", "proxy", "options"),
    [
        ("", "http://proxy.example:3128", ("--build-arg", "HTTPS_PROXY", "--build-arg", "NO_PROXY")),
        ("", "http://ada:secret@127.0.0.1:3128", ()),
        ("", "localhost:3128", ()),
        ("host", "localhost:3128", ("--build-arg", "HTTPS_PROXY", "--build-arg", "NO_PROXY")),
    ],
)
def test_proxies_are_lent_by_name_where_a_step_can_reach_them(
    monkeypatch: pytest.MonkeyPatch, network: str, proxy: str, options: tuple[str, ...]
) -> None:
    for name in ("http", "https", "ftp", "all", "no"):
        monkeypatch.delenv(f"{name}_proxy", raising=False)
        monkeypatch.delenv(f"{name}_PROXY".upper(), raising=False)
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    monkeypatch.setenv("NO_PROXY", "localhost")
    assert proxy_arguments(network) == options
