"""The page of validations: one file that loads nothing, in which every text of others is a text."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

from provisioner.browse.validation_page import validation_page
from provisioner.errors import visible
from tests.unit.evidence.reports import HOSTILE, gpu_report, report


class Page(HTMLParser):
    """The tags, attributes and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append(data.strip())


def test_the_page_tells_of_each_level_and_of_each_fact_what_was_expected_and_found() -> None:
    texts = Page(validation_page([gpu_report()])).texts
    assert "pylock.trainer.toml on linux/amd64, level 4: no" in texts
    for expected in (
        ["0 static", "nothing to do", "0", "no image"],
        ["4 devices", "unverified", "1"],
        ["fact 2", "3.12", "3.11.9", "no"],
        ["Kernel", "6.8.0-45-generic"],
        ["GPUs", "NVIDIA H100, NVIDIA T4"],
        ["Image in registries", f"registry.example.org/team/trainer@sha256:{'c' * 64}"],
        ["cuda:0 NVIDIA H100: 690.5 TFLOP/s, 2900.0 GB/s, 68.7 GB held, 5.0 s"],
    ):
        length = len(expected)
        assert expected in [texts[start : start + length] for start in range(len(texts))], expected


def test_texts_of_others_are_texts() -> None:
    text = validation_page([gpu_report()])
    page = Page(text)
    assert "script" not in page.tags
    assert visible(HOSTILE) in page.texts
    assert not [name for name, _ in page.attributes if name.startswith("on")]


def test_nothing_is_loaded_and_the_policy_admits_this_style_alone() -> None:
    text = validation_page([report("yes")])
    page = Page(text)
    addresses = [value for name, value in page.attributes if name in {"src", "href", "action", "srcset"}]
    assert addresses == ["data:,", "#main"]
    (style,) = re.findall(r"<style>(.*)</style>", text, re.DOTALL)
    assert "url(" not in style
    assert "@import" not in style
    wanted = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{wanted}'" in text
    assert "default-src 'none'" in text


def test_several_reports_are_one_page_of_the_same_bytes() -> None:
    reports = [report("yes"), report("yes", platform="linux/arm64")]
    assert validation_page(reports) == validation_page(reports)
    headings = [text for text in Page(validation_page(reports)).texts if text.startswith("pylock.trainer.toml on")]
    assert headings == ["pylock.trainer.toml on linux/amd64, level 0: yes", "pylock.trainer.toml on linux/arm64, level 0: yes"]
