"""The first page: pick a host, read what runs; every answer is the solver's."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from provisioner.browse.query import Fact
from provisioner.browse.stacks import which_stacks

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from provisioner.matrix.model import Matrix
    from tests.browser.conftest import Visit

pytestmark = pytest.mark.browser

HOSTS = 40
RUNS = """host => Site.stacks({ ...host, device: Site.readGpu(host.gpu).device })
  .filter(one => one.runs).map(one => [one.component, one.release, Site.grid.builds[one.build].build])"""


def fact(name: str, text: str) -> Fact:
    return Fact(name=name, text=text, is_exact=True, spelled=f"{name}={text}")


def by_solver(matrix: Matrix, host: dict[str, Any], driver: str | None) -> list[list[str]]:
    """What `provision matrix show` answers for the same host."""
    facts = [fact("gpu", host["gpu"]), fact("platform", host["platform"])]
    if driver is not None:
        facts.append(fact("driver", driver))
    if host["kernel"]:
        facts.append(fact("kernel", host["kernel"]))
    allow = ["minor-version", *(["forward-compat"] if host["forward"] else []), *(["ptx-jit"] if host["ptx"] else [])]
    return [[one.component, one.release, one.build] for one in which_stacks(matrix, facts, allow).running]


def test_forty_hosts_get_the_stacks_the_solver_finds(visitor: Visit, matrix: Matrix) -> None:
    page = visitor.open("host")
    drivers = page.evaluate("Site.grid.drivers")
    kernels = page.evaluate("Site.grid.kernels")
    chance = random.Random(20261121)
    answered = 0
    for _ in range(HOSTS):
        gpu = chance.choice([one for one in matrix.gpus if one.compute_capability and one.kind != "jetson"])
        driver = chance.choice([None, *range(len(drivers))])
        host: dict[str, Any] = {
            "gpu": gpu.name,
            "driver": driver,
            "kernel": chance.choice(["", "", *kernels[:20]]),
            "platform": chance.choice(["linux/amd64", "linux/amd64", "linux/arm64"]),
            "forward": chance.random() < 0.3,
            "ptx": chance.random() < 0.3,
        }
        expected = by_solver(matrix, host, None if driver is None else drivers[driver])
        assert page.evaluate(RUNS, host) == expected, (host, drivers[driver] if driver is not None else None)
        answered += bool(expected)
    assert answered > HOSTS // 8


def rows(page: Page) -> list[str]:
    return page.locator("#host-result table").first.locator("tbody th").all_inner_texts()


def test_picking_a_host_by_hand(visitor: Visit) -> None:
    page = visitor.open("host")
    page.get_by_label("GPU", exact=True).fill("NVIDIA T4")
    page.get_by_label("NVIDIA driver branch").select_option(
        label=page.evaluate("Site.driverOptions().find(([, text]) => text.startsWith('470'))[1]")
    )
    verdict = page.locator(".verdict").first.inner_text()
    assert "Tesla T4" in verdict
    assert "runs by minor-version compatibility" in verdict
    assert "PyTorch 2.7.1" in rows(page)
    assert "driver=470" in page.url
    assert page.locator("#announcer").inner_text().startswith("PyTorch")


def test_an_address_brings_the_same_host_back(visitor: Visit) -> None:
    page = visitor.open("host?gpu=NVIDIA+T4&driver=470&kernel=5.15&platform=linux%2Famd64&forward=1")
    assert page.get_by_label("GPU", exact=True).input_value() == "NVIDIA T4"
    assert page.locator("#host-driver option:checked").inner_text().startswith("470 ")
    assert page.get_by_label("Linux kernel").input_value() == "5.15"
    assert page.get_by_label("allow forward compatibility (cuda-compat in the image)").is_checked()


def test_nothing_runs_and_the_rule_is_named(visitor: Visit) -> None:
    page = visitor.open("host?gpu=NVIDIA+V100&driver=590")
    assert (
        page.locator(".verdict.no").first.inner_text().replace("\n", " ").endswith("is known to run on NVIDIA V100 like this.")
    )
    assert "driver-590-drops-volta" in page.locator("#host-result").inner_text()


def test_a_kernel_nobody_documents_the_driver_on_is_unverified(visitor: Visit, matrix: Matrix) -> None:
    newest = str(max(one.version for one in matrix.components["kernel"].releases))
    page = visitor.open(f"host?gpu=NVIDIA+T4&driver=470&kernel={newest}")
    assert "Unverified: nobody documents driver 470." in page.locator(".notes").inner_text()


def test_a_machine_of_the_shipped_profiles(visitor: Visit) -> None:
    page = visitor.open("host")
    page.get_by_label("Or a known machine").select_option("gh200")
    assert page.get_by_label("GPU", exact=True).input_value() == "NVIDIA GH200"
    assert page.get_by_label("Platform").input_value() == "linux/arm64"


def test_a_gpu_nobody_knows_is_said_beside_the_field(visitor: Visit) -> None:
    page = visitor.open("host?gpu=Voodoo+2")
    assert page.get_by_label("GPU", exact=True).get_attribute("aria-invalid") == "true"
    assert "“Voodoo 2” is no GPU this matrix knows" in page.locator(".problem").inner_text()


@pytest.mark.parametrize("gpu", ["", "8.7"], ids=["by name", "by capability"])
def test_a_jetson_is_none_of_the_grid_and_the_page_says_where_to_ask(visitor: Visit, matrix: Matrix, gpu: str) -> None:
    named = {one.name for one in matrix.gpus if one.kind == "jetson" and one.compute_capability == "8.7"}
    page = visitor.open(f"host?gpu={(gpu or min(named)).replace(' ', '+')}")
    assert page.get_by_label("GPU", exact=True).get_attribute("aria-invalid") == "true"
    assert "whose driver is a part of Jetson Linux" in page.locator(".problem").inner_text()


def test_why_opens_the_evidence_of_a_row(visitor: Visit) -> None:
    page = visitor.open("host?gpu=NVIDIA+A100&driver=535")
    button = page.locator("#host-result button", has_text="PyTorch 2.7.1").first
    button.click()
    dialog = page.get_by_role("dialog")
    assert dialog.get_by_role("heading", level=2).inner_text() == "PyTorch 2.7.1 cu126"
    assert "NVIDIA CUDA 12.6.3" in dialog.inner_text()
    assert "measured" in dialog.inner_text()
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert button.evaluate("one => one === document.activeElement")
