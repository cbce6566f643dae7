"""How Sphinx builds the documentation site, `make docs`, and the manual pages, `make man`.

The sources are the pages of the repository as they stand, so that a link works on both sides. What is in the site, and in which
order, is said in `docs/index.md` alone. Nothing is fetched: theme, scripts and fonts are those of the installed packages, and
flowcharts are drawn here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import flowchart
import reference
from docutils import nodes

from provisioner import __version__
from provisioner.cli.commands import PROGRAM_ENTRY

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "provision"
author = "the authors of provision"
copyright = author  # noqa: A001 - Sphinx's name; no year, since the same sources give the same pages
release = version = __version__

extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = ["docs/**.md", "dockerfiles/README.md", "[A-Z]*.md"]
exclude_patterns = [".*", "build", "dist", "tests", "matrices", "provisioner"]
source_suffix = {".md": "markdown"}
smartquotes = False  # `--host` is no dash
suppress_warnings = ["toc.not_included"]  # decisions are listed on a page of their own; a test holds the others to the index

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4  # as GitHub has them

html_theme = "furo"
html_title = "provision"
html_copy_source = False
html_show_sphinx = False
html_static_path = ["static"]
html_css_files = ["console.css"]
templates_path = ["templates"]
html_extra_path = ["extra", "../schemas"]

man_pages = [
    ("docs/reference/" + reference.page_name(words), reference.page_name(words), entry.summary, author, 1)
    for words, entry in {"": PROGRAM_ENTRY, **reference.entries()}.items()
]
man_show_urls = False
man_make_section_directory = False


def setup(app: Sphinx) -> None:
    """Have the reference written before the pages are looked for, and draw the flowcharts, which GitHub draws, too."""
    app.connect("config-inited", lambda *_: reference.write())
    app.connect("doctree-read", draw_flowcharts)


def draw_flowcharts(_app: Sphinx, page: nodes.document) -> None:
    """Put a picture in the place of each block of Mermaid."""
    blocks = [block for block in page.findall(nodes.literal_block) if block.get("language") == "mermaid"]
    for number, block in enumerate(blocks, start=1):
        block.replace_self(nodes.raw("", flowchart.svg(block.astext(), number=number), format="html"))
