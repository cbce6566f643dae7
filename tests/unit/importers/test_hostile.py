"""Files that nobody should trust: nothing but errors with a line, and nothing of them in the spec that obeys them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.document import FileError, parse_document
from provisioner.errors import InvalidDocumentError, ProvisionError, UsageError
from provisioner.importers.dockerfile_syntax import MOST_CHARACTERS
from provisioner.importers.formats import import_files
from provisioner.spec.gather import gather
from provisioner.spec.load import parse_spec
from provisioner.spec.template import Machine, spec_template
from provisioner.words.omission import omission_words
from tests.strategies import examples

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.matrix.model import Matrix

NOTHING = Machine(platform="linux/amd64", subject="Nothing", host="{}\n")


def imported(folder: Path, name: str, content: str | bytes, matrix: Matrix) -> str:
    path = folder / name
    path.write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
    found = import_files([path], folder=folder, matrix=matrix)
    notes = [omission_words(one) for one in found.omissions]
    return spec_template(name="x", machine=NOTHING, content=found.content, notes=notes)


def is_valid(text: str, folder: Path) -> bool:
    parse_spec(gather(parse_document(text, file=str(folder / "provision.yaml"), kind="spec")))
    return True


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("environment.yml", "dependencies:\n  - [a]\n", "environment.yml:2:5: dependencies[0]: must be a match spec such as"),
        ("environment.yml", "dependencies: numpy\n", "environment.yml:1:1: dependencies: must be a list"),
        ("environment.yml", "dependencies:\n  - a: &b\n  *b\n", "environment.yml:4:1: "),
        ("environment.yml", "a: &a [*a]\ndependencies: []\n", "holds itself"),
        ("environment.yml", "- numpy\n", "an environment file holds a mapping"),
        ("environment.yml", "dependencies:\n  - numpy\n  - git+https://x\n", "environment.yml:3:5: "),
        ("cog.yaml", "build:\n  cuda: [1]\n", "cog.yaml:2:3: build.cuda: must be a version such as 3.11"),
        ("cog.yaml", "build: 3\n", "cog.yaml:1:1: a cog file holds a mapping"),
        ("cog.yaml", "build:\n  python_packages: {a: 1}\n", "cog.yaml:2:3: build.python_packages: must be a list"),
        ("Dockerfile", "FORM python:3.11\n", "Dockerfile:1:1: `FORM` is no instruction of a Dockerfile"),
        ("Dockerfile", "RUN x\nFROM y\n", "Dockerfile:1:1: `RUN` stands before the first FROM; only ARG may"),
        ("Dockerfile", "# nothing\n", "Dockerfile:1:1: no line names a base image (FROM)"),
        ("Dockerfile", "FROM\n", "Dockerfile:1:1: FROM names no image"),
        ("Dockerfile", "FROM a\n" + "RUN x\n" * 200_000, "more than 250000 are not read"),
        ("pyproject.toml", "[project\n", "pyproject.toml:1:"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_with_line_and_column(
    name: str, content: str, message: str, tmp_path: Path, matrix: Matrix
) -> None:
    with pytest.raises(InvalidDocumentError) as raised:
        imported(tmp_path, name, content, matrix)
    assert any(message in cause for cause in raised.value.causes), raised.value.causes
    assert raised.value.exit_code == 2


@pytest.mark.parametrize("name", ["Dockerfile", "environment.yml", "cog.yaml", "requirements.txt", "pyproject.toml", "what"])
def test_bytes_are_no_text(name: str, tmp_path: Path, matrix: Matrix) -> None:
    with pytest.raises(FileError, match="is not UTF-8 text"):
        imported(tmp_path, name, b"\x7fELF\xff\xfe\x00", matrix)
    with pytest.raises(FileError, match="more than 5000000 are not read"):
        imported(tmp_path, name, b"#" * 5_000_001, matrix)
    with pytest.raises(ProvisionError, match="does not exist"):
        import_files([tmp_path / "missing" / name], folder=tmp_path, matrix=matrix)


def test_an_unknown_format_is_told(tmp_path: Path, matrix: Matrix) -> None:
    with pytest.raises(UsageError) as raised:
        imported(tmp_path, "setup.cfg", "[metadata]\n", matrix)
    assert "the format of" in str(raised.value)
    assert raised.value.hints == (
        "known by name or content: cog.yaml, a conda environment.yml, a Dockerfile, a pyproject.toml, a requirements.txt",
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("gpu.yaml", "channels: [pytorch]\ndependencies:\n  - numpy\n"),
        ("model.yaml", "build:\n  gpu: true\npredict: x\n"),
        ("build.gpu", "FROM python:3.11\nRUN pip install numpy\n"),
    ],
)
def test_a_format_is_known_by_its_content(name: str, content: str, tmp_path: Path, matrix: Matrix) -> None:
    assert is_valid(imported(tmp_path, name, content, matrix), tmp_path)


def test_a_project_that_is_a_spec_is_not_imported(tmp_path: Path, matrix: Matrix) -> None:
    with pytest.raises(UsageError, match=r"has a \[tool\.provision\] table, so it is a spec"):
        imported(tmp_path, "pyproject.toml", "[project]\nname='a'\n[tool.provision]\n", matrix)
    with pytest.raises(UsageError, match=r"has no \[project\] table, so it states no requirements"):
        imported(tmp_path, "pyproject.toml", "[tool.poetry]\nname='a'\n", matrix)


HOSTILE = "x\x1b[2J\u202e\x07\ny: &z"


def test_control_characters_end_up_escaped(tmp_path: Path, matrix: Matrix) -> None:
    folder = tmp_path / "a\x1b[2J"
    folder.mkdir()
    text = imported(tmp_path, "a\x1b[31m\nb.dockerfile", "FROM x\x07y\nRUN pip install 'a\u202eb' 'numpy\x1b>1'\n", matrix)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\x07" not in text
    assert is_valid(text, tmp_path)


def test_a_deep_or_endless_file_of_yaml_is_refused(tmp_path: Path, matrix: Matrix) -> None:
    with pytest.raises(InvalidDocumentError, match="has 1 mistake"):
        imported(tmp_path, "environment.yml", "dependencies: " + "[" * 500 + "]" * 500, matrix)


def test_a_file_of_requirements_that_names_itself_ends(tmp_path: Path, matrix: Matrix) -> None:
    text = imported(tmp_path, "requirements.txt", "-r requirements.txt\nnumpy\n", matrix)
    assert "names itself" in text
    assert is_valid(text, tmp_path)


def test_a_path_in_an_image_does_not_lead_out_of_the_context(tmp_path: Path, matrix: Matrix) -> None:
    (tmp_path / "secret.txt").write_text("numpy\n")
    (tmp_path / "app").mkdir()
    dockerfile = "FROM python:3.11\nCOPY . /app/\nRUN pip install -r /app/../secret.txt -r ../secret.txt\n"
    text = imported(tmp_path / "app", "Dockerfile", dockerfile, matrix)
    assert "packages-from" not in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "repeated", "after"),
    [
        ("ENV A=xx\n", "ENV A=$A$A$A$A\n", "RUN pip install $A\n"),
        ("ENV A=0123456789\nENV A=$A$A$A$A$A$A$A$A$A$A\nRUN pip install ", "$A", "\n"),
        ("", "RUN a <<X\n", ""),
        ("", "RUN a <<-X\n", ""),
        ("RUN ", "pip install 'a", "\n"),
        ("RUN ", "a && ", "b\n"),
        ("RUN ", "a\\\n", ""),
        ("RUN a \\\n", "\n", ""),
        ("", "COPY --from=0 a b\n", ""),
        ("", "FROM 0\n", ""),
        ("ENV ", "a=b ", "\n"),
        ("RUN pip install ", "a ", "\n"),
        ("RUN <<X\n", "pip install 'a\n", "X\n"),
        ("RUN ", "${a", "\n"),
        ("RUN a", "<", "\n"),
    ],
)
def test_a_file_that_asks_for_much_work_gets_little(
    before: str, repeated: str, after: str, tmp_path: Path, matrix: Matrix
) -> None:
    most = MOST_CHARACTERS // 4 // len(repeated)
    start = time.process_time()
    imported(tmp_path, "Dockerfile", f"FROM a\n{before}{repeated * most}{after}", matrix)
    assert time.process_time() - start < 10


WORDS = st.sampled_from(
    [
        *("FROM a\n", "FROM nvidia/cuda:12.4.1-base-ubuntu22.04\n", "RUN ", "ENV ", "ARG ", "COPY ", "<<EOF\n", "EOF\n"),
        *(
            "pip install ",
            "-r ",
            "-e .",
            "'",
            '"',
            "\\\n",
            "&& ",
            "$X",
            "${X",
            "torch",
            "==1",
            ">2",
            "[",
            "]",
            "@",
            "://u:p@h/",
        ),
        *("apt-get install ", "--index-url ", "--", "=", " ", "\n", "\t", "#", "conda install ", "::", "\x00", "é", "\u2028"),
    ]
)


@examples(200)
@given(words=st.lists(WORDS, max_size=30))
def test_any_dockerfile_gives_a_valid_spec_or_an_error(
    words: list[str], tmp_path_factory: pytest.TempPathFactory, matrix: Matrix
) -> None:
    folder = tmp_path_factory.mktemp("any")
    try:
        text = imported(folder, "Dockerfile", "FROM a\n" + "".join(words), matrix)
    except InvalidDocumentError:
        return
    assert is_valid(text, folder)
    assert "u:p@" not in text


LINES = st.sampled_from(
    [
        *("  - numpy=1.2\n", "  - pytorch=2.1=*cuda118*\n", "  - a::b[c=d]\n", "  - pip:\n", "    - x\n", "    - -r q\n"),
        *(
            "  - '\\x07'\n",
            "channels: [a]\n",
            "name: 'a b'\n",
            "  - {pip: 3}\n",
            "  - python=3|4\n",
            "  - cuda>=12.*\n",
            "\t\n",
        ),
        *("  - cpuonly\n", "  - gcc\n", "  - 'x >=1, <2 b'\n", "  - x==1==2\n", '  - "é::ü"\n', "  - cudatoolkit=a\n"),
    ]
)


@examples(200)
@given(lines=st.lists(LINES, max_size=12))
def test_any_environment_gives_a_valid_spec_or_an_error(
    lines: list[str], tmp_path_factory: pytest.TempPathFactory, matrix: Matrix
) -> None:
    folder = tmp_path_factory.mktemp("any")
    try:
        text = imported(folder, "environment.yml", "dependencies:\n" + "".join(lines), matrix)
    except InvalidDocumentError:
        return
    assert is_valid(text, folder)
