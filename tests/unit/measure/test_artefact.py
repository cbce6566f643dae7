"""One wheel measured: everything it tells, in a sample and in full, and kept without loss."""

from __future__ import annotations

import random
from contextlib import closing
from typing import TYPE_CHECKING

from provisioner.index.cache import Cache
from provisioner.measure.artefact import FIRST, QUIET, SMALL, Measurement, measure
from tests.built_artefacts import SOURCE, fat_binary, shared_library, zipped

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.measure.conftest import OpenWheel

VERSION_FILE = b"__version__ = '2.8.0+cu128'\ncuda = '12.8'\n"
METADATA = b"Metadata-Version: 2.1\nName: torch\nRequires-Dist: nvidia-cudnn-cu12==9.10.2.21\n\nText.\n"


def test_everything_a_wheel_tells(opened: OpenWheel, tmp_path: Path) -> None:
    library = shared_library(tmp_path, section=fat_binary("sm_80", "sm_90a") + fat_binary("compute_90"))
    members = {
        "torch/version.py": VERSION_FILE,
        "torch/lib/libtorch_cuda.so": library,
        "torch/lib/libtorch_python.so": library + b"\0sm_80 sm_90a\0",
        "torch/lib/not_a_library.so": b"INPUT(libtorch.so)\n",
        "torch-2.8.0.dist-info/METADATA": METADATA,
    }
    found = measure(opened(zipped(members)), is_full=False)
    assert [one.path for one in found.libraries] == ["torch/lib/libtorch_cuda.so", "torch/lib/libtorch_python.so"]
    assert found.libraries[0].sass == {"sm_80": 1, "sm_90a": 1}
    assert found.libraries[0].ptx == {"compute_90": 1}
    assert found.versions == {"torch": "2.8.0+cu128", "cuda": "12.8"}
    assert found.arch_flags == ("sm_80", "sm_90a")
    assert found.requires == ("nvidia-cudnn-cu12==9.10.2.21",)
    assert found.glibc.startswith("2.")
    assert found.is_whole
    with closing(Cache(tmp_path)) as cache:
        cache.store("measured", found)
        assert cache.load("measured", Measurement) == found


def test_a_sample_of_a_large_library_stops_when_nothing_new_comes(opened: OpenWheel, tmp_path: Path) -> None:
    noise = random.Random(3).randbytes(SMALL + QUIET + (8 << 20))
    large = shared_library(tmp_path, section=fat_binary("sm_80")) + noise + fat_binary("sm_90")
    wheel = opened(zipped({"demo/libcode.so": large}))
    sample = measure(wheel, is_full=False)
    assert sample.libraries[0].sass == {"sm_80": 1}
    assert not sample.is_whole
    assert QUIET <= sample.fetched < QUIET + (12 << 20)
    full = measure(wheel, is_full=True)
    assert full.libraries[0].sass == {"sm_80": 1, "sm_90": 1}
    assert full.is_whole
    assert full.glibc == sample.glibc != ""


def test_a_sample_of_a_library_with_a_cuda_runtime_does_not_end_before_its_machine_code(
    opened: OpenWheel, tmp_path: Path
) -> None:
    noise = random.Random(3).randbytes(FIRST + (8 << 20))
    runtime = f'{SOURCE}\nconst char *runtime(void) {{ return "cudart.shm.%d"; }}\n'
    ptx = fat_binary("compute_80")
    for source, first, targets in ((runtime, b"", {"sm_80": 1}), (runtime, ptx, {"sm_80": 1}), (SOURCE, b"", {})):
        library = shared_library(tmp_path, source=source, section=first) + noise + fat_binary("sm_80")
        wheel = zipped({"demo/libcode.so": library}, stored=("demo/libcode.so",))
        sample = measure(opened(wheel), is_full=False)
        assert sample.libraries[0].sass == targets
