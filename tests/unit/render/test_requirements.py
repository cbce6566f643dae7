from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.index.model import IndexFile
from provisioner.render import render
from tests.lock_examples import SIX, cpu_stack, lock_of, with_file

if TYPE_CHECKING:
    from pathlib import Path


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
