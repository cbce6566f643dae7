"""What lines of a Dockerfile mean for a spec, one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.importers.base_image import tag_file
from provisioner.importers.conda_names import names_file
from provisioner.importers.formats import import_files
from provisioner.words.omission import reason_words

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from provisioner.importers.importing import Imported
    from provisioner.matrix.model import Matrix

    Reader = Callable[[str], Imported]


@pytest.fixture
def read(tmp_path: Path, matrix: Matrix) -> Reader:
    """Import the text of a Dockerfile; beside it stand requirements.txt and env.yaml."""
    (tmp_path / "requirements.txt").write_text("numpy>=2\n")
    (tmp_path / "env.yaml").write_text("dependencies: [polars]\n")

    def read(text: str) -> Imported:
        (tmp_path / "Dockerfile").write_text(text)
        return import_files([tmp_path / "Dockerfile"], folder=tmp_path, matrix=matrix)

    return read


def packages(found: Imported) -> list[str]:
    return [one.value for one in found.content.packages]


@pytest.mark.parametrize(
    "command",
    [
        "pip install einops",
        "pip3.11 install -q -U einops",
        "/opt/venv/bin/pip --no-cache-dir install --user einops",
        "python -m pip install einops",
        "/usr/bin/python3.12 -u -m pip install einops",
        "uv pip install --system einops",
        "sudo -H pip install einops || exit 1",
        "PIP_NO_CACHE_DIR=1 pip install einops 2>/dev/null > log.txt",
        "set -ex; cd /tmp; pip install einops; rm -rf x",
        "bash -lc 'pip install einops'",
        "conda run -n base pip install einops",
        "pip install --timeout 60 --prefix=/opt einops # why",
        "if [ -n x ]; then pip install einops; fi",
        "pip install \\\n  einops",
        "pip install 'einops'",
        "conda install -y -n base -c conda-forge einops",
        "mamba create -p /env einops",
    ],
)
def test_a_package_is_found_however_it_is_installed(command: str, read: Reader) -> None:
    assert packages(read(f"FROM python:3.12-slim\nRUN {command}\n")) == ["einops"]


@pytest.mark.parametrize(
    "lines",
    [
        "COPY requirements.txt .\nRUN pip install -r requirements.txt",
        "WORKDIR /a/b\nCOPY requirements.txt .\nRUN pip install -rrequirements.txt",
        "COPY requirements.txt /tmp/r.txt\nRUN pip install --requirement=/tmp/r.txt",
        "COPY . /app\nWORKDIR /app\nRUN pip install -r ./requirements.txt",
        'ADD ["requirements.txt", "/x/"]\nRUN pip install -r /x/requirements.txt',
        "RUN --mount=type=bind,source=requirements.txt,target=/r.txt pip install -r /r.txt",
        "ARG REQ=requirements.txt\nCOPY ${REQ} /x/\nRUN pip install -r /x/$REQ",
    ],
)
def test_a_requirement_file_is_found_where_it_was_copied(lines: str, read: Reader) -> None:
    found = read(f"FROM python:3.12-slim\n{lines}\n")
    assert [one.file for one in found.content.packages_from] == ["requirements.txt"]


def test_an_environment_file_is_read_where_it_was_copied(read: Reader) -> None:
    found = read("FROM python:3.12-slim\nCOPY env.yaml /tmp/\nRUN conda env update -n base -f /tmp/env.yaml\n")
    assert packages(found) == ["polars"]


@pytest.mark.parametrize(
    ("image", "requires", "keys", "accelerator"),
    [
        ("python:3.12-slim-bookworm", {"python": "3.12.*"}, {"base": "python:3.12-slim-bookworm"}, None),
        ("python:3.12.4-alpine", {"python": "3.12.*"}, {}, None),
        ("docker.io/library/python:3.11", {"python": "3.11.*"}, {}, None),
        ("pytorch/pytorch:2.5.1-cuda12.4-cudnn9-devel", {"pytorch": "==2.5.1", "cuda": "12.4.*"}, {}, "cuda"),
        ("tensorflow/tensorflow:2.15.0-gpu-jupyter", {"tensorflow": "==2.15.0"}, {}, "cuda"),
        ("tensorflow/tensorflow:2.15.0", {"tensorflow": "==2.15.0"}, {}, "cpu"),
        ("nvcr.io/nvidia/pytorch:25.01-py3", {}, {"base": "nvcr.io/nvidia/pytorch:25.01-py3"}, None),
        (
            "nvidia/cuda:99.1.0-runtime-ubuntu22.04",
            {},
            {"base": "nvidia/cuda:99.1.0-runtime-ubuntu22.04", "cuda": "99.1.0", "distribution": "ubuntu:22.04"},
            None,
        ),
        ("debian:bookworm-slim", {}, {"base": "debian:bookworm-slim", "distribution": "debian:12"}, None),
        ("registry.acme.example/ml/base:7", {}, {"base": "registry.acme.example/ml/base:7"}, None),
    ],
)
def test_a_base_image_means(
    image: str, requires: dict[str, str], keys: dict[str, str], accelerator: str | None, read: Reader
) -> None:
    content = read(f"FROM {image}\n").content
    assert {name: one.value for name, one in content.requires.items()} == requires
    assert {name: one.value for name, one in content.image.items()} == keys
    assert (content.accelerator.value if content.accelerator else None) == accelerator


@pytest.mark.parametrize(
    ("lines", "text", "reason"),
    [
        (
            "RUN pip install -r gone.txt",
            "-r gone.txt",
            "there is no file `gone.txt` here, or no line",
        ),
        ("RUN pip install x==$V", "x==$V", "the file gives `V` no value"),
        ("RUN pip install $(cat list)", "cat list", "what the command adds is not known; packages of the system go under"),
        ("RUN apt-get install -y libgl1", "libgl1", "nobody here knows whether `acme` has apt-get; `distribution:` under"),
        ("RUN pip install a --no-deps", "--no-deps", "of how packages are installed, which the outputs of the lock choose"),
        ("ENV NVIDIA_REQUIRE_CUDA='cuda>=x'", "ENV NVIDIA_REQUIRE_CUDA", "is not a version of one to three numbers"),
        ("RUN curl -H 'Token: abc", "curl -H …", "what the command adds is not known"),
        ("HEALTHCHECK CMD true", "HEALTHCHECK …", "of the application or the container, not of its environment"),
        ("RUN pip install -e .", "--editable .", "there is no file `pyproject.toml` here"),
    ],
)
def test_what_is_not_carried_over_has_its_reason(lines: str, text: str, reason: str, read: Reader) -> None:
    told = {one.text: reason_words(one.reason) for one in read(f"FROM acme\n{lines}\n").omissions}
    assert reason in told[text]


@pytest.mark.parametrize("lines", [f"COPY {'c' * 300} a/", f"COPY . .\nRUN pip install -r b{'c' * 300}.txt"])
def test_a_name_that_no_file_system_takes_is_no_file_here(lines: str, read: Reader) -> None:
    assert packages(read(f"FROM acme\n{lines}\nRUN pip install demo\n")) == ["demo"]


def test_every_row_of_the_tables_cites_a_source_of_its_table() -> None:
    names, tags = names_file(), tag_file()
    rows = [
        *((row.conda, row.source) for row in names.components),
        *((row.conda, row.source) for row in names.distributions),
        *((row.conda, row.source) for row in names.systems),
        *((row.conda, row.source) for row in names.others),
    ]
    assert {source for _, sources in rows for source in sources} == set(names.sources)
    assert {source for row in tags.rows for source in row.source} == set(tags.sources)
    assert len({name for name, _ in rows}) == len(rows)


def test_the_tables_name_what_the_matrix_has(matrix: Matrix) -> None:
    names = names_file()
    assert {row.component for row in names.components if row.component} <= set(matrix.components)
    assert {tool for row in names.systems for tool in row.tools} <= {tool.name for tool in matrix.system_tools}
    libraries = {library.soname for library in matrix.system_libraries}
    assert {library for row in names.systems for library in row.libraries} <= libraries
    assert {name for row in tag_file().rows for name in row.requires} <= set(matrix.components)


@pytest.mark.parametrize("number", ["1", "7", "\u00b2"])
def test_a_number_that_no_earlier_stage_has_is_the_name_of_an_image(read: Reader, number: str) -> None:
    """A stage is known by its number to those after it, as by its name; anything else is looked up as an image."""
    text = f"FROM python:3.12-slim\nFROM python:3.13-slim\nCOPY --from={number} /a /b\nRUN pip install einops\n"
    assert packages(read(text)) == ["einops"]
    text = f"FROM python:3.12-slim\nRUN pip install einops\nFROM {number}\nRUN pip install demo\n"
    assert packages(read(text)) == ["demo"]


def test_a_stage_known_by_its_number_is_what_is_built_on(read: Reader) -> None:
    found = read("FROM python:3.12-slim\nRUN pip install einops\nFROM 0\nRUN pip install demo\n")
    assert packages(found) == ["einops", "demo"]
