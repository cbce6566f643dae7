"""The reader's own files: every yes and every no of the page is the solver's, and nothing in a file is read as markup."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from provisioner.components import COMPONENTS
from provisioner.grounds.finding import StaleStack, Unverified
from provisioner.host.inventory import read_inventory
from provisioner.host.model import Driver, Host
from provisioner.host.profile import load_profile, profile_names
from provisioner.layers import has_layer, layer_of
from provisioner.lock.check.stack import stack_findings
from provisioner.lock.format.file import parse_lock
from provisioner.request import TargetHost
from provisioner.resolver.problem import join
from provisioner.versions import Range, Version
from provisioner.workflow.inputs import Inputs, catalogue_of, in_place, read_without_hosts

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from provisioner.lock.format.model import Lock
    from provisioner.matrix.model import Matrix
    from tests.browser.conftest import Visit

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "dockerfiles").glob("*/pylock.*.toml"))
NODES, ROSTER = ROOT / "tests/fixtures/nodes/cluster.json", ROOT / "examples/fleet/machines.csv"
DRIVERS = ("450.248.02", "470.256.02", "525.147.05", "535.104.05", "550.54.14", "570.86.15", "580.65.06", "590.44.01")
PAIRS = 120
"""How many pairs of a lock and a host are compared."""

HOSTILE = "<img src=x onerror=alert(1)>"

JUDGE = """([text, facts]) => { const found = Site.judge(Site.readFile('a.toml', text).locks[0], facts);
  return [found.verdict, [...found.against, ...found.open].map(one => one.text)]; }"""
HOSTS = "([name, text]) => Site.readFile(name, text).hosts"


def read(path: Path, matrix: Matrix) -> tuple[Lock, Inputs]:
    lock = parse_lock(path.read_text(encoding="utf-8"), file=str(path))
    return lock, in_place(read_without_hosts(path.parent / lock.spec_file, matrix=matrix, target=None), "container")


def by_solver(lock: Lock, inputs: Inputs, host: Host) -> str:
    """What `provision check --host` says of the stack: `yes`, `no`, or `ask` for an unverified one."""
    platform = host.platform
    if platform is not None and platform not in lock.platforms:
        return "no"
    one = lock.on(platform or lock.platforms[0])
    spec = replace(inputs.spec, requires={}, packages=(), constraints=(), overrides=(), accelerator=one.stack.accelerator)
    target = TargetHost(label="host", host=host)
    problem = join(inputs.matrix, replace(inputs, spec=spec, hosts=(target,)).request(one.stack.platform))
    found = list(stack_findings(one, problem, file="a.toml", has_other_hosts=True))
    if any(isinstance(finding, StaleStack) or finding.verdict == "no" for finding in found):
        return "no"
    return "ask" if any(isinstance(finding, Unverified) for finding in found) else "yes"


def agrees(page: str, solver: str) -> bool:
    """Whether a page may say this: a yes and a no are the solver's, and "ask" is always honest."""
    return page in {"ask", solver}


def test_every_yes_and_every_no_is_the_solvers(visitor: Visit, matrix: Matrix) -> None:
    page = visitor.open("mine")
    chance = random.Random(20261123)
    names = [name for name in profile_names() if not name.startswith("jetson")]
    inputs = {path: read(path, matrix) for path in LOCKS}
    decided = {"yes": 0, "no": 0, "ask": 0}
    for _ in range(PAIRS):
        path, host = chance.choice(LOCKS), load_profile(chance.choice(names)).host
        version = chance.choice([*DRIVERS, None])
        module = chance.choice([None, None, "open", "proprietary"])
        if version is not None and any(one.compute_capability for one in host.gpus or ()):
            host = replace(host, driver=Driver(version=version, module=module))  # type: ignore[arg-type]  # one of its two words
        if chance.random() < 0.3:
            host = replace(host, kernel=chance.choice(["5.15.0-105-generic", "6.8.0-60-generic", "3.8.0-1-generic"]))
        if chance.random() < 0.2:
            host = replace(host, userspace_driver=chance.choice(DRIVERS), container_toolkit="1.17.4")
        facts = {key: value for key, value in to_builtins(host).items() if value is not None}
        found, reasons = page.evaluate(JUDGE, [path.read_text(encoding="utf-8"), facts])
        expected = by_solver(*inputs[path], host)
        assert agrees(found, expected), (path.name, host, found, expected, reasons)
        decided[found] += 1
    assert decided["yes"] > PAIRS // 8, decided
    assert decided["no"] > PAIRS // 8, decided


