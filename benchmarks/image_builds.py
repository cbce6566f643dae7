"""Build one lock's packages as an image in four ways, and write what each costs to docs/image-builds.md.

The rendered Dockerfile stands beside two that people write by hand: two layers with uv, which compile nothing and hold no
check (the floor), and one layer with pip, as the guides of frameworks show; and beside the steps that cog generates. All start
from the same base image and install the same files. It needs a Docker engine, debootstrap and the package index, and takes ten
minutes: `.venv/bin/python benchmarks/image_builds.py`.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from uv import find_uv_bin

from provisioner.document import write_text
from provisioner.lock.format.file import read_lock
from provisioner.render import render
from provisioner.validate.builder import docker_builder
from provisioner.validate.image import build_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "image-builds.md"
BASE = "provision-test/debian:bookworm"
CHANGED = "idna"
STEPS = Path("/sys/fs/cgroup/cpuacct/docker/buildkit/cpuacct.usage")
SPEC = """\
name: bench
target: {{platform: linux/amd64}}
accelerator: cpu
requires: {{python: "==3.11.*"}}
packages: [onnxruntime, scipy, fastapi, requests, "idna{idna}"]
image: {{base: "{base}", distribution: "debian:12", python: "3.11"}}
outputs: [dockerfile]
"""
LARGE = 32 * 2**20
MOUNTS = (
    "--mount=type=cache,target=/cache --mount=type=secret,id=ca,target=/tmp/ca \\\n"
    "    --mount=type=bind,source=uv,target=/bin/uv --mount=type=bind,source={file},target=/{file}"
)
LENT = (
    "if [ -f /tmp/ca ]; then export SSL_CERT_FILE=/tmp/ca PIP_CERT=/tmp/ca; fi; export UV_CACHE_DIR=/cache PIP_CACHE_DIR=/cache"
)
INSTALL = "UV_LINK_MODE=copy uv pip install --python /opt/venv/bin/python --no-deps --require-hashes"
UV = f"""\
FROM {BASE}
RUN {MOUNTS.format(file="large.txt")} \\
    {LENT}; python -m venv --without-pip /opt/venv && {INSTALL} -r /large.txt
RUN {MOUNTS.format(file="small.txt")} \\
    {LENT}; {INSTALL} -r /small.txt
"""
PIP = f"""\
FROM {BASE}
RUN {MOUNTS.format(file="requirements.txt")} \\
    {LENT}; python -m venv /opt/venv && /opt/venv/bin/pip install --no-deps --require-hashes -r /requirements.txt
"""
COG = f"""\
FROM {BASE}
ENV DEBIAN_FRONTEND=noninteractive
ENV PYTHONUNBUFFERED=1
COPY uv /usr/local/bin/
ENV UV_SYSTEM_PYTHON=true
COPY requirements.txt /tmp/requirements.txt
ENV CFLAGS="-O3 -funroll-loops -fno-strict-aliasing -flto -S"
RUN --mount=type=cache,target=/cache --mount=type=secret,id=ca,target=/tmp/ca \\
    {LENT}; python -m venv /opt/venv && /opt/venv/bin/pip install -r /tmp/requirements.txt
ENV CFLAGS=
RUN find / -type f -name "*python*.so" -printf "%h\\n" | sort -u > /etc/ld.so.conf.d/cog.conf && ldconfig
WORKDIR /src
EXPOSE 5000
CMD ["python", "-m", "cog.server.http"]
COPY provision.yaml /src
"""
"""The steps of cog's generator for an image of Python, in its order.

Source: pkg/dockerfile/standard_generator.go of replicate/cog @0045ae95. Left out is what is no package of the lock: cog
itself, and tini from github.com. uv comes from the build context instead of its image, and pip, which it starts by `uv run`
there, from an environment of its own, because the distribution's Python refuses packages.
"""


class Cost(Struct, frozen=True, kw_only=True):
    """What one build costs: seconds of processors, of its steps and of the engine, and those that it took."""

    processor: float
    elapsed: float

    def __str__(self) -> str:
        """Return both, the processors' first: `7.1 s (12 s)`."""
        return f"{self.processor:.1f} s ({self.elapsed:.0f} s)"


