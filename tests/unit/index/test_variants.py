"""Wheel variants of draft PEP 825 on an index: passed over with a reason, for nothing chooses among them yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from packaging.utils import canonicalize_name

from provisioner.index.pages.filename import parse_filename, split_filename

if TYPE_CHECKING:
    from tests.loopback_index import LoopbackIndex
    from tests.unit.index.conftest import OpenIndex

DEMO = canonicalize_name("demo")
HERE = "cp312-cp312-manylinux_2_17_x86_64"


def list_variants(served: LoopbackIndex, *labels: str) -> None:
    """Variant wheels of demo 2.0 and the list of variants that an index serves beside them."""
    for label in labels:
        served.add_wheel("demo", "2.0", tag=HERE)
        file = served.pages["simple"]["demo"].pop()
        name = file.filename.replace(".whl", f"-{label}.whl")
        served.serve(f"/files/{name}", file.content, content_type="application/octet-stream")
    names = [f"demo-2.0-{HERE}-{label}.whl" for label in labels]
    others = [file.filename for file in served.pages["simple"].get("demo", [])]
    links = [f'<a href="/files/{name}#sha256={"0" * 64}">{name}</a>' for name in (*names, "demo-2.0-variants.json", *others)]
    served.serve("/simple/demo/", "\n".join(links).encode())


def test_the_wheel_for_all_is_chosen_beside_variants(served: LoopbackIndex, open_index: OpenIndex) -> None:
    served.add_wheel("demo", "2.0", tag=HERE)
    list_variants(served, "x86_64_v3", "null")
    (release,) = open_index().releases(DEMO)
    assert release.is_usable
    assert release.file is not None
    assert release.file.filename == f"demo-2.0-{HERE}.whl"


def test_a_release_of_variants_alone_says_so(served: LoopbackIndex, open_index: OpenIndex) -> None:
    served.add_wheel("demo", "1.0")
    list_variants(served, "x86_64_v3", "null")
    second, first = open_index().releases(DEMO)
    assert (str(second.version), second.file) == ("2.0", None)
    assert second.why_not == "only wheel variants (null, x86_64_v3), which no installer chooses among yet (draft PEP 825)"
    assert (str(first.version), first.is_usable) == ("1.0", True)


@pytest.mark.parametrize(
    ("filename", "expected"),
    [
        ("demo-2.0-cp312-cp312-linux_x86_64-cu12.6.whl", ("2.0", "cp312-cp312-linux_x86_64-cu12.6", "")),
        ("demo-2.0-1a-cp312-cp312-linux_x86_64-null.whl", ("2.0", "cp312-cp312-linux_x86_64-null", "1a")),
        ("demo-2.0-py3-none-any-null.whl", ("2.0", "py3-none-any-null", "")),
        ("demo-2.0-1-cp312-cp312-linux_x86_64.whl", ("2.0", "cp312-cp312-linux_x86_64", "1")),
        ("demo-2.0-cp312-cp312-linux_x86_64-Upper.whl", None),
        ("demo-2.0-cp312-cp312-linux_x86_64-seventeen_letters.whl", None),
        ("demo-2.0-x-cp312-cp312-linux_x86_64-null.whl", None),
        ("demo-2.0-x1-py3-none-any.whl", None),
        ("demo-2.0-x1-cp312-cp312-linux_x86_64.whl", None),
        ("other-2.0-cp312-cp312-linux_x86_64-null.whl", None),
    ],
)
def test_a_label_is_the_last_part_of_a_name(filename: str, expected: tuple[str, str, str] | None) -> None:
    assert split_filename(filename, "demo") == expected


def test_who_looks_for_wheels_by_name_does_not_meet_variants() -> None:
    assert parse_filename("demo-2.0-cp312-cp312-linux_x86_64-null.whl", "demo") is None
