from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.errors import UsageError
from provisioner.index.model import IndexFile
from provisioner.render import render, render_dockerfile
from tests.lock_examples import SIX, cpu_stack, cuda_stack, lock_of, with_file

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN = Path(__file__).parents[2] / "golden" / "render"


def test_a_dockerfile_is_named_after_its_lock_when_no_name_is_given() -> None:
    lock = lock_of(cpu_stack())
    assert render(lock, "dockerfile") == render_dockerfile(lock, "pylock.trainer.toml")
    assert render(lock, "dockerfile", lock_file_name="pylock.toml") == render_dockerfile(lock, "pylock.toml")


def test_the_requirements_are_the_golden_ones(golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / "requirements.txt", render(lock_of(cuda_stack(), cuda_stack("linux/arm64")), "requirements"))


def test_a_local_wheel_is_required_by_its_path(tmp_path: Path) -> None:
    (tmp_path / SIX.filename).write_bytes(b"x")
    local = IndexFile(filename=SIX.filename, url="", index="x", path=str(tmp_path / SIX.filename))
    stack = with_file(cpu_stack(), "six", local)
    assert f"\n./wheels/{SIX.filename} \\\n    --hash=sha256:" in render(lock_of(stack), "requirements")


def test_each_platform_takes_the_wheel_of_its_machine_before_one_for_any() -> None:
    specific = replace(SIX, filename="six-1.17.0-cp312-cp312-manylinux_2_28_aarch64.whl", url="https://example.org/six.whl")
    lock = lock_of(cpu_stack(), with_file(cpu_stack("linux/arm64"), "six", specific))
    lines = [line for line in render(lock, "requirements").splitlines() if line.startswith("six @")]
    assert lines == [
        f'six @ {SIX.url} ; platform_machine == "x86_64" \\',
        'six @ https://example.org/six.whl ; platform_machine == "aarch64" \\',
    ]


def test_a_format_of_a_later_version_is_said_to_be_unavailable() -> None:
    with pytest.raises(UsageError) as caught:
        render(lock_of(cpu_stack()), "compose")
    assert caught.value.message == "format `compose` is not available in this version"
    assert caught.value.hints == ("available: dockerfile, requirements",)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("to", "hint"), [("dockerfle", "did you mean `dockerfile`?"), ("zzz", "available: dockerfile, requirements")]
)
def test_an_unknown_format_names_the_nearest_one(to: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        render(lock_of(cpu_stack()), to)
    assert caught.value.message == f"`{to}` is not a format"
    assert caught.value.hints == (hint,)