def test_a_driver_that_another_module_keeps_off_the_gpu_is_a_no(visitor: Visit, matrix: Matrix) -> None:
    page = visitor.open("mine")
    path = next(path for path in LOCKS if "t4" in path.name)
    lock, inputs = read(path, matrix)
    runs = replace(
        load_profile("t4").host, driver=Driver(version="550.54.14"), container_toolkit="1.17.4", kernel="5.15.0-105-generic"
    )
    for modules, expected in (
        ((), "yes"),
        (("nouveau",), "no"),
        (("nouveau", "nvidia"), "yes"),
        (("nova_core",), "no"),
        (("vfio_pci",), "yes"),
    ):
        host = replace(runs, loaded_modules=modules)
        facts = {key: value for key, value in to_builtins(host).items() if value is not None}
        found, reasons = page.evaluate(JUDGE, [path.read_text(encoding="utf-8"), facts])
        assert (found, by_solver(lock, inputs, host)) == (expected, expected), (modules, reasons)


@pytest.mark.parametrize("roster", [NODES, ROSTER], ids=["nodes", "table"])
def test_a_fleet_is_read_as_the_program_reads_it(visitor: Visit, matrix: Matrix, roster: Path) -> None:
    page = visitor.open("mine")
    read_here = {one["name"]: one["facts"] for one in page.evaluate(HOSTS, [roster.name, roster.read_text(encoding="utf-8")])}
    hosts = read_inventory([roster], catalogue=catalogue_of(matrix))
    assert set(read_here) == {one.name for one in hosts}
    path = next(path for path in LOCKS if "jax" in path.name)
    lock, inputs = read(path, matrix)
    for one in hosts:
        found, reasons = page.evaluate(JUDGE, [path.read_text(encoding="utf-8"), read_here[one.name]])
        assert agrees(found, by_solver(lock, inputs, one.host)), (one.name, found, reasons)


RANGES = (
    ">=525.60.13",
    ">=12,<13",
    "==12.6.*",
    "12.6",
    "!=10.7",
    "<10.0",
    "~=2.6",
    "==12.8",
    ">=515.43.04,<555.42.02",
    "==2.7.1+cu126",
)
VERSIONS = (
    "525.60.13",
    "525.60",
    "12.6.3",
    "12.10",
    "13.0",
    "2.7.1+cu126",
    "2.7.1",
    "10.7",
    "8.0",
    "6.5.0-1017-aws",
    "550.54.14",
    "2.6.0.post1",
)


def test_ranges_mean_what_they_mean_in_the_program(visitor: Visit) -> None:
    page = visitor.open("mine")
    for text in RANGES:
        for version in VERSIONS:
            expected = "yes" if Range.parse(text).allows(Version.parse(version)) else "no"
            assert page.evaluate("([need, value]) => Site.allows(need, value)", [text, version]) == expected, (text, version)


def choose(page: Page, *files: Path | dict[str, Any]) -> None:
    page.set_input_files("#mine-files", files)  # type: ignore[arg-type]  # paths, or files in memory
    page.wait_for_selector("#mine-result > *")


def lock_of(name: str) -> Path:
    return next(path for path in LOCKS if name in path.name)


def test_a_component_is_in_the_layer_that_it_has_in_the_program(visitor: Visit) -> None:
    page = visitor.open("mine")
    found = page.evaluate("names => names.map(Site.layerOf)", [*COMPONENTS])
    assert found == [layer_of(name) if has_layer(name) else "" for name in COMPONENTS]


def test_a_host_that_is_too_old_and_the_layer_that_says_so(visitor: Visit) -> None:
    page = visitor.open("mine")
    choose(page, lock_of("vllm"), ROOT / "examples/hosts/h100.yaml")
    assert page.locator("#mine-verdict").inner_text().endswith("pylock.vllm-h100.toml does not run on h100.yaml.")
    limit = page.locator(".layer.limit")
    assert limit.count() == 1
    assert "Driver" in limit.inner_text()
    assert "535.104.05" in limit.inner_text()
    titles = page.locator(".layer-title").all_inner_texts()
    assert [title[1:] for title in titles] == [
        *("Packages", "Framework", "Python", "Libraries", "Container", "CUDA", "Driver", "Kernel", "System", "GPU")
    ]
    assert "null" not in page.locator("#mine-result").inner_text()
    assert page.locator(".layer").first.inner_text().startswith("✓")


