"""One of several targets: the spec as it would be with it alone, every line under its own place."""

from __future__ import annotations

import pytest

from provisioner.document import parse_document
from provisioner.errors import UsageError
from provisioner.spec.gather import Gathered
from provisioner.spec.load import parse_spec, select_target

DOCUMENT = parse_document(
    """\
name: trainer
targets:
  v100:
    platform: linux/amd64
  grace:
    platform: linux/arm64
""",
    file="provision.yaml",
    kind="spec",
)
SPEC = parse_spec(Gathered(DOCUMENT))


def test_one_target_is_read_as_if_it_were_the_only_one() -> None:
    spec, document = select_target(SPEC, DOCUMENT, "grace")
    assert (spec.target.platform, spec.targets) == ("linux/arm64", {})
    assert document.where(("target", "platform")) == "provision.yaml:6"
    assert "targets" not in document.data
    assert document.data["target"] == {"platform": "linux/arm64"}


def test_a_spec_without_targets_is_itself() -> None:
    document = parse_document("name: trainer\n", file="provision.yaml", kind="spec")
    spec = parse_spec(Gathered(document))
    assert select_target(spec, document, None) == (spec, document)


def test_a_target_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError) as caught:
        select_target(SPEC, DOCUMENT, "v10")
    assert caught.value.message == "provision.yaml has no target `v10`; did you mean `v100`?"
    assert caught.value.hints == ("it has v100, grace",)
