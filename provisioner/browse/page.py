"""Pages of one file: the style is in it, there are no scripts, and nothing is loaded from anywhere."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

from provisioner.browse.site import ASSETS
from provisioner.errors import visible, without_userinfo

if TYPE_CHECKING:
    from collections.abc import Sequence

STYLES = ("site.css", "page.css")
"""The style sheets of every page."""


def page(template: str, *, styles: Sequence[str] = (), **values: object) -> str:
    """Return the text of a page; the same values give the same text.

    `template` and `styles`, the page's own style sheets, are names of assets. Texts of others are escaped, characters that a
    browser obeys and nobody sees are spelled out, and logins in addresses are masked.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        finalize=lambda value: visible(without_userinfo(value)) if type(value) is str else value,  # markup is a subclass
    )
    style = "".join((ASSETS / name).read_text(encoding="utf-8") for name in (*STYLES, *styles))
    style_hash = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return environment.get_template(template).render(style=style, style_hash=style_hash, **values)