def test_a_fleet_as_a_map_with_counts_and_reasons(visitor: Visit) -> None:
    page = visitor.open("mine")
    choose(page, lock_of("cuda11"), ROSTER)
    assert page.get_by_role("heading", name="The fleet: 32 run, 6 do not, 0 to ask about").is_visible()
    cell = page.get_by_role("button", name="NVIDIA L4 (8.9), driver 550.90.07: 24 run")
    cell.click()
    dialog = page.get_by_role("dialog")
    assert "l4-pool (24)" in dialog.inner_text()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="NVIDIA H100 80GB HBM3 (9.0), driver 570.172.08: 2 do not run").click()
    assert "is compiled for sm_37" in dialog.inner_text()
    page.keyboard.press("Escape")


def test_a_fleet_without_a_lock_is_counted_by_gpu_and_driver(visitor: Visit) -> None:
    page = visitor.open("mine")
    choose(page, ROSTER)
    assert page.get_by_role("heading", name="The fleet: 38 hosts").is_visible()
    page.get_by_role("button", name="NVIDIA L4 (8.9), driver 550.90.07: 24 hosts").click()
    assert "l4-pool (24)" in page.get_by_role("dialog").inner_text()
    page.keyboard.press("Escape")


def test_a_host_without_a_lock_leads_to_what_runs_on_it(visitor: Visit) -> None:
    page = visitor.open("mine")
    choose(page, ROOT / "examples/hosts/t4.yaml")
    page.get_by_role("link", name="What runs on Tesla T4 with driver 470").click()
    assert page.get_by_role("heading", name="What runs on this machine?").is_visible()
    assert page.get_by_label("NVIDIA driver branch").input_value() != ""
    assert page.get_by_label("GPU", exact=True).input_value() == "Tesla T4"


def test_a_file_that_is_no_lock_no_host_and_no_roster_is_said_so(visitor: Visit) -> None:
    page = visitor.open("mine")
    choose(page, ROOT / "README.md")
    told = page.get_by_role("alert").inner_text()
    assert told.startswith("README.md is left out, as it is read neither as a lock, a host profile nor a roster: ")


def test_no_command_is_broken_within_an_option(narrow: Visit) -> None:
    page = narrow.open("mine")
    choose(page, lock_of("vllm"), ROOT / "examples/hosts/t4.yaml")
    command = page.locator("#mine-result code.command").first
    assert command.inner_text() == "provision check pylock.vllm-h100.toml --host HOST.yaml"
    assert command.evaluate("one => getComputedStyle(one).whiteSpace") == "nowrap"
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


TABLE = """name,gpu,driver,kernel,fabric_manager,jetson.l4t
,"8x NVIDIA A100-SXM4-80GB (8.0); Tesla T4",535.104.05,,,
, 2 xNVIDIA A100-SXM4-80GB,535.104.05,"5.15.0-105-generic", 535.104.05,

"a ""b"", c",none,,,,
d,Tesla K80 (dual),470.256.02,,,36.4
"""


def test_a_table_with_empty_cells_and_quotes_is_read_as_the_program_reads_it(visitor: Visit, tmp_path: Path) -> None:
    path = tmp_path / "hosts.csv"
    path.write_text(TABLE.replace(",36.4", ","), encoding="utf-8")
    page = visitor.open("mine")
    hosts = read_inventory([path])
    read_here = page.evaluate(HOSTS, [path.name, path.read_text(encoding="utf-8")])
    assert [one["name"] for one in read_here] == [one.name for one in hosts]
    for here, host in zip(read_here, hosts, strict=True):
        stated = {key: value for key, value in to_builtins(host.host).items() if value is not None}
        gpus = [(one["name"], one.get("compute_capability"), int(one["count"])) for one in here["facts"].pop("gpus")]
        assert gpus == [(one["name"], one["compute_capability"], one["count"]) for one in stated.pop("gpus")]
        assert here["facts"].get("driver", {}).get("version") == stated.pop("driver", {}).get("version")
        assert {key: value for key, value in here["facts"].items() if key != "driver"} == stated


def test_what_a_table_says_and_the_page_does_not_compare_is_asked_about(visitor: Visit) -> None:
    page = visitor.open("mine")
    *_, host = page.evaluate(HOSTS, ["hosts.csv", TABLE])
    found, reasons = page.evaluate(JUDGE, [lock_of("cuda11").read_text(encoding="utf-8"), host["facts"]])
    assert found != "yes"
    assert "this page does not compare `jetson`" in reasons


