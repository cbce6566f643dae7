"""The documentation site and the manual pages: what is in them, and that they build without a warning and fetch nothing."""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import reference

from provisioner.cli.catalogue import COMMANDS
from provisioner.schemas.shipped import SCHEMAS
from tests.leaving import leave

ROOT = Path(__file__).parent.parent
INDEX = ROOT / "docs/index.md"
FETCHED = re.compile(r"""(?:\bsrc=|<link[^>]+href=|@import\s+|url\()["']?((?:https?:)?//[^"')\s]+)""")


def listed() -> list[str]:
    """Return the pages that the index of the site lists, as paths from the top of the repository."""
    trees = re.findall(r"```\{toctree\}\n(.*?)```", INDEX.read_text(encoding="utf-8"), re.DOTALL)
    names = [line for tree in trees for line in tree.splitlines() if line and not line.startswith(":")]
    return [os.path.normpath(f"docs/{name}.md") for name in names]


def build(builder: str, out: Path) -> subprocess.CompletedProcess[str]:
    """Build the site as `make docs` does."""
    (words,) = re.findall(r"^SPHINX = .*? -m (sphinx .*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    command = [sys.executable, "-m", *words.split(), "-b", builder, "-c", "docs", ".", str(out)]
    variables = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'docs'}"}
    return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built once."""
    out = tmp_path_factory.mktemp("site")
    done = build("html", out)
    assert (done.returncode, done.stderr) == (0, "")
    return out


def test_every_page_is_listed_once_in_the_index_of_the_site() -> None:
    pages = [*ROOT.glob("*.md"), ROOT / "dockerfiles/README.md", *(ROOT / "docs").rglob("*.md")]
    names = {path.relative_to(ROOT).as_posix() for path in pages if path.parent.name not in {"decisions", "reference"}}
    names |= {"docs/decisions/README.md", "docs/reference/provision.md"}
    assert sorted(listed()) == sorted(names - {"docs/index.md"})


def test_every_command_and_every_format_has_a_page_in_the_reference() -> None:
    commands, formats = reference.command_pages(), reference.format_pages()
    assert list(commands) == ["provision", *(f"provision-{words.replace(' ', '-')}" for words in reference.entries())]
    assert list(formats) == [f"format-{name}" for name in SCHEMAS]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_of_the_reference_has_the_options_of_the_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave(name, "--help") == 0
    section = capsys.readouterr().out.partition("\nOptions:\n")[2].partition("\n\n")[0]
    options = re.findall(r"^  (--[a-z-]+|-h, --help)", section, re.MULTILINE)
    page = reference.command_pages()[f"provision-{name}"]
    assert re.findall(r"^`(--[a-z-]+|-h, --help)", page, re.MULTILINE) == options


def test_a_page_of_a_format_has_the_keys_of_its_schema_and_what_they_hold() -> None:
    page = reference.format_pages()["format-host"]
    assert "\n## Driver\n" in page
    assert "`module`\n: `open` or `proprietary`; optional.\n" in page
    assert "`gpus`\n: list of [HostGpu](#hostgpu); optional." in page


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_fetches_nothing(site: Path) -> None:
    files = [path for path in site.rglob("*") if path.suffix in {".html", ".css"}]
    assert len(files) > 150
    assert {found for path in files for found in FETCHED.findall(path.read_text(encoding="utf-8"))} == set()


@pytest.mark.slow
def test_the_site_has_the_schemas_and_the_pictures(site: Path) -> None:
    assert {f"{name}.schema.json" for name in SCHEMAS} <= {path.name for path in site.iterdir()}
    assert {"stack.svg", "terminal.svg"} <= {path.name for path in (site / "_images").iterdir()}
    architecture = (site / "ARCHITECTURE.html").read_text(encoding="utf-8")
    assert (architecture.count('<svg class="flowchart"'), "flowchart BT" in architecture) == (2, False)
    assert 'href="docs/index.html"' in (site / "index.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_link_inside_the_site_leads_to_a_file_and_a_place_in_it(site: Path) -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    places = {path: {html.unescape(name) for name in re.findall(r'\bid="([^"]*)"', text)} for path, text in pages.items()}
    broken = []
    for path, text in pages.items():
        for link in map(html.unescape, re.findall(r'<a [^>]*href="([^"]*)"', text)):
            name, _, place = link.partition("#")
            target = path if not name else Path(os.path.normpath(path.parent / name))
            if re.match(r"[a-z]+:", link):
                continue
            if not target.exists() or (place and place not in places.get(target, {place})):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


def test_the_published_site_links_to_the_site_of_the_matrix_and_back() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (place,) = re.findall(r"-A matrix_site=(\S+)", makefile)
    ((out, back),) = re.findall(r"provision matrix site --out build/docs/(\S+) --docs (\S+)", makefile)
    assert place == f"{out}/index.html"
    assert (ROOT / os.path.normpath(f"{out}/{back}")).with_suffix(".md").is_file()
    assert "pathto(matrix_site, 1)" in (ROOT / "docs/templates/sidebar/navigation.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_manual_pages_are_clean_and_have_the_examples(tmp_path: Path) -> None:
    done = build("man", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert {path.name for path in tmp_path.glob("*.1")} == {f"{name}.1" for name in reference.command_pages()}
    page = (tmp_path / "provision-solve.1").read_text(encoding="utf-8")
    assert ".SH EXIT CODES" in page.upper()
    if groff := shutil.which("groff"):
        for path in sorted(tmp_path.glob("*.1")):
            done = subprocess.run(
                [groff, "-man", "-Tutf8", "-K", "utf8", "-z", str(path)], capture_output=True, text=True, check=True
            )
            assert done.stderr == "", path.name
