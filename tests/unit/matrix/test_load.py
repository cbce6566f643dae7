"""A matrix is read from YAML or refused, every mistake of every file with its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.errors import InvalidDocumentError
from provisioner.matrix.load import load_matrix
from provisioner.matrix.location import MatrixMissingError
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from pathlib import Path

INDEX = """\
order: [pytorch, cuda, driver, driver_module, gpu]
components:
  pytorch: {title: PyTorch, file: pytorch.yaml}
  cuda: {title: CUDA, file: cuda.yaml}
  driver: {title: driver, file: driver.yaml, virtual: true}
  driver_module: {title: module flavour, values: [open, proprietary], virtual: true, named: true}
  gpu: {title: GPU, file: gpu.yaml, virtual: true}
gpus: gpus.yaml
images: images.yaml
"""
PYTORCH = """\
sources:
  wheel: {title: a wheel, where: METADATA, read: "2026-01-01", measured: true}
releases:
  - version: "2.7.1"
    released: "2025-06-04"
    builds:
      - name: cu126
        platforms: [linux/amd64]
        default: true
        index: pypi
        accelerator: cuda
        requires: {cuda: "==12.6.*"}
        sass: [sm_90]
        ptx: []
        source: [wheel]
"""
CUDA = """\
sources:
  notes: {title: release notes, where: Table 3}
releases:
  - version: "12.6.3"
    driver: {toolkit: "560.35.05", minor_version: "525.60.13", forward_compat: ["470"]}
    source: [notes]
rules:
  - name: cuda-12-floor
    when: {cuda: ">=12,<13"}
    on: {gpu: ">=10.0", platform: linux/amd64}
    require: {driver: ">=570.26"}
    because: a table says so
    source: [notes]
"""
DRIVER = """\
branches:
  - {branch: "560", native_cuda: "12.6", end_of_life: "2025-01", source: [notes]}
releases:
  - {version: "560.35.05", source: [notes]}
rules:
  - name: a-flavour-is-chosen
    when: {driver: ">=515"}
    require: {driver_module: [open, proprietary]}
    because: two exist
    source: [notes]
"""
GPU = """\
releases:
  - {version: "9.0", source: [notes]}
"""
GPUS = """\
gpus:
  - {name: NVIDIA H100, compute_capability: "9.0", architecture: Hopper, pci_device_ids: ["2330"], source: [notes]}
"""
IMAGES = """\
gates:
  cuda-12.6: cuda>=12.6
images:
  - {reference: "cuda:12.6.3", kind: cuda-base, glibc: "2.39", gate: cuda-12.6, source: [notes]}
