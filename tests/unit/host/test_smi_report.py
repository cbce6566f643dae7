"""Reports of `nvidia-smi -q -x`, in the forms that drivers of several years print, and text that is none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provisioner.errors import InvalidDocumentError
from provisioner.host.profile import host_document
from provisioner.host.smi_report import inspect_smi_report, is_smi_report
from provisioner.words.remark import remark_words

if TYPE_CHECKING:
    from collections.abc import Callable

REPORTS = Path(__file__).parents[2] / "fixtures/smi"
NAMES = {
    "2184": ("NVIDIA GeForce GTX 1660", "7.5"),
    "20B2": ("NVIDIA A100-SXM4-80GB", "8.0"),
    "2BB4": ("NVIDIA RTX PRO 6000 Blackwell", "12.0"),
    "27B0": ("NVIDIA RTX 4000 SFF Ada Generation", "8.9"),
    "2216": ("NVIDIA GeForce RTX 3080", "8.6"),
}
HEAD = '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n'


@pytest.mark.parametrize("name", sorted(path.stem for path in REPORTS.glob("*.xml")))
def test_a_report_is_the_profile_of_its_machine(name: str, golden: Callable[[Path, str], None]) -> None:
    text = (REPORTS / f"{name}.xml").read_text(encoding="utf-8")
    found = inspect_smi_report(text, file=f"{name}.xml", gpu_names=NAMES)
    notes = "".join(f"# note: {remark_words(one)}\n" for one in found.remarks)
    golden(REPORTS / f"{name}.yaml", host_document(found.host) + notes)


def test_the_memory_of_each_kind_of_gpu_is_known_as_what_no_rule_reads() -> None:
    text = (REPORTS / "driver-590-two-gpus.xml").read_text(encoding="utf-8")
    found = inspect_smi_report(text, file="x.xml", gpu_names=NAMES)
    assert list(map(remark_words, found.unread)) == [
        "gpus: 1 with 97887 MiB, 1 with 20475 MiB; no rule reads the memory, so that a profile has no key for it"
    ]


def test_mig_without_an_instance_is_told() -> None:
    text = (REPORTS / "driver-535-mig.xml").read_text(encoding="utf-8")
    text = re.sub(r"(?s)(<mig_devices>).*(</mig_devices>)", r"\1None\2", text)
    found = inspect_smi_report(text, file="x.xml", gpu_names=NAMES)
    assert "gpus: MIG is on without an instance on 1 of 2: no CUDA program runs there" in map(remark_words, found.remarks)
    assert not any("divides" in remark_words(one) for one in found.remarks)
    assert found.host.mig is None  # the other GPU is whole


def test_a_report_of_gpus_in_mig_mode_without_an_instance_says_so_of_the_machine() -> None:
    text = (REPORTS / "driver-535-mig.xml").read_text(encoding="utf-8")
    first, *others = re.split(r"(?=<gpu id)", text)
    text = f"{first}{others[0]}</nvidia_smi_log>"
    assert inspect_smi_report(text, file="x.xml", gpu_names=NAMES).host.mig is None
    text = re.sub(r"(?s)(<mig_devices>).*(</mig_devices>)", r"\1None\2", text)
    assert inspect_smi_report(text, file="x.xml", gpu_names=NAMES).host.mig == "undivided"


def test_a_report_without_gpus_does_not_say_that_there_is_none() -> None:
    text = f"{HEAD}<nvidia_smi_log><driver_version>550.54.15</driver_version><attached_gpus>0</attached_gpus></nvidia_smi_log>"
    assert host_document(inspect_smi_report(text, file="x.xml", gpu_names={}).host) == "driver: {version: 550.54.15}\n"


def test_a_gpu_that_neither_driver_nor_matrix_knows_is_told_by_its_pci_device() -> None:
    gpu = "<gpu><product_name>Graphics Device</product_name><pci><pci_device_id>FFFF10DE</pci_device_id></pci></gpu>"
    found = inspect_smi_report(f"{HEAD}<nvidia_smi_log>{gpu}</nvidia_smi_log>", file="x.xml", gpu_names=NAMES)
    assert list(map(remark_words, found.remarks)) == ["gpus: no product is known for PCI device FFFF"]


def test_a_document_type_inside_the_report_is_read() -> None:
    """`nvidia-smi -q -x --dtd` writes the declarations of its elements into the report."""
    text = "<!DOCTYPE nvidia_smi_log [<!ELEMENT driver_version (#PCDATA)>]>"
    report = f"{text}<nvidia_smi_log><driver_version>470.57.02</driver_version></nvidia_smi_log>"
    assert host_document(inspect_smi_report(report, file="x.xml", gpu_names={}).host) == "driver: {version: 470.57.02}\n"


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("<nvidia_smi_log>\n  <gpu>\n", "x.xml:3:1: is not XML: no element found"),
        ("<html/>", "x.xml:1:1: the root is `html`, not `nvidia_smi_log`"),
        (
            '<!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><nvidia_smi_log>&b;</nvidia_smi_log>',
            "x.xml:1:1: declares an entity, which no report of nvidia-smi does",
        ),
        (
            '<!DOCTYPE nvidia_smi_log [<!ENTITY a SYSTEM "file:///etc/hostname">]><nvidia_smi_log>&a;</nvidia_smi_log>',
            "x.xml:1:1: declares an entity, which no report of nvidia-smi does",
        ),
    ],
)
def test_what_is_no_report_is_refused_with_its_place(text: str, mistake: str) -> None:
    with pytest.raises(InvalidDocumentError) as caught:
        inspect_smi_report(text, file="x.xml", gpu_names={})
    assert caught.value.causes == (mistake,)
    assert caught.value.hints == ("save what `nvidia-smi -q -x` prints on the machine",)


def test_a_profile_and_a_list_of_nodes_are_no_report() -> None:
    assert is_smi_report("\ufeff\n<?xml version='1.0'?>")
    assert not is_smi_report("kernel: 6.8.0-45-generic\n")
    assert not is_smi_report('{"kind": "List"}')
