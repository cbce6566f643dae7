"""Specs that list `host-script`: what the shipped matrix says a host needs, the lock of the stack alone, and its check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.lock.format.file import read_lock

if TYPE_CHECKING:
    from provisioner.setups import HostSetup
    from tests.project import Project

UBUNTU = 'os: {id: ubuntu, version: "24.04"}, kernel: 6.8.0-50-generic'
H100 = 'gpus: [{name: NVIDIA H100 80GB HBM3, compute_capability: "9.0"}]'
V100 = 'gpus: [{name: Tesla V100-SXM2-16GB, compute_capability: "7.0"}]'
SPEC = """\
name: trainer
target:
  platform: {platform}
  host: {{{host}}}
requires: {{{requires}}}
runs: {runs}
outputs: [host-script]
"""
MAC = (
    "os: {id: macos, version: 10.13.6, build: 17G65}, driver: {kind: webdriver, version: 387.10.10.10.40.105}, "
    'gpus: [{name: GeForce GTX 1080 Ti, compute_capability: "6.1"}], cuda_driver: "418.163", sip: partial, xcode: "10.1"'
)

NO_PACKAGES = "the matrix does not say how driver 580."
NO_SCRIPT = "there is no host script for"


def write(
    project: Project, host: str, requires: str, *, runs: str = "host", platform: str = "linux/amd64", more: str = ""
) -> None:
    project.write(SPEC.format(host=host, requires=requires, runs=runs, platform=platform) + more)


def setup(project: Project, host: str, requires: str, **options: str) -> HostSetup:
    write(project, host, requires, **options)
    outcome = project.run("solve", "--stack-only")
    assert outcome.code == 0, outcome.err
    assert "wrote pylock.trainer.toml, host.sh\nnext: sh host.sh --dry-run\n" in outcome.err
    (found,) = read_lock(project.folder / "pylock.trainer.toml").stack.host_setups
    return found


def packages(found: HostSetup) -> dict[str, tuple[str, ...]]:
    return {step.component: (*step.first, *step.packages) for step in found.steps}


PYTORCH = 'pytorch: "2.7.*", python: "3.12", driver: "580.*"'


def test_ubuntu_takes_its_own_signed_modules_for_the_kernel_that_runs(project: Project) -> None:
    found = setup(project, f"{UBUNTU}, secure_boot: {{enabled: true, mok_enrolled: false}}, {H100}", PYTORCH)
    assert (found.os, found.driver_module, found.repositories) == ("ubuntu 24.04", "open", ())
    assert packages(found) == {
        "driver": ("linux-modules-nvidia-580-open-generic-6.8", "nvidia-headless-no-dkms-580-open", "nvidia-utils-580")
    }
    assert found.steps[0].kernel == "6.8.*-generic"


def test_a_gpu_before_turing_gets_the_proprietary_modules(project: Project) -> None:
    found = setup(project, f"{UBUNTU}, {V100}", PYTORCH)
    assert found.driver_module == "proprietary"
    assert packages(found)["driver"][0] == "linux-modules-nvidia-580-generic-6.8"


def test_a_rule_on_one_branch_leaves_the_range_of_drivers_a_range(project: Project) -> None:
    """CUDA 10.2 needs 440.33 of branch 440; the text of that rule was no range that a script could check."""
    k80 = 'os: {id: ubuntu, version: "22.04"}, gpus: [{name: Tesla K80, compute_capability: "3.7"}]'
    setup(project, k80, 'pytorch: "1.12.*", python: "3.9", driver: "470.*"')
    stack = read_lock(project.folder / "pylock.trainer.toml").stack
    assert stack.host_requirements["driver"] == ">=440.33,==470.*"
    assert '-ge 47000000000 ] && [ "$driver" -lt 47100000000 ]' in (project.folder / "host.sh").read_text()


def test_containers_need_the_toolkit_that_hands_them_gpus(project: Project) -> None:
    found = setup(project, f"{UBUNTU}, {H100}", PYTORCH, runs="container")
    assert packages(found)["container_toolkit"] == ("nvidia-container-toolkit",)
    assert [one.line for one in found.repositories] == ["https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH) /"]


def test_an_extension_that_is_compiled_on_the_host_needs_the_toolkit_of_its_cuda(project: Project) -> None:
    found = setup(project, f"{UBUNTU}, {H100}", f'{PYTORCH}, cuda: "12.6.*"', more="build: {kind: extension}\n")
    assert packages(found)["nvcc"] == ("cuda-toolkit-12-6",)
    assert "cudnn" not in packages(found)  # the wheels bring it
    assert [one.sha256 for one in found.repositories] == ["d2a6b11c096396d868758b86dab1823b25e14d70333f1dfa74da5ddaf6a06dba"]


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        (H100, ("nvidia-driver-pinning-580", "nvidia-driver-cuda", "nvidia-kernel-open-dkms")),
        (V100, ("nvidia-driver-pinning-580", "nvidia-driver-cuda", "nvidia-kernel-dkms")),
    ],
)
def test_debian_takes_nvidias_repository_and_builds_the_modules(project: Project, gpus: str, expected: tuple[str, ...]) -> None:
    found = setup(project, f'os: {{id: debian, version: "12"}}, kernel: 6.1.0-28-amd64, {gpus}', PYTORCH)
    assert packages(found) == {"kernel_headers": ("linux-headers-<kernel>",), "driver": expected}
    assert [one.name for one in found.repositories] == ["debian-contrib", "cuda"]


def test_debians_own_driver_comes_from_non_free(project: Project) -> None:
    host = f'os: {{id: debian, version: "12"}}, kernel: 6.1.0-28-amd64, {V100}'
    found = setup(project, host, 'pytorch: "2.5.*", python: "3.11", driver: "535.*"')
    assert packages(found)["driver"] == ("nvidia-kernel-dkms", "nvidia-smi", "libcuda1")
    assert [one.line for one in found.repositories] == [
        "http://deb.debian.org/debian bookworm contrib non-free-firmware non-free"
    ]


@pytest.mark.parametrize(
    ("gpus", "stream", "modules"),
    [(H100, "nvidia-driver:580-open", "kmod-nvidia-open-dkms"), (V100, "nvidia-driver:580-dkms", "kmod-nvidia-latest-dkms")],
)
def test_the_family_of_rhel_takes_a_module_stream(project: Project, gpus: str, stream: str, modules: str) -> None:
    kernel = "5.14.0-427.13.1.el9_4.x86_64"
    found = setup(project, f'os: {{id: rocky, version: "9.4"}}, kernel: {kernel}, {gpus}', PYTORCH)
    assert found.os == "rocky 9"
    assert packages(found)["kernel_headers"] == ("kernel-devel-matched", "kernel-headers")
    driver = found.step("driver")
    assert driver is not None
    assert (driver.stream, driver.packages) == (stream, ("nvidia-driver-cuda", modules))


RELEASE_10 = 'os: {id: rocky, version: "10.1"}, kernel: 6.12.0-55.9.1.el10_0.x86_64'
FEDORA = 'os: {id: fedora, version: "44"}, kernel: 6.19.10-300.fc44.x86_64'


@pytest.mark.parametrize(
    ("host", "first", "repositories"),
    [
        (RELEASE_10, ("python3-dnf-plugin-versionlock",), ["epel", "cuda"]),
        (FEDORA, (), ["cuda"]),
    ],
)
def test_where_no_streams_are_a_lock_keeps_the_branch(
    project: Project, host: str, first: tuple[str, ...], repositories: list[str]
) -> None:
    found = setup(project, f"{host}, {H100}", 'pytorch: ">=2.9", python: "3.12", driver: "615.*"')
    driver = found.step("driver")
    assert driver is not None
    assert (driver.stream, driver.first, driver.lock) == ("", first, "*nvidia*615*")
    assert driver.packages == ("nvidia-driver-cuda", "kmod-nvidia-open-dkms")
    assert [one.name for one in found.repositories] == repositories
    assert "lock_versions '*nvidia*615*' 615\n" in (project.folder / "host.sh").read_text()


@pytest.mark.parametrize(
    ("host", "driver", "expected"),
    [
        (f'os: {{id: rocky, version: "9.4"}}, kernel: 5.14.0-427.13.1.el9_4.x86_64, {V100}', "535.*", "nvidia-driver:535-dkms"),
        (f'os: {{id: rhel, version: "8.10"}}, kernel: 4.18.0-553.el8_10.x86_64, {V100}', "550.*", "nvidia-driver:550-dkms"),
        (f'os: {{id: rocky, version: "9.4"}}, kernel: 5.14.0-427.13.1.el9_4.x86_64, {H100}', "570.*", "nvidia-driver:570-open"),
    ],
)
def test_earlier_branches_of_the_family_of_rhel_have_streams_too(
    project: Project, host: str, driver: str, expected: str
) -> None:
    found = setup(project, host, f'pytorch: "2.5.*", python: "3.12", driver: "{driver}"').step("driver")
    assert found is not None
    assert found.stream == expected


def test_debian_13_has_a_driver_of_its_own(project: Project) -> None:
    host = f'os: {{id: debian, version: "13"}}, kernel: 6.12.48+deb13-amd64, {V100}'
    found = setup(project, host, 'pytorch: "2.5.*", python: "3.12", driver: "550.*"')
    assert packages(found)["driver"] == ("nvidia-kernel-dkms", "nvidia-smi", "libcuda1")
    assert [one.line for one in found.repositories] == [
        "http://deb.debian.org/debian trixie contrib non-free-firmware non-free"
    ]


def test_ubuntu_builds_470_for_a_kernel_without_signed_modules_of_it(project: Project) -> None:
    gpus = 'gpus: [{name: Tesla K80, compute_capability: "3.7"}]'
    host = f'os: {{id: ubuntu, version: "22.04"}}, kernel: 5.15.0-91-own, {gpus}'
    found = setup(project, host, 'pytorch: "==1.12.1+cu113", python: "3.9", driver: "470.*"')
    assert packages(found)["driver"] == ("nvidia-headless-470", "nvidia-utils-470")


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        (f"{RELEASE_10}, {V100}", NO_PACKAGES),  # proprietary modules
        (f'os: {{id: ol, version: "10.0"}}, kernel: 6.12.0-55.9.1.el10_0.x86_64, {H100}', NO_PACKAGES),
        (f'os: {{id: fedora, version: "43"}}, kernel: 6.19.10-300.fc43.x86_64, {H100}', NO_PACKAGES),
        (f'os: {{id: sles, version: "15.7"}}, kernel: 6.4.0-150700.53.3-default, {H100}', f"{NO_SCRIPT} sles 15.7 on"),
        (
            f'os: {{id: opensuse-leap, version: "15.6"}}, kernel: 6.4.0-150600.23.60-default, {H100}',
            f"{NO_SCRIPT} opensuse-leap 15.6 on",
        ),
    ],
)
def test_a_system_whose_packages_no_source_names_is_refused(project: Project, host: str, reason: str) -> None:
    write(project, host, 'pytorch: ">=2.7", python: "3.12", driver: "580.*"')
    outcome = project.run("solve", "--stack-only")
    assert outcome.code == 2, outcome.err
    assert reason in outcome.err
    assert not (project.folder / "host.sh").exists()


def test_amd_needs_its_driver_from_the_repository_of_that_release(project: Project) -> None:
    gpus = "gpus: [{name: AMD Instinct MI300X, gfx: gfx942}]"
    found = setup(project, f"{UBUNTU}, {gpus}", 'pytorch: ">=2.6", python: "3.12", amdgpu: "30.20.1"')
    assert packages(found)["amdgpu"] == ("linux-modules-extra-<kernel>", "amdgpu-dkms")
    assert found.repositories[0].line == "https://repo.radeon.com/amdgpu/30.20.1/ubuntu noble main"


@pytest.mark.parametrize("version", ["6.2.4", "6.3.4"])
def test_an_installed_driver_within_range_needs_no_package_that_the_matrix_knows(project: Project, version: str) -> None:
    host = (
        f'os: {{id: rhel, version: "8.10"}}, kernel: 4.18.0-553.el8_10.x86_64, driver: {{kind: amdgpu, version: "{version}"}}'
    )
    found = setup(project, f"{host}, gpus: [{{name: AMD Instinct MI250X, gfx: gfx90a}}]", 'pytorch: ">=2.5", python: "3.12"')
    assert [(step.component, step.version, step.kind) for step in found.steps] == [("amdgpu", version, "installed")]
    text = (project.folder / "host.sh").read_text()
    assert "    [ -e /dev/kfd ] || wrong 'amdgpu is not loaded: there is no /dev/kfd'\n" in text
    assert "    install " not in text.partition("set_up_1() {")[2]
    assert project.run("check").code == 0


def test_an_installed_driver_of_nvidia_is_compared_where_nobody_says_how_it_is_installed(project: Project) -> None:
    driver = "driver: {version: 580.95.05, module: open}"
    host = f'os: {{id: fedora, version: "43"}}, kernel: 6.19.10-300.fc43.x86_64, {H100}, {driver}'
    found = setup(project, host, 'pytorch: ">=2.7", python: "3.12"', runs="container")
    assert [(step.component, step.kind) for step in found.steps] == [("driver", "installed"), ("container_toolkit", "")]
    text = (project.folder / "host.sh").read_text()
    assert "elif reason=$(check_1); then" in text
    assert "a driver is needed" not in text


def test_a_driver_that_is_to_be_installed_needs_packages(project: Project) -> None:
    host = 'os: {id: rhel, version: "8.10"}, kernel: 4.18.0-553.el8_10.x86_64, gpus: [{name: AMD Instinct MI250X, gfx: gfx90a}]'
    write(project, host, 'pytorch: ">=2.5", python: "3.12", amdgpu: "6.2.4"')
    outcome = project.run("solve", "--stack-only")
    assert outcome.code == 2
    assert "the matrix does not say how amdgpu 6.2.4 is installed on rhel 8" in outcome.err


def test_the_last_mac_is_led_to_a_pytorch_that_nobody_publishes(project: Project) -> None:
    found = setup(
        project, MAC, 'pytorch: "==1.7.0+cu102", python: "3.8"', platform="macos/x86_64", more="build: {kind: pytorch}\n"
    )
    assert [(step.component, step.version) for step in found.steps] == [
        ("webdriver", "387.10.10.10.40.105"),
        ("cuda_driver", "418.163"),
        ("xcode", "10.1"),
        ("nvcc", "10.2.89"),
        ("cudnn", "7.6.5.32"),
    ]
    assert found.steps[-1].file == "cudnn-10.1-osx-x64-v7.6.5.32.tgz"  # there is none of 10.2
    assert found.build is not None
    assert (found.build.version, found.build.environment["USE_DISTRIBUTED"]) == ("1.7.0", "0")
    text = (project.folder / "host.sh").read_text()
    assert "export TORCH_CUDA_ARCH_LIST=6.1" in text


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ("packages: ['torch>=1.5']", "`requires: {pytorch: '>=1.5'}`"),
        ("requires: {pytorch: '>=1.5,<1.8'}", "`requires: {pytorch: '>=1.5,<1.8'}`"),
        ("packages: [torch]", "`requires: {pytorch: '*'}`"),
    ],
)
def test_a_wish_that_only_a_build_from_source_meets_is_shown_the_way(project: Project, asked: str, wanted: str) -> None:
    start = f"name: trainer\ntarget: {{platform: macos/x86_64, host: {{{MAC}}}}}\nruns: host\n"
    project.write(f'{start}{asked}\nindexes: [{{name: local, url: "INDEX/simple"}}]\n')
    refused = project.run("solve")
    assert refused.code == 1
    hint = next(line for line in refused.err.splitlines() if line.startswith("hint: "))
    way = f"{wanted} and `outputs: [host-script]` and `provision solve --stack-only`"
    assert hint.startswith(f"hint: compiling pytorch on the host, with {way}, would do: gives cuda ")
    assert hint.endswith(" (unverified)")
    project.write(f"{start}{wanted.strip('`')}\noutputs: [host-script]\n")
    outcome = project.run("solve", "--stack-only")
    assert outcome.code == 0, outcome.err
    found = read_lock(project.folder / "pylock.trainer.toml").stack.host_setups[0].build
    assert found is not None
    assert f"pytorch {found.version}+" in hint
    assert "setup.py" in (project.folder / "host.sh").read_text()


def test_what_is_compiled_has_no_hint_in_a_container(project: Project) -> None:
    project.write(
        f"name: trainer\ntarget: {{platform: linux/amd64, host: {{{UBUNTU}, {V100}}}}}\nrequires: {{pytorch: '>=99'}}\n"
    )
    assert "compiling" not in project.run("solve", "--dry-run").err


def test_what_no_row_says_is_not_guessed(project: Project) -> None:
    write(project, f"{UBUNTU}, {H100}", 'pytorch: "2.5.*", python: "3.12", driver: "550.*"')
    outcome = project.run("solve", "--stack-only")
    assert outcome.code == 2
    assert "the matrix does not say how driver 550." in outcome.err
    assert not (project.folder / "host.sh").exists()


def test_a_host_that_states_no_system_cannot_be_set_up(project: Project) -> None:
    write(project, H100, PYTORCH)
    outcome = project.run("solve", "--stack-only")
    assert outcome.code == 2
    assert outcome.err.startswith("error: lock `trainer` does not say how its hosts are set up  [unrenderable]\n")
    assert "list `host-script` under `outputs` in provision.yaml and solve again" in outcome.err


def test_other_outputs_leave_facts_of_hosts_out_of_the_lock(project: Project) -> None:
    write(project, f"{UBUNTU}, {H100}", PYTORCH)
    spec = project.folder / "provision.yaml"
    spec.write_text(spec.read_text().replace("outputs: [host-script]", "outputs: [environment]"))
    assert project.run("solve", "--stack-only").code == 0
    assert not (project.folder / "pylock.trainer.toml").exists()


def test_a_lock_of_the_stack_alone_is_checked(project: Project) -> None:
    setup(project, f"{UBUNTU}, {H100}, driver: {{version: 580.95.05, module: open}}", PYTORCH)
    assert project.run("check").code == 0
    script = project.folder / "host.sh"
    script.write_text(script.read_text() + "echo more\n")
    assert "host.sh" in project.run("check").out


def test_a_host_with_another_system_makes_the_lock_stale(project: Project) -> None:
    setup(project, f"{UBUNTU}, {H100}, driver: {{version: 580.95.05, module: open}}", PYTORCH)
    spec = project.folder / "provision.yaml"
    spec.write_text(spec.read_text().replace("24.04", "22.04"))
    outcome = project.run("check")
    assert outcome.code == 1
    assert "the lock does not say how a host with ubuntu 22.04 is set up" in outcome.out
    assert "the lock says how a host with ubuntu 24.04 is set up" in outcome.out


def test_the_stack_alone_does_not_overwrite_a_lock_with_packages(project: Project) -> None:
    project.spec("[alpha]")
    assert project.run("solve").code == 0
    spec = project.folder / "provision.yaml"
    spec.write_text(spec.read_text() + "runs: host\noutputs: [host-script]\n")
    before = (project.folder / "pylock.trainer.toml").read_text()
    outcome = project.run("solve", "--stack-only")
    assert outcome.code == 2
    assert "pylock.trainer.toml has packages, which a lock of the stack alone would lose" in outcome.err
    assert (project.folder / "pylock.trainer.toml").read_text() == before


def test_a_driver_that_nobody_knows_how_to_install_is_kept_from_nvidias_repository_where_it_runs(project: Project) -> None:
    """The branch has no packages in the matrix, and the toolkit comes from a repository that has drivers, too."""
    host = 'os: {id: ubuntu, version: "22.04"}, kernel: 6.5.0-1017-aws, driver: {version: 550.163.01, module: open}'
    setup(project, f"{host}, {H100}", 'python: "3.12"', more="build: {kind: extension}\n")
    script = project.read("host.sh")
    assert "    if [ -e /proc/driver/nvidia/version ]; then\n        write /etc/apt/preferences.d/provision-driver" in script