@pytest.mark.parametrize("modules", ["nouveau;i915", "i915 nouveau", "nouveau ; nvidia", "none"])
def test_modules_in_a_cell_are_parted_as_in_the_program(visitor: Visit, tmp_path: Path, modules: str) -> None:
    path = tmp_path / "hosts.csv"
    path.write_text(f"name,loaded_modules\na,{modules}\n", encoding="utf-8")
    (host,) = read_inventory([path])
    page = visitor.open("mine")
    here, there = (page.evaluate("Site.holderOf", one) for one in (modules, [*(host.host.loaded_modules or ())]))
    assert here == there


def test_a_number_of_json_is_what_was_written(visitor: Visit) -> None:
    page = visitor.open("mine")
    (host,) = page.evaluate(HOSTS, ["a.json", '[{"platform": "linux/amd64", "gpus": [{"compute_capability": 9.0}]}]'])
    assert host["facts"]["gpus"] == [{"compute_capability": "9.0"}]


def test_two_locks_side_by_side(visitor: Visit) -> None:
    page = visitor.open("mine")
    choose(page, lock_of("cuda11"), lock_of("training-h200"))
    table = page.get_by_role("region", name="where they differ")
    row = table.locator("tr", has=page.get_by_role("rowheader", name="cudnn", exact=True))
    assert row.locator("td").all_inner_texts() == ["8.5.0.96", "9.26.0.51", "differs"]
    assert "only in the second" in table.inner_text()


def test_two_versions_of_one_lock_side_by_side(visitor: Visit) -> None:
    page = visitor.open("mine")
    new = lock_of("cuda11").read_bytes()
    old = new.replace(b'cudnn = "8.5.0.96"', b'cudnn = "8.4.1.50"')
    assert old != new
    choose(page, *({"name": "pylock.a.toml", "mimeType": "text/plain", "buffer": text} for text in (new, new, old)))
    assert page.locator("#mine-lock option").all_inner_texts() == ["pylock.a.toml", "pylock.a.toml (2)"]
    row = page.get_by_role("region", name="where they differ").locator(
        "tr", has=page.get_by_role("rowheader", name="cudnn", exact=True)
    )
    assert row.locator("td").all_inner_texts() == ["8.5.0.96", "8.4.1.50", "differs"]


def test_a_file_that_is_dropped(visitor: Visit) -> None:
    page = visitor.open("mine")
    text = lock_of("cuda11").read_text(encoding="utf-8")
    drop = """text => { const data = new DataTransfer(); data.items.add(new File([text], 'pylock.a.toml'));
      const event = new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true });
      document.getElementById('mine-drop').dispatchEvent(event); }"""
    page.evaluate(drop, text)
    page.wait_for_selector(".layers")
    assert "pylock.a.toml" in page.locator("#mine-result h2").first.inner_text()


def test_hostile_files_are_text(visitor: Visit) -> None:
    page = visitor.open("mine")
    lock = f"""
[[packages]]
name = "{HOSTILE}"
version = "{HOSTILE}"
[tool.provision]
matrix-digest = "{HOSTILE}"
[[tool.provision.platforms]]
platform = "linux/amd64"
accelerator = "cuda"
unverified = ["{HOSTILE}"]
[tool.provision.platforms.stack]
cuda = "{HOSTILE}"
"{HOSTILE}" = "1"
constructor = "1"
[tool.provision.platforms.host-requirements]
driver = "{HOSTILE}"
__proto__ = "1"
"""
    gpus = f'gpus: [{{name: "{HOSTILE}", compute_capability: "{HOSTILE}"}}]'
    host = f'platform: linux/amd64\n{gpus}\ndriver: {{version: "{HOSTILE}"}}\n'
    files = [(f"{HOSTILE}.toml", lock), ("a.yaml", host), ("b.toml", f"x = {HOSTILE}"), ("c.json", "{")]
    bomb = "a: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 12)}]\n" for n in range(1, 12))
    files += [("d.yaml", "platform: &a {gpus: *a}"), ("e.yaml", f"platform: linux/amd64\n{bomb}")]
    choose(page, *({"name": name, "mimeType": "text/plain", "buffer": text.encode()} for name, text in files))
    assert page.locator("#mine-result img").count() == 0
    assert HOSTILE in page.locator("#mine-result").inner_text()
    assert page.locator("#mine-verdict").inner_text().startswith("?")
    assert page.locator(".problem").count() == 4


def test_the_page_may_connect_to_nothing(visitor: Visit) -> None:
    page = visitor.open("mine")
    policy = page.evaluate("document.querySelector('meta[http-equiv]').content")
    assert "connect-src 'none'" in policy
    assert page.evaluate("fetch('https://example.invalid/').then(() => 'sent', () => 'refused')") == "refused"
    assert len(visitor.problems) >= 1  # the browser tells of the refusal
    visitor.problems.clear()
