"""Files as people have them, and the spec that is made from each: valid as it stands, with what could not be carried over."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provisioner.host.profile import host_document, load_profile
from provisioner.importers.formats import import_files
from provisioner.spec.load import load_spec
from provisioner.spec.template import Machine, spec_name, spec_template
from provisioner.words.omission import omission_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from provisioner.matrix.model import Matrix

TESTS = Path(__file__).parents[2]
SAMPLES = TESTS / "fixtures/imports"
GOLDEN = TESTS / "golden/imports"

CASES = {
    "conda-pytorch-channel": ("environment.yml",),
    "conda-forge": ("gpu-env.yaml",),
    "cog": ("cog.yaml",),
    "dockerfile-cuda": ("Dockerfile",),
    "dockerfile-pytorch": ("train.dockerfile",),
    "dockerfile-stages": ("Dockerfile",),
    "requirements-refused": ("requirements.txt",),
    "project-dynamic": ("pyproject.toml",),
    "project-poetry": ("pyproject.toml",),
    "project-tools": ("pyproject.toml",),
    "together": ("environment.yml", "Dockerfile"),
}
"""The folders of samples, each with the files that one spec is made from."""


def spec_of(case: str, matrix: Matrix) -> str:
    """The text of the spec that is made from a sample, for one fixed machine."""
    folder = SAMPLES / case
    imported = import_files([folder / name for name in CASES[case]], folder=folder, matrix=matrix)
    host = load_profile("a100").host
    return spec_template(
        name=spec_name(imported.content.name or case),
        machine=Machine(platform="linux/amd64", subject="The machine it must run on: an A100", host=host_document(host)),
        content=imported.content,
        notes=[omission_words(one) for one in imported.omissions],
    )


@pytest.mark.parametrize("case", CASES)
def test_a_sample_gives_this_spec(case: str, matrix: Matrix, golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / f"{case}.yaml", spec_of(case, matrix))


@pytest.mark.parametrize("case", CASES)
def test_the_spec_of_a_sample_is_valid_as_it_stands(case: str, matrix: Matrix, tmp_path: Path) -> None:
    for path in SAMPLES.joinpath(case).rglob("*.*"):
        if path.is_file():
            copy = tmp_path / path.relative_to(SAMPLES / case)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    (tmp_path / "provision.yaml").write_text(spec_of(case, matrix), encoding="utf-8")
    assert load_spec(tmp_path / "provision.yaml").spec.name


@pytest.mark.parametrize("case", CASES)
def test_no_login_and_no_secret_is_copied(case: str, matrix: Matrix) -> None:
    text = spec_of(case, matrix)
    assert [one for one in ("hunter2", "secret", "never_print", "ab-123", "TOKEN}") if one in text] == []


def test_every_sample_has_a_golden_and_every_golden_a_sample() -> None:
    assert {path.name for path in SAMPLES.iterdir()} == set(CASES)
    assert {path.stem for path in GOLDEN.iterdir()} == set(CASES)
