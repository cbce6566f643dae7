"""The table of output formats and what follows from each of its rows."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec import convert

from provisioner.errors import UsageError
from provisioner.outputs import OUTPUTS
from provisioner.render import dockerfile, render
from provisioner.render.header import rendered_from
from provisioner.request import Request
from provisioner.spec.model import Spec
from tests.lock_examples import cuda_stack, for_output, lock_of

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[3]
LOCK = lock_of(cuda_stack(), cuda_stack("linux/arm64"), name="platforms")


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_format_is_rendered_as_its_golden_file(output: str, golden: Callable[[Path, str], None]) -> None:
    golden(ROOT / f"tests/golden/render/platforms.{OUTPUTS[output].file_name}", render(for_output(LOCK, output), output))


@pytest.mark.parametrize("output", OUTPUTS)
def test_the_module_of_a_format_has_one_public_function(output: str) -> None:
    module = import_module(f"provisioner.render.{output.replace('-', '_')}")
    functions = [value for name, value in inspect.getmembers(module, inspect.isfunction) if not name.startswith("_")]
    own = [function for function in functions if function.__module__ == module.__name__]
    assert [function.__name__ for function in own] == ["render"]
    assert inspect.signature(own[0]) == inspect.signature(dockerfile.render)


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_rendered_file_names_its_lock_in_its_first_lines(output: str, tmp_path: Path) -> None:
    file = tmp_path / OUTPUTS[output].file_name
    file.write_text(render(for_output(LOCK, output), output, lock_file_name="pylock.other.toml"), encoding="utf-8")
    assert rendered_from(file) == "pylock.other.toml"


def test_the_document_of_the_formats_is_the_table() -> None:
    text = (ROOT / "docs/outputs.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(.*)` \| `(.*)` \| (.*) \|$", text, re.MULTILINE)
    assert rows == [(row.name, row.file_name, row.summary) for row in OUTPUTS.values()]


def test_no_two_formats_have_one_file() -> None:
    assert len({row.file_name for row in OUTPUTS.values()}) == len(OUTPUTS)


@pytest.mark.parametrize(
    ("outputs", "runs"),
    [((), "host"), (("requirements",), "host"), (("dockerfile",), "container"), (("requirements", "dockerfile"), "container")],
)
def test_an_environment_with_an_image_recipe_runs_in_a_container(outputs: tuple[str, ...], runs: str) -> None:
    assert Request(spec=convert({"outputs": outputs}, Spec), hosts=(), platform="linux/amd64").runs == runs


@pytest.mark.parametrize(
    ("name", "advice"),
    [("dockerfle", "did you mean `dockerfile`? there are "), ("zzz", "there are ")],
)
def test_an_unknown_format_is_answered_with_the_nearest_and_all_there_are(name: str, advice: str) -> None:
    with pytest.raises(UsageError) as caught:
        render(LOCK, name)
    assert caught.value.message == f"`{name}` is not an output format"
    assert caught.value.hints == (advice + ", ".join(OUTPUTS),)
    assert caught.value.exit_code == 2
