"""What a matrix says of Python distributions: read, refused with its place, and true of the matrix one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from packaging.specifiers import SpecifierSet

from provisioner.errors import InvalidDocumentError
from provisioner.matrix.load import load_matrix
from provisioner.versions import Version

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.matrix.model import Distribution, Matrix

INDEX = """\
order: [pytorch, cuda, driver]
components:
  pytorch: {title: PyTorch, file: pytorch.yaml}
  cuda: {title: CUDA, file: cuda.yaml}
  driver: {title: driver, file: driver.yaml, virtual: true}
distributions: distributions.yaml
"""
RELEASES = {
    "pytorch.yaml": 'releases:\n  - {version: "2.2.2", source: [wheels]}\n',
    "cuda.yaml": 'releases:\n  - {version: "12.6.3", source: [wheels]}\n',
    "driver.yaml": 'releases:\n  - {version: "560.35.05", source: [wheels]}\n',
}
DISTRIBUTIONS = """\
sources:
  wheels: {title: wheels, where: METADATA, read: "2026-01-01", measured: true}
distributions:
  - name: torchaudio
    compiled_against: pytorch
    versions: ">=2"
    served_by: variant-index
    implies:
      - {versions: "==2.11.0", require: {pytorch: ">=2.1"}, served_by: default, because: symbols, source: [wheels]}
    source: [wheels]
limits:
  - name: numpy-1
    when: {pytorch: "<2.3"}
    on: {platform: linux/amd64}
    allow: {numpy: "<2"}
    because: of its ABI
    source: [wheels]
published:
  - name: kernels-2
    distributions: [kernels]
    version: "2.0"
    address: "https://example.org/kernels-2.0+{build}torch{pytorch}-{python}-{python}-linux_x86_64.whl"
    builds: {"2.2": [cu12]}
    python: ["3.12"]
    source: [wheels]
declared:
  - name: kernels-2-recipe
    distributions: [kernels]
    versions: "==2.0"
    builds:
      cu12: {sass: [sm_80], ptx: [compute_80]}
    source: [wheels]
