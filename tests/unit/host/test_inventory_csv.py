"""Tables of hosts: columns are the keys of a profile, and every mistake is at its line and column."""

from __future__ import annotations

import pytest

from provisioner.errors import InvalidDocumentError
from provisioner.host.inventory_csv import Row, read_table
from provisioner.host.model import HostGpu
from provisioner.host.profile import host_document


def rows(*lines: str) -> tuple[Row, ...]:
    return read_table("\n".join(lines) + "\n", file="fleet.csv")


def mistakes(*lines: str) -> tuple[str, ...]:
    with pytest.raises(InvalidDocumentError) as raised:
        rows(*lines)
    return raised.value.causes


def test_a_table_of_everything_is_read_as_profiles() -> None:
    found = rows(
        "name,count,platform,os,kernel,glibc,driver,driver.module,gpus,container_toolkit,secure_boot.enabled,loaded_modules",
        "a100,12,linux/amd64,ubuntu 22.04,5.15.0-105-generic,2.35,550.54.15,open,8x NVIDIA A100-SXM4-80GB,1.17.4,no,none",
        "v100,,linux/amd64,rhel 8.10,,,470.256.02,proprietary,4x Tesla V100-SXM2-32GB,none,yes,nouveau vfio_pci",
    )
    assert [(row.name, row.count, row.line) for row in found] == [("a100", 12, 2), ("v100", 1, 3)]
    assert host_document(found[0].host) == (
        "platform: linux/amd64\n"
        'os: {id: ubuntu, version: "22.04"}\n'
        "kernel: 5.15.0-105-generic\n"
        'glibc: "2.35"\n'
        "driver: {version: 550.54.15, module: open}\n"
        "gpus:\n"
        "  - {name: NVIDIA A100-SXM4-80GB, count: 8}\n"
        "container_toolkit: 1.17.4\n"
        "secure_boot: {enabled: false}\n"
        "loaded_modules: []\n"
    )
    assert host_document(found[1].host) == (
        "platform: linux/amd64\n"
        'os: {id: rhel, version: "8.10"}\n'
        "driver: {version: 470.256.02, module: proprietary}\n"
        "gpus:\n"
        "  - {name: Tesla V100-SXM2-32GB, count: 4}\n"
        "container_toolkit: none\n"
        "secure_boot: {enabled: true}\n"
        "loaded_modules: [nouveau, vfio_pci]\n"
    )


def test_a_version_is_never_a_number() -> None:
    (row,) = rows("driver,kernel", "550.10,6.10")
    assert host_document(row.host) == 'kernel: "6.10"\ndriver: {version: "550.10"}\n'


@pytest.mark.parametrize(
    ("header", "cells", "gpus"),
    [
        ("gpu", "NVIDIA L4", (HostGpu(name="NVIDIA L4"),)),
        ("gpu", "2 x NVIDIA X9 (9.9)", (HostGpu(name="NVIDIA X9", compute_capability="9.9", count=2),)),
        ("gpus", "4x Tesla T4; 4x NVIDIA L4", (HostGpu(name="Tesla T4", count=4), HostGpu(name="NVIDIA L4", count=4))),
        ("gpu,compute_capability", "8x NVIDIA B200,10.0", (HostGpu(name="NVIDIA B200", compute_capability="10.0", count=8),)),
        ("compute_capability", "9.0", (HostGpu(compute_capability="9.0"),)),
        ("gfx", "gfx942;gfx90a", (HostGpu(gfx="gfx942"), HostGpu(gfx="gfx90a"))),
        ("gpus", "8 NVIDIA B200", (HostGpu(name="NVIDIA B200", count=8),)),
        ("gpus", "2 \u00d7 NVIDIA B200", (HostGpu(name="NVIDIA B200", count=2),)),
        ("gpu", "8x AMD Instinct MI300X (gfx942)", (HostGpu(name="AMD Instinct MI300X", gfx="gfx942", count=8),)),
        ("gpu,kernel", "none,6.8.0", ()),
        ("gpu,kernel", ",6.8.0", None),
    ],
)
def test_gpus_are_written_as_people_write_them(header: str, cells: str, gpus: tuple[HostGpu, ...] | None) -> None:
    assert rows(header, cells)[0].host.gpus == gpus


