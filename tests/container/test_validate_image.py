"""Real images from real locks: built hermetically, run, measured and compared."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.document import write_text
from provisioner.lock.format.file import lock_digest, read_lock
from provisioner.render import render
from provisioner.render.helper import helper_files
from provisioner.validate.engine import BuildRequest, EngineError, RunRequest
from provisioner.validate.run import Options, validate_lock
from tests.container.conftest import push
from tests.container.image_locks import kept_image
from tests.loopback_index import LoopbackIndex
from tests.scripted_server import Answer, ScriptedServer
from tests.unit.validate.locks import failed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from provisioner.evidence.report import Report
    from provisioner.lock.format.model import Lock
    from provisioner.validate.docker_engine import DockerEngine
    from provisioner.validate.engine import Finished
    from tests.container.image_locks import Wheelhouse

pytestmark = pytest.mark.docker

HERMETIC = Options(build_network="none")
SITE = "/opt/venv/lib/python3.11/site-packages"


def validated(lock: Lock, wheelhouse: Wheelhouse, engine: DockerEngine, options: Options = HERMETIC) -> Report:
    lines: list[str] = []
    report = validate_lock(lock, wheelhouse.lock_path, engine=engine, options=options, log=lines.append)
    assert lines, "a build that says nothing leaves its user waiting in the dark"
    return report


def test_an_image_built_without_any_network_is_as_locked(engine: DockerEngine, wheelhouse: Wheelhouse) -> None:
    wheelhouse.add("demo", "1.2")
    wheelhouse.add("other", "0.3")
    lock = wheelhouse.lock()
    report = validated(lock, wheelhouse, engine)
    measured = {field.name: field.measured for field in report.fields}
    assert (measured["packages"], measured["other files"], measured["build"]) == ("2 as locked", "none", "built")
    assert {level.name: level.verdict for level in report.levels} == dict.fromkeys(
        ("static", "build", "files", "imports"), "yes"
    )
    assert (report.verdict, report.exit_code) == ("yes", 0)
    assert report.image.startswith("sha256:")
    assert report.engine.builder
    assert report.lock_digest == lock_digest(read_lock(wheelhouse.lock_path))


def test_the_image_is_gone_afterwards_unless_it_is_to_be_kept(engine: DockerEngine, wheelhouse: Wheelhouse) -> None:
    wheelhouse.add("demo", "1.3")
    report = validated(wheelhouse.lock(), wheelhouse, engine)
    tag = kept_image(wheelhouse.lock())
    assert not engine._client.images.list(tag)
    kept = validated(wheelhouse.lock(), wheelhouse, engine, Options(build_network="none", keep_image=True))
    assert kept.image == report.image, "the same lock builds from the cache"
    (image,) = engine._client.images.list(tag)
    assert image.id == kept.image
    engine.remove(tag)
    engine.remove(tag)


def test_a_run_leaves_the_image_of_another_one_alone(
    engine: DockerEngine, wheelhouse: Wheelhouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other run builds the same lock, measures it and removes its image before the container of this one starts."""
    wheelhouse.add("demo", "1.5")
    lock = wheelhouse.lock()
    run, others = engine.run, []

    def run_after_another(request: RunRequest, log: Callable[[str], None]) -> Finished:
        monkeypatch.setattr(engine, "run", run)
        others.append(validated(lock, wheelhouse, engine).verdict)
        return run(request, log)

    monkeypatch.setattr(engine, "run", run_after_another)
    assert (validated(lock, wheelhouse, engine).verdict, others) == ("yes", ["yes"])


def test_a_wheel_that_was_exchanged_does_not_build(engine: DockerEngine, wheelhouse: Wheelhouse) -> None:
    wheelhouse.add("demo", "1.2", sha256="0" * 64)
    report = validated(wheelhouse.lock(), wheelhouse, engine)
    assert [(field.level, field.name) for field in failed(report.fields)] == [(0, "local files"), (1, "build")]
    assert (report.fields[-1].measured, report.exit_code) == ("failed", 1)
    assert report.fields[-1].note.startswith("Hash mismatch for `demo")


