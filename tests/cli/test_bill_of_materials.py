"""The bill of materials of a lock beside that of an independent scanner, `cyclonedx-py`, of what is installed from it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from uv import find_uv_bin

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.network

SPEC = """\
name: listed
target: {{platform: linux/amd64}}
accelerator: cpu
requires: {{python: "{python}"}}
packages: [requests, numpy, rich, pyyaml, python-dateutil, matplotlib, networkx, psutil, tqdm, sympy, pandas, scikit-learn]
runs: host
outputs: [sbom]
"""
"""Packages with an expression, with an identifier, with a name, with classifiers alone, with the text of a licence."""

READ_AS = {("MIT License", "MIT"), ("Python Software Foundation License", "Python-2.0")}
"""Names of classifiers that the scanner takes for an identifier; a lock keeps what is written."""


@pytest.fixture(scope="module")
def bills(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    """The components of both bills, by name."""
    folder = tmp_path_factory.mktemp("listed")
    (folder / "provision.yaml").write_text(SPEC.format(python=f"{sys.version_info.major}.{sys.version_info.minor}"))
    run(folder, sys.executable, "-m", "provisioner", "solve")
    run(folder, find_uv_bin(), "venv", "--python", sys.executable, "env")
    run(folder, find_uv_bin(), "pip", "install", "--no-config", "--python", "env", "-r", "pylock.listed.toml")
    scanned = run(folder, sys.executable, "-m", "cyclonedx_py", "environment", "--of", "JSON", "env/bin/python")
    rendered = json.loads((folder / "sbom.cdx.json").read_text(encoding="utf-8"))
    ours = {one["name"]: one for one in rendered["components"] if one["purl"].startswith("pkg:pypi/")}
    theirs = {one["name"].lower().replace("_", "-"): one for one in json.loads(scanned)["components"]}
    return ours, theirs


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def declared(component: dict[str, Any]) -> set[str]:
    """The licences of a component: the expressions where there are any, else the names.

    The scanner repeats an expression as the classifier that says it less exactly, as in `BSD-3-Clause` and `BSD License`.
    """
    expressions: set[str] = set()
    names: set[str] = set()
    for one in component.get("licenses", ()):
        text = one.get("expression") or one["license"].get("id") or one["license"]["name"]
        try:
            expressions.add(canonicalize_license_expression(text))
        except InvalidLicenseExpression:
            names.add(text.rpartition(" :: ")[2])
    return expressions or names


def test_both_name_the_same_packages_versions_and_package_urls(bills: tuple[dict[str, Any], dict[str, Any]]) -> None:
    ours, theirs = bills
    assert {name: (one["version"], one["purl"]) for name, one in ours.items()} == {
        name: (one["version"], one["purl"]) for name, one in theirs.items()
    }


def test_both_find_the_same_licences(bills: tuple[dict[str, Any], dict[str, Any]]) -> None:
    ours, theirs = bills
    differing = {
        (*declared(ours[name]), *declared(theirs[name])) for name in ours if declared(ours[name]) != declared(theirs[name])
    }
    assert differing <= READ_AS
    assert all(map(declared, ours.values()))
