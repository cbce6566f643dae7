"""A login in every place of every document, in every variable and file that is read: no command tells it, and no file has it.

The places come from the JSON Schemas of the documents, so that a new key is swept, too.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from ruamel.yaml import YAML

from provisioner.matrix.cache import cached_matrix
from provisioner.outputs import OUTPUTS
from provisioner.schemas.documents import schema_texts
from provisioner.schemas.shipped import SCHEMAS
from tests.hostile.places import ITEM, KEY, Place, kinds_in, planted, text_places
from tests.hostile.test_lock_outputs import DOCUMENTS, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.project import Outcome, Project

pytestmark = pytest.mark.slow

FIXTURES = Path(__file__).parent.parent / "fixtures"
TOKEN = "s3cretTOKEN99"
LOGINS = {"of a user": f"https://ada:{TOKEN}@host.invalid/x", "a token": f"https://{TOKEN}@host.invalid/x"}

SPEC = {"name": "a", "accelerator": "cpu", "requires": {"python": "3.12"}, "target": {"platform": "linux/amd64"}}
HOST = {"platform": "linux/amd64", "driver": {"version": "580.95.05"}, "gpus": [{"compute_capability": "9.0"}]}


def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(schema_texts(cached_matrix())[name])
    return found


def filled(document: Any, place: Place, text: str) -> Any:  # noqa: ANN401 - documents hold anything
    """A document with a text at a place of its schema; what has to be around it is made, and what was there gives way."""
    if not place:
        return text
    part, *rest = place
    if part == ITEM:
        return [filled({}, tuple(rest), text)]
    inside = dict(document) if isinstance(document, dict) else {}
    if part == KEY and not rest:
        return {**inside, text: "1"}
    name = "python" if part == KEY else part
    below = tuple(rest[1:] if part == KEY else rest)
    inside[name] = filled(inside.get(name, {}), below, text)
    return inside


def written(document: Any) -> str:  # noqa: ANN401 - as above
    return json.dumps(document)  # YAML, too


def told(project: Project, *words: str) -> Outcome:
    """What a command tells, which is neither the token nor a traceback."""
    outcome = project.run(*words)
    assert TOKEN not in outcome.out + outcome.err, f"{words}: {outcome}"
    return outcome


def leaks(project: Project, *, but: tuple[str, ...]) -> list[str]:
    """The files of the project and of the caches that have the token, without those that the test wrote."""
    found = [name for name, content in project.files().items() if TOKEN.encode() in content and name not in but]
    caches = [Path(os.environ[name]) for name in ("XDG_CACHE_HOME", "PROVISION_CACHE_DIR") if name in os.environ]
    files = (path for cache in caches for path in cache.rglob("*") if path.is_file())
    return found + [str(path) for path in files if TOKEN.encode() in path.read_bytes()]


def sweep(project: Project, name: str, base: dict[str, Any], commands: tuple[tuple[str, ...], ...], file: str) -> list[str]:
    """Plant a login at every place of a document; the places whose runs leave it in a file."""
    wrong = []
    for place in sorted(text_places(schema(name)), key=str):
        for login in LOGINS.values():
            (project.folder / file).write_text(written(filled(base, place, login)), encoding="utf-8")
            for words in commands:
                told(project, *words)
            wrong += [f"{'.'.join(map(str, place))}: {found}" for found in leaks(project, but=(file,))]
            shutil.rmtree(project.folder / "out", ignore_errors=True)
    return wrong


def test_in_a_spec(project: Project) -> None:
    commands = (
        ("solve", "--stack-only", "--offline", "--out", "out", "-v"),
        ("solve", "--stack-only", "--offline", "--dry-run", "--format", "json"),
        ("explain", "--offline", "--format", "json"),
        ("check", "."),
    )
    assert sweep(project, "spec", SPEC, commands, "provision.yaml") == []


def test_in_a_host_profile(project: Project) -> None:
    (project.folder / "provision.yaml").write_text(written({**SPEC, "accelerator": "cuda"}), encoding="utf-8")
    commands = (
        ("solve", "--stack-only", "--offline", "--host", "host.yaml", "--out", "out", "-v"),
        ("solve", "--stack-only", "--offline", "--host", "host.yaml", "--dry-run", "--format", "json"),
        ("fleet", "--hosts", "host.yaml", "--format", "json"),
    )
    assert sweep(project, "host", HOST, commands, "host.yaml") == []


@pytest.mark.parametrize("name", [name for name in SCHEMAS if name == "matrix" or name.startswith("matrix-")])
def test_in_a_file_of_a_matrix(project: Project, name: str) -> None:
    """Most are refused with what was written there; the rest is told by a list of all rows."""
    file = "m/matrix.yaml" if name == "matrix" else f"m/{name.removeprefix('matrix-').replace('-', '_')}.yaml"
    (project.folder / "m").mkdir()
    (project.folder / "m/matrix.yaml").write_text(written({"order": ["python"]}), encoding="utf-8")
    commands = (("matrix", "check", "--matrix", "m"), ("matrix", "list", "--matrix", "m", "--format", "json"))
    assert sweep(project, name, {}, commands, file) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=("for a container", "for a host"))
def test_in_a_lock(project: Project, document: dict[str, Any]) -> None:
    """Each place in a lock of its own, all of which are checked together, for a check loads the matrix once."""
    output = "dockerfile" if document is DOCUMENTS[0] else "host-script"
    locks = {}
    for number, place in enumerate(kinds_in(document)):
        if place[-1] != "digest" and place[:-2] not in {(), ("tool",)}:  # the digest is made again, in the tables of the format
            locks[f"envs/{number}/pylock.x.toml"] = place
    for name, place in locks.items():
        folder = (project.folder / name).parent
        folder.mkdir(parents=True)
        (folder / "provision.yaml").write_text(written({**SPEC, "name": "x"}), encoding="utf-8")
        (project.folder / name).write_text(text_of(planted(document, {place: LOGINS["of a user"]})), encoding="utf-8")
    for form in ("text", "json", "sarif", "junit", "github", "gitlab"):
        told(project, "check", "envs", "--format", form)
    for name in locks:
        told(project, "render", name, "--to", output, "--out", f"{name}.out")
    found = [name for name in leaks(project, but=tuple(locks)) if name not in locks]
    assert [locks[name.removesuffix(".out")] for name in found] == []
    assert any(name.endswith(".out") for name in project.files()), "some are rendered"


def test_in_evidence(project: Project) -> None:
    (project.folder / "provision.yaml").write_text(written({**SPEC, "name": "x"}), encoding="utf-8")
    (project.folder / "pylock.x.toml").write_text(text_of(DOCUMENTS[1]), encoding="utf-8")
    file = "pylock.x.linux-amd64.evidence.json"
    commands = (("check", "pylock.x.toml", "--require-evidence", "1"), ("explain", "pylock.x.toml", "--format", "json"))
    assert sweep(project, "evidence", {}, commands, file) == []


VARIABLES = (
    *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_PROXY", "PIP_CERT", "PIP_TIMEOUT", "PIP_RETRIES"),
    *("PIP_TRUSTED_HOST", "PIP_KEYRING_PROVIDER", "PIP_CONFIG_FILE", "PIP_CLIENT_CERT", "PIP_NO_INDEX", "PIP_PRE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "NETRC", "DOCKER_HOST", "DOCKER_CONFIG", "KUBECONFIG", "TERM", "LANG"),
    *("PROVISION_LOGIN_LOCAL", "SOME_TOKEN", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "GITHUB_TOKEN", "XDG_CONFIG_HOME", "HOME"),
)


@pytest.mark.parametrize("name", VARIABLES)
def test_in_a_variable(project: Project, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    project.index.add_wheel("alpha", "1.0")
    project.write()
    before = project.files()
    monkeypatch.setenv(name, LOGINS["of a user"])
    for words in (
        ("solve", "--out", "out", "-v"),
        ("solve", "--dry-run", "--format", "json"),
        ("explain",),
        ("fetch", "out/pylock.trainer.toml", "--to", "wheels"),
        ("check", "."),
        ("inspect", "--format", "json"),
        ("doctor", "--format", "json"),
        ("validate", "out/pylock.trainer.toml", "--level", "0", "--format", "json"),
    ):
        told(project, *words)
    assert leaks(project, but=tuple(before)) == []


FILES = {
    "pip.conf": "[global]\nindex-url = LOGIN\nextra-index-url = LOGIN\nfind-links = LOGIN\n",
    "broken pip.conf": "[global\nindex-url = LOGIN\n",
    "requirements.txt": "--index-url LOGIN\nalpha @ LOGIN/alpha-1.0-py3-none-any.whl\n",
    "pyproject.toml": '[project]\nname = "a"\nversion = "1"\ndependencies = ["alpha @ LOGIN/alpha-1.0-py3-none-any.whl"]\n'
    '[[tool.uv.index]]\nname = "x"\nurl = "LOGIN"\n',
    "environment.yml": "name: a\nchannels: [LOGIN]\ndependencies: [python=3.12, {pip: [--index-url LOGIN, alpha]}]\n",
    "cog.yaml": 'build: {python_version: "3.12", python_packages: ["alpha==1"], run: ["pip install -i LOGIN beta"]}\n',
    "Dockerfile": "FROM python:3.12\nENV PIP_INDEX_URL=LOGIN\nRUN pip install -i LOGIN alpha 'beta @ LOGIN/beta.whl'\n",
    "log.txt": "ERROR: Could not find a version that satisfies the requirement alpha (from versions: none) LOGIN\n"
    "RuntimeError: LOGIN CUDA error: no kernel image is available for execution on the device\n",
    "nodes.json": '{"kind": "NodeList", "items": [{"metadata": {"name": "LOGIN", "labels": {"LOGIN": "LOGIN"}}}]}',
    "hosts.csv": "name,driver,gpu\nLOGIN,LOGIN,LOGIN\n",
}


@pytest.mark.parametrize("login", LOGINS.values(), ids=LOGINS)
@pytest.mark.parametrize("name", FILES)
def test_in_a_file(project: Project, name: str, login: str, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write()
    file = name.removeprefix("broken ")
    (project.folder / file).write_text(FILES[name].replace("LOGIN", login), encoding="utf-8")
    if file == "pip.conf":
        monkeypatch.setenv("PIP_CONFIG_FILE", str(project.folder / file))
        project.spec("[alpha]", "indexes: []")
    before = tuple(project.files())
    commands: dict[str, tuple[tuple[str, ...], ...]] = {
        "pip.conf": (("solve", "-v"), ("solve", "--format", "json")),
        "requirements.txt": (("solve", file, "-v"), ("init", "--from", file, "--out", "new.yaml")),
        "pyproject.toml": (("solve", file, "-v"), ("init", "--from", file, "--out", "new.yaml")),
        "log.txt": (("diagnose", file), ("diagnose", file, "--format", "json")),
        "nodes.json": (("fleet", "--hosts", file), ("inspect", "--nodes", file), ("check", "--hosts", file)),
        "hosts.csv": (("fleet", "--hosts", file), ("check", "--hosts", file)),
    }
    for words in commands.get(file, (("init", "--from", file, "--out", "new.yaml"),)):
        told(project, *words)
    assert leaks(project, but=before) == []


CAPTURED = (
    *("slurm/nodes.txt", "slurm/sinfo-22.05.json", "ansible/hosts.ini", "ansible/list.json", "ansible/list.yaml"),
    *("smi/driver-535-mig.xml", "smi/driver-590-two-gpus.xml"),
    *(f"nodes/{path.name}" for path in sorted((FIXTURES / "nodes").iterdir()) if path.suffix == ".json"),
    *(f"rocm/{path.name}" for path in sorted((FIXTURES / "rocm").iterdir()) if path.suffix == ".json"),
)
"""What was captured of real clusters and machines."""

TOGETHER = 5
"""How many values are planted together: one by one they would take minutes."""

VALUE = re.compile(r"""(?<=[=>])[^\s<>=]+(?=[\s<]|$)""")
"""A value of `scontrol`, of an inventory in INI, or of XML."""


def with_logins(name: str) -> Iterator[str]:
    """The texts of a captured file with a login in the place of values or keys, a few of each kind after the other."""
    text = (FIXTURES / name).read_text(encoding="utf-8")
    if name.endswith((".json", ".yaml")):
        document = YAML(typ="safe").load(text)
        kinds = [place for place in kinds_in(document) if len(place) > 1]
        for first in range(0, len(kinds), TOGETHER):
            places = {place: LOGINS["of a user"] for place in kinds[first : first + TOGETHER] if place[-1] != KEY}
            yield written(planted(document, places))
        for place in [place for place in kinds if place[-1] == KEY][::TOGETHER]:
            yield written(planted(document, {place: LOGINS["of a user"]}))
        return
    seen: set[str] = set()
    for match in VALUE.finditer(text):
        key = re.split(r"[\s<]", text[: match.start()])[-1]
        if key not in seen:
            seen.add(key)
            yield f"{text[: match.start()]}{LOGINS['of a user']}{text[match.end() :]}"


@pytest.mark.parametrize("name", CAPTURED)
def test_in_what_was_captured(project: Project, name: str) -> None:
    project.write()
    file = f"captured{Path(name).suffix}"
    before = (*project.files(), file)
    count = 0
    for count, text in enumerate(with_logins(name), start=1):
        (project.folder / file).write_text(text, encoding="utf-8")
        told(project, "inspect", "--from", file, "--format", "json")
        if not name.startswith(("smi", "rocm")):
            told(project, "fleet", "--hosts", file, "--out", "out", "-v")
        if count == 1:
            told(project, "plan", "--to", "driver>=560", "--hosts", file, "--out", "out")
        assert leaks(project, but=before) == []
    assert count > 2


IN_CONTAINERS = [name for name in OUTPUTS if name not in {"host-script", "slurm", "module", "environment"}]
"""The outputs that one environment in a container can have; the others set up hosts or run on them."""


def test_every_output_of_a_lock_of_a_private_index(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Solved with a login in the installer's configuration: the lock and every file rendered from it are without it."""
    project.index.add_wheel("alpha", "1.0")
    address = project.index.root.replace("http://", f"http://ada:{TOKEN}@")
    monkeypatch.setenv("PIP_INDEX_URL", f"{address}/simple")
    project.spec("[alpha]", "indexes: []", f"outputs: [{', '.join(IN_CONTAINERS)}]")
    assert told(project, "solve", "-v").code == 0
    told(project, "check", "--changes", "--format", "json")
    told(project, "fetch", "pylock.trainer.toml", "--to", "wheels")
    assert leaks(project, but=()) == []