def built_on(image: str, lines: tuple[str, ...], engine: DockerEngine, folder: Path) -> str:
    """The tag of an image made from another one."""
    folder.mkdir()
    (folder / "Dockerfile").write_text("\n".join((f"FROM {image}", *lines)), encoding="utf-8")
    tag = f"provision-test/{folder.name}:1"
    engine.build(BuildRequest(context=folder, dockerfile=folder / "Dockerfile", tag=tag), lambda _: None)
    return tag


def test_an_image_that_was_built_elsewhere_is_measured_and_kept(
    engine: DockerEngine, wheelhouse: Wheelhouse, registry: str, tmp_path: Path
) -> None:
    wheelhouse.add("demo", "1.2")
    lock = wheelhouse.lock()
    own = kept_image(lock)
    validated(lock, wheelhouse, engine, Options(build_network="none", keep_image=True))
    lines = ('ENTRYPOINT ["python", "/srv/app"]', "USER 4711", "ENV HOME=/srv", "LABEL org.opencontainers.image.title=app")
    application = built_on(own, ("COPY Dockerfile /srv/app", *lines), engine, tmp_path / "application")
    assert validated(lock, wheelhouse, engine, Options(image=application)).verdict == "yes"
    pushed = f"{registry}/application:1"
    push(engine, application, pushed)
    for tag in (application, pushed):
        engine.remove(tag)
    found = validated(lock, wheelhouse, engine, Options(image=pushed))
    assert (found.verdict, found.engine.builder) == ("yes", "")
    assert engine.inspect(pushed) is not None, "it is the user's image"
    assert [level.verdict for level in found.levels] == ["nothing to do", "nothing to do", "yes", "yes"]
    for tag in (pushed, own):
        engine.remove(tag)


def test_an_image_that_cannot_be_pulled_says_nothing_about_the_lock(
    engine: DockerEngine, wheelhouse: Wheelhouse, registry: str
) -> None:
    wheelhouse.add("demo", "1.2")
    with pytest.raises(EngineError) as missing:
        validated(wheelhouse.lock(), wheelhouse, engine, Options(image=f"{registry}/none:1"))
    assert missing.value.message == f"image `{registry}/none:1` is not here and cannot be pulled"
    assert missing.value.exit_code == 3


def test_an_image_of_another_architecture_is_a_no(engine: DockerEngine, wheelhouse: Wheelhouse) -> None:
    wheelhouse.add("demo", "1.2")
    lock = wheelhouse.lock()
    own = kept_image(lock)
    validated(lock, wheelhouse, engine, Options(level=1, build_network="none", keep_image=True))
    (stack,), (package,) = lock.stacks, lock.packages
    packages = (replace(package, platforms=("linux/arm64",)),)
    arm = replace(lock, stacks=(replace(stack, platform="linux/arm64"),), packages=packages)
    report = validated(arm, wheelhouse, engine, Options(image=own, platform="linux/arm64"))
    engine.remove(own)
    assert {field.name for field in failed(report.fields)} >= {"image platform", "architecture"}


def test_the_dockerfile_beside_the_lock_is_built_and_an_edited_one_is_told(
    engine: DockerEngine, wheelhouse: Wheelhouse
) -> None:
    wheelhouse.add("demo", "1.2")
    lock = wheelhouse.lock()
    file = wheelhouse.folder / "Dockerfile"
    text = render(lock, "dockerfile", lock_file_name=wheelhouse.lock_path.name)
    for name, helper in helper_files("dockerfile", text).items():
        write_text(wheelhouse.folder / name, helper)
    (wheelhouse.folder / "app.py").write_text("x = 1\n")
    file.write_text(text + "COPY app.py /srv/app.py\n")
    report = validated(lock, wheelhouse, engine)
    (recipe,) = (field for field in report.fields if field.name == "recipe")
    assert (report.verdict, recipe.measured) == ("yes", "edited")
    assert recipe.note == "Dockerfile is not what this version renders from the lock; it is built as it is"
    file.write_text(text + f"USER root\nRUN touch {SITE}/stray.py\nUSER 10001:10001\n")
    assert [field.name for field in failed(validated(lock, wheelhouse, engine).fields)] == ["other files"]


