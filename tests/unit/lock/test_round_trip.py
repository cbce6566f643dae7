from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from provisioner.errors import ProvisionError
from provisioner.grounds.bound import Specifier
from provisioner.grounds.doubt import UnpinnedImage, Unstated
from provisioner.grounds.predicate import Requires
from provisioner.grounds.requirement import Entails, HostFact, Relation, RequiresComponent, Subject
from provisioner.grounds.source import Metadata
from provisioner.index.metadata.details import identities_in
from provisioner.index.model import DIRECT_URL, IndexFile
from provisioner.lock.format.file import parse_lock, verify_digest, write_lock
from provisioner.lock.format.model import LockedFile
from provisioner.lock.provenance import Origins, with_origins
from provisioner.places import HostPlace, Place
from provisioner.resolver.stack import BaseImage, PackagePin, Pin, Stack
from provisioner.versions import Version
from tests.lock_examples import INSTALLERS, cuda_stack, lock_of
from tests.strategies import examples

if TYPE_CHECKING:
    import random

    from provisioner.lock.format.model import Lock

pytestmark = pytest.mark.property

ROOT = Path(__file__).parents[3]
WORDS = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True)
VERSIONS = st.from_regex(r"[0-9]{1,2}\.[0-9]{1,2}(\+cu[0-9]{3})?", fullmatch=True)
LINES = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=20)
SHA256 = st.text("0123456789abcdef", min_size=64, max_size=64)
PLATFORMS = ("linux/amd64", "linux/arm64", "macos/x86_64")


SUBJECTS = st.builds(Subject, WORDS, VERSIONS)
GROUNDS = (
    st.builds(RequiresComponent, name=WORDS, range=LINES, place=st.builds(Place, WORDS, st.integers(0, 99)))
    | st.builds(HostFact, name=WORDS, value=WORDS, host=WORDS, place=st.builds(lambda file: HostPlace(Place(file)), WORDS))
    | st.builds(
        Entails,
        name=WORDS,
        subject=SUBJECTS,
        predicate=st.builds(lambda name, text: Requires(name, (Specifier(text),)), WORDS, LINES),
        relation=st.builds(Relation, WORDS, WORDS),
        cited=st.none() | st.builds(Metadata, WORDS, VERSIONS),
    )
)
DOUBTS = st.builds(Unstated, fact=WORDS, host=WORDS, profile_key=WORDS) | st.builds(UnpinnedImage, reference=LINES)


@st.composite
def package_pins(draw: st.DrawFn, name: str) -> PackagePin:
    version = draw(VERSIONS)
    filename = f"{name}-{version}-py3-none-any.whl"
    file = IndexFile(
        filename=filename,
        url=f"https://example.org/{filename.replace('+', '%2B')}",
        index=draw(st.sampled_from(["pypi", "https://example.org/simple", "", DIRECT_URL])),
        sha256=draw(SHA256),
        size=draw(st.none() | st.integers(0, 2**40)),
        requires_python=draw(st.sampled_from([None, "", ">=3.9", ">=3.8,!=3.9.*,<4", "not a specifier", ">=3.6.*"])),
        upload_time=draw(st.none() | st.datetimes().map(lambda moment: f"{moment.isoformat()}Z")),
    )
    requires = tuple(f"{other}>=1" for other in draw(st.lists(WORDS, max_size=3)))
    return PackagePin(name=name, version=version, file=file, requires=requires)


@st.composite
def stacks(draw: st.DrawFn, platform: str) -> Stack:
    names = draw(st.lists(WORDS, unique=True, max_size=5))
    texts = st.dictionaries(WORDS, LINES, max_size=3)
    pins = st.builds(
        lambda **fields: Pin(**fields),  # noqa: PLW0108 - the signature of `Pin` names types that only the type checker has
        component=WORDS,
        version=st.just(Version.parse("1.2")),
        build=WORDS,
        reasons=st.lists(GROUNDS, max_size=3).map(tuple),
    )
    return Stack(
        platform=platform,
        accelerator=draw(st.sampled_from(["cuda", "rocm", "mps", "cpu"])),
        components={**draw(texts), "python": draw(st.sampled_from(["3.11", "3.12", "3.12.7"]))},
        pins=tuple(draw(st.lists(pins, max_size=3))),
        basis=draw(st.sampled_from(["", "native", "minor-version", "forward-compat"])),
        host_requirements=draw(texts),
        require_cuda=draw(LINES),
        arch_list=tuple(draw(st.lists(WORDS, max_size=3))),
        environment=draw(texts),
        doubts=tuple(draw(st.lists(DOUBTS, max_size=2))),
        image=draw(st.none() | st.builds(BaseImage, reference=WORDS, glibc=LINES, python=LINES, require_cuda=LINES)),
        packages=tuple(draw(package_pins(name)) for name in names),
        runs=draw(st.sampled_from(["container", "host"])),
    )


