"""Names of a profile translated to those of a matrix: derivatives of systems, and parts of an unknown version."""

from __future__ import annotations

import pytest

from provisioner.document import parse_document
from provisioner.errors import InvalidDocumentError
from provisioner.host.facts import stated
from provisioner.host.model import Driver, Host, OperatingSystem
from provisioner.host.profile import KIND, host_document, host_from_document
from provisioner.matrix.cache import cached_matrix
from provisioner.workflow.inputs import catalogue_of

CATALOGUE = catalogue_of(cached_matrix(None))


@pytest.mark.parametrize(
    ("system", "fact"),
    [
        (OperatingSystem(id="linuxmint", version="21.3", like="ubuntu 22.04"), "ubuntu 22.04"),
        (OperatingSystem(id="pop", version="22.04", like="ubuntu 22.04"), "ubuntu 22.04"),
        (OperatingSystem(id="scientific", version="7.9", like="rhel 7.9"), "rhel 7.9"),
        (OperatingSystem(id="centos", version="9", like="rhel 9"), "centos 9"),
        (OperatingSystem(id="rhcos", version="416.94", like="rhel 9.4"), "rhel 9.4"),
        (OperatingSystem(id="rocky", version="9.4", like="rhel 9.4"), "rocky 9.4"),
        (OperatingSystem(id="ol", version="8.10", like="rhel 8.10"), "ol 8.10"),
        (OperatingSystem(id="manjaro", like="arch"), "arch"),
        (OperatingSystem(id="linuxmint", version="21.3"), "linuxmint 21.3"),
    ],
)
def test_a_system_counts_as_its_base_where_the_matrix_lacks_it(system: OperatingSystem, fact: str) -> None:
    assert stated(CATALOGUE.identify(Host(os=system)), "os") == fact


@pytest.mark.parametrize(
    ("version", "release"),
    [("6.8.5", "6.2"), ("6.16.6", "30.20"), ("6.2.4", "6.2.4"), ("6.4.1", "6.4.1"), ("5.9.25", "5.9.25")],
)
def test_the_number_of_amds_module_is_the_series_of_its_driver_where_it_is_no_release(version: str, release: str) -> None:
    """6.8.5 lies between the releases 6.4 and 30.10, and is the module of driver 6.2: as a release it had ROCm 7.2 as a yes."""
    host = CATALOGUE.identify(Host(driver=Driver(kind="amdgpu", version=version)))
    assert host.driver == Driver(kind="amdgpu", version=release)


def test_a_toolkit_of_an_unknown_version_is_there_and_has_no_version() -> None:
    host = host_from_document(parse_document("container_toolkit: present\n", file="h.yaml", kind=KIND))
    assert host_document(host) == "container_toolkit: present\n"
    assert stated(host, "container_toolkit") is None
    assert stated(Host(container_toolkit="none"), "container_toolkit") == "none"


def test_only_the_toolkit_can_be_present_without_a_version() -> None:
    with pytest.raises(InvalidDocumentError) as caught:
        host_from_document(parse_document("kernel_headers: present\ncontainer_toolkit: yes-it-is\n", file="h.yaml", kind=KIND))
    assert [mistake.text for mistake in caught.value.mistakes] == [
        "`present` is not a version: it must start with a number such as 12.6; write `none` when it is known to be missing",
        (
            "`yes-it-is` is not a version: it must start with a number such as 12.6;"
            " write `none` when it is known to be missing; write `present` when it is installed in an unknown version"
        ),
    ]


@pytest.mark.parametrize(
    ("profile", "capability"),
    [
        ('jetson: {l4t: "36.4.3"}', "8.7"),
        ('jetson: {l4t: "38.4.0"}', "11.0"),
        ('{jetson: {l4t: "36.4.3"}, gpus: [{name: Jetson AGX Orin}]}', "8.7"),
        ('jetson: {l4t: "35.6.1"}', None),  # Xavier or Orin
        ("jetson: {}", None),
        ('{jetson: {l4t: "36.4.3"}, gpus: []}', None),
    ],
)
def test_a_release_of_jetson_linux_for_one_board_alone_tells_the_gpu(profile: str, capability: str | None) -> None:
    host = CATALOGUE.identify(host_from_document(parse_document(f"{profile}\n", file="h.yaml", kind=KIND)))
    assert [gpu.compute_capability for gpu in host.gpus or ()] == ([capability] if capability else [])