@pytest.mark.parametrize(
    ("name", "text", "hidden"),
    [
        (".dockerignore", "*\n!wheels\n!pylock.*\n", "provision/install.py"),
        ("Dockerfile.dockerignore", "# locks\n*.toml\n", "pylock.trial.toml"),
    ],
)
def test_what_an_ignore_file_hides_is_not_there_to_build_from(
    engine: DockerEngine, wheelhouse: Wheelhouse, name: str, text: str, hidden: str
) -> None:
    """`docker build .` fails then; the validation built from a context of its own, and was a yes."""
    wheelhouse.add("demo", "1.2")
    lock = wheelhouse.lock()
    recipe = render(lock, "dockerfile", lock_file_name=wheelhouse.lock_path.name)
    for path, content in {"Dockerfile": recipe, **helper_files("dockerfile", recipe), name: text}.items():
        write_text(wheelhouse.folder / path, content)
    report = validated(lock, wheelhouse, engine, Options(level=1, build_network="none"))
    found = [(field.level, field.name, field.note.splitlines()[0]) for field in failed(report.fields)]
    assert found == [(0, name, hidden), (1, "build", found[-1][2])]
    assert hidden.rpartition("/")[2] in found[-1][2]
    write_text(wheelhouse.folder / name, f"{text}!{hidden}\n")
    assert validated(lock, wheelhouse, engine, Options(level=1, build_network="none")).verdict == "yes"


def test_wheels_from_a_loopback_index_need_the_hosts_network(engine: DockerEngine, wheelhouse: Wheelhouse) -> None:
    with LoopbackIndex() as index:
        filename = index.add_wheel("served", "2.0")
        (served,) = index.files.values()
        wheelhouse.add_file("served", "2.0", filename, sha256=served.sha256, url=f"{index.root}{served.path}")
        lock = wheelhouse.lock()
        with pytest.raises(EngineError) as stopped:
            validated(lock, wheelhouse, engine)
        assert "could not reach what it needs" in stopped.value.message
        report = validated(lock, wheelhouse, engine, Options(build_network="host"))
    assert report.verdict == "yes"
    assert index.requests[served.path] >= 1


@pytest.mark.parametrize(
    ("status", "sign"), [(401, "401 Unauthorized"), (403, "403 Forbidden"), (404, ""), (503, "503 Service")]
)
def test_an_index_that_refuses_tells_nothing_about_the_lock_and_one_without_the_file_does(
    engine: DockerEngine, wheelhouse: Wheelhouse, status: int, sign: str
) -> None:
    name = "served-2.0-py3-none-any.whl"
    with ScriptedServer({f"/{name}": [Answer(status=status)]}) as server:
        wheelhouse.add_file("served", "2.0", name, sha256="0" * 64, url=server.url(f"/{name}"))
        lock = wheelhouse.lock()
        if sign:
            with pytest.raises(EngineError, match=f"could not reach what it needs: {sign}"):
                validated(lock, wheelhouse, engine, Options(level=1, build_network="host"))
        else:
            (build,) = failed(validated(lock, wheelhouse, engine, Options(level=1, build_network="host")).fields)
            assert (build.name, build.verdict, "404 Not Found" in build.note.splitlines()[0]) == ("build", "no", True)
        assert server.seen


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
def test_a_registry_that_refuses_tells_nothing_about_the_lock(
    engine: DockerEngine, wheelhouse: Wheelhouse, status: int
) -> None:
    wheelhouse.add("demo", "1.2")
    paths = ("/v2/", "/v2/base/manifests/1")
    with ScriptedServer({path: [Answer(status=status)] for path in paths}) as server:
        lock = wheelhouse.lock(base=f"{server.url('').removeprefix('http://').rstrip('/')}/base:1")
        with pytest.raises(EngineError, match=f"could not reach what it needs: {status}"):
            validated(lock, wheelhouse, engine, Options(level=1))


