"""The page of a lock: one file that loads nothing, which tells why each version was taken and what was not, and why."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from provisioner.errors import CONTROLS, visible
from tests.unit.browse.explained import page, page_without_hosts, page_without_spec
from tests.unit.browse.test_validation_page import Page
from tests.unit.evidence.reports import HOSTILE

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN = Path(__file__).parents[2] / "golden/explain/page.html"
HOST = "rack <script>\\u202e host0"


def told(found: Page, *expected: str) -> bool:
    """Whether some texts of a page follow each other."""
    return list(expected) in [found.texts[start : start + len(expected)] for start in range(len(found.texts))]


def test_the_page_is_as_committed(golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN, page())


def test_each_choice_has_its_reasons_with_sources_and_what_was_not_taken() -> None:
    found = Page(page())
    reason = "python-dateutil 2.9.0.post0 needs jax<0.9"
    assert told(found, "jax", "0.8.0", "the newest is 0.10.1", reason, "excludes the newest")
    assert told(found, "Not taken", "not jax 0.9 to 0.10: driver 535.104.05 excludes them")
    assert told(found, "cudnn 9.2.0 needs cuda ==12.*", "excludes the newest", "matrices/cudnn.yaml", "invented")
    assert "not python 3.13 beside what is chosen: you require python 3.12  (the spec)" in found.texts


def test_a_layer_names_what_it_limits_and_what_it_pins() -> None:
    found = Page(page())
    assert told(found, "driver", "535.104.05", "the host states it", "limits", "jax, cuda")
    assert told(found, "kernel", "no part of this answer")


def test_facts_of_hosts_have_verdicts_and_evidence_its_levels() -> None:
    found = Page(page())
    assert told(found, "driver", HOST, "535.104.05", ">=525", "yes")
    assert told(found, "validated up to level 1 (build) on linux/amd64 with docker 26.1.5, 2026-11-23T14:00:00Z")
    assert told(found, "1 build", "yes", "1")


def test_nothing_is_claimed_of_packages_that_an_index_alone_knows() -> None:
    found = Page(page())
    assert told(found, "six", "1.17.0", "you require six  (the spec)")
    assert [text for text in found.texts if "its index alone knows, and this page was made without asking one" in text]


def test_texts_of_others_are_texts() -> None:
    text = page()
    found = Page(text)
    assert "script" not in found.tags
    assert not re.search(CONTROLS, text)
    assert f"cuda 12.6.3 needs gpu >=7.0: {visible(HOSTILE)}" in found.texts
    assert HOST in found.texts
    assert not [name for name, _ in found.attributes if name.startswith("on")]


def test_links_lead_to_addresses_of_sources_and_to_parts_of_the_page() -> None:
    found = Page(page())
    links = [value for name, value in found.attributes if name == "href"]
    anchors = {value for name, value in found.attributes if name == "id"}
    outside = {link for link in links if not link.startswith("#")}
    assert outside == {"data:,", "https://example.org/?a=1&b=<2>"}
    assert {link.removeprefix("#") for link in links} - {"main", *outside} <= anchors
    assert len([value for name, value in found.attributes if name == "id"]) == len(anchors)
    assert not [name for name, _ in found.attributes if name in {"src", "srcset", "action"}]


def test_a_lock_without_its_spec_is_told_as_it_was_recorded_and_no_more() -> None:
    found = Page(page_without_spec())
    assert told(found, "unverified", "Not everything that decides whether this lock runs is known.")
    assert told(found, "jax 0.8.0 needs cudnn ==9.*", "matrices/jax.yaml")
    assert [text for text in found.texts if text.startswith("What follows is what the lock recorded when it was solved.")]
    assert not {"Not taken", "limits", "pins"} & set(found.texts)
    anchors = [value for name, value in found.attributes if name == "id"]
    assert len(anchors) == len(set(anchors))
    assert {value.removeprefix("#") for name, value in found.attributes if name == "href"} - {"data:,"} <= set(anchors)


def test_what_no_host_states_is_needed_and_unverified_and_told_once() -> None:
    found = Page(page_without_hosts())
    assert told(found, "driver", "needed, and not stated")
    assert told(found, "kernel", "no part of this answer")
    assert len([text for text in found.texts if text.startswith("driver: the target does not state it")]) == 1
