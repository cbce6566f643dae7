"""Where the keys that a lock records stand in the files of a spec."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.lock.asked import asked
from provisioner.lock.asked_places import asked_places
from provisioner.spec.load import load_spec

if TYPE_CHECKING:
    from pathlib import Path

SPEC = """\
requires:
  cuda: "12.*"
packages:
  - numpy<3; python_version < "3.13"
  - Numpy>=2; python_version >= "3.13"
packages-from: [more.txt]
constraints: [limits.txt, "jinja2<4"]
indexes:
  - {name: own, url: "https://example.org/simple", packages: [acme-*]}
policy:
  exclude-newer: 2026-03-01
image: {base: slim}
"""


def test_every_key_of_a_lock_has_its_line(tmp_path: Path) -> None:
    spec_file = tmp_path / "provision.yaml"
    spec_file.write_text(SPEC, encoding="utf-8")
    (tmp_path / "more.txt").write_text("# more\nclick\n", encoding="utf-8")
    (tmp_path / "limits.txt").write_text("numpy<2.4\n", encoding="utf-8")
    loaded = load_spec(spec_file)
    spec, document = loaded.spec, loaded.document
    places = {key: place.replace(f"{tmp_path}/", "") for key, place in asked_places(spec, document).items()}
    assert {key: places.get(key) for key in asked(spec)} == {
        "constraints.jinja2": "provision.yaml:7",
        "constraints.numpy": "limits.txt:1",
        "image.base": "provision.yaml:12",
        "indexes.own": "provision.yaml:9",
        "indexes.own.packages": "provision.yaml:9",
        "packages.click": "more.txt:2",
        "packages.numpy": "provision.yaml:4 and provision.yaml:5",
        "policy.exclude-newer": "provision.yaml:11",
        "requires.cuda": "provision.yaml:2",
    }