class Row(Struct, frozen=True, kw_only=True):
    """What one way to build costs: seconds and bytes."""

    name: str
    cold: Cost
    warm: Cost
    change: Cost
    size: int
    changed_bytes: int
    same_layers: str


def run(*command: str | Path, folder: Path) -> str:
    done = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout[-3000:] + done.stderr[-3000:])
    return done.stdout


def prepare(folder: Path, idna: str) -> None:
    """Solve, render, and write the two Dockerfiles by hand beside it."""
    write_text(folder / "provision.yaml", SPEC.format(idna=idna, base=BASE))
    run(sys.executable, "-m", "provisioner", "solve", folder=folder)
    lock = read_lock(folder / "pylock.bench.toml")
    large = {package.name for package in lock.packages if any((file.size or 0) >= LARGE for file in package.wheels)}
    text = render(lock, "requirements-urls", lock_file_name="pylock.bench.toml")
    lines = [line for line in text.replace("\\\n", " ").splitlines() if " @ " in line]
    parts = {
        "requirements.txt": lines,
        "large.txt": [line for line in lines if line.split(" @ ")[0] in large],
        "small.txt": [line for line in lines if line.split(" @ ")[0] not in large],
    }
    for name, chosen in parts.items():
        write_text(folder / name, "".join(f"{line}\n" for line in chosen))
    (folder / "uv").write_bytes(Path(find_uv_bin()).read_bytes())
    (folder / "uv").chmod(0o755)


def processor_seconds() -> float:
    """Return what the steps of all builds, and the engine itself, have used of the processors so far.

    BuildKit's steps are in one control group (version 1 of the kernel's), and its engine is at the other end of the socket.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect("/var/run/docker.sock")
        engine = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    used = Path(f"/proc/{engine}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[11:15]
    steps = int(STEPS.read_text(encoding="ascii")) if STEPS.exists() else 0
    return steps / 1e9 + sum(map(int, used)) / os.sysconf("SC_CLK_TCK")


def build(folder: Path, text: str, tag: str, *options: str) -> Cost:
    """Build a Dockerfile and return what it costs; caches of downloads are those that its text names."""
    write_text(folder / "Dockerfile.bench", text)
    builder = docker_builder("")
    secrets = [word for name, path in build_secrets(text).items() for word in ("--secret", f"id={name},src={path}")]
    command = [*builder.command, "--file", "Dockerfile.bench", "--tag", tag, *secrets, *options, "."]
    started, used = time.monotonic(), processor_seconds()
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **dict(builder.environment)}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stdout[-3000:] + done.stderr[-3000:])
    return Cost(processor=processor_seconds() - used, elapsed=time.monotonic() - started)


def layers(tag: str) -> dict[str, int]:
    """Return the layers of an image, the lowest first: the digest of each with its bytes as a tar."""
    digests = json.loads(run("docker", "image", "inspect", tag, folder=ROOT))[0]["RootFS"]["Layers"]
    with tempfile.TemporaryDirectory(prefix="provision-bench-") as scratch:
        run("docker", "save", "--output", f"{scratch}/image.tar", tag, folder=ROOT)
        with tarfile.open(f"{scratch}/image.tar") as archive:
            manifest = archive.extractfile("manifest.json")
            assert manifest is not None
            sizes = [archive.getmember(name).size for name in json.load(manifest)[0]["Layers"]]
    return dict(zip(digests, sizes, strict=True))


def measure(name: str, first: Path, second: Path, texts: tuple[str, str]) -> Row:
    """Build cold, warm, and after the change of one small package; images and their tags are removed again."""
    nonce = uuid.uuid4().hex[:8]
    own = [text.replace("type=cache,", f"type=cache,id={nonce},") for text in texts]
    tags = [f"provision-bench/image:{nonce}-{number}" for number in range(3)]
    cold = build(first, own[0], tags[0], "--no-cache")
    warm = build(first, own[0], tags[1], "--no-cache")
    change = build(second, own[1], tags[2])
    one, other, changed = map(layers, tags)
    of_base = layers(BASE)
    row = Row(
        name=name,
        cold=cold,
        warm=warm,
        change=change,
        size=sum(size for layer, size in other.items() if layer not in of_base),
        changed_bytes=sum(size for layer, size in changed.items() if layer not in other),
        same_layers=f"{len(one.keys() & other.keys() - of_base.keys())} of {len(one.keys() - of_base.keys())}",
    )
    run("docker", "image", "rm", "--force", *tags, folder=ROOT)
    return row


def validated(folder: Path) -> tuple[float, float]:
    """Return the seconds of the build and of the checks above it, up to the level of imports, with the build in the cache."""
    command = (sys.executable, "-m", "provisioner", "validate", "pylock.bench.toml", "--level", "3", "--format", "json")
    run(*command, folder=folder)
    timing = json.loads(run(*command, folder=folder))["reports"][0]["timing"]
    return timing["build"], timing["run"]


def page(rows: Iterable[Row], checks: tuple[float, float], packages: int) -> str:
    """Return the text of docs/image-builds.md."""
    table = "\n".join(
        f"| {row.name} | {row.cold} | {row.warm} | {row.size / 1e6:.0f} MB | {row.change} | "
        f"{row.changed_bytes / 1e6:.1f} MB | {row.same_layers} |"
        for row in rows
    )
    return f"""\