"""


def write(directory: Path, distributions: str = DISTRIBUTIONS) -> Path:
    target = directory / "rules"
    target.mkdir(exist_ok=True)
    files = {"matrix.yaml": INDEX, **RELEASES, "distributions.yaml": distributions}
    for name, text in files.items():
        (target / name).write_text(text, encoding="utf-8")
    return target


def causes(directory: Path, distributions: str) -> list[str]:
    target = write(directory, distributions)
    with pytest.raises(InvalidDocumentError) as caught:
        load_matrix(target)
    return [cause.removeprefix(f"{target}/distributions.yaml:") for cause in caught.value.causes]


def test_a_matrix_holds_what_its_distributions_and_limits_say(tmp_path: Path) -> None:
    matrix = load_matrix(write(tmp_path))
    (audio,) = matrix.distributions
    assert (audio.name, audio.compiled_against, audio.versions, audio.served_by) == (
        "torchaudio",
        "pytorch",
        ">=2",
        "variant-index",
    )
    (implied,) = audio.implies
    assert (implied.versions, implied.served_by, implied.because, implied.source) == (
        "==2.11.0",
        "default",
        "symbols",
        ("wheels",),
    )
    assert [(need.component, str(need)) for need in implied.require] == [("pytorch", ">=2.1")]
    (limit,) = matrix.limits
    assert (limit.name, str(limit.when), limit.distribution, limit.specifier) == ("numpy-1", "<2.3", "numpy", "<2")
    assert [str(guard) for guard in limit.on] == ["linux/amd64"]


def test_every_distribution_and_limit_knows_its_line(tmp_path: Path) -> None:
    positions = load_matrix(write(tmp_path)).positions
    assert {name: str(place) for name, place in positions.items() if "distributions" in place.file} == {
        "distribution:torchaudio": "rules/distributions.yaml:4",
        "distribution:torchaudio ==2.11.0": "rules/distributions.yaml:9",
        "limit:numpy-1": "rules/distributions.yaml:12",
        "published:kernels-2": "rules/distributions.yaml:19",
        "declared:kernels-2-recipe": "rules/distributions.yaml:27",
    }


def test_a_matrix_may_say_nothing_of_distributions(tmp_path: Path) -> None:
    target = write(tmp_path)
    (target / "matrix.yaml").write_text(INDEX.replace("distributions: distributions.yaml\n", ""), encoding="utf-8")
    (target / "pytorch.yaml").write_text(
        'sources: {wheels: {title: wheels}}\nreleases:\n  - {version: "2.2.2", source: [wheels]}\n', encoding="utf-8"
    )
    (target / "distributions.yaml").unlink()
    matrix = load_matrix(target)
    assert (matrix.distributions, matrix.limits) == ((), ())


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "compiled_against: pytorch",
            "compiled_agianst: pytorch",
            "5:5: distributions[0].compiled_agianst: unknown key `compiled_agianst`; did you mean `compiled_against`?",
        ),
        (
            "compiled_against: pytorch",
            "compiled_against: cuda",
            (
                "5:5: distributions[0].compiled_against: `cuda` is not installed from a wheel of its own; "
                "known are jax, pytorch, tensorflow"
            ),
        ),
        (
            "name: torchaudio",
            "name: Torch_Audio",
            "4:5: distributions[0].name: `Torch_Audio` is spelled `torch-audio` by indexes",
        ),
        (
            "name: torchaudio",
            "name: torch",
            "4:5: distributions[0].name: `torch` is a component of the matrix; write a rule about the component",
        ),
        (
            '    versions: ">=2"',
            '    versions: "=>2"',
            "6:5: distributions[0].versions: `=>2` is not a version specifier such as >=1.0,<2 or ==1.*",
        ),
        (
            "require: {pytorch: ",
            "require: {pytroch: ",
            "9:42: distributions[0].implies[0].require.pytroch: there is no component `pytroch`; did you mean `pytorch`?",
        ),
        (
            'require: {pytorch: ">=2.1"}',
            'require: {driver: ">=550"}',
            (
                "9:42: distributions[0].implies[0].require.driver: `driver` belongs to the host or the image, "
                "which a distribution cannot choose"
            ),
        ),
        (
            'require: {pytorch: ">=2.1"}',
            'require: {pytorch: ">=9"}',
            (
                "9:42: distributions[0].implies[0].require.pytorch: no release of `pytorch` in this matrix is >=9, "
                "so this can never be met"
            ),
        ),
        (
            'require: {pytorch: ">=2.1"}',
            "cxx11_abi: maybe",
            "9:32: distributions[0].implies[0].cxx11_abi: `maybe` must be true or false",
        ),
        (
            'require: {pytorch: ">=2.1"}',
            "require: {}",
            "9:32: distributions[0].implies[0].require: `torchaudio` ==2.11.0 implies nothing",
        ),
        (
            ", because: symbols, source: [wheels]",
            ", because: symbols",
            "9:9: distributions[0].implies[0]: what `torchaudio` ==2.11.0 implies cites no source; add `source: [...]`",
        ),
        (
            "    source: [wheels]\nlimits:",
            "limits:",
            "4:5: distributions[0]: distribution `torchaudio` cites no source; add `source: [...]`",
        ),
        (
            'when: {pytorch: "<2.3"}',
            'when: {cuda: "<12"}',
            "13:12: limits[0].when.cuda: `cuda` is not installed from a wheel of its own; known are jax, pytorch, tensorflow",
        ),
        (
            'when: {pytorch: "<2.3"}',
            'when: {pytorch: "<1.0"}',
            "13:12: limits[0].when.pytorch: no release of `pytorch` in this matrix is <1.0, so this can never be met",
        ),
        (
            'when: {pytorch: "<2.3"}',
            "when: {}",
            "13:5: limits[0].when: must have one component, it has 0",
        ),
        (
            "on: {platform: linux/amd64}",
            'on: {gpu: ">=9"}',
            "14:10: limits[0].on.gpu: a limit may depend on `platform` only, not on `gpu`",
        ),
        (
            "platform: linux/amd64",
            "platform: linux/amd46",
            "14:10: limits[0].on.platform: `linux/amd46` is no value of `platform`; did you mean `linux/amd64`?",
        ),
        (
            'allow: {numpy: "<2"}',
            "allow: {}",
            "15:5: limits[0].allow: limit `numpy-1` must have one distribution in `allow`, it has 0",
        ),
        (
            'allow: {numpy: "<2"}',
            'allow: {numpy: ""}',
            "15:13: limits[0].allow.numpy: a limit that allows every version limits nothing",
        ),
        (
            "    because: of its ABI\n    source: [wheels]\n",
            "    because: of its ABI\n",
            "12:5: limits[0]: limit `numpy-1` cites no source; add `source: [...]`",
        ),
        (
            "source: [wheels]\nlimits",
            "source: [weels]\nlimits",
            "10:14: distributions[0].source[0]: there is no source `weels`; did you mean `wheels`?",
        ),
        (
            "    source: [wheels]\nlimits:",
            '    used: {require: {driver: ">=560"}, because: it says so, source: [wheels]}\n    source: [wheels]\nlimits:',
            "10:12: distributions[0].used.require: what is needed to use a distribution is a `gpu`, and nothing else",
        ),
        (
            "torch{pytorch}",
            "torch{torch}",
            "22:5: published[0].address: `{torch}` is no place of an address; known are {abi}, {build}, {python}, {pytorch}",
        ),
        (
            'builds: {"2.2"',
            'builds: {"2.2.0"',
            "23:14: published[0].builds.2.2.0: `2.2.0` is no series of PyTorch, such as 2.8",
        ),
        (
            'builds: {"2.2"',
            'is_index: true\n    builds: {"2.2"',
            "22:5: published[0].address: `kernels-2` needs `builds`, or `is_index: true`, and not both",
        ),
        (
            '    python: ["3.12"]\n    source: [wheels]\n',
            '    python: ["3.12"]\n',
            "19:5: published[0]: published wheels `kernels-2` cites no source; add `source: [...]`",
        ),
        (
            "      cu12: {",
            "      cpu: {",
            "31:7: declared[0].builds.cpu: `cpu` is no name of a build for CUDA, such as cu12 or cu128",
        ),
        (
            "{sass: [sm_80], ptx: [compute_80]}",
            "{}",
            "31:7: declared[0].builds.cu12: `kernels-2-recipe` declares no target for cu12",
        ),
        (
            'versions: "==2.0"\n    builds:\n',
            'versions: "2.0"\n    builds:\n',
            "29:5: declared[0].versions: `2.0` is not a version specifier such as >=1.0,<2 or ==1.*",
        ),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in DISTRIBUTIONS
    assert causes(tmp_path, DISTRIBUTIONS.replace(old, new)) == [expected]


def test_duplicates_name_the_first_and_an_empty_row_says_so(tmp_path: Path) -> None:
    head, rest = DISTRIBUTIONS.split("limits:\n")
    limits, published = rest.split("published:\n")
    again = f"{head}  - {{name: torchaudio}}\nlimits:\n{limits}{limits}published:\n{published}"
    assert causes(tmp_path, again) == [
        (
            "11:5: distributions[1]: distribution `torchaudio` says nothing; give `compiled_against`, `implies`, `loads`, "
            "`opens`, `optional`, `used`, `gpu_twin` or `gpu_wheels`"
        ),
        "11:6: distributions[1].name: distribution `torchaudio` is given twice; the first is on line 4",
        "19:5: limits[1].name: limit `numpy-1` is given twice; the first is on line 13",
    ]


def distribution(matrix: Matrix, name: str) -> Distribution:
    return next(one for one in matrix.distributions if one.name == name)


def implied(matrix: Matrix, name: str, version: str) -> list[tuple[str, str]]:
    rows = [row for row in distribution(matrix, name).implies if SpecifierSet(row.versions).contains(version)]
    return [(need.component, str(need)) for row in rows for need in row.require]


@pytest.mark.parametrize(
    ("version", "is_limited"),
    # the binding library of each wheel: numpy.core until 2.2.2, numpy._core._multiarray_umath from 2.3.0
    [("1.13.1", True), ("2.1.2", True), ("2.2.2+cu118", True), ("2.3.0", False), ("2.4.0+cu121", False), ("2.15.0", False)],
)
def test_numpy_1_is_for_pytorch_before_2_3(matrix: Matrix, *, version: str, is_limited: bool) -> None:
    (limit,) = [one for one in matrix.limits if one.distribution == "numpy"]
    assert limit.when.allows(Version.parse(version)) is is_limited
    assert SpecifierSet(limit.specifier).contains("1.26.4")
    assert not SpecifierSet(limit.specifier).contains("2.0.0")


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        # undefined symbols of the wheel against the exports of torch 2.10.0, 2.11.0 and 2.15.0; vllm 0.33.0 pins it beside 2.14
        ("torchaudio", "2.11.0", [("pytorch", ">=2.11")]),
        ("torchaudio", "2.10.0", []),
        # DT_NEEDED libcudart.so.12, declared torch>=2.10
        ("xformers", "0.0.35", [("cuda", ">=12,<13")]),
        ("xformers", "0.0.34", []),
        # the table in torchcodec's own METADATA
        ("torchcodec", "0.0.2", [("pytorch", ">=2.4,<2.7")]),
        ("torchcodec", "0.7.0", [("pytorch", "==2.8.*")]),
        ("torchcodec", "0.11.1", [("pytorch", "==2.11.*")]),
        ("torchcodec", "0.17.0", [("pytorch", ">=2.11")]),
        ("torchcodec", "0.18.0", []),
        # FBGEMM Releases Compatibility Table
        ("fbgemm-gpu", "1.5.0", [("pytorch", "==2.10.*")]),
        ("fbgemm-gpu", "1.10.0", []),
        # the table in the wheels of 1.9.0, and undefined symbols of each release against the exports of each torch
        ("fbgemm-gpu", "1.9.0", [("pytorch", "==2.14.*")]),
        ("fbgemm-gpu", "0.3.2", [("pytorch", "==1.13.*")]),
        ("fbgemm-gpu-cpu", "0.3.2", [("pytorch", "==1.13.*")]),
        ("fbgemm-gpu-cpu", "1.6.0", [("pytorch", "==2.11.*")]),
        ("fbgemm-gpu-genai", "1.1.2", [("pytorch", "==2.6.*")]),
        # undefined symbols against the exports of each torch; sglang pins the same pairs
        ("sgl-kernel", "0.1.6.post1", [("pytorch", "==2.6.*"), ("cuda", ">=12,<13")]),
        ("sgl-kernel", "0.1.7", [("pytorch", "==2.7.*"), ("cuda", ">=12,<13")]),
        ("sgl-kernel", "0.3.18", [("pytorch", "==2.8.*"), ("cuda", ">=12,<13")]),
        ("sgl-kernel", "0.3.18.post1", [("pytorch", "==2.9.*"), ("cuda", ">=12,<13")]),
        ("sgl-kernel", "0.3.21", [("pytorch", "==2.9.*"), ("cuda", ">=12,<13"), ("glibc", ">=2.27")]),
        ("sglang-kernel", "0.4.6", [("pytorch", "==2.11.*"), ("cuda", ">=13,<14")]),
        ("sglang-kernel", "0.4.6.post1", [("pytorch", "==2.13.*"), ("cuda", ">=13,<14")]),
        # from 0.4.7 on it declares its torch
        ("sglang-kernel", "0.4.7", [("cuda", ">=13,<14")]),
        ("sglang-kernel", "0.4.1", [("pytorch", "==2.9.*"), ("cuda", ">=12,<13")]),
        ("torchtext", "0.17.2", []),
        ("torchtext", "0.18.0", [("pytorch", "==2.3.*")]),
        ("autoawq", "0.1.5", [("pytorch", ">=2.0,<2.2"), ("cuda", ">=11,<12")]),
        ("autoawq", "0.1.8", [("pytorch", "==2.1.*")]),
        ("autoawq", "0.2.0", []),
        ("autoawq-kernels", "0.0.7", []),
        ("autoawq-kernels", "0.0.9", [("pytorch", ">=2.4,<2.7")]),
        ("vllm", "0.2.1.post1", [("pytorch", ">=2.0,<2.2"), ("cuda", ">=11,<12")]),
        ("vllm", "0.2.5", [("pytorch", "==2.1.*")]),
        ("vllm", "0.2.6", []),
        ("intel-extension-for-pytorch", "1.11.200", [("pytorch", "==1.11.*")]),
        ("intel-extension-for-pytorch", "1.12.300", [("pytorch", "==1.12.*")]),
        ("intel-extension-for-pytorch", "2.5.0", [("pytorch", "==2.5.*")]),
        ("intel-extension-for-pytorch", "2.8.0", [("pytorch", "==2.8.*")]),
        ("torchvision", "0.3.0", [("pytorch", "<1.6")]),
        ("pytorch3d", "0.2.0", [("pytorch", "<1.6")]),
        ("pytorch3d", "0.3.0", [("pytorch", "==1.6.*")]),
        ("pytorch3d", "0.7.4", []),
        ("xformers", "0.0.13", [("pytorch", "==1.12.*")]),
    ],
)
def test_what_metadata_omits_is_known(matrix: Matrix, name: str, version: str, expected: list[tuple[str, str]]) -> None:
    assert implied(matrix, name, version) == expected


@pytest.mark.parametrize(
    ("name", "served_by"),
    [
        ("torchvision", "variant-index"),
        ("torchaudio", "variant-index"),
        ("xformers", "variant-index"),
        ("torchcodec", "variant-index"),
        ("vllm", "default"),
        ("sglang-kernel", "default"),
    ],
)
def test_wheels_that_link_the_framework_s_cuda_say_who_serves_them(matrix: Matrix, name: str, served_by: str) -> None:
    found = distribution(matrix, name)
    assert (found.compiled_against, found.served_by) == ("pytorch", served_by)


@pytest.mark.parametrize(
    ("name", "version"),
    # undefined symbols of the wheels with strings of the old C++ ABI, for a release that has builds of both
    [("torchcodec", "0.2.1"), ("fbgemm-gpu-cpu", "1.1.0"), ("intel-extension-for-pytorch", "2.6.0")],
)
def test_where_pytorch_has_builds_of_two_c_plus_plus_abis_a_wheel_says_which(matrix: Matrix, name: str, version: str) -> None:
    (row,) = [one for one in distribution(matrix, name).implies if SpecifierSet(one.versions).contains(version)]
    assert row.cxx11_abi is False
    builds = {
        build.cxx11_abi
        for release in matrix.components["pytorch"].releases
        if all(need.allows(release.version) for need in row.require)
        for build in release.builds
        if "linux/amd64" in build.platforms
    }
    assert builds == {True, False}


def test_no_other_release_of_pytorch_has_builds_of_two_c_plus_plus_abis_for_one_platform(matrix: Matrix) -> None:
    """A row with `cxx11_abi` is needed beside these releases alone: for every other the release implies the ABI."""
    known = {
        (str(release.version), platform): {build.cxx11_abi for build in release.builds if platform in build.platforms} - {None}
        for release in matrix.components["pytorch"].releases
        for platform in ("linux/amd64", "linux/arm64")
    }
    assert [release for release, found in known.items() if len(found) > 1] == [("2.6.0", "linux/amd64")]


def test_each_version_has_one_row_at_most(matrix: Matrix) -> None:
    versions = [f"0.{minor}.0" for minor in range(20)] + [f"1.{minor}.0" for minor in range(10)]
    versions += [f"0.{minor}.{patch}" for minor in range(5) for patch in range(1, 22)] + ["0.3.18.post1", "0.4.6.post1"]
    for one in matrix.distributions:
        for version in versions:
            assert len([row for row in one.implies if SpecifierSet(row.versions).contains(version)]) <= 1, (one.name, version)


def test_what_is_said_of_a_distribution_was_measured_or_is_its_own_table(matrix: Matrix) -> None:
    for one in matrix.distributions:
        if one.compiled_against or one.gpu_twin:
            assert any(matrix.citations[source].measured for source in one.source), one.name
        for row in one.implies:
            is_measured = any(matrix.citations[source].measured for source in row.source)
            assert is_measured or not (row.packages or row.brings), (one.name, row.versions)
    for limit in matrix.limits:
        assert all(matrix.citations[source].measured for source in limit.source), limit.name
