"""Node affinity: which terms come out for fleets as people have them, and what labels cannot do."""

from __future__ import annotations

import pytest

from provisioner.fleet.affinity import Affinity, node_affinity
from provisioner.fleet.affinity_needs import Alternative, Needs, needs_of
from provisioner.fleet.labels import LabelSet, label_sets, labels_of
from provisioner.host.inventory import InventoryHost
from provisioner.host.model import Driver, Host, HostGpu, OperatingSystem
from provisioner.node_labels import ARCHITECTURE, Expression
from provisioner.resolver.stack import Stack
from provisioner.versions import Range
from provisioner.words.affinity import difference_words, mismatch_words
from tests.scheduler import admits

COMPUTE, DRIVER = "nvidia.com/gpu.compute", "nvidia.com/cuda.driver-version"


def host(capability: str, driver: str, *, name: str = "NVIDIA X", kernel: str = "5.15.0", toolkit: str | None = None) -> Host:
    return Host(
        platform="linux/amd64",
        os=OperatingSystem(id="ubuntu", version="22.04"),
        kernel=kernel,
        driver=Driver(version=driver),
        gpus=(HostGpu(name=name, compute_capability=capability),),
        container_toolkit=toolkit,
    )


def sets(*hosts: Host, prefix: str = "n") -> tuple[LabelSet, ...]:
    return label_sets(InventoryHost(name=f"{prefix}{index}", host=one) for index, one in enumerate(hosts))


def needs(driver: str, *capabilities: tuple[int, int], kernel: str = "") -> Needs:
    one = Alternative(
        values={ARCHITECTURE: frozenset({"amd64"})},
        capabilities=frozenset(capabilities),
        driver=Range.parse(driver),
        kernel=Range.parse(kernel),
    )
    return Needs(alternatives=(one,))


def shown(affinity: Affinity) -> list[str]:
    """Each term in short; the architecture, which each begins with, left out."""
    terms = [[str(one) for one in term] for term in affinity.terms]
    assert all(term[0] == "kubernetes.io/arch In amd64" for term in terms)
    prefixes = ("nvidia.com/", "feature.node.kubernetes.io/")
    return [" & ".join(text.removeprefix(prefixes[0]).removeprefix(prefixes[1]) for text in term[1:]) for term in terms]


ALL = ((7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0))


def test_one_kind_of_host_needs_what_the_stack_needs_and_nothing_more() -> None:
    affinity = node_affinity(sets(host("9.0", "535.104.05")), (), needs(">=525.60.13", *ALL))
    assert shown(affinity) == ["gpu.compute.major In 9 & gpu.compute.minor In 0 & cuda.driver-version.major Gt 525"]
    assert affinity.is_exact
    assert affinity.by_name == ()


def test_capabilities_of_one_minor_are_one_term() -> None:
    fleet = sets(host("7.0", "580.65.06"), host("8.0", "580.65.06"), host("9.0", "580.65.06"))
    assert shown(node_affinity(fleet, (), needs(">=525.60.13", *ALL))) == [
        "gpu.compute.major In 7, 8, 9 & gpu.compute.minor In 0 & cuda.driver-version.major Gt 525"
    ]


def test_a_pair_the_stack_does_not_run_on_is_in_no_term() -> None:
    """12.0 and 8.6 together would be 12.6 and 8.0 too, which nobody compiled for."""
    fleet = sets(host("8.6", "580.65.06"), host("12.0", "580.65.06"))
    branch = "cuda.driver-version.major Gt 579 & cuda.driver-version.major Lt 581"
    assert shown(node_affinity(fleet, (), needs(">=580.65.06", (8, 6), (12, 0)))) == [
        f"gpu.compute.major In {major} & gpu.compute.minor In {minor} & {driver}"
        for major, minor in ((8, 6), (12, 0))
        for driver in (
            (
                f"{branch} & cuda.driver-version.minor Gt 64"
                " & cuda.driver-version.minor Lt 66 & cuda.driver-version.revision Gt 5"
            ),
            f"{branch} & cuda.driver-version.minor Gt 65",
            "cuda.driver-version.major Gt 580",
        )
    ]