def test_a_base_image_pinned_by_digest_is_pulled_from_its_registry(
    engine: DockerEngine, wheelhouse: Wheelhouse, registry: str
) -> None:
    digest = push(engine, wheelhouse.base_image, f"{registry}/python:3.11-slim-bookworm")
    wheelhouse.add("demo", "1.2")
    lock = wheelhouse.lock(base=f"{registry}/python:3.11-slim-bookworm", digest=digest)
    assert validated(lock, wheelhouse, engine).verdict == "yes"


def test_a_digest_no_registry_knows_is_a_no(engine: DockerEngine, wheelhouse: Wheelhouse, registry: str) -> None:
    push(engine, wheelhouse.base_image, f"{registry}/python:3.11-slim-bookworm")
    wheelhouse.add("demo", "1.2")
    digest = f"sha256:{'0' * 64}"
    report = validated(wheelhouse.lock(base=f"{registry}/python:3.11-slim-bookworm", digest=digest), wheelhouse, engine)
    field = report.fields[-1]
    assert (field.name, field.verdict) == ("build", "no")
    assert f"{digest}: not found" in field.note


def test_the_reference_that_is_emitted_is_found_through_a_mirror(
    engine: DockerEngine, wheelhouse: Wheelhouse, registry: str
) -> None:
    """The image behind the name is a stand-in: this proves the reference, the pull and the pin, not NVIDIA's contents."""
    mirrors = engine._client.info()["RegistryConfig"]["Mirrors"]
    if not any(registry.replace("localhost", "127.0.0.1") in mirror for mirror in mirrors):
        pytest.skip("this engine was not started with the loopback registry as its mirror; .ci/engine.sh does so")
    reference = "nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04"
    digest = push(engine, wheelhouse.base_image, f"{registry}/{reference}")
    wheelhouse.add("demo", "1.2")
    lock = wheelhouse.lock(base=reference, digest=digest)
    assert validated(lock, wheelhouse, engine).verdict == "yes"


def test_without_a_client_for_buildkit_nothing_is_known_about_the_lock(
    engine: DockerEngine, wheelhouse: Wheelhouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheelhouse.add("demo", "1.4")
    lock = wheelhouse.lock()
    monkeypatch.setenv("PATH", str(wheelhouse.folder))
    with pytest.raises(EngineError) as caught:
        validated(lock, wheelhouse, engine)
    assert (caught.value.message, caught.value.exit_code) == ("no Docker client here can build with BuildKit", 3)
    assert caught.value.causes == ("there is no `docker` on PATH",)


def test_a_run_whose_time_is_up_is_ended_and_its_container_removed(engine: DockerEngine, base_image: str) -> None:
    mark = f"TRIAL={uuid.uuid4()}"
    command = ("python", "-c", "import time; time.sleep(60)")
    request = RunRequest(image=base_image, command=command, timeout=1.0, environment=dict([mark.split("=")]))
    assert engine.run(request, lambda _: None).exit_code == -1
    left = engine._client.api.containers(all=True, quiet=True)
    environments = [engine._client.api.inspect_container(one["Id"])["Config"]["Env"] for one in left]
    assert not [environment for environment in environments if mark in (environment or ())]


def test_lines_of_stderr_arrive_while_the_container_runs(engine: DockerEngine, base_image: str) -> None:
    arrivals: list[tuple[str, float]] = []
    code = "import sys,time\nfor i in range(3): print(i, file=sys.stderr, flush=True); time.sleep(0.4)\nprint('out')"
    request = RunRequest(image=base_image, command=("python", "-c", code))
    finished = engine.run(request, lambda line: arrivals.append((line, time.monotonic())))
    assert [line for line, _ in arrivals] == ["0", "1", "2"]
    assert arrivals[2][1] - arrivals[0][1] > 0.4
    assert (finished.exit_code, finished.stdout, finished.stderr) == (0, "out\n", "0\n1\n2\n")


def test_a_container_that_fails_to_start_names_its_image(engine: DockerEngine) -> None:
    with pytest.raises(EngineError) as missing:
        engine.run(RunRequest(image="provision-test/none:1", command=("python", "-V")), lambda _: None)
    assert missing.value.message == "a container of `provision-test/none:1` cannot be run"