"""
FILES = {
    "matrix.yaml": INDEX,
    "pytorch.yaml": PYTORCH,
    "cuda.yaml": CUDA,
    "driver.yaml": DRIVER,
    "gpu.yaml": GPU,
    "gpus.yaml": GPUS,
    "images.yaml": IMAGES,
}


def write(directory: Path, **changed: str) -> Path:
    """The small matrix above, with some files (named without `.yaml`) replaced."""
    target = directory / "rules"
    target.mkdir(exist_ok=True)
    for name, text in FILES.items():
        (target / name).write_text(changed.get(name.removesuffix(".yaml"), text), encoding="utf-8")
    return target


def causes(directory: Path, **changed: str) -> list[str]:
    """What the loader says is wrong, with the directory left out of each line."""
    target = write(directory, **changed)
    with pytest.raises(InvalidDocumentError) as caught:
        load_matrix(target)
    assert caught.value.exit_code == 2
    return [cause.removeprefix(f"{target}/") for cause in caught.value.causes]


def test_a_matrix_holds_what_its_files_say(tmp_path: Path) -> None:
    matrix = load_matrix(write(tmp_path))
    release = matrix.components["pytorch"].releases[0]
    build = release.builds[0]
    assert (str(release.version), release.released, build.name, build.default) == ("2.7.1", "2025-06-04", "cu126", True)
    assert (build.sass, build.ptx, build.source) == (("sm_90",), (), ("wheel",))
    assert [(need.component, str(need)) for need in build.requires] == [("cuda", "==12.6.*")]
    minimum = matrix.components["cuda"].releases[0].driver
    assert minimum is not None
    assert (str(minimum.toolkit), str(minimum.minor_version), minimum.forward_compat) == ("560.35.05", "525.60.13", ("470",))
    assert matrix.citations["wheel"].measured
    assert str(matrix.citations["notes"]) == "release notes, Table 3"
    assert matrix.images[0].require_cuda == "cuda>=12.6"
    assert matrix.gpus[0].pci_device_ids == ("2330",)
    assert matrix.native_cuda(Version.parse("560.28.03")) == Version.parse("12.6")
    assert matrix.native_cuda(Version.parse("550.54.14")) is None


def test_names_are_choices_and_ranges_are_ranges(tmp_path: Path) -> None:
    matrix = load_matrix(write(tmp_path))
    floor, flavour = matrix.rules
    assert floor.when.range == Range.parse(">=12,<13")
    assert [str(guard) for guard in floor.on] == [">=10.0", "linux/amd64"]
    assert flavour.require[0].one_of == (Version.named("open"), Version.named("proprietary"))
    assert matrix.components["driver_module"].named


def test_every_rule_release_and_build_knows_its_line(tmp_path: Path) -> None:
    positions = load_matrix(write(tmp_path)).positions
    assert {name: str(place) for name, place in positions.items()} == {
        "pytorch==2.7.1": "rules/pytorch.yaml:4",
        "pytorch==2.7.1+cu126": "rules/pytorch.yaml:7",
        "cuda==12.6.3": "rules/cuda.yaml:4",
        "rule:cuda-12-floor": "rules/cuda.yaml:8",
        "driver==560.35.05": "rules/driver.yaml:4",
        "rule:a-flavour-is-chosen": "rules/driver.yaml:6",
        "gpu==9.0": "rules/gpu.yaml:2",
    }


def test_the_digest_follows_the_content_and_not_the_place(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = load_matrix(write(tmp_path / "a")).digest
    assert load_matrix(write(tmp_path / "b")).digest == first
    assert load_matrix(write(tmp_path / "b", gpu=GPU + "# a comment\n")).digest != first


@pytest.mark.parametrize(
    ("file", "old", "new", "place", "text"),
    [
        (
            "pytorch",
            "        accelerator:",
            "        acelerator:",
            "pytorch.yaml:11:9: releases[0].builds[0].acelerator",
            "unknown key `acelerator`; did you mean `accelerator`?",
        ),
        (
            "cuda",
            'version: "12.6.3"',
            "version: 12.10",
            "cuda.yaml:4:5: releases[0].version",
            '12.10 is not quoted; write "12.10" (12.10 is not 12.1)',
        ),
        (
            "pytorch",
            'cuda: "==12.6.*"',
            'cudaa: "==12.6.*"',
            "pytorch.yaml:12:20: releases[0].builds[0].requires.cudaa",
            "there is no component `cudaa`; did you mean `cuda`?",
        ),
        (
            "pytorch",
            'cuda: "==12.6.*"',
            'cuda: "=>12.6"',
            "pytorch.yaml:12:20: releases[0].builds[0].requires.cuda",
            "`=>12.6` is not a range: write for example >=2.6, ==12.* or >=550,<580",
        ),
        (
            "pytorch",
            'cuda: "==12.6.*"',
            'cuda: "==12.7.*"',
            "pytorch.yaml:12:20: releases[0].builds[0].requires.cuda",
            "no release of `cuda` in this matrix is ==12.7.*, so this can never be met",
        ),
        (
            "pytorch",
            'cuda: "==12.6.*"',
            'cuda: ["12.6.9", "12.7.0"]',
            "pytorch.yaml:12:20: releases[0].builds[0].requires.cuda",
            "no release of `cuda` in this matrix is 12.6.9 or 12.7.0, so this can never be met",
        ),
        (
            "driver",
            "driver_module: [open, proprietary]",
            "driver_module: opne",
            "driver.yaml:8:15: rules[0].require.driver_module",
            "`opne` is no value of `driver_module`; did you mean `open`?",
        ),
        (
            "driver",
            "driver_module: [open, proprietary]",
            'cuda: ">=12"',
            "driver.yaml:8:15: rules[0].require.cuda",
            "`driver` may not require `cuda`, which does not stand below it in the order",
        ),
        (
            "cuda",
            '    require: {driver: ">=570.26"}',
            '    require: {pytorch: ">=2"}',
            "cuda.yaml:11:15: rules[0].require.pytorch",
            "`cuda` may not require `pytorch`, which does not stand below it in the order",
        ),
        (
            "cuda",
            'on: {gpu: ">=10.0", platform: linux/amd64}',
            'on: {pytorch: ">=2"}',
            "cuda.yaml:10:10: rules[0].on.pytorch",
            (
                "`pytorch` is no host fact; a rule may depend on driver, driver_module, gpu, platform, accelerator, runs, "
                "build, framework, cuda_compat, gpu_kind, nvswitch, prebuilt_modules, virtualization"
            ),
        ),
        (
            "cuda",
            "platform: linux/amd64",
            "platform: linux/amd46",
            "cuda.yaml:10:25: rules[0].on.platform",
            "`linux/amd46` is no value of `platform`; did you mean `linux/amd64`?",
        ),
        (
            "cuda",
            'when: {cuda: ">=12,<13"}',
            'when: {driver: ">=500"}',
            "cuda.yaml:9:12: rules[0].when.driver",
            "rule `cuda-12-floor` is about `driver`, so it belongs in the file of `driver`",
        ),
        (
            "cuda",
            'when: {cuda: ">=12,<13"}',
            'when: {cuda: ">=12", driver: ">=500"}',
            "cuda.yaml:9:5: rules[0].when",
            "must have one component, it has 2",
        ),
        (
            "cuda",
            "    because: a table says so\n    source: [notes]\n",
            "    because: a table says so\n",
            "cuda.yaml:8:5: rules[0]",
            "rule `cuda-12-floor` cites no source; add `source: [...]`",
        ),
        (
            "gpu",
            ", source: [notes]",
            "",
            "gpu.yaml:2:5: releases[0]",
            "release `9.0` cites no source; add `source: [...]`",
        ),
        (
            "pytorch",
            "        source: [wheel]\n",
            "",
            "pytorch.yaml:7:9: releases[0].builds[0]",
            "build `cu126` of `2.7.1` cites no source; add `source: [...]`",
        ),
        (
            "pytorch",
            "source: [wheel]",
            "source: [weel]",
            "pytorch.yaml:15:18: releases[0].builds[0].source[0]",
            "there is no source `weel`; did you mean `wheel`?",
        ),
        (
            "driver",
            'native_cuda: "12.6"',
            'native_cuda: "twelve"',
            "driver.yaml:2:21: branches[0].native_cuda",
            "`twelve` is not a version: it must start with a number such as 12.6",
        ),
        (
            "images",
            "gate: cuda-12.6,",
            "gate: cuda-12.5,",
            "images.yaml:4:64: images[0].gate",
            "there is no gate `cuda-12.5`; did you mean `cuda-12.6`?",
        ),
        (
            "matrix",
            "file: gpu.yaml",
            "file: gpu-list.yaml",
            "matrix.yaml:7:21: components.gpu.file",
            "matrix `{}/gpu-list.yaml` does not exist",
        ),
        (
            "matrix",
            "order: [pytorch, cuda, driver,",
            "order: [pytorch, driver,",
            "matrix.yaml:4:3: components.cuda",
            "`cuda` is missing in `order`, so no rule can point to it",
        ),
        (
            "matrix",
            "values: [open, proprietary]",
            'values: [open, "2nd"]',
            "matrix.yaml:6:57: components.driver_module.values[1]",
            "`2nd` starts with a number, and the values of `driver_module` are names",
        ),
        (
            "pytorch",
            "sass: [sm_90]",
            "sass: [sm90]",
            "pytorch.yaml:13:16: releases[0].builds[0].sass[0]",
            "`sm90` is not spelled like sm_90",
        ),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, *, file: str, old: str, new: str, place: str, text: str) -> None:
    content = FILES[f"{file}.yaml"]
    assert old in content
    found = causes(tmp_path, **{file: content.replace(old, new)})
    assert f"{place}: {text.format(tmp_path / 'rules')}" in found


def test_one_mistake_is_reported_once(tmp_path: Path) -> None:
    text = PYTORCH.replace('cuda: "==12.6.*"', 'cuda: "==12.7.*"')
    assert len(causes(tmp_path, pytorch=text)) == 1


def test_duplicates_name_the_first(tmp_path: Path) -> None:
    build = PYTORCH[PYTORCH.index("      - name: cu126") :]
    found = causes(
        tmp_path,
        pytorch=PYTORCH + build,
        cuda=CUDA.replace("  notes:", "  wheel: {title: again}\n  notes:"),
        driver=DRIVER.replace("a-flavour-is-chosen", "cuda-12-floor"),
        gpu=GPU + '  - {version: "9.0.0", source: [notes]}\n',
        gpus=GPUS + GPUS.removeprefix("gpus:\n"),
        images=IMAGES + IMAGES[IMAGES.index("  - {reference") :],
    )
    assert found == [
        "cuda.yaml:2:3: sources.wheel: source `wheel` is given twice; the first is rules/pytorch.yaml:2",
        "driver.yaml:6:5: rules[0].name: rule `cuda-12-floor` is given twice; the first is rules/cuda.yaml:9",
        "gpu.yaml:3:6: releases[1].version: release `9.0.0` is the same as `9.0`; the first is on line 2",
        "gpus.yaml:3:6: gpus[1].name: GPU `NVIDIA H100` is given twice; the first is on line 2",
        "images.yaml:5:6: images[1].reference: image `cuda:12.6.3` is given twice for one platform; the first is on line 4",
        "pytorch.yaml:16:9: releases[0].builds[1].name: build `cu126` is given twice for linux/amd64; the first is on line 7",
    ]


def test_builds_of_one_name_may_serve_different_pythons_or_platforms(tmp_path: Path) -> None:
    arm64 = PYTORCH[PYTORCH.index("      - name: cu126") :].replace("linux/amd64", "linux/arm64")
    release = load_matrix(write(tmp_path, pytorch=PYTORCH + arm64)).components["pytorch"].releases[0]
    assert [build.platforms for build in release.builds] == [("linux/amd64",), ("linux/arm64",)]


def test_the_mistakes_of_all_files_come_together(tmp_path: Path) -> None:
    found = causes(
        tmp_path,
        pytorch=PYTORCH.replace("index: pypi", "indx: pypi"),
        cuda=CUDA.replace('"525.60.13"', '"five"'),
        gpu="releases: [\n",
    )
    assert found == [
        "cuda.yaml:5:36: releases[0].driver.minor_version: `five` is not a version: it must start with a number such as 12.6",
        "gpu.yaml:2:1: while parsing a flow node expected the node content, but found '<stream end>'",
        "pytorch.yaml:10:9: releases[0].builds[0].indx: unknown key `indx`; did you mean `index`?",
    ]


def test_a_directory_without_a_matrix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MatrixMissingError) as missing:
        load_matrix(tmp_path / "nowhere")
    assert missing.value.message == f"matrix directory `{tmp_path / 'nowhere'}` cannot be read: No such file or directory"
    with pytest.raises(MatrixMissingError) as empty:
        load_matrix(tmp_path)
    assert empty.value.message == f"matrix directory `{tmp_path}` holds no YAML file"
    assert empty.value.hints == ("it needs a matrix.yaml",)
