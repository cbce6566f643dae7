"""What is read of a page, and chosen from it, is what a plain reading of the specifications gives, one entry at a time."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.tags import parse_tag
from packaging.utils import canonicalize_name, parse_wheel_filename

from provisioner.index.model import Environment, IndexFile
from provisioner.index.pages.project_page import parse_project_page
from provisioner.index.pages.selection import Selection
from provisioner.index.pages.tags import tag_ranks
from tests.strategies import examples

if TYPE_CHECKING:
    from packaging.version import Version

pytestmark = pytest.mark.property

URL = "https://index.example/simple/demo/"
JSON_TYPE = "application/vnd.pypi.simple.v1+json"
TARGET = Environment(platform="linux/amd64", python="3.12", glibc=(2, 28))

SHA256 = st.sampled_from(["a" * 64, "B" * 64, "0" * 63, ""])
TEXT = st.sampled_from(["", "x", ">=3.9", ">=3.13", "2026-01-01T00:00:00Z"]) | st.text(max_size=5)
LINK = st.one_of(
    st.sampled_from(
        [
            "https://",
            "https://a.example/",
            "http://",
            "/",
            "//",
            "",
            "ftp://",
            "file:///",
            "https:///",
            "http://[",
            "https://me:pw@",
        ]
    ).flatmap(lambda start: st.text(alphabet='ab./%0?#@ \\é[]\n\x7f{|<"', max_size=8).map(lambda rest: f"{start}{rest}")),
    st.just("https://files.example/demo-1.0-py3-none-any.whl"),
)
ANYTHING = st.none() | st.booleans() | st.integers(-1, 2**70) | TEXT | st.lists(st.none(), max_size=1)
METADATA = st.booleans() | st.none() | st.fixed_dictionaries({}, optional={"sha256": SHA256})
ENTRY = st.fixed_dictionaries(
    {"filename": st.sampled_from(["demo-1.0-py3-none-any.whl", "demo-1.0.tar.gz", ""]) | TEXT, "url": LINK},
    optional={
        "hashes": st.none() | st.fixed_dictionaries({}, optional={"sha256": SHA256, "md5": TEXT}) | ANYTHING,
        "size": st.none() | st.integers(0, 2**40) | ANYTHING,
        "requires-python": st.none() | TEXT | ANYTHING,
        "upload-time": st.none() | TEXT | ANYTHING,
        "yanked": st.none() | st.booleans() | TEXT | ANYTHING,
        "core-metadata": METADATA | ANYTHING,
        "dist-info-metadata": METADATA | ANYTHING,
        "provenance": st.none() | LINK | ANYTHING,
        "something": ANYTHING,
    },
)


@examples(600)
@given(st.lists(ENTRY | ANYTHING, max_size=4))
def test_a_page_lists_what_a_plain_reading_of_its_entries_gives(entries: list[Any]) -> None:
    body = json.dumps({"meta": {"api-version": "1.3"}, "files": entries}).encode()
    found = parse_project_page(body, content_type=JSON_TYPE, url=URL, index="main").finished()
    assert list(found) == [file for entry in entries if isinstance(entry, dict) and (file := _plainly_read(entry))]


def _plainly_read(entry: dict[str, Any]) -> IndexFile | None:
    """The file of an entry by `json` and `urllib.parse`, a value of another type than it should have being none."""

    def of(kind: type, value: Any, default: Any) -> Any:  # noqa: ANN401 - JSON
        return value if type(value) is kind else default

    def is_digests(value: Any) -> bool:  # noqa: ANN401 - JSON
        return isinstance(value, dict) and isinstance(value.get("sha256", ""), str)

    def sha256(digests: Any) -> str:  # noqa: ANN401 - JSON
        text = digests.get("sha256", "") if is_digests(digests) else ""
        return text.lower() if re.fullmatch("[0-9a-fA-F]{64}", text) else ""

    url = _followed(of(str, entry.get("url"), ""))
    announced = [entry.get(key) for key in ("core-metadata", "dist-info-metadata")]
    metadata = next((one for one in announced if isinstance(one, bool) or is_digests(one)), None)
    yanked, size = entry.get("yanked"), of(int, entry.get("size"), -1)
    provenance = _joined(of(str, entry.get("provenance"), ""))
    return url and IndexFile(
        filename=of(str, entry.get("filename"), "") or unquote(urlsplit(url).path.rpartition("/")[2]),
        url=url,
        index="main",
        sha256=sha256(entry.get("hashes")),
        size=size if 0 <= size < 2**63 else None,
        requires_python=of(str, entry.get("requires-python"), "") or None,
        upload_time=of(str, entry.get("upload-time"), "") or None,
        yanked=" ".join(yanked.split()) if isinstance(yanked, str) else "" if yanked is True else None,
        has_metadata=isinstance(metadata, dict) or bool(metadata),
        metadata_sha256=sha256(metadata),
        provenance=provenance if urlsplit(provenance).scheme in {"http", "https"} else "",
    )


def _joined(link: str) -> str:
    """The address of a link without a login; "" for one that is none."""
    try:
        url = urljoin(URL, link) if link else ""
        parts = urlsplit(url)
    except ValueError:
        return ""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl() if "@" in parts.netloc else url


def _followed(link: str) -> Any:  # noqa: ANN401 - a text, or None
    link = re.sub(r'[ "<>\\^`{|}]', lambda found: f"%{ord(found[0]):02X}", link.strip())
    url = _joined(link) if link.isprintable() else ""
    parts = urlsplit(url)
    name = unquote(parts.path.rpartition("/")[2])
    return url if parts.scheme in {"http", "https"} and parts.hostname and name and name.isprintable() else None


TAGS = ["py3-none-any", "cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64", "cp312-cp312-manylinux_2_34_x86_64"]
TAGS += ["cp312-abi3-manylinux_2_28_x86_64", "cp311-cp311-manylinux_2_17_x86_64", "cp312-cp312-win_amd64", "py2.py3-none-any"]
WHEEL = st.fixed_dictionaries(
    {
        "version": st.sampled_from(["1.0", "1.0.0", "1.1", "2.0rc1", "1!0.1"]),
        "build": st.sampled_from(["", "1-", "2-", "10b-"]),
        "tag": st.sampled_from(TAGS),
        "requires-python": st.sampled_from([None, ">=3.9", ">=3.13", "nonsense"]),
        "yanked": st.sampled_from([False, False, True, "broken"]),
    }
)


@examples(300)
@given(st.lists(WHEEL, min_size=1, max_size=12))
def test_the_chosen_file_is_the_one_a_plain_reading_of_the_specifications_chooses(wheels: list[dict[str, Any]]) -> None:
    files = [
        {
            "filename": f"demo-{one['version']}-{one['build']}{one['tag']}.whl",
            "url": f"https://files.example/{number}/demo.whl",
            "requires-python": one["requires-python"],
            "yanked": one["yanked"],
        }
        for number, one in enumerate(wheels)
    ]
    body = json.dumps({"meta": {"api-version": "1.0"}, "files": files}).encode()
    listed = parse_project_page(body, content_type=JSON_TYPE, url=URL, index="main")
    releases = Selection(environment=TARGET).releases(canonicalize_name("demo"), listed.files, listed.finish)
    assert {str(one.version): one.file and one.file.url for one in releases} == _expected(files)


def _expected(files: list[dict[str, Any]]) -> dict[str, str | None]:
    """The file of each version by packaging's own reading of filenames, one comparison at a time."""
    versions: dict[Version, list[dict[str, Any]]] = {}
    for file in files:
        versions.setdefault(parse_wheel_filename(file["filename"])[1], []).append(file)
    finals = [v for v, listed in versions.items() if not v.is_prerelease and any(f["yanked"] is False for f in listed)]
    shown = [version for version in versions if not version.is_prerelease or not finals]
    return {str(version): _chosen(versions[version]) for version in shown}


def _chosen(files: list[dict[str, Any]]) -> str | None:
    ranks = tag_ranks(TARGET)
    best: tuple[Any, ...] | None = None
    for number, file in enumerate(files):
        _, _, build, _ = parse_wheel_filename(file["filename"])
        accepted = [ranks[str(tag)] for tag in parse_tag("-".join(file["filename"][:-4].split("-")[-3:])) if str(tag) in ranks]
        if not accepted or file["requires-python"] == ">=3.13":
            continue
        merit = (file["yanked"] is False, -min(accepted), build or (0, ""), -number, file["url"])
        best = merit if best is None or merit > best else best
    return None if best is None else str(best[-1])
