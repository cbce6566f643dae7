"""How a component is named with a value: in the words of its field, not by the key of a profile."""

from __future__ import annotations

import pytest

from provisioner.components import COMPONENTS
from provisioner.grounds.conflict import Conclusion
from provisioner.grounds.requirement import HostFact, RequiresComponent
from provisioner.places import HostPlace, Place
from provisioner.words.conflict import conclusion_words
from provisioner.words.ground import noun_words, say
from tests.told import needs


@pytest.mark.parametrize(
    ("component", "value", "noun"),
    [
        ("driver", "535.104.05", "driver 535.104.05"),
        ("driver_module", "proprietary", "the proprietary kernel module"),
        ("fabric_manager", "535.104.05", "Fabric Manager 535.104.05"),
        ("kernel_headers", "none", "no kernel headers"),
        ("loaded_modules", "nouveau", "the loaded module nouveau"),
        ("secure_boot", "enforced", "Secure Boot without an enrolled key"),
    ],
)
def test_a_fact_of_a_host(component: str, value: str, noun: str) -> None:
    fact = HostFact(name=component, value=value, host="host.yaml", place=HostPlace(place=Place("host.yaml", 3)))
    assert noun_words(fact) == noun
    assert say(fact) == f"the host has {noun}"


def test_the_subject_and_the_object_of_a_rule() -> None:
    assert say(needs("driver_module open", "gpu", ">=7.5")) == "the open kernel module needs gpu >=7.5"
    assert say(needs("driver 550.54.15", "container_toolkit", ">=1.17")) == (
        "driver 550.54.15 needs NVIDIA Container Toolkit >=1.17"
    )


def test_what_a_spec_requires_of_a_host() -> None:
    required = RequiresComponent(name="driver_module", range="open", place=Place("provision.yaml", 3))
    assert say(required) == "you require the open kernel module"
    assert say(RequiresComponent(name="driver", range=">=580", place=Place("provision.yaml", 3))) == "you require driver >=580"


@pytest.mark.parametrize(
    ("component", "wanted", "conclusion"),
    [
        ("driver_module", "open", "so the open kernel module cannot be had"),
        ("pytorch_build", "cu118", "so no PyTorch build cu118 is left"),
        ("cuda_driver", ">=418", "so no CUDA driver >=418 is left"),
        ("python_arch", "arm64", "so a Python for arm64 cannot be had"),
    ],
)
def test_a_conclusion_has_the_words_of_its_field(component: str, wanted: str, conclusion: str) -> None:
    request = RequiresComponent(name=component, range=wanted, place=Place("provision.yaml", 3))
    assert conclusion_words(Conclusion(requests=(request,))) == conclusion


def test_a_conclusion_without_a_request_has_the_words_of_its_field() -> None:
    assert conclusion_words(Conclusion(name="driver_module")) == "so no kernel module flavour is left"


def test_no_component_of_a_machine_is_told_by_its_key() -> None:
    assert [row.name for row in COMPONENTS.values() if row.is_of_host and "_" in row.label] == []