def test_rows_that_say_the_same_share_one_host() -> None:
    first, second, third = rows("name,driver", "a,550.54.15", "b,550.54.15", "c,535.54.03")
    assert first.host is second.host
    assert first.host is not third.host


def test_rows_have_names_though_nobody_gave_them() -> None:
    assert [row.name for row in rows("driver", "550.54.15", "", "535.54.03")] == ["row 2", "row 4"]


def test_every_mistake_is_found_at_once() -> None:
    assert mistakes(
        "name,count,driver.module,kernel,compute_capability",
        "a,0,open,6.8.0,9.0",
        "b,1,opne,6.8.0,9.0",
        "c,1,open,next,nine",
        "d,1,open",
    ) == (
        "fleet.csv:2:2: count: `0` must be the number of hosts of the row, a whole number from 1",
        "fleet.csv:3:3: driver.module: `opne` must be open or proprietary",
        "fleet.csv:4:4: kernel: `next` is not a version: it must start with a number such as 12.6",
        "fleet.csv:4:5: gpus[0].compute_capability: `nine` is not spelled right; write it as 9.0",
        "fleet.csv:5:4: has 3 cells, but there are 5 columns",
    )


def test_an_unknown_column_is_named_with_the_nearest() -> None:
    assert mistakes("name,drvier", "a,550.54.15") == ("fleet.csv:1:2: drvier: unknown column `drvier`; did you mean `driver`?",)


def test_columns_that_say_the_same_are_refused() -> None:
    assert mistakes("driver,driver.version,kernel,kernel", "1,1,6.8,6.8") == (
        "fleet.csv:1:2: driver.version: says the same as column `driver`; keep one of them",
        "fleet.csv:1:4: kernel: column `kernel` is given twice",
    )


def test_as_many_capabilities_as_kinds_of_gpu() -> None:
    assert mistakes("gpu,compute_capability", "Tesla T4;NVIDIA L4,7.5") == (
        "fleet.csv:2:2: compute_capability: `7.5` has 1 values for 2 kinds of GPU",
    )


def test_a_table_must_have_a_header_and_closed_quotes() -> None:
    assert mistakes("")[0].startswith("fleet.csv:1:1: the first row must name the columns: name, count, platform, kernel, ")
    assert mistakes("name,kernel", 'a,"6.8') == ("fleet.csv:2:1: cannot be read as a table: unexpected end of data",)


def test_a_byte_order_mark_and_windows_line_ends_are_read() -> None:
    (row,) = read_table("\ufeffname,kernel\r\na,6.8.0\r\n", file="fleet.csv")
    assert (row.name, row.host.kernel) == ("a", "6.8.0")


@pytest.mark.parametrize(("separator", "shown"), [(";", "`;`"), ("\t", "tabs"), ("|", "`|`")])
def test_another_separator_than_a_comma_is_told(separator: str, shown: str) -> None:
    assert mistakes(f"name{separator}driver", f"a{separator}550.54.15") == (
        f"fleet.csv:1:1: the columns are parted by {shown}: export the table with commas between them",
    )


def test_control_characters_are_refused_at_the_first() -> None:
    assert mistakes("name,driver", "a\x00b,550.54.15", "c\x01,550.54.15") == (
        "fleet.csv:2:1: holds the control character U+0000: is it a table of text?",
    )


def test_a_wrong_count_hides_no_other_mistake_of_its_row() -> None:
    found = mistakes("name,count,driver", "a,0,abc")
    assert [one.partition(": ")[0] for one in found] == ["fleet.csv:2:2", "fleet.csv:2:3"]
