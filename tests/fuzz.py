"""Fuzz every reader with damaged copies of real files, and count what happened: `make fuzz`, or `python -m tests.fuzz --help`.

What every reader keeps: any content gives a value, or one of the errors of this program; never another exception, never more
than `SECONDS` of the processor, and never more than `BYTES` of memory. Input number `n` of a reader with a seed is always the
same: a failure prints the three, and its input is kept.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import inspect
import json
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from provisioner.compare.diff import compare
from provisioner.compare.tables import read_table
from provisioner.diagnose.diagnosis import diagnose
from provisioner.diagnose.log import read_log
from provisioner.errors import ProvisionError
from provisioner.evidence.statement import read_evidence
from provisioner.gate.grammar import parse as parse_gate
from provisioner.host import nvml, parse
from provisioner.host.inventory import read_inventory
from provisioner.host.profile import host_document, load_profile, profile_names
from provisioner.importers.formats import import_files
from provisioner.index.http.transport import Response
from provisioner.index.image_registry import ImageReference, Repository
from provisioner.index.metadata.core_metadata import UnusableMetadataError, parse_metadata
from provisioner.index.pages.project_page import parse_project_page
from provisioner.lock.check.coherence import coherence_findings
from provisioner.lock.format.file import parse_any_lock, parse_lock
from provisioner.matrix.cache import cached_matrix
from provisioner.spec.load import load_spec
from provisioner.words.finding import finding_words
from provisioner.workflow.inputs import read_inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from provisioner.index.http.transport import Transport
    from provisioner.matrix.model import Matrix

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "build" / "fuzz"
SECONDS = 10
BYTES = 4_000_000_000

PIECES = (
    *(b"\0", b"\xff", b"\xed\xa0\x80", b"\xe2\x80\xae", b"\x1b[2J", b"\r", b"\n", b"\t", b"\xef\xbb\xbf", b"\xc2\xb2"),
    *(bytes([one]) for one in b"'\"\\`{}[]<>&*!|#:,;@=~^"),
    *(
        b"$(",
        b"${",
        b"\xd9\xa3",
        b"-1",
        b"0",
        b"1e999",
        b"NaN",
        b"9" * 400,
        b"null",
        b"true",
        b"[]",
        b"{}",
        b'""',
        b"1.2.3.4.5",
    ),
    *(
        b"2026-13-45",
        b">=",
        b"==1.*",
        b"../" * 9,
        b"file:///etc/passwd",
        b"http://[::1",
        b"https://u:p@x/",
        b"%00",
        b"A" * 5000,
    ),
    *(b"[" * 300, b'{"a":' * 300, b"&a [*a]"),
)


class Reader(Struct, frozen=True, kw_only=True):
    """One reader: the content of real files to damage, and a function that reads one from a path."""

    samples: Callable[[], Sequence[bytes]]
    read: Callable[[Path], object]
    name: str
    errors: tuple[type[Exception], ...] = (ProvisionError,)


def damaged(content: bytes, draw: random.Random) -> bytes:
    """Return a content with some edits: of bytes and pieces, or, where it is JSON, of values."""
    if draw.random() < 0.4 and content[:1] in {b"{", b"["}:
        parts = content.split(b"\n\n")
        at = draw.randrange(len(parts))
        with suppress(ValueError, RecursionError):
            parts[at] = json.dumps(_other_values(json.loads(parts[at]), draw)).encode()
            return b"\n\n".join(parts)
    for _ in range(draw.choice((1, 1, 2, 4, 16))):
        start = draw.randint(0, len(content))
        end = min(len(content), start + draw.choice((0, 1, 1, 4, 30, 400)))
        middle = draw.choice((b"", draw.choice(PIECES), content[start:end] * 2, content[start:end][::-1], draw.randbytes(3)))
        content = content[:start] + middle + content[end:]
    return content[: draw.randint(0, len(content))] if draw.random() < 0.1 else content


OTHERS: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2.5,
    10**30,
    "",
    "x",
    "\u202e",
    "1.2",
    [],
    {},
    [[]],
    {"a": None},
    [None],
    "9" * 400,
)


def _other_values(value: Any, draw: random.Random) -> Any:  # noqa: ANN401 - JSON holds anything
    """Return plain data with one value of it exchanged for one of another kind, or taken out."""
    holders: list[Any] = []

    def visit(below: Any) -> None:  # noqa: ANN401 - as above
        if isinstance(below, (dict, list)):
            holders.append(below)
            for item in below.values() if isinstance(below, dict) else below:
                visit(item)

    visit(value)
    for _ in range(draw.choice((1, 1, 3))):
        holder = draw.choice([one for one in holders if one] or [None])
        if holder is None:
            return draw.choice(OTHERS)
        key = draw.choice(list(holder)) if isinstance(holder, dict) else draw.randrange(len(holder))
        if draw.random() < 0.2:
            del holder[key]
        else:
            holder[key] = draw.choice(OTHERS)
    return value


@cache
def matrix() -> Matrix:
    return cached_matrix()


def files(*patterns: str) -> Callable[[], Sequence[bytes]]:
    """Return a function that reads the files of this repository that match any of some patterns."""
    return cache(lambda: [path.read_bytes() for one in patterns for path in sorted(ROOT.glob(one)) if path.is_file()])


def texts(*contents: str) -> Callable[[], Sequence[bytes]]:
    return lambda: [content.encode() for content in contents]


def _lock(path: Path) -> None:
    text = path.read_bytes().decode(errors="replace")
    for finding in coherence_findings(parse_lock(text, file=str(path)), text, file=str(path)):
        finding_words(finding)


def _table(path: Path) -> None:
    table = read_table(path)
    compare(matrix(), [replace(table, claims=table.claims[:40])], ())


def _log(path: Path) -> None:
    with path.open("rb") as stream:
        diagnose(read_log(stream), matrix())


def _host_parsers(path: Path) -> None:
    content = path.read_bytes()
    for name, function in vars(parse).items():
        if inspect.isfunction(function) and not name.startswith("_") and function.__module__ == parse.__name__:
            parameters = inspect.signature(function).parameters
            is_binary = next(iter(parameters.values())).annotation == "bytes"
            function(content if is_binary else content.decode(errors="replace"), *["key"] * (len(parameters) - 1))


class _Library:
    """A management library whose functions fill whatever they are given with the bytes of a file, one after the other."""

    def __init__(self, content: bytes) -> None:
        self._content = content or b"\0"
        self._at = 0

    def _next(self, count: int) -> bytes:
        self._at += count
        return bytes(self._content[(self._at + index) % len(self._content)] for index in range(count))

    def __getattr__(self, name: str) -> Callable[..., int]:
        def function(*arguments: Any) -> int:  # noqa: ANN401 - as of ctypes
            for argument in arguments:
                target = argument if isinstance(argument, ctypes.Array) else getattr(argument, "_obj", None)
                if target is not None:
                    size = ctypes.sizeof(target)
                    ctypes.memmove(ctypes.addressof(target), self._next(size), size)
                    if name == "nvmlDeviceGetCount_v2":
                        target.value %= 64
            return self._next(1)[0] % 3

        return function


def _nvml(path: Path) -> None:
    nvml._Nvml(_Library(path.read_bytes())).answer()  # type: ignore[arg-type]


class _Registry:
    """A registry that answers with the first part of a content, and a question for a configuration with the second.

    `CONFIG` in the first part stands for the hash of the second, without which nobody reads that.
    """

    def __init__(self, content: bytes) -> None:
        manifest, _, self._config = content.partition(b"\n\n")
        self._manifest = manifest.replace(b"CONFIG", hashlib.sha256(self._config).hexdigest().encode())

    def request(self, url: str, **_: object) -> Response:
        content = self._config if "/blobs/" in url else self._manifest
        return Response(status=200, headers={"Link": '<?n=2&last=x>; rel="next"'}, content=content, url=url)


def _registry(path: Path) -> None:
    transport: Transport = _Registry(path.read_bytes())  # type: ignore[assignment]
    repository = Repository(ImageReference.parse("nvidia/cuda:12"), transport)
    for question in (repository.tags, lambda: repository.digest("12"), lambda: repository.content("12")):
        try:
            question()
        except ProvisionError:
            continue


def _page(content_type: str) -> Callable[[Path], object]:
    url = "https://index.test/simple/alpha/"
    return lambda path: parse_project_page(path.read_bytes(), content_type=content_type, url=url, index="x")


DIGEST = "a" * 64
PAGE_FILES = [
    {
        "filename": f"alpha-{n}.0-py3-none-any.whl",
        "url": f"../f/alpha-{n}.0-py3-none-any.whl",
        "hashes": {"sha256": DIGEST},
        "size": n,
    }
    | {"hashes": {"sha256": DIGEST}, "requires-python": ">=3.9", "yanked": "why"}
    | {"core-metadata": {"sha256": DIGEST}, "upload-time": "2026-01-01T00:00:00Z"}
    for n in range(4)
]
JSON_PAGE = json.dumps({"meta": {"api-version": "1.1"}, "name": "alpha", "versions": ["1.0"], "files": PAGE_FILES})
HTML_PAGE = "<!DOCTYPE html><base href='/f/'><body>" + "".join(
    f'<a href="alpha-{n}.0-py3-none-any.whl#sha256={DIGEST}" data-requires-python="&gt;=3.9" data-yanked="x">alpha</a>'
    for n in range(4)
)
MANIFEST = json.dumps(
    {
        "manifests": [{"digest": f"sha256:{DIGEST}", "platform": {"os": "linux", "architecture": "amd64"}}],
        "config": {"digest": "sha256:CONFIG"},
        "tags": ["12.6.3-base-ubuntu24.04", "latest"],
    }
)
CONFIGURATION = json.dumps({"os": "linux", "architecture": "amd64", "config": {"Env": ["NVIDIA_REQUIRE_CUDA=cuda>=12.6"]}})
METADATA = (
    "Metadata-Version: 2.4\nName: alpha\nVersion: 1.0\nRequires-Python: >=3.9\nProvides-Extra: more\n"
    "Requires-Dist: beta>=1; extra == 'more'\nRequires-Dist: gamma @ https://x.test/gamma-1.0-py3-none-any.whl\n\nlong\n"
)
REQUIREMENTS = (
    "numpy>=2 ; python_version < '3.13'\n-r other.txt\n-c c.txt\n--index-url https://x.test/simple\n"
    f"torch==2.7.1 \\\n --hash=sha256:{DIGEST}\n"
)
SMI = (
    "name, driver_version\nNVIDIA H100 80GB HBM3, 535.104.05, 9.0, 0x233010DE\n"
    "| NVIDIA-SMI 535.104.05  Driver Version: 535.104.05  CUDA Version: 12.2 |"
)
GATE = "cuda>=12.6 brand=tesla,driver>=535,driver<536 brand=unknown,driver>=470,driver<471 arch>=7.5,arch<11.0,arch!=8.7"
CSV = "name,kernel,driver,gpus,count\nnode1,6.8.0,535.104.05,4x NVIDIA H100 80GB HBM3,3\nnode2,,,none,\n"
HOSTS_JSON = json.dumps(
    [{"name": "n", "count": 2, "host": {"kernel": "6.8.0", "driver": {"version": "535.104.05"}, "gpus": []}}]
)

_SPECS = ("examples/*/provision.yaml", "dockerfiles/*/provision.yaml")
READERS = {
    "provision.yaml": Reader(samples=files(*_SPECS), read=load_spec, name="provision.yaml"),
    "spec with hosts": Reader(
        samples=files(*_SPECS), read=lambda path: read_inputs(path, matrix=matrix()), name="provision.yaml"
    ),
    "pyproject.toml": Reader(
        samples=files("examples/*/pyproject.toml", "pyproject.toml"), read=load_spec, name="pyproject.toml"
    ),
    "requirements.txt": Reader(samples=texts(REQUIREMENTS), read=load_spec, name="requirements.txt"),
    "host profile": Reader(
        samples=cache(lambda: [host_document(load_profile(name).host).encode() for name in profile_names()]),
        read=lambda path: list(read_inventory([path])),
        name="host.yaml",
    ),
    "hosts.json": Reader(samples=texts(HOSTS_JSON), read=lambda path: list(read_inventory([path])), name="hosts.json"),
    "nodes of kubectl": Reader(
        samples=files("tests/fixtures/nodes/*.json"), read=lambda path: list(read_inventory([path])), name="nodes.json"
    ),
    "hosts.csv": Reader(
        samples=cache(lambda: [CSV.encode(), *files("examples/fleet/machines.csv")()]),
        read=lambda path: list(read_inventory([path])),
        name="hosts.csv",
    ),
    "lock": Reader(
        samples=files("dockerfiles/jax*/pylock.*.toml", "tests/fixtures/locks/*.toml"), read=_lock, name="pylock.x.toml"
    ),
    "lock of another program": Reader(
        samples=files("tests/fixtures/locks/*.toml"),
        read=lambda path: parse_any_lock(path.read_bytes().decode(errors="replace"), file=str(path)),
        name="pylock.toml",
    ),
    "published table": Reader(samples=files("matrices/published/*.yaml"), read=_table, name="table.yaml"),
    "log": Reader(
        samples=cache(lambda: files("tests/facts/messages.txt")()[0].splitlines(keepends=True)), read=_log, name="build.log"
    ),
    "index page, JSON": Reader(samples=texts(JSON_PAGE), read=_page("application/vnd.pypi.simple.v1+json"), name="page"),
    "index page, HTML": Reader(samples=texts(HTML_PAGE), read=_page("text/html"), name="page"),
    "core metadata": Reader(
        samples=texts(METADATA),
        read=lambda path: parse_metadata(path.read_bytes()),
        name="METADATA",
        errors=(ProvisionError, UnusableMetadataError),
    ),
    "answers of a registry": Reader(samples=texts(f"{MANIFEST}\n\n{CONFIGURATION}"), read=_registry, name="manifest"),
    "strings of a machine": Reader(
        samples=cache(lambda: [SMI.encode(), *(one for one in files("tests/fixtures/hosts/*/**/*")() if len(one) < 20_000)]),
        read=_host_parsers,
        name="file",
    ),
    "strings of NVML": Reader(samples=texts("NVIDIA H100 80GB HBM3\0" * 9), read=_nvml, name="nvml"),
    "NVIDIA_REQUIRE_CUDA": Reader(
        samples=texts(GATE),
        read=lambda path: parse_gate(path.read_bytes().decode(errors="replace")),
        name="gate",
    ),
    "evidence": Reader(samples=files("tests/golden/evidence/*.json"), read=read_evidence, name="x.evidence.json"),
    "Dockerfile": Reader(
        samples=files("tests/fixtures/imports/dockerfile*/Dockerfile", "dockerfiles/*/Dockerfile"),
        read=lambda path: import_files([path], folder=path.parent, matrix=matrix()),
        name="Dockerfile",
    ),
    "environment.yml": Reader(
        samples=files("tests/fixtures/imports/conda*/*.y*ml"),
        read=lambda path: import_files([path], folder=path.parent, matrix=matrix()),
        name="environment.yml",
    ),
    "cog.yaml": Reader(
        samples=files("tests/fixtures/imports/cog/cog.yaml"),
        read=lambda path: import_files([path], folder=path.parent, matrix=matrix()),
        name="cog.yaml",
    ),
}


class Failure(Struct, frozen=True, kw_only=True):
    """An input that broke the law, the exception, and the line of this program that raised it."""

    reader: str
    number: int
    problem: str
    content: bytes


class TooSlowError(Exception):
    """An input took more than `SECONDS` of the processor."""


def content_of(name: str, seed: int, number: int) -> bytes:
    """Return input number `number` of a reader: with a seed it is always the same, as long as the samples are."""
    draw = random.Random(f"{seed}/{name}/{number}")
    return damaged(draw.choice(READERS[name].samples()), draw)


def tried(name: str, content: bytes, folder: Path) -> str:
    """Read one content and return `read`, `refused` or, where the reader breaks the law, what it did."""
    reader = READERS[name]
    path = folder / reader.name
    path.write_bytes(content)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        reader.read(path)
    except reader.errors as error:
        str(error)
        return "refused"
    except Exception as error:  # noqa: BLE001 - whatever else comes is what is looked for
        frame = next(
            (one for one in reversed(traceback.extract_tb(error.__traceback__)) if "/provisioner/" in one.filename), None
        )
        where = f"{Path(frame.filename).relative_to(ROOT)}:{frame.lineno}" if frame is not None else "?"
        return f"{type(error).__name__} at {where}: {str(error)[:120]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "read"


def campaign(names: Sequence[str], *, seconds: float, seed: int) -> Iterator[tuple[str, Counter[str], list[Failure], float]]:
    """Yield for each reader how many inputs were read and refused, its failures, and the longest time that one took."""
    for name in names:
        counts: Counter[str] = Counter()
        failures: dict[str, Failure] = {}
        longest, number, end = 0.0, 0, time.monotonic() + seconds / len(names)
        with tempfile.TemporaryDirectory() as folder:
            while time.monotonic() < end:
                content = content_of(name, seed, number)
                began = time.process_time()
                outcome = tried(name, content, Path(folder))
                longest = max(longest, time.process_time() - began)
                counts[outcome if outcome in {"read", "refused"} else "failed"] += 1
                if outcome not in {"read", "refused"}:
                    failure = Failure(reader=name, number=number, problem=outcome, content=content)
                    failures.setdefault(outcome.partition(": ")[0], failure)
                number += 1
        yield name, counts, list(failures.values()), longest


def too_slow(*_: object) -> None:
    """Raise the error of an input that takes too long; a handler of SIGPROF."""
    raise TooSlowError(f"more than {SECONDS} seconds")


def main() -> int:
    """Run a campaign, print a table of it, keep the inputs that failed, and return 1 if there are any."""
    words = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    words.add_argument("--seconds", type=float, default=120, help="the time of the whole campaign (default: 120)")
    words.add_argument("--seed", type=int, default=0, help="the seed that the inputs are drawn with (default: 0)")
    words.add_argument("--reader", action="append", choices=list(READERS), help="only this reader; repeatable")
    words.add_argument("--number", type=int, help="only this input of one --reader, with its traceback")
    asked = words.parse_args()
    names = asked.reader or list(READERS)
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    signal.signal(signal.SIGPROF, too_slow)
    if asked.number is not None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / READERS[names[0]].name
            path.write_bytes(content_of(names[0], asked.seed, asked.number))
            READERS[names[0]].read(path)
        return 0
    failed = []
    say = sys.stdout.write
    say("| reader | inputs | read | refused | other exceptions | longest, s |\n| --- | --- | --- | --- | --- | --- |\n")
    for name, counts, failures, longest in campaign(names, seconds=asked.seconds, seed=asked.seed):
        row = (counts.total(), counts["read"], counts["refused"], counts["failed"])
        say(f"| {name} | {' | '.join(f'{one:,}' for one in row)} | {longest:.2f} |\n")
        sys.stdout.flush()
        failed += failures
    for failure in failed:
        KEPT.mkdir(parents=True, exist_ok=True)
        kept = KEPT / f"{failure.reader.replace(' ', '-')}-{asked.seed}-{failure.number}"
        kept.write_bytes(failure.content)
        sys.stderr.write(f"{failure.reader}, seed {asked.seed}, number {failure.number}: {failure.problem}  ({kept})\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
