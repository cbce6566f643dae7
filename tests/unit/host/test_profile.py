"""Profiles people write: every mistake at once, at its place; and profiles we write, which read back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from provisioner.document import FileError, load_document, parse_document
from provisioner.errors import InvalidDocumentError, UsageError
from provisioner.host.model import Driver, Host, HostGpu, Jetson, Libraries, OperatingSystem, SecureBoot, profile_keys
from provisioner.host.profile import KIND, host_document, host_from_document, load_profile, profile_names

DESIGNED = """\
platform: linux/amd64
os: {id: ubuntu, version: "22.04"}
kernel: 6.5.0-1017-aws
glibc: "2.35"
driver: {version: 535.104.05, module: open}
gpus:
  - {name: NVIDIA H100 80GB HBM3, compute_capability: "9.0", count: 8}
container_toolkit: 1.17.4
secure_boot: {enabled: true, mok_enrolled: false}
kernel_headers: 6.5.0-1017-aws
kernel_gcc: 12.3.0
gcc: 12.3.0
nvcc: 12.4.1
loaded_modules: [nouveau]
python_arch: x86_64
libraries: {cudnn: 8.9.2, on_path: [LD_LIBRARY_PATH]}
userspace_driver: 535.104.05
fabric_manager: 535.104.05
virtualization: none
"""


EXAMPLES = Path(__file__).parents[3] / "examples/hosts"
PAGE = Path(__file__).parents[3] / "docs/host-profile.md"


def test_every_key_of_a_profile_is_on_its_page_and_nothing_else_is() -> None:
    rows = [line.partition("|")[2].partition("|")[0] for line in PAGE.read_text(encoding="utf-8").splitlines()]
    documented = [key for row in rows for key in re.findall(r"`([a-z0-9_.]+)`", row)]
    known = [".".join(key.path) for key in profile_keys()]
    assert sorted(documented) == sorted([*known, "gpus"])


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_an_example_is_valid_and_says_what_it_is(path: Path) -> None:
    assert host_from_document(load_document(path, kind=KIND)).platform is not None
    assert path.read_text().startswith("# ")


def mistakes(text: str) -> list[str]:
    with pytest.raises(InvalidDocumentError) as caught:
        host_from_document(parse_document(text, file="host.yaml", kind="host profile"))
    assert caught.value.exit_code == 2
    return [str(mistake) for mistake in caught.value.mistakes]


def test_every_fact_of_a_profile_is_read_and_written_back_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "h100.yaml"
    path.write_text(DESIGNED)
    host = host_from_document(load_document(path, kind=KIND))
    assert host.gpus == (HostGpu(name="NVIDIA H100 80GB HBM3", compute_capability="9.0", count=8),)
    assert host_document(host) == DESIGNED


def test_amd_apple_and_jetson_facts_read_back() -> None:
    for host in (
        Host(driver=Driver(kind="amdgpu", version="6.8.5"), gpus=(HostGpu(gfx="gfx942", count=8),)),
        Host(
            platform="macos/x86_64",
            os=OperatingSystem(id="macos", version="10.13.6", build="17G65"),
            driver=Driver(kind="webdriver", version="387.10.10.10.40.105"),
            cuda_driver="418.163",
            sip="partial",
            xcode="10.1",
        ),
        Host(platform="linux/arm64", jetson=Jetson(l4t="36.4.3", jetpack="6.2")),
        Host(
            gpus=(), loaded_modules=(), container_toolkit="none", secure_boot=SecureBoot(enabled=False), libraries=Libraries()
        ),
        Host(),
    ):
        document = parse_document(host_document(host), file="host.yaml", kind="host profile")
        assert host_from_document(document) == host


@pytest.mark.parametrize(
    "text", ["22.04", "1e3", "0x1F", "on", "NO", "null", "2026-09-01", "10:20", "a: b", "a #b", "- a", "", "~"]
)
def test_a_value_that_yaml_would_read_as_something_else_is_quoted(text: str) -> None:
    host = Host(os=OperatingSystem(id=text))
    written = host_document(host)
    assert written == f'os: {{id: "{text}"}}\n'
    assert host_from_document(parse_document(written, file="host.yaml", kind="host profile")) == host


def test_all_mistakes_of_a_profile_are_reported_at_once() -> None:
    text = (
        "platform: linux/amd46\n"
        "kernel: 6.5\n"
        "gpus:\n"
        "  - {name: x, compute_capability: 9.0}\n"
        "  - {gfx: gfx942, compute_capability: '9.0'}\n"
        "driver: {verson: 535, module: opne}\n"
        "kernel_headers: missing\n"
        "glibc: new\n"
    )
    assert mistakes(text) == [
        (
            "host.yaml:1:1: platform: `linux/amd46` must be linux/amd64, linux/arm64, macos/x86_64, macos/arm64 or windows; "
            "did you mean `linux/amd64`?"
        ),
        'host.yaml:2:1: kernel: 6.5 is not quoted; write "6.5" (12.10 is not 12.1)',
        'host.yaml:4:15: gpus[0].compute_capability: 9.0 is not quoted; write "9.0" (12.10 is not 12.1)',
        "host.yaml:5:6: gpus[1].gfx: `gfx` is AMD's and `compute_capability` NVIDIA's; a GPU has one of them",
        "host.yaml:6:10: driver.verson: unknown key `verson`; did you mean `version`?",
        "host.yaml:6:23: driver.module: `opne` must be open or proprietary",
        (
            "host.yaml:7:1: kernel_headers: `missing` is not a version: it must start with a number such as 12.6; "
            "write `none` when it is known to be missing"
        ),
        "host.yaml:8:1: glibc: `new` is not a version: it must start with a number such as 12.6",
    ]


def test_an_operating_system_belongs_to_its_platform() -> None:
    assert mistakes("platform: linux/amd64\nos: {id: macos}\n") == [
        "host.yaml:2:6: os.id: `macos` does not run on platform `linux/amd64`"
    ]


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (
            "driver: {kind: amdgpu, module: open}\n",
            "host.yaml:1:24: driver.module: only NVIDIA's driver has flavours; this one is `amdgpu`",
        ),
        (
            'driver: {version: "550.54.15"}\ngpus: [{gfx: gfx942}]\n',
            "host.yaml:2:9: gpus[0].gfx: `gfx942` is an AMD GPU, which the driver `nvidia` does not run",
        ),
        (
            'driver: {kind: amdgpu}\ngpus: [{compute_capability: "9.0"}]\n',
            "host.yaml:2:9: gpus[0].compute_capability: `9.0` is an NVIDIA GPU, which the driver `amdgpu` does not run",
        ),
    ],
)
def test_a_driver_and_its_gpus_are_of_one_vendor(text: str, mistake: str) -> None:
    assert mistakes(text) == [mistake]


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("", "host.yaml:1:1: the file must hold a mapping of keys to values"),
        ("- a\n", "host.yaml:1:1: the file must hold a mapping of keys to values"),
        ("kernel: 6.5.1\nkernel: 6.8.0\n", "host.yaml:2:1: kernel: `kernel` is given twice; the first is on line 1"),
        ("gpus: 3\n", "host.yaml:1:1: gpus: `3` must be a list, such as [{name: NVIDIA A100-SXM4-80GB}]"),
    ],
)
def test_a_file_of_another_shape_is_refused_at_its_place(text: str, mistake: str) -> None:
    with pytest.raises(InvalidDocumentError) as caught:
        host_from_document(parse_document(text, file="host.yaml", kind="host profile"))
    assert [str(found) for found in caught.value.mistakes] == [mistake]


def test_an_inline_host_keeps_its_place_in_the_spec() -> None:
    text = "target:\n  host:\n    kernal: 6.5.0-1017-aws\n"
    document = parse_document(text, file="provision.yaml", kind="spec").below(("target", "host"))
    with pytest.raises(InvalidDocumentError) as caught:
        host_from_document(document)
    assert caught.value.causes == ("provision.yaml:3:5: kernal: unknown key `kernal`; did you mean `kernel`?",)


def test_a_profile_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError) as caught:
        load_document(tmp_path / "absent.yaml", kind=KIND)
    assert caught.value.message == f"host profile `{tmp_path / 'absent.yaml'}` does not exist"


@pytest.mark.parametrize("name", profile_names())
def test_a_shipped_profile_states_platform_and_gpus_and_leaves_the_rest_open(name: str) -> None:
    profile = load_profile(name)
    assert profile.description
    assert profile.host.platform is not None
    # Macs with Apple silicon have one kind of GPU, which no key of a profile describes.
    assert (profile.host.gpus is None) == (profile.host.platform == "macos/arm64")
    assert profile.host.kernel is None
    assert profile.host.driver is None or profile.host.driver.version is None


def test_the_named_ones_are_there() -> None:
    assert {"a100", "cpu", "h100", "rtx5090", "t4", "v100"} <= set(profile_names())


def test_a_machine_without_a_gpu_says_so() -> None:
    assert load_profile("cpu").host.gpus == ()


def test_an_unknown_profile_is_answered_with_the_nearest_and_all() -> None:
    with pytest.raises(UsageError) as caught:
        load_profile("H10")
    assert caught.value.message == "there is no profile `H10`"
    assert caught.value.hints[0] == "did you mean `h100`?"
    assert caught.value.hints[1].startswith("profiles: a10, a100, ")
