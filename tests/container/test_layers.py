"""The layers of an image: the same from two builds of a lock, and built again only where the packages of a layer changed."""

from __future__ import annotations

import hashlib
import re
import time
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.document import write_text
from provisioner.lock.format.model import LockedFile, LockedPackage
from provisioner.render import render
from provisioner.render.helper import helper_files
from provisioner.resolver.stack import RuntimeImage
from provisioner.validate.builder import docker_builder
from provisioner.validate.engine import BuildRequest, RunRequest
from tests.container.image_locks import LOCK_NAME, source_distribution

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from provisioner.lock.format.model import Lock
    from provisioner.validate.docker_engine import DockerEngine
    from tests.container.image_locks import Wheelhouse

pytestmark = pytest.mark.docker

FRAMEWORK = {
    "acme/large.py": b"size = 'large'\n",
    "acme/sets.py": b"def has(x):\n    return x in {'a', 'bb', 'ccc', 'dddd', 'eeeee'}\n",
    "acme/broken.py": b"{{ template }} = $\n",
    "*.dist-info/entry_points.txt": b"[console_scripts]\nframework-tool = acme.large:print\n",
}


@pytest.fixture
def lock(wheelhouse: Wheelhouse) -> Lock:
    """A framework and two other packages, of which one shares a namespace with it."""
    wheelhouse.add("torch", "2.4.1", members=FRAMEWORK)
    wheelhouse.add("shared", "1.0", members={"acme/small.py": b"size = 'small'\n"})
    wheelhouse.add("plain", "1.0")
    return wheelhouse.lock(accelerator="cuda", require_cuda="driver>=525")


@pytest.fixture
def tags(engine: DockerEngine) -> Iterator[list[str]]:
    found: list[str] = []
    yield found
    for tag in found:
        engine.remove(tag)


def build(engine: DockerEngine, lock: Lock, folder: Path, tags: list[str], *options: str) -> tuple[list[str], str]:
    """Build the image of a lock with a plain client; returns the digests of its layers, and what the build said."""
    text = render(lock, "dockerfile", lock_file_name=LOCK_NAME)
    for name, content in {"Dockerfile": text, **helper_files("dockerfile", text)}.items():
        write_text(folder / name, content)
    tags.append(f"provision-test/layers:{len(tags)}")
    builder = docker_builder(engine._client.api.base_url.replace("http+docker://localhost", "unix:///var/run/docker.sock"))
    request = BuildRequest(context=folder, dockerfile=folder / "Dockerfile", tag=tags[-1], network="none")
    said: list[str] = []
    replace(builder, command=(*builder.command, *options)).build(request, said.append)
    return engine._client.images.get(tags[-1]).attrs["RootFS"]["Layers"], "\n".join(said)


def compiled_from_source(content: bytes) -> LockedPackage:
    """The source distribution as a locked package."""
    sdist = LockedFile(
        filename="compiled-3.0.tar.gz", sha256=hashlib.sha256(content).hexdigest(), path="wheels/compiled-3.0.tar.gz"
    )
    return LockedPackage(name="compiled", version="3.0", platforms=("linux/amd64",), sdist=sdist)


def run(engine: DockerEngine, tag: str, *command: str) -> str:
    finished = engine.run(RunRequest(image=tag, command=command), lambda _: None)
    assert finished.exit_code == 0, finished.stderr
    return finished.stdout


def test_two_builds_of_a_lock_have_the_same_layers(
    engine: DockerEngine, wheelhouse: Wheelhouse, lock: Lock, tags: list[str]
) -> None:
    first, _ = build(engine, lock, wheelhouse.folder, tags, "--no-cache")
    second, _ = build(engine, lock, wheelhouse.folder, tags, "--no-cache")
    assert first == second


def test_a_changed_package_leaves_the_layer_of_the_framework(
    engine: DockerEngine, wheelhouse: Wheelhouse, lock: Lock, tags: list[str]
) -> None:
    first, _ = build(engine, lock, wheelhouse.folder, tags)
    wheelhouse.packages = [package for package in wheelhouse.packages if package.name != "plain"]
    wheelhouse.add("plain", f"2.{time.time_ns()}")  # not in the cache of an earlier run
    changed = wheelhouse.lock(accelerator="cuda", require_cuda="driver>=525")
    second, said = build(engine, changed, wheelhouse.folder, tags)
    assert [index for index, (one, other) in enumerate(zip(first, second, strict=True)) if one != other] == [3]
    steps = dict(re.findall(r"^#(\d+) \[(.*?)\]", said, re.MULTILINE))
    cached = {steps[number] for number in re.findall(r"^#(\d+) CACHED$", said, re.MULTILINE) if number in steps}
    own, framework, packages = "runtime 1/4", "runtime 2/4", "runtime 3/4"
    assert {own, framework, packages} & cached == {own, framework}, said


