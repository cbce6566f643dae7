"""docs/lock.md says something of every field of PEP 751 that the reference implementation knows, and of no other."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from packaging import pylock

DOCUMENT = (Path(__file__).parents[3] / "docs" / "lock.md").read_text(encoding="utf-8")


def documented(heading: str) -> set[str]:
    """The fields of the table below a heading, and those that the sentence below it names."""
    section = DOCUMENT.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE))


def known(*kinds: type) -> set[str]:
    return {field.name.replace("_", "-") for kind in kinds for field in fields(kind)}


def test_every_field_of_the_file_is_explained() -> None:
    assert documented("The file") == known(pylock.Pylock)


def test_every_field_of_a_package_is_explained() -> None:
    assert documented("A package") == known(pylock.Package)


def test_every_field_of_a_file_is_explained() -> None:
    files = known(pylock.PackageWheel, pylock.PackageSdist, pylock.PackageArchive)
    assert documented("A file") == files
    others = known(pylock.PackageVcs, pylock.PackageDirectory) - files
    (sentence,) = re.findall(r"^Of `vcs` and `directory`: (.*)$", DOCUMENT, re.MULTILINE)
    assert set(re.findall(r"`([a-z-]+)`", sentence)) == others


def test_the_spec_it_shows_is_one() -> None:
    from provisioner.document import parse_document, parse_model
    from provisioner.spec.model import Spec

    (text,) = re.findall(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL)
    spec = parse_model(parse_document(text, file="docs/lock.md", kind="spec"), Spec, kind="spec")
    assert list(spec.targets) == ["volta", "blackwell"]