@pytest.mark.parametrize("later", ["580.65.07", "580.95.05", "595.45.04", "610.43"])
def test_a_node_whose_driver_is_upgraded_stays_admitted(later: str) -> None:
    affinity = node_affinity(
        sets(host("8.6", "580.65.06"), host("12.0", "580.65.06")), (), needs(">=580.65.06", (8, 6), (12, 0))
    )
    assert admits(affinity, labels_of(host("8.6", later)))
    assert not admits(affinity, labels_of(host("8.6", "580.65.05")))


def test_an_upgrade_that_makes_a_node_look_like_a_host_of_another_stack_is_not_for_this_one() -> None:
    own, other = sets(host("8.6", "580.65.06")), sets(host("8.6", "581.0.0"), host("8.6", "600.1.0"), prefix="o")
    affinity = node_affinity(own, other, needs(">=580.65.06", (8, 6)))
    assert affinity.is_exact
    assert admits(affinity, labels_of(host("8.6", "580.95.05")))
    assert not any(admits(affinity, one.labels) for one in other)


def test_hosts_at_the_very_floor_are_told_by_revision_and_newer_ones_by_major() -> None:
    fleet = sets(host("8.0", "525.60.13"), host("8.0", "525.85.12"), host("8.0", "99.1"), host("8.0", "570.1"))
    affinity = node_affinity(fleet, (), needs(">=525.60.13", (8, 0)))
    capability = "gpu.compute.major In 8 & gpu.compute.minor In 0 & "
    major = "cuda.driver-version.major Gt 524 & cuda.driver-version.major Lt 526 & "
    assert shown(affinity) == [
        (
            f"{capability}{major}cuda.driver-version.minor Gt 59 & cuda.driver-version.minor Lt 61"
            " & cuda.driver-version.revision Gt 12"
        ),
        f"{capability}{major}cuda.driver-version.minor Gt 60",
        f"{capability}cuda.driver-version.major Gt 525",
    ]
    (late,) = affinity.unreached
    assert late.names == ("n2",)
    assert tuple(map(mismatch_words, late.lacking)) == ("nvidia.com/cuda.driver-version is 99.1, not >=525.60.13",)


def test_hosts_of_another_stack_are_kept_out_by_the_plainest_number() -> None:
    old = sets(host("8.0", "535.104.05"), host("7.0", "580.95.05"), prefix="old")
    new = sets(host("8.0", "580.95.05"), host("9.0", "590.48.01"), prefix="new")
    assert shown(node_affinity(old, new, needs(">=525.60.13", *ALL))) == [
        "gpu.compute.major In 7 & gpu.compute.minor In 0 & cuda.driver-version.major Gt 525",
        (
            "gpu.compute.major In 7, 8 & gpu.compute.minor In 0 & cuda.driver-version.major Gt 525"
            " & cuda.driver-version.major Lt 580"
        ),
    ]
    assert shown(node_affinity(new, old, needs(">=525.60.13", *ALL))) == [
        "gpu.compute.major In 8, 9 & gpu.compute.minor In 0 & cuda.driver-version.major Gt 535"
    ]


def test_a_kernel_tells_hosts_apart_where_it_alone_differs() -> None:
    own, other = sets(host("8.0", "580.95.05", kernel="6.8.0")), sets(host("8.0", "580.95.05", kernel="6.17.0"), prefix="o")
    kernel = "kernel-version.major Gt 5 & kernel-version.major Lt 7 & kernel-version.minor Lt 17"
    assert shown(node_affinity(own, other, needs(">=580", (8, 0)))) == [
        f"gpu.compute.major In 8 & gpu.compute.minor In 0 & cuda.driver-version.major Gt 579 & {kernel}"
    ]


def test_a_product_is_named_only_where_no_number_differs() -> None:
    own, other = (
        sets(host("8.6", "580.95.05", name="NVIDIA A10")),
        sets(host("8.6", "580.95.05", name="NVIDIA A40"), prefix="o"),
    )
    affinity = node_affinity(own, other, needs(">=580", (8, 6)))
    assert shown(affinity) == [
        "gpu.compute.major In 8 & gpu.compute.minor In 6 & cuda.driver-version.major Gt 579 & gpu.product In NVIDIA-A10"
    ]
    assert affinity.by_name == ("nvidia.com/gpu.product",)