LOCKED = st.lists(st.sampled_from(PLATFORMS), unique=True, min_size=1).flatmap(
    lambda platforms: st.tuples(*(stacks(platform) for platform in platforms))
)


CLAIMS = st.recursive(
    LINES | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(LINES, below, max_size=3),
    max_leaves=6,
)
PUBLISHERS = st.dictionaries(st.sampled_from(["repository", "workflow", "environment"]) | LINES, CLAIMS, max_size=4)
PROVENANCE = st.lists(st.tuples(WORDS, PUBLISHERS).map(lambda pair: {**pair[1], "kind": pair[0]}), max_size=3)
URLS = st.dictionaries(st.sampled_from(["pypi", "other"]), st.sampled_from(["https://ada:pw@example.org/s/", "file:///srv/s"]))


def attested(lock: Lock, urls: dict[str, str], publishers: list[dict[str, object]], *, has_variants: bool) -> Lock:
    """The lock as indexes that publish everything would have it."""
    body = json.dumps({"version": 1, "attestation_bundles": [{"publisher": one, "attestations": []} for one in publishers]})
    identities = identities_in(body.encode())
    assert identities is not None
    files = [file for package in lock.packages for file in package.files]
    described = with_origins(lock, Origins(urls=urls, identities={file.sha256: identities for file in files}))
    variants = LockedFile(filename="x-1-variants.json", sha256="0" * 64, url="https://example.org/x-1-variants.json")
    packages = (replace(one, variants=variants if has_variants and one.wheels else None) for one in described.packages)
    return replace(described, packages=tuple(packages))


@examples(100)
@given(given_stacks=LOCKED, urls=URLS, publishers=PROVENANCE, has_variants=st.booleans())
def test_what_is_written_is_read_back_whole(
    given_stacks: tuple[Stack, ...], urls: dict[str, str], publishers: list[dict[str, object]], *, has_variants: bool
) -> None:
    lock = attested(lock_of(*given_stacks), urls, publishers, has_variants=has_variants)
    text = write_lock(lock)
    assert parse_lock(text, file="x") == lock
    assert write_lock(parse_lock(text, file="x")) == text
    assert verify_digest(text)


def _shuffled(stack: Stack, order: random.Random) -> Stack:
    def pairs(mapping: object) -> dict[str, str]:
        items = list(mapping.items())  # type: ignore[attr-defined]
        order.shuffle(items)
        return dict(items)

    return replace(
        stack,
        components=pairs(stack.components),
        host_requirements=pairs(stack.host_requirements),
        environment=pairs(stack.environment),
        packages=tuple(order.sample(stack.packages, len(stack.packages))),
        pins=tuple(order.sample(stack.pins, len(stack.pins))),
        doubts=tuple(order.sample(stack.doubts, len(stack.doubts))),
    )


@examples(30)
@given(LOCKED, st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(given_stacks: tuple[Stack, ...], order: random.Random) -> None:
    shuffled = [_shuffled(stack, order) for stack in given_stacks]
    order.shuffle(shuffled)
    # Two choices for one component come in the order of their reasons; the solver gives one.
    assume(all(len({pin.component for pin in stack.pins}) == len(stack.pins) for stack in given_stacks))
    assert write_lock(lock_of(*shuffled)) == write_lock(lock_of(*given_stacks))


def test_the_seed_of_hashing_does_not_matter() -> None:
    program = (
        "from tests.lock_examples import cuda_stack, lock_of\n"
        "from provisioner.lock.format.file import write_lock\n"
        "from provisioner.render import render\n"
        "lock = lock_of(cuda_stack(), cuda_stack('linux/arm64'))\n"
        "print(write_lock(lock), render(lock, 'dockerfile'))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "4711")
    }
    assert len(outputs) == 1


@examples(60)
@given(st.text(max_size=200))
def test_any_text_is_refused_without_a_traceback(text: str) -> None:
    with pytest.raises(ProvisionError) as caught:
        parse_lock(text, file="x")
    assert caught.value.exit_code == 2


@examples(150)
@given(st.data())
def test_a_damaged_lock_is_read_or_refused_and_never_crashes(data: st.DataObject) -> None:
    lines = write_lock(lock_of(cuda_stack(), installers=INSTALLERS)).splitlines()
    number = data.draw(st.integers(0, len(lines) - 1))
    start = data.draw(st.integers(0, len(lines[number])))
    end = data.draw(st.integers(start, len(lines[number])))
    lines[number] = (
        lines[number][:start]
        + data.draw(st.text(max_size=6) | st.sampled_from(["1", '"', "[", "{}", "="]))
        + lines[number][end:]
    )
    try:
        parse_lock("\n".join(lines), file="x")
    except ProvisionError as error:
        assert error.exit_code == 2  # noqa: PT017 - reading it is right too
