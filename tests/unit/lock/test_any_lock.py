"""Locks that uv and pip write, made by these programs here and now, are read and compared with ours."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from packaging.version import Version
from uv import find_uv_bin

from provisioner.index.model import IndexFile
from provisioner.lock.any_lock import parse_any_lock
from provisioner.lock.compare import compare_texts
from provisioner.lock.file import write_lock
from provisioner.lock.model import LockedFile
from provisioner.lock.origin import Origins, with_origins
from provisioner.resolver.stack import PackagePin
from tests.lock_examples import cpu_stack, lock_of
from tests.loopback_index import LoopbackIndex

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from provisioner.lock.model import LockedPackage

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture(scope="module")
def index() -> Iterator[LoopbackIndex]:
    with LoopbackIndex(json=True) as served:
        served.add_wheel("alpha", "1.0", requires=["beta>=1"], upload_time="2026-02-03T04:05:06Z", requires_python=">=3.8")
        served.add_wheel("beta", "2.0+local.1", upload_time="2026-02-03T04:05:06Z")
        yield served


def by_uv(index: LoopbackIndex, folder: Path) -> str:
    (folder / "requirements.in").write_text("alpha\n", encoding="utf-8")
    command = [find_uv_bin(), "pip", "compile", "--no-config", "--no-cache", "--quiet", "--python", sys.executable]
    command += ["--default-index", index.url, "--output-file", "pylock.uv.toml", "requirements.in"]
    subprocess.run(command, cwd=folder, check=True)
    return (folder / "pylock.uv.toml").read_text(encoding="utf-8")


def by_pip(index: LoopbackIndex, folder: Path) -> str:
    command = [sys.executable, "-m", "pip", "lock", "--quiet", "--isolated", "--no-cache-dir", "--index-url", index.url]
    subprocess.run([*command, "--output", "pylock.pip.toml", "alpha"], cwd=folder, check=True)
    return (folder / "pylock.pip.toml").read_text(encoding="utf-8")


def by_us(index: LoopbackIndex) -> str:
    pins = []
    for name, version, requires in (("alpha", "1.0", ("beta>=1",)), ("beta", "2.0+local.1", ())):
        served = index.files[f"/files/{name}-{version}-py3-none-any.whl"]
        file = IndexFile(
            filename=served.filename,
            url=f"{index.root}/files/{served.filename}",
            index="local",
            sha256=served.sha256,
            size=len(served.content),
            requires_python=served.requires_python,
        )
        pins.append(PackagePin(name=name, version=version, file=file, requires=requires))
    stack = replace(cpu_stack(), components={"python": HERE}, packages=tuple(pins))
    return write_lock(with_origins(lock_of(stack), Origins(urls={"local": index.url})))


WRITERS = {"uv": by_uv, "pip": by_pip}


@pytest.mark.parametrize("writer", WRITERS)
def test_what_another_program_writes_is_read(index: LoopbackIndex, tmp_path: Path, writer: str) -> None:
    if writer == "pip" and Version(__import__("pip").__version__) < Version("25.1"):
        pytest.skip("pip locks since 25.1")
    text = WRITERS[writer](index, tmp_path)
    found = parse_any_lock(text, file="theirs")
    assert isinstance(found, tuple)
    assert {(package.name, package.version) for package in found} >= {("alpha", "1.0"), ("beta", "2.0+local.1")}
    for package in found:
        (file,) = package.files
        served = index.files[f"/files/{file.filename}"]
        assert file.sha256 == served.sha256


@pytest.mark.parametrize("writer", WRITERS)
def test_the_same_packages_differ_in_no_more_than_the_other_program_records(
    index: LoopbackIndex, tmp_path: Path, writer: str
) -> None:
    """Neither says which index a wheel came from, nor what a package requires."""
    comparison = compare_texts(("theirs", WRITERS[writer](index, tmp_path)), ("ours", by_us(index)))
    assert [change.text for change in comparison.of("packages")] == [
        "alpha 1.0 comes from index local, it came from (unnamed)",
        "alpha 1.0 requires `beta>=1` now",
        "beta 2.0+local.1 comes from index local, it came from (unnamed)",
    ]


ARCHIVED = """\
lock-version = "1.0"
created-by = "another-program"

[[packages]]
name = "alpha"
version = "1.0"
requires-python = ">=3.8"
archive = { url = "https://example.org/alpha-1.0%2Blocal.zip", hashes = { sha256 = "cd" } }
attestation-identities = [{ kind = "GitHub", repository = "ada/alpha" }]

[[packages]]
name = "beta"
version = "1.0"
wheels = [{ url = "https://example.org/beta-1.0-py3-none-any.whl", hashes = { sha256 = "01" } }]
VARIANTS
"""


def packages(variants: str = "") -> tuple[LockedPackage, ...]:
    found = parse_any_lock(ARCHIVED.replace("VARIANTS", variants), file="theirs")
    assert isinstance(found, tuple)
    return found


def test_an_archive_and_who_attests_it_are_read() -> None:
    alpha, _ = packages()
    assert alpha.archive == LockedFile(
        filename="alpha-1.0+local.zip", sha256="cd", url="https://example.org/alpha-1.0%2Blocal.zip"
    )
    assert alpha.attestations == ({"kind": "GitHub", "repository": "ada/alpha"},)
    assert alpha.requires_python == ">=3.8"


def test_the_list_of_variants_of_a_draft_is_read_where_it_is_one() -> None:
    _, beta = packages('variants-json = { url = "https://example.org/beta-1.0-variants.json", hashes = { sha256 = "02" } }')
    assert beta.variants == LockedFile(
        filename="beta-1.0-variants.json", sha256="02", url="https://example.org/beta-1.0-variants.json"
    )
    for other in ("variants-json = 1", "variants-json = {}", 'variants-json = { url = 1, hashes = { sha256 = "02" } }'):
        assert packages(other)[1].variants is None
