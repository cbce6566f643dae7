"""What `provision validate` costs above an installation, and a check of many hosts: `python benchmarks/validate_cost.py`.

Installs real stacks for the CPU with uv, from a lock that is solved now, and validates each with the engine `local`: the checks
are those of a container. Then checks one lock of `dockerfiles/` against inventories of up to 1,000 hosts.
Seconds of one processor, user and system, of each command with all its processes: other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fleet_scale import machines
from usage import Usage, measured

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build" / "benchmarks" / "validate"
BIN = Path(sys.executable).parent

STACKS = {"numpy": "numpy", "onnx": "onnxruntime, scikit-learn", "torch": "torch"}
"""Packages of a spec, by the name of the environment."""

LEVELS = (2, 3)
HOSTS = ((1, 1), (100, 20), (1000, 20), (1000, 200))
"""Numbers of hosts, and of profiles among them, no two of which are alike."""

CHECKED = "dockerfiles/training-h200/pylock.training-h200.toml"

SPEC = """\
name: {name}
accelerator: cpu
target: {{platform: linux/amd64}}
requires: {{python: "{python}"}}
packages: [{packages}]
runs: host
"""


def main() -> None:
    """Install and validate the stacks, check the hosts, and write the page."""
    options = _options()
    shutil.rmtree(FOLDER, ignore_errors=True)
    stacks = [(name, *_stack(name, packages, options.rounds)) for name, packages in STACKS.items()]
    hosts = [(*size, _hosts(*size, options.rounds)) for size in HOSTS]
    options.output.write_text("\n".join(_page(stacks, hosts, options.rounds)) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "validate-cost.md", metavar="FILE")
    return parser.parse_args()


def _stack(name: str, packages: str, rounds: int) -> tuple[str, str, float, dict[int, float]]:
    """Return the version of the first package, the size, and the seconds of the installation and of each level."""
    folder = FOLDER / name
    folder.mkdir(parents=True)
    python = f"=={sys.version_info.major}.{sys.version_info.minor}.*"
    (folder / "provision.yaml").write_text(SPEC.format(name=name, python=python, packages=packages), encoding="utf-8")
    _run([BIN / "provision", "solve"], folder)
    lock, environment = f"pylock.{name}.toml", folder / "env"
    # Once to fill uv's cache: what is measured is unpacked, and not downloaded.
    installs = []
    for _ in range(rounds + 1):
        shutil.rmtree(environment, ignore_errors=True)
        _run([BIN / "uv", "venv", "--quiet", "--python", sys.executable, environment], folder)
        install = [BIN / "uv", "pip", "install", "--quiet", "--link-mode", "copy", "--compile-bytecode", "--python"]
        installs.append(_run([*install, environment / "bin/python", "-r", lock], folder).processor)
    seconds = {}
    for level in LEVELS:
        command = [BIN / "provision", "validate", lock, "--engine", "local", "--python", environment / "bin/python"]
        runs = [_run([*command, "--level", level, "--no-record"], folder).processor for _ in range(rounds)]
        seconds[level] = statistics.median(runs)
    first = packages.partition(",")[0].replace("-", "_")
    site = next(environment.glob("lib/python*/site-packages"))
    version = next(site.glob(f"{first}-*.dist-info")).name.removesuffix(".dist-info").rpartition("-")[2]
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file() and not path.is_symlink())
    sys.stdout.write(f"{name}: installed {statistics.median(installs[1:]):.1f} s, {seconds}\n")
    return f"{packages.partition(',')[0]} {version}", f"{size / 1e6:,.0f}", statistics.median(installs[1:]), seconds


def _hosts(count: int, profiles: int, rounds: int) -> float:
    """Return the seconds of a check of one lock against so many hosts."""
    inventory, kinds = FOLDER / f"{count}-{profiles}.csv", machines(profiles)
    with inventory.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("name", "platform", "gpu", "driver", "driver.module", "kernel", "container_toolkit"))
        for index in range(count):
            gpu, capability, driver, module, kernel, toolkit = kinds[index % profiles]
            writer.writerow((f"node-{index}", "linux/amd64", f"8x {gpu} ({capability})", driver, module, kernel, toolkit))
    command = [BIN / "provision", "check", "--offline", ROOT / CHECKED, "--hosts", inventory]
    _run(command, FOLDER)  # decodes the matrix
    seconds = statistics.median(_run(command, FOLDER).processor for _ in range(rounds))
    sys.stdout.write(f"{count} hosts of {profiles} profiles: {seconds:.2f} s of one processor\n")
    return seconds


def _run(command: Sequence[object], folder: Path) -> Usage:
    words = [str(word) for word in command]
    environment = {**os.environ, "PROVISION_CACHE_DIR": str(FOLDER / "cache"), "PWD": str(folder)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = Path.cwd()
    os.chdir(folder)
    try:
        found = measured(words, environment, limit=900, output=FOLDER / "out")
    finally:
        os.chdir(before)
    assert found.code in {0, 1, 3}, f"{' '.join(words)} exited with {found.code}: {found.output}"
    return found


def _page(
    stacks: Sequence[tuple[str, str, str, float, dict[int, float]]], hosts: Sequence[tuple[int, int, float]], rounds: int
) -> list[str]:
    return [
        "# What a validation costs",
        "",
        "Written by `python benchmarks/validate_cost.py`; not edited by hand. Seconds of one processor, user and system, of",
        f"whole commands; medians of {rounds}. *Installed* is uv, from its cache, with bytecode: the least that a build does.",
        "*Level 2* reads each file once and compares its hash, *level 3* does that, imports what the lock has, and computes",
        "with it.",
        "",
        f"| stack | MB | installed | {' | '.join(f'level {level}' for level in LEVELS)} |",
        f"| --- | --: | --: |{' --: |' * len(LEVELS)}",
        *(
            f"| {title} | {size} | {install:.1f} | {' | '.join(f'{seconds[level]:.1f}' for level in LEVELS)} |"
            for _, title, size, install, seconds in stacks
        ),
        "",
        "## One lock, many hosts",
        "",
        f"`provision check --offline {CHECKED} --hosts INVENTORY`:",
        "is the lock a solution, are its files those that it renders, and on which hosts does it not run, and why?",
        "Hosts with equal facts are one profile; the others are drawn at random, and the lock runs on few of them.",
        "",
        "| hosts | profiles | seconds of one processor |",
        "| --: | --: | --: |",
        *(f"| {count:,} | {profiles} | {seconds:.1f} |" for count, profiles, seconds in hosts),
    ]


if __name__ == "__main__":
    main()
