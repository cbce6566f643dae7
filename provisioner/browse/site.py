"""The static site: one page, its style and scripts, and the data they read; nothing is fetched, so it works from a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from provisioner.browse.site_data import site_data

if TYPE_CHECKING:
    from provisioner.matrix.model import Matrix

ASSETS = Path(__file__).parent / "assets"
TEMPLATE = "index.html.j2"
SCRIPTS = ("dom.js", "verdicts.js", "evidence.js", "host.js", "map.js", "catalogue.js", "app.js")
"""In the order in which they need each other; plain scripts, because browsers load no modules from `file://`."""

PAGES = (
    ("host", "Host"),
    ("map", "Heat map"),
    ("components", "Components"),
    ("rules", "Rules"),
    ("sources", "Sources"),
    ("notes", "Notes"),
)


def site_files(matrix: Matrix) -> dict[str, bytes]:
    """Every file of the site by name; the same matrix gives the same bytes."""
    data = site_data(matrix)
    files = {name: (ASSETS / name).read_bytes() for name in ("site.css", *SCRIPTS)}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    files["data.js"] = f"window.MATRIX = {text};\n".encode()
    files["index.html"] = _page(data).encode()
    return dict(sorted(files.items()))


def _page(data: dict[str, object]) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(ASSETS), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    pages = [{"route": route, "title": title} for route, title in PAGES]
    template = environment.get_template(TEMPLATE)
    return template.render(pages=pages, scripts=("data.js", *SCRIPTS), about=data["about"], components=data["components"])
