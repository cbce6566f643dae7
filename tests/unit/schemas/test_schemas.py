"""JSON Schemas: as the models are today, right for every document of the repository, and as strict as JSON Schema can be."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from provisioner.document import Document, load_document, parse_document, parse_model
from provisioner.errors import InvalidDocumentError, UsageError
from provisioner.evidence.statement import evidence_text
from provisioner.host.profile import host_from_document, profile_names
from provisioner.matrix.files import ComponentFile, Parsed, read_files
from provisioner.matrix.location import default_directory
from provisioner.schemas.documents import schema_texts
from provisioner.schemas.shipped import SCHEMAS, schema_path, schema_text
from provisioner.spec.gather import gather
from provisioner.spec.load import parse_spec
from tests.unit.evidence.reports import gpu_report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from provisioner.matrix.model import Matrix

ROOT = Path(__file__).parents[3]
PROFILES = ROOT / "provisioner/host/profiles"


@cache
def validator(name: str) -> Draft202012Validator:
    found = json.loads(schema_text(name))
    Draft202012Validator.check_schema(found)
    return Draft202012Validator(found)


def as_json(value: object) -> object:
    """The data of a document as JSON has it: tuples are lists."""
    return json.loads(json.dumps(value, default=str))


def wrong(name: str, data: object) -> list[str]:
    """What a schema refuses of data, one sentence each."""
    return [f"{error.json_path}: {error.message[:200]}" for error in validator(name).iter_errors(as_json(data))]


def test_the_schemas_are_those_of_the_models(matrix: Matrix, golden: Callable[[Path, str], None]) -> None:
    texts = schema_texts(matrix)
    for name, text in texts.items():
        golden(ROOT / f"schemas/{name}.schema.json", text)
    assert sorted(texts) == sorted(SCHEMAS)
    assert sorted(path.name for path in (ROOT / "schemas").iterdir()) == sorted(f"{name}.schema.json" for name in SCHEMAS)


def specs() -> Iterator[tuple[str, Document]]:
    """Each spec of the repository that is a file, or in one: examples, reference environments, scenarios."""
    for folder in ("examples", "dockerfiles"):
        for path in sorted((ROOT / folder).rglob("*.yaml")):
            document = load_document(path, kind="spec")
            if isinstance(document.data, dict) and {"requires", "packages", "packages-from"} & document.data.keys():
                yield str(path.relative_to(ROOT)), document
    for path in sorted((ROOT / "tests/scenarios").rglob("*.yaml")):
        document = load_document(path, kind="scenario")
        if isinstance(document.data, dict) and isinstance(document.data.get("spec"), dict):
            yield str(path.relative_to(ROOT)), document.below(("spec",))


def hosts() -> Iterator[tuple[str, Document]]:
    """Each host profile of the repository that is a file, or in a scenario."""
    for folder in (PROFILES, ROOT / "examples"):
        for path in sorted(folder.rglob("*.yaml")):
            document = load_document(path, kind="host profile")
            if isinstance(document.data, dict) and {"gpus", "driver", "kernel", "os"} & document.data.keys():
                yield str(path.relative_to(ROOT)), document
    for path in sorted((ROOT / "tests/scenarios").rglob("*.yaml")):
        document = load_document(path, kind="scenario")
        found = document.data.get("hosts", ()) if isinstance(document.data, dict) else ()
        for number, one in enumerate(found if isinstance(found, tuple) else ()):
            if isinstance(one, dict):
                yield f"{path.relative_to(ROOT)}[{number}]", document.below(("hosts", number))


def loads(load: Callable[[Document], object], document: Document) -> bool:
    try:
        load(document)
    except InvalidDocumentError:
        return False
    return True


def load_spec_document(document: Document) -> object:
    return parse_spec(gather(document))


def load_host_inside(document: Document) -> None:
    host = document.data.get("target", {}).get("host")
    if isinstance(host, dict):
        host_from_document(document.below(("target", "host")))


def test_every_spec_that_loads_validates() -> None:
    checked = [(where, document) for where, document in specs() if loads(load_spec_document, document)]
    assert len(checked) > 300
    assert [f"{where}: {found}" for where, document in checked if (found := wrong("spec", document.data))] == []


def test_every_host_that_loads_validates() -> None:
    checked = [(where, document) for where, document in hosts() if loads(host_from_document, document)]
    assert len(checked) > 300
    assert {Path(where).stem for where, _ in checked} >= set(profile_names())
    assert [f"{where}: {found}" for where, document in checked if (found := wrong("host", document.data))] == []


def test_every_file_of_the_matrix_validates() -> None:
    files = read_files(default_directory())
    by_schema: dict[str, list[Parsed[Any]]] = {
        "matrix": [files.index],
        "matrix-component": list(files.component_files),
        "matrix-gpus": [files.gpus],
        "matrix-images": [files.images],
        "matrix-python-builds": [files.python_builds],
        "matrix-distributions": [files.distributions],
        "matrix-hazards": [files.hazards],
        "matrix-knowledge": [files.knowledge],
        "matrix-failures": [files.failures],
        "matrix-driver-packages": [files.driver_packages],
        "matrix-host-packages": [files.host_packages],
        "matrix-wheels": [files.wheels],
        "matrix-system-packages": [files.system_packages],
        "matrix-system-wheels": [files.system_wheels],
    }
    assert sum(map(len, by_schema.values())) == len(files.all_files)
    found = {file.name: wrong(name, file.document.data) for name, some in by_schema.items() for file in some}
    assert {name: mistakes[:3] for name, mistakes in found.items() if mistakes} == {}


def test_evidence_validates() -> None:
    data = json.loads(evidence_text(gpu_report()))
    assert wrong("evidence", data) == []
    report = data["predicate"]["provisionValidation"]["report"]
    for key, value in (("verdict", "maybe"), ("level", 6)):
        changed = copy.deepcopy(data)
        changed["predicate"]["provisionValidation"]["report"][key] = value
        assert wrong("evidence", changed) != [], (key, report[key])


SAID = (
    "requires: [pytorch]",
    "requires: {pytorch: 2.6}",
    'requires: {pytorch: ">=2.6,,<3"}',
    'requires: {cuda: ">= 12 13"}',
    "require: {pytorch: '*'}",
    "name: a b",
    "name: -x",
    "packages: numpy",
    "packages: [1]",
    "accelerator: gpu",
    "accelerator: [cuda]",
    "target: {platform: windows/amd64}",
    "target: {platform: []}",
    "target: {platform: [linux/amd64, linux/amd64]}",
    'target: {host: ""}',
    "target: {host: []}",
    "target: {host: [a.yaml, a.yaml]}",
    "target: {host: {kernal: 6.8.0}}",
    "target: {host: {gpus: [{compute_capability: 9.0}]}}",
    "target: {host: {gpus: [{compute_capability: sm_90}]}}",
    "target: {os: linux}",
    "target: {}\ntargets: {a: {}}",
    "targets: {}",
    "targets: {A: {}}",
    "policy: {strategy: fast}",
    "policy: {allow: minor-version}",
    "policy: {allow: [minor]}",
    "policy: {allow: [sdist, sdist]}",
    "policy: {strict: maybe}",
    "policy: {exclude-newer: yesterday}",
    "policy: {prefer: [python]}",
    "policy: {exclude_newer: 2026-09-01}",
    "build: {}",
    "build: {kind: wheel}",
    'build: {kind: extension, arch_list: ["90"]}',
    'build: {kind: extension, arch_list: ["9.0", "9.0"]}',
    "image: {apt: [Git]}",
    "image: {apt: [git, git]}",
    "image: {compiler: gcc}",
    "image: {base: mine, distribution: fedora}",
    'image: {distribution: "debian:12"}',
    'image: {base: slim, glibc: "2.36"}',
    'image: {base: auto, require: "cuda>=12"}',
    "indexes: [{name: a}]",
    "indexes: [{name: A, url: 'https://a.example'}]",
    "indexes: [{name: a, url: a.example/simple}]",
    "indexes: [{name: a, url: 'https://me:secret@a.example/simple'}]",
    "indexes: [{name: a, url: 'https://a.example', kind: find-links}]",
    "indexes: [{name: a, url: 'https://a.example', kind: page}]",
    "packages-from: [{file: pyproject.toml, extra: [a]}]",
    "packages-from: [{extras: [a]}]",
    "runs: vm",
    "runs: []",
    "runs: [host, host]",
    "outputs: dockerfile",
    "outputs: [docker]",
    "outputs: [{format: docker}]",
    "outputs: [{path: Dockerfile}]",
)
"""Wrong specs that their schema refuses."""

UNSAID = {
    "names and ranges that a grammar beyond JSON Schema has": (
        "packages: ['numpy>==2']",
        "packages: [pytorch]",
        "packages: ['numpy>3,<2']",
        "requires: {pytorch: '>=3,<2'}",
        "requires: {pytorch: '>=2.*'}",
        "policy: {prefer: {numpy: '=>2'}}",
        "image: {base: mine, require: 'cuda>=twelve'}",
        "constraints: [numpy]",
    ),
    "two lines that contradict each other": (
        "requires: {pytorch: '>=2.6'}\noverrides: ['torch<2']",
        "policy: {allow: [sdist], forbid: [sdist]}",
        "policy: {prefer: {numpy: '>=2'}, avoid: {numpy: '>=1'}}",
        "image: {apt: [git]}\nruns: host",
    ),
    "names that must differ across mappings": (
        "indexes: [{name: a, url: 'https://a.example'}, {name: a, url: 'https://b.example'}]",
        "image: {apt: [git, git=1.2]}",
        "outputs: [dockerfile, {format: dockerfile, path: Dockerfile}]",
    ),
    "files and what is in them": ("packages-from: [missing.txt]", "constraints: [./missing.txt]"),
}
"""Wrong specs that the loader refuses alone, by the reason that no schema can."""


def document_of(text: str) -> Document:
    return parse_document(text, file="provision.yaml", kind="spec")


@pytest.mark.parametrize("text", SAID)
def test_a_wrong_spec_is_refused_by_its_schema_too(text: str) -> None:
    document = document_of(text)
    assert not loads(load_spec_document, document) or not loads(load_host_inside, document)
    assert wrong("spec", document.data) != []


@pytest.mark.parametrize("text", [text for texts in UNSAID.values() for text in texts])
def test_what_no_schema_can_say_is_refused_by_the_loader(text: str) -> None:
    document = document_of(text)
    assert not loads(load_spec_document, document)
    assert wrong("spec", document.data) == []  # move it to SAID if it is refused now


WRONG_HOSTS = (
    "platform: linux",
    "kernel: 6.8",
    "kernal: 6.8.0",
    "driver: 535.104.05",
    "driver: {version: 535.104.05, module: closed}",
    "driver: {kind: nouveau}",
    "gpus: {name: T4}",
    "gpus: [{count: 0}]",
    "gpus: [{count: two}]",
    'gpus: [{gfx: "942"}]',
    "secure_boot: true",
    "secure_boot: {mok_enrolled: true}",
    "loaded_modules: nouveau",
    "nvswitch: true",
    "virtualization: docker",
    "libraries: {cudnn: 9}",
    "jetson: {l4t: 36}",
)


@pytest.mark.parametrize("text", WRONG_HOSTS)
def test_a_wrong_host_is_refused_by_its_schema_too(text: str) -> None:
    document = parse_document(text, file="host.yaml", kind="host profile")
    assert not loads(host_from_document, document)
    assert wrong("host", document.data) != []


WRONG_COMPONENTS = (
    "releases: [{version: 12.4}]",
    "releases: [{versions: '12.4'}]",
    "releases: [{version: '12.4.1', released: May}]",
    "releases: [{version: '12.4.1', platforms: [linux]}]",
    "releases: [{version: '12.4.1', builds: [{name: a, sass: [sm90]}]}]",
    "releases: [{version: '12.4.1', builds: [{name: a, sha256: abc}]}]",
    "rules: [{name: a, when: {cuda: '12.*'}}]",
    "rules: [{name: a, when: '12.*', because: b}]",
    "sources: {a: {where: b}}",
    "kernels: {of: rocm, lack: broken, because: c}",
)


@pytest.mark.parametrize("text", WRONG_COMPONENTS)
def test_a_wrong_file_of_a_component_is_refused_by_its_schema_too(text: str) -> None:
    document = parse_document(text, file="cuda.yaml", kind="matrix")
    assert not loads(lambda one: parse_model(one, ComponentFile, kind="matrix"), document)
    assert wrong("matrix-component", document.data) != []


def test_the_decision_counts_what_the_schema_refuses() -> None:
    page = " ".join((ROOT / "docs/decisions/207-a-schema-stands-beside-the-spec.md").read_text(encoding="utf-8").split())
    unsaid = [len(texts) for texts in UNSAID.values()]
    whole = len(SAID) + sum(unsaid)
    assert f"Of {whole} wrong specs in the tests, the schema refuses {len(SAID)}; of the {sum(unsaid)} others, " in page
    grammar, contradictions, names, files = unsaid
    assert f"{grammar} need a grammar" in page
    assert f"{contradictions} are contradictions between lines, {names} are names" in page
    assert f"{files} are missing files" in page


def test_the_components_of_the_matrix_are_completed(matrix: Matrix) -> None:
    named = json.loads(schema_text("spec"))["$defs"]["SpecFile"]["properties"]["requires"]["properties"]
    assert named.keys() == {*matrix.components, "pytorch_build"}


def test_no_schema_for_other_documents() -> None:
    with pytest.raises(UsageError) as raised:
        schema_text("specs")
    assert str(raised.value) == "there is no schema `specs`"
    assert raised.value.hints == ("did you mean `spec`?",)


def test_every_schema_is_a_file() -> None:
    assert [name for name in SCHEMAS if not schema_path(name).is_file()] == []