def test_hosts_no_label_tells_apart_are_said_to_be_with_the_facts_that_differ() -> None:
    own, other = sets(host("8.0", "580.95.05", toolkit="1.17.4")), sets(host("8.0", "580.95.05", toolkit="1.2.0"), prefix="o")
    affinity = node_affinity(own, other, needs(">=580", (8, 0)))
    (pair,) = affinity.inseparable
    assert (pair.admitted, pair.refused) == (("n0",), ("o0",))
    assert tuple(map(difference_words, pair.facts)) == ("container_toolkit 1.17.4 / 1.2.0",)
    assert not affinity.is_exact
    assert admits(affinity, other[0].labels)


def test_a_host_without_labels_is_reached_by_nothing() -> None:
    bare = LabelSet(labels={ARCHITECTURE: "amd64"}, names=("bare",), hosts=(Host(),))
    affinity = node_affinity((bare,), (), needs(">=525.60.13", (8, 0)))
    assert affinity.terms == ()
    assert affinity.manifest() == {}
    assert tuple(map(mismatch_words, affinity.unreached[0].lacking)) == (
        "nvidia.com/gpu.compute.major and minor are missing",
        "nvidia.com/cuda.driver-version is missing",
    )


def test_nodes_of_an_old_feature_discovery_go_by_the_first_names() -> None:
    labels = {key: value for key, value in labels_of(host("7.0", "470.256.02")).items() if not key.startswith(DRIVER)}
    old = LabelSet(labels=labels, names=("old",), hosts=())
    driver = "cuda.driver.major Gt 469 & cuda.driver.major Lt 471 & cuda.driver.minor Gt 57"
    assert shown(node_affinity((old,), (), needs(">=470.57.02", (7, 0)))) == [
        f"gpu.compute.major In 7 & gpu.compute.minor In 0 & {driver}",
        "gpu.compute.major In 7 & gpu.compute.minor In 0 & cuda.driver.major Gt 470",
    ]


def test_forward_compatibility_names_the_products_that_have_it() -> None:
    own = sets(host("8.0", "470.256.02", name="NVIDIA A100-SXM4-80GB"), host("8.0", "550.54.15", name="NVIDIA A100-SXM4-80GB"))
    other = sets(host("8.6", "470.256.02", name="NVIDIA GeForce RTX 3090"), prefix="o")
    stack = Stack(
        platform="linux/amd64",
        accelerator="cuda",
        components={},
        pins=(),
        basis="forward-compat",
        host_requirements={"driver": ">=525.60.13", "gpu": "8.0, 8.6"},
    )
    affinity = node_affinity(own, other, needs_of(stack, own))
    assert shown(affinity) == [
        (
            "gpu.compute.major In 8 & gpu.compute.minor In 0 & cuda.driver-version.major Gt 469"
            " & cuda.driver-version.major Lt 471 & gpu.product In NVIDIA-A100-SXM4-80GB"
        ),
        "gpu.compute.major In 8 & gpu.compute.minor In 0 & cuda.driver-version.major Gt 525",
    ]
    assert affinity.is_exact
    geforce = labels_of(host("8.0", "470.256.02", name="NVIDIA GeForce RTX 3090"))
    assert not admits(affinity, geforce)


def test_a_node_without_a_gpu_is_told_by_the_label_it_lacks() -> None:
    plain = Host(platform="linux/amd64", kernel="6.8.0")
    stack = Stack(platform="linux/amd64", accelerator="cpu", components={}, pins=())
    own, other = sets(plain), sets(host("8.0", "550.54.15"), prefix="o")
    affinity = node_affinity(own, (), needs_of(stack, own))
    assert affinity.node_selector == {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
    apart = node_affinity(
        own, [LabelSet(labels={**own[0].labels, f"{COMPUTE}.major": "8"}, names=("o",), hosts=())], needs_of(stack, own)
    )
    assert f"{COMPUTE}.major DoesNotExist" in [str(one) for one in apart.terms[0]]
    assert apart.node_selector == {}
    assert node_affinity(own, other, needs_of(stack, own)).is_exact


def test_the_manifest_is_what_stands_under_affinity_in_a_pod() -> None:
    affinity = node_affinity(sets(host("9.0", "535.104.05")), (), needs(">=525.60.13", (9, 0)))
    assert affinity.manifest() == {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [
                            {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                            {"key": f"{COMPUTE}.major", "operator": "In", "values": ["9"]},
                            {"key": f"{COMPUTE}.minor", "operator": "In", "values": ["0"]},
                            {"key": f"{DRIVER}.major", "operator": "Gt", "values": ["525"]},
                        ]
                    }
                ]
            }
        }
    }


