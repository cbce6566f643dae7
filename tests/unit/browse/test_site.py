"""The site's files: the same bytes for the same matrix, no dates, no paths, and nothing that loads from elsewhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from provisioner.browse.grid import devices
from provisioner.browse.site import ASSETS, PARSERS, SCRIPTS, VENDOR, VENDORED, site_data, site_files
from provisioner.processes import processors
from tests.unit.browse.test_stacks import small

ROOT = Path(__file__).parents[3]
SHOW_DIGEST = """
import hashlib
from provisioner.browse.site import site_files
from tests.unit.browse.test_stacks import small
digest = hashlib.sha256()
for name, content in site_files(small()).items():
    digest.update(name.encode() + content)
print(digest.hexdigest())
"""


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return site_files(small())


def test_two_runs_with_different_hash_seeds_give_the_same_bytes() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", SHOW_DIGEST],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_every_file_the_page_names_is_there(files: dict[str, bytes]) -> None:
    page = files["index.html"].decode()
    named = re.findall(r'<script src="([^"]+)"|<link rel="stylesheet" href="([^"]+)"', page)
    wanted = {script or style for script, style in named}
    assert wanted == {"data.js", "site.css", PARSERS, *SCRIPTS}
    assert wanted < set(files)


def test_nothing_is_loaded_from_elsewhere(files: dict[str, bytes]) -> None:
    for name in ("index.html", "site.css", *SCRIPTS):
        text = files[name].decode()
        assert not re.search(r"(src|href)=\"(https?:)?//|@import|url\(|\bfetch\(|XMLHttpRequest|import\(", text), name


def test_text_is_never_read_as_markup() -> None:
    for name in SCRIPTS:
        text = (ASSETS / name).read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text), name


def test_the_data_is_one_statement_of_json(files: dict[str, bytes]) -> None:
    text = files["data.js"].decode()
    assert text.startswith("window.MATRIX = ")
    data = json.loads(text.removeprefix("window.MATRIX = ").removesuffix(";\n"))
    assert data == json.loads(json.dumps(site_data(small())))
    grid = data["grid"]
    assert {len(row) for row in grid["rows"]} == {len(grid["drivers"])}
    for columns in grid["table"].values():
        assert len(columns) == len(grid["devices"])
        assert all(len(numbers) == len(grid["builds"]) for numbers in columns)


def test_a_page_without_scripts_still_says_what_there_is(files: dict[str, bytes]) -> None:
    page = files["index.html"].decode()
    inside = page[page.index("<noscript>") : page.index("</noscript>")]
    assert '<th scope="row">pytorch</th><td>3</td><td>2.2.0</td>' in inside


def test_vendored_parsers_are_whole_and_bring_their_licences(files: dict[str, bytes]) -> None:
    text = files[PARSERS].decode()
    for name, _ in VENDORED:
        assert (VENDOR / name).read_text(encoding="utf-8").strip() in text
    assert "Copyright (c) Squirrel Chat et al." in text
    assert "Copyright (C) 2011-2015 by Vitaly Puzrin" in text


@pytest.mark.skipif(processors() == 1, reason="forks only on Linux, with two processors or more")
def test_any_number_of_processes_makes_the_same_site_and_tells_of_every_part() -> None:
    matrix = small()
    told: list[tuple[int, int]] = []
    alone = site_files(matrix)
    assert site_files(matrix, processes=3, told=lambda done, of: told.append((done, of))) == alone
    assert told == [(done + 1, len(told)) for done in range(len(told))]
    assert len(told) > len(devices(matrix))
