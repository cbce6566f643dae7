"""Machines, broken and healthy: one file each, with a tree of files or a profile, what shall run, and what `doctor` must say.

A scenario starts from a saved machine of tests/fixtures/hosts (`from`), or from nothing, and adds `files` (null takes a file or
folder away), `links` and the `distributions` of an environment at `env`; or it is a recorded profile (`host`). The `lock` is
solved by the shipped matrix on the hosts of its own, so that it is what `solve` writes.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.json import decode
from ruamel.yaml import YAML

from provisioner.cli.app import main
from provisioner.host.model import Host
from provisioner.lock.format.file import write_lock
from provisioner.request import Request, TargetHost
from provisioner.resolver.joint import solve_system
from provisioner.resolver.problem import join
from provisioner.spec.model import Spec
from tests.lock_examples import lock_of
from tests.shipped import shipped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.resolver.stack import Stack

HERE = Path(__file__).parent
HOSTS = HERE.parent / "fixtures/hosts"
SCENARIOS = sorted(HERE.rglob("*.yaml"))
KEYS = {"description", "source", "from", "files", "links", "env", "distributions", "host", "lock", "expected"}
EXPECTED = {"verdict", "first", "layers"}
LAYER_KEYS = {"verdict", "found", "wanted", "fault", "text", "remedy", "command", "follows", "failure"}
LOCK = "pylock.job.toml"
EXIT_CODES = {"yes": 0, "no": 1, "unverified": 3}


def read(path: Path) -> dict[str, Any]:
    scenario = dict(YAML(typ="safe").load(path.read_text(encoding="utf-8")))
    assert scenario.keys() <= KEYS, f"{path}: unknown keys {scenario.keys() - KEYS}"
    assert scenario["expected"].keys() <= EXPECTED, f"{path}: unknown keys of expected"
    return scenario


def planted(scenario: Mapping[str, Any], root: Path) -> None:
    """Write the tree of a scenario."""
    if "from" in scenario:
        shutil.copytree(HOSTS / scenario["from"], root, symlinks=True)
    root.mkdir(exist_ok=True)
    for path, content in scenario.get("files", {}).items():
        place = root / path
        if content is None:
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            else:
                place.unlink()
            continue
        if place.is_symlink():
            place.unlink()
        place.parent.mkdir(parents=True, exist_ok=True)
        # An EFI variable and a certificate are bytes; everything else is text.
        place.write_bytes(bytes.fromhex(content["hex"]) if isinstance(content, dict) else str(content).encode())
    for path, target in scenario.get("links", {}).items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)
    packages = root / scenario.get("env", "venv") / "lib/python3.12/site-packages"
    for name, one in scenario.get("distributions", {}).items():
        version, requires = (one, []) if isinstance(one, str) else (one["version"], one["requires"])
        place = packages / f"{name.replace('-', '_')}-{version}.dist-info"
        place.mkdir(parents=True)
        lines = [f"Requires-Dist: {text}" for text in requires]
        text = "\n".join(["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *lines, "", "About it."])
        (place / "METADATA").write_text(text)


def locked(lock: Mapping[str, Any], folder: Path) -> Path:
    spec = decode(json.dumps(lock["spec"], default=str), type=Spec)
    hosts = tuple(
        TargetHost(label=f"host {index}", host=decode(json.dumps(facts), type=Host))
        for index, facts in enumerate(lock.get("hosts", []), start=1)
    )
    stack: Stack = solve_system(join(shipped(), Request(spec=spec, hosts=hosts, platform=str(spec.target.platform))))
    path = folder / LOCK
    path.write_text(write_lock(lock_of(stack, installers={})))
    return path


def told(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert isinstance(stopped.value.code, int)
    return stopped.value.code, capsys.readouterr().out


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_machine_is_examined(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = read(path)
    words = ["doctor"]
    if "lock" in scenario:
        words.append(str(locked(scenario["lock"], tmp_path)))
    if "host" in scenario:
        profile = tmp_path / "host.yaml"
        with profile.open("w") as stream:
            YAML(typ="safe").dump(scenario["host"], stream)
        words += ["--host", str(profile)]
    else:
        planted(scenario, tmp_path / "machine")
        words += ["--root", str(tmp_path / "machine")]
    if "env" in scenario:
        words += ["--python", f"{scenario['env']}/bin/python"]
    code, out = told([*words, "--format", "json"], capsys)
    found = json.loads(out)
    compared(found, scenario["expected"])
    assert code == EXIT_CODES[found["verdict"]]
    code_of_text, text = told(words, capsys)
    assert code_of_text == code
    assert text.splitlines()[0][0] == {"yes": "✓", "no": "✗", "unverified": "?"}[found["verdict"]]


def compared(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    assert found["verdict"] == expected["verdict"], json.dumps(found, indent=1)
    assert found["mend_first"] == expected.get("first", "")
    layers = {layer["layer"]: layer for layer in found["layers"]}
    for name, wanted in expected["layers"].items():
        assert wanted.keys() <= LAYER_KEYS, f"unknown keys of layer {name}"
        layer = layers[name]
        shown = json.dumps(layer, indent=1)
        for key in ("verdict", "follows"):
            assert layer[key] == wanted.get(key, layer[key]), shown
        for key, kind in (("found", "value"), ("wanted", "range")):
            values = {part["component"]: part[kind] for part in layer[key]}
            assert {one: values.get(one) for one in wanted.get(key, {})} == wanted.get(key, {}), shown
        if "fault" in wanted:
            assert wanted["fault"] in [fault["type"] for fault in layer["faults"]], shown
        if "text" in wanted:
            assert any(wanted["text"] in fault["text"] for fault in layer["faults"]), shown
        if "failure" in wanted:
            assert wanted["failure"] in [fault.get("failure", {}).get("name") for fault in layer["faults"]], shown
        if "remedy" in wanted:
            assert wanted["remedy"] in layer["remedies"][0]["text"], shown
        if "command" in wanted:
            assert layer["remedies"][0]["command"] == wanted["command"], shown


def test_the_scenarios_are_of_every_verdict() -> None:
    verdicts = [read(path)["expected"]["verdict"] for path in SCENARIOS]
    assert {verdict: verdicts.count(verdict) > 2 for verdict in ("yes", "no", "unverified")} == {
        "yes": True,
        "no": True,
        "unverified": True,
    }
    assert verdicts.count("no") >= 20
