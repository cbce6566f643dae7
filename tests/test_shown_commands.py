"""Every command line that a document or a `--help` shows is run, or listed here with the reason why it is not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provisioner.cli.catalogue import COMMANDS, MATRIX_COMMANDS
from provisioner.cli.commands import PROGRAM_ENTRY
from tests.loopback_index import LoopbackIndex
from tests.shown_commands import ROOT, Workplace, shown_in

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGES = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "dockerfiles/README.md")),
    *(path for path in sorted((ROOT / "docs").rglob("*.md")) if path.parent.name not in {"decisions", "reference"}),
]
EXAMPLES = [line for entry in (PROGRAM_ENTRY, *COMMANDS.values(), *MATRIX_COMMANDS.values()) for line in entry.examples]
SHOWN = sorted({*EXAMPLES, *(line for page in PAGES for line in shown_in(page.read_text(encoding="utf-8")))})

NOT_RUN: dict[str, tuple[str, str]] = {
    "DOCKER_": ("needs an engine elsewhere", "tests/unit/validate"),
    "cosign ": ("signs with a service on the network", ""),
    "docker ": ("needs an engine", "tests/container"),
    "make ": ("installs and runs everything; `.ci/run` does it", ".ci/run"),
    "pipx ": ("installs what a checkout has", "tests/test_distribution.py"),
    "pip install": ("installs gigabytes", "tests/cli/test_requirements_install.py"),
    "uv pip install": ("installs gigabytes", "tests/cli/test_requirements_install.py"),
    "python -": ("profiles a run; an ellipsis stands for its arguments", ""),
    "unset ": ("is about the reader's shell", ""),
    "provision fetch environments/": ("fetches gigabytes, and images with an engine", "tests/cli/test_fetch.py"),
    "provision matrix audit": ("reads artefacts on the network", "tests/cli/test_matrix_audit.py"),
    "provision matrix diff": ("reads tables of other projects that are not here", "tests/cli/test_matrix_diff.py"),
    "provision matrix refresh": ("reads indexes on the network", "tests/cli/test_matrix_refresh.py"),
    "provision matrix site": ("decides every build on every GPU, for minutes", "tests/cli/test_matrix_site.py"),
    "provision solve dockerfiles/vllm-h100": (
        "asks the real index for a lock of 180 packages",
        "tests/cli/test_reference_environments.py",
    ),
    "provision validate": ("needs an engine, a cluster or a GPU", "tests/container"),
    "cp -r cache": ("copies to a medium of the reader's", "tests/cli/test_cache.py"),
    "provision solve --cache-dir /media": ("reads a medium of the reader's", "tests/cli/test_cache.py"),
}
"""The beginnings of lines that are not run, each with the reason and the test that runs what is ours of it, "" for nothing."""

ANY_MACHINE = {0, 1, 3}
CODES: dict[str, set[int]] = {
    "dmesg | provision diagnose": {1},
    "dmesg | provision diagnose --host auto": {1},
    "grep --recursive --files-with-matches 'sha256:6cd2cea5' --include '*.evidence.json' environments/": {1},
    "provision check --require-evidence 3": {3},
    "provision check environments/ --require-evidence 3": {3},
    "provision diagnose build.log": {1},
    "provision diagnose dmesg.txt --host auto": {1},
    "provision diagnose pod.log --host hosts/a100.yaml --lock pylock.trainer.toml": {1},
    "provision diagnose pod.log --host hosts/a100.yaml --lock pylock.trainer.toml --format json": {1},
    "provision diagnose train.log --spec provision.yaml --format json": {1},
    "provision doctor": ANY_MACHINE,
    "provision doctor --python .venv/bin/python": ANY_MACHINE,
    "provision doctor dockerfiles/blackwell-rtx5090 --host examples/hosts/h100.yaml": {1},
    "provision doctor pylock.trainer.toml": ANY_MACHINE,
    "provision fleet --hosts machines.csv --format json": {1},
    "provision fleet examples/fleet/provision.yaml --hosts examples/fleet/machines.csv": {1},
    # The image of these tests is none that the matrix lists.
    "provision plan --from pylock.trainer.toml --to next/pylock.trainer.toml --format json": {3},
    # The line before it fills the cache; here it is empty.
    "provision solve --cache-dir cache --offline": {3},
    "provision solve examples/old-driver/provision.yaml --stack-only": {1},
    "provision solve examples/old-driver/provision.yaml --stack-only --format json": {1},
}
"""The exit codes of the lines that do not leave with 0 in the folder of these tests."""

RUN = [line for line in SHOWN if not line.startswith(tuple(NOT_RUN))]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workplace]:
    with LoopbackIndex() as index:
        yield Workplace(tmp_path_factory.mktemp("shown"), index)


@pytest.mark.parametrize("line", RUN)
def test_a_command_line_that_is_shown_does_what_it_says(line: str, workplace: Workplace) -> None:
    done = workplace.run(line, workplace.folder_for(line))
    assert done.returncode in CODES.get(line, {0}), f"{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr


def test_what_is_not_run_is_shown_somewhere_and_its_other_test_exists() -> None:
    assert [begin for begin in NOT_RUN if not any(line.startswith(begin) for line in SHOWN)] == []
    assert [line for line in CODES if line not in RUN] == []
    assert [test for _, test in NOT_RUN.values() if test and not Path(ROOT, test).exists()] == []
