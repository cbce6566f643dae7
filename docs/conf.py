"""How Sphinx builds the documentation site: `make docs`, and the manual pages: `make man`.

The sources are the pages of the repository as they stand, so that a link works on both sides. What is in the site, and in which
order, is said once, in `docs/index.md`. Nothing is fetched: theme, scripts and fonts are those of the installed packages.
"""

from __future__ import annotations

from provisioner import __version__

project = "provision"
author = "the authors of provision"
copyright = author  # noqa: A001 - Sphinx's name; no year, since the same sources give the same pages
release = version = __version__

extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = ["docs/**.md", "dockerfiles/README.md", "[A-Z]*.md"]
exclude_patterns = [".*", "build", "dist", "tests", "matrices", "provisioner"]
source_suffix = {".md": "markdown"}

myst_heading_anchors = 4  # as GitHub has them
myst_links_external_new_tab = False

html_theme = "furo"
html_title = "provision"
html_copy_source = False
html_show_sphinx = False
html_static_path: list[str] = []