@pytest.mark.parametrize(
    ("operator", "values", "label", "is_admitted"),
    [
        ("In", ("2",), "02", False),
        ("In", ("02",), "02", True),
        ("In", ("",), "", True),
        ("In", ("2",), None, False),
        ("Gt", ("98",), "0099", True),
        ("Gt", ("535",), "99", False),
        ("Lt", ("535",), "99", True),
        ("Lt", ("535",), "", False),
        ("Lt", ("535",), "unknown", False),
        ("Lt", ("535",), None, False),
        ("Exists", (), "", True),
        ("Exists", (), None, False),
        ("DoesNotExist", (), None, True),
        ("DoesNotExist", (), "x", False),
    ],
)
def test_expressions_hold_as_the_scheduler_says(
    operator: str, values: tuple[str, ...], label: str | None, *, is_admitted: bool
) -> None:
    affinity = Affinity(terms=((Expression(key="k", operator=operator, values=values),),))
    assert admits(affinity, {} if label is None else {"k": label}) is is_admitted


def test_a_term_without_expressions_and_no_term_at_all_admit_nothing() -> None:
    assert not admits(Affinity(terms=((),)), {"k": "v"})
    assert not admits(Affinity(terms=()), {"k": "v"})


def test_one_old_node_does_not_split_the_terms_of_those_that_have_both_names() -> None:
    old = {key: value for key, value in labels_of(host("7.0", "470.256.02")).items() if not key.startswith(DRIVER)}
    fleet = (LabelSet(labels=old, names=("old",), hosts=()), *sets(host("8.0", "550.54.15")))
    assert shown(node_affinity(fleet, (), needs(">=450.80.02", (7, 0), (8, 0)))) == [
        "gpu.compute.major In 7, 8 & gpu.compute.minor In 0 & cuda.driver.major Gt 450"
    ]


def test_a_label_that_is_no_number_is_compared_as_it_is() -> None:
    odd = {
        **labels_of(host("8.0", "580.95.05")),
        f"{DRIVER}.revision": "",
        "feature.node.kubernetes.io/kernel-version.major": "x",
    }
    own = LabelSet(labels=odd, names=("own",), hosts=())
    other = LabelSet(labels={**odd, "feature.node.kubernetes.io/kernel-version.major": "y"}, names=("other",), hosts=())
    assert shown(node_affinity((own,), (other,), needs(">=580", (8, 0)))) == [
        "gpu.compute.major In 8 & gpu.compute.minor In 0 & cuda.driver-version.major Gt 579 & kernel-version.major In x"
    ]


def test_a_large_fleet_has_few_terms() -> None:
    old = [
        host(capability, f"535.{minor}.{kind:02}") for capability in ("7.0", "8.0") for minor in range(60) for kind in (1, 2)
    ]
    new = [host(capability, f"580.{minor}.06") for capability in ("8.0", "9.0") for minor in range(65, 125)]
    affinity = node_affinity(sets(*old), sets(*new, prefix="o"), needs(">=525.60.13", *ALL))
    assert shown(affinity) == [
        (
            "gpu.compute.major In 7, 8 & gpu.compute.minor In 0 & cuda.driver-version.major Gt 525"
            " & cuda.driver-version.major Lt 580"
        )
    ]
    assert affinity.is_exact


def test_a_part_of_zero_is_not_loosened_to_any_number() -> None:
    """That a label is missing is told by the label only: no expression says "is a number"."""
    labels = labels_of(host("8.0", "580.95.05", kernel="6.8.0"))
    revision, minor = "feature.node.kubernetes.io/kernel-version.revision", f"{DRIVER}.minor"
    own = LabelSet(labels={key: value for key, value in labels.items() if key != minor}, names=("own",), hosts=())
    other = LabelSet(labels={key: value for key, value in labels.items() if key != revision}, names=("other",), hosts=())
    affinity = node_affinity((own,), (other,), needs(">=525.60.13", (8, 0)))
    assert admits(affinity, own.labels)
    assert not admits(affinity, other.labels)
    assert affinity.is_exact