# What an image costs to build

Written by `benchmarks/image_builds.py`. One lock of {packages} packages (onnxruntime, SciPy, FastAPI, requests) on one
base image, built in four ways with Docker 20.10 on two cores. Seconds are those of processors, of all steps and of the
engine; in brackets is how long it took, which is of an order only where other work shares the cores (a load average of
{os.getloadavg()[2]:.0f} in 15 minutes here). Bytes are exact.
*Cold*: nothing is downloaded yet; *warm*: everything is built again from downloaded files; *change*: another release
of `{CHANGED}`, a package of 0.1 MB, and the bytes, unpacked, that a registry gets then and every node pulls; *same
layers*: how many above the base have equal digests in both builds.

| | cold | warm | size above the base | change | new bytes | same layers |
| --- | --: | --: | --: | --: | --: | --: |
{table}

The base image has no `/etc/hosts`, so Docker 20.10 gives `/etc` the time of the build in each layer that a step adds, unless
an earlier layer has that file: the first gives its images one (`tests/container/test_layers.py`).

The first compiles bytecode, which the second leaves to every start of a container (`import torch`: 3.6 s of CPU with, 7.9 s
without), and adds a user, labels and tools of the image. The third is one layer, as the guides of frameworks show. The fourth
has the steps of cog's generator, read from its source (replicate/cog @0045ae95): a program in Go that its package on PyPI does
not contain, so it was not run. Left out there are cog itself and tini, which would add to each of its columns.

`provision validate --level 3` of the same lock takes {checks[0]:.1f} s for a build that is in the cache and {checks[1]:.1f} s
for the checks: every file against its record, every linked library, every import.
"""


def main() -> None:
    """Measure and write the page."""
    run(ROOT / "tests" / "container" / "base_image.sh", BASE, folder=ROOT)
    with tempfile.TemporaryDirectory(prefix="provision-bench-") as scratch:
        first, second = Path(scratch) / "first", Path(scratch) / "second"
        for folder, idna in ((first, "<3.11"), (second, ">=3.11")):
            folder.mkdir()
            prepare(folder, idna)
        rendered = tuple((folder / "Dockerfile").read_text(encoding="utf-8") for folder in (first, second))
        hand = {"two layers, uv, no bytecode": UV, "one layer, pip": PIP, "as cog generates": COG}
        rows = [measure("provision", first, second, (rendered[0], rendered[1]))]
        rows += [measure(name, first, second, (text, text)) for name, text in hand.items()]
        packages = len(read_lock(first / "pylock.bench.toml").packages)
        write_text(PAGE, page(rows, validated(first), packages))


if __name__ == "__main__":
    main()