def test_layers_make_one_environment(engine: DockerEngine, wheelhouse: Wheelhouse, lock: Lock, tags: list[str]) -> None:
    build(engine, lock, wheelhouse.folder, tags)
    show = "import acme.large, acme.small, plain, torch; print(acme.large.size, acme.small.size, acme.large.__cached__)"
    cached = "/opt/venv/lib/python3.11/site-packages/acme/__pycache__/large.cpython-311.pyc"
    assert run(engine, tags[0], "python", "-c", show).split() == ["large", "small", cached]
    flags = f"import struct; print(*struct.unpack('<2I', open('{cached}', 'rb').read()[4:12]))"
    assert run(engine, tags[0], "python", "-c", flags).split()[0] == "1", "hash-based, and never compared with the source"
    assert run(engine, tags[0], "sh", "-c", "head -n 1 /opt/venv/bin/framework-tool") == "#!/opt/venv/bin/python\n"
    times = run(engine, tags[0], "find", "/opt", "/home", "!", "-newermt", "@315532800", "!", "-newermt", "@315532799")
    assert times == ""
    assert run(engine, tags[0], "find", "/opt", "/home", "-newermt", "@315532800") == ""
    assert run(engine, tags[0], "find", "/opt/venv", "-perm", "-2", "!", "-type", "l") == ""
    assert "NVIDIA_REQUIRE_CUDA" in run(engine, tags[0], "cat", "/opt/provision/guard.py")


def test_a_lock_that_changed_after_its_dockerfile_does_not_build(
    engine: DockerEngine, wheelhouse: Wheelhouse, lock: Lock, tags: list[str]
) -> None:
    wheelhouse.add("late", "1.0")
    wheelhouse.lock()
    with pytest.raises(Exception, match="does not build") as failed:
        build(engine, lock, wheelhouse.folder, tags)
    said = "\n".join(getattr(failed.value, "causes", ()))
    assert f"{LOCK_NAME} has changed since the Dockerfile was rendered: provision render {LOCK_NAME} --out Dockerfile" in said


def test_a_source_distribution_is_built_apart_and_installed(
    engine: DockerEngine, wheelhouse: Wheelhouse, tags: list[str]
) -> None:
    content = source_distribution()
    (wheelhouse.wheels / "compiled-3.0.tar.gz").write_bytes(content)
    wheelhouse.packages.append(compiled_from_source(content))
    wheelhouse.add("plain", "1.0")
    build(engine, wheelhouse.lock(), wheelhouse.folder, tags)
    assert run(engine, tags[0], "python", "-c", "import compiled, plain; print(compiled.built)") == "from source\n"
    assert run(engine, tags[0], "find", "/opt", "-name", "*.whl", "-o", "-name", "built", "-o", "-name", "installer") == ""


def test_what_is_built_on_one_image_is_shipped_on_another(
    engine: DockerEngine, wheelhouse: Wheelhouse, base_image: str, tags: list[str], tmp_path: Path
) -> None:
    (tmp_path / "compiler").write_text("gcc\n", encoding="utf-8")
    (tmp_path / "Dockerfile").write_text(f"FROM {base_image}\nCOPY compiler /opt/compiler\n", encoding="utf-8")
    tags.append("provision-test/debian-devel:1")
    engine.build(BuildRequest(context=tmp_path, dockerfile=tmp_path / "Dockerfile", tag=tags[0]), lambda _: None)
    content = source_distribution()
    (wheelhouse.wheels / "compiled-3.0.tar.gz").write_bytes(content)
    wheelhouse.packages.append(compiled_from_source(content))
    lock = wheelhouse.lock(base=tags[0])
    (stack,) = lock.stacks
    assert stack.image is not None
    image = replace(stack.image, runtime=RuntimeImage(reference=base_image))
    build(engine, replace(lock, stacks=(replace(stack, image=image),)), wheelhouse.folder, tags)
    assert run(engine, tags[1], "python", "-c", "import compiled; print(compiled.built)") == "from source\n"
    assert run(engine, tags[1], "find", "/opt", "-name", "compiler") == ""
