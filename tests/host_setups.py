"""Setups of hosts, one of each family, as locks have them; tests of the script render and run them."""

from __future__ import annotations

from msgspec.structs import replace

from provisioner.setups import BuildFromSource, HostSetup, Repository, SetupStep
from tests.lock_examples import UBUNTU_HOST, cpu_stack, cuda_stack, lock_of, with_setups

CUDA_ON_DEBIAN = Repository(
    name="cuda",
    kind="keyring",
    package="cuda-keyring",
    url="https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/cuda-keyring_1.1-1_all.deb",
    sources=("NVIDIA CUDA Installation Guide for Linux",),
)
CONTRIB = Repository(
    name="debian-contrib",
    kind="apt-line",
    line="http://deb.debian.org/debian bookworm contrib",
    key="/usr/share/keyrings/debian-archive-keyring.gpg",
)
HEADERS = SetupStep(component="kernel_headers", packages=("linux-headers-<kernel>",), sources=("Driver Installation Guide",))
DEBIAN = HostSetup(
    os="debian 12",
    driver_module="open",
    repositories=(CONTRIB, CUDA_ON_DEBIAN, *UBUNTU_HOST.repositories),
    steps=(
        HEADERS,
        SetupStep(
            component="driver",
            version="615.71.09",
            repositories=("debian-contrib", "cuda"),
            first=("nvidia-driver-pinning-615",),
            packages=("nvidia-driver-cuda", "nvidia-kernel-open-dkms"),
            kind="dkms",
            sources=("Driver Installation Guide, edition 620", "Driver Installation Guide, Version locking"),
        ),
        UBUNTU_HOST.steps[-1],
    ),
)
UBUNTU_TO_COMPILE = HostSetup(
    os="ubuntu 22.04",
    driver_module="proprietary",
    repositories=(
        replace(
            CUDA_ON_DEBIAN,
            url="https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2204/x86_64/cuda-keyring_1.1-1_all.deb",
            sha256="d" * 64,
        ),
    ),
    steps=(
        HEADERS,
        SetupStep(component="driver", version="580.95.05", packages=("nvidia-headless-580", "nvidia-utils-580"), kind="dkms"),
        SetupStep(component="nvcc", version="12.6.85", repositories=("cuda",), packages=("cuda-toolkit-12-6",)),
        SetupStep(
            component="cudnn",
            version="9.5.1.17",
            repositories=("cuda",),
            packages=("libcudnn9-cuda-12=9.5.1.17-1", "libcudnn9-dev-cuda-12=9.5.1.17-1"),
        ),
        SetupStep(
            component="nccl",
            version="2.21.5",
            repositories=("cuda",),
            packages=("libnccl2=2.21.5-1+cuda12.*", "libnccl-dev=2.21.5-1+cuda12.*"),
        ),
    ),
)
ROCKY = HostSetup(
    os="rocky 9",
    driver_module="proprietary",
    repositories=(
        Repository(name="epel", kind="package", package="epel-release"),
        Repository(
            name="cuda",
            kind="repo-file",
            url="https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64/cuda-rhel9.repo",
        ),
    ),
    steps=(
        SetupStep(component="kernel_headers", packages=("kernel-devel-matched", "kernel-headers")),
        SetupStep(
            component="driver",
            version="580.95.05",
            repositories=("epel", "cuda"),
            stream="nvidia-driver:580-dkms",
            packages=("nvidia-driver-cuda", "kmod-nvidia-latest-dkms"),
            kind="dkms",
        ),
        SetupStep(component="nvcc", version="12.6.85", repositories=("cuda",), packages=("cuda-toolkit-12-6",)),
    ),
)
ROCKY_10 = HostSetup(
    os="rocky 10",
    driver_module="open",
    repositories=(
        ROCKY.repositories[0],
        replace(
            ROCKY.repositories[1], url="https://developer.download.nvidia.com/compute/cuda/repos/rhel10/x86_64/cuda-rhel10.repo"
        ),
    ),
    steps=(
        ROCKY.steps[0],
        SetupStep(
            component="driver",
            version="580.95.05",
            repositories=("epel", "cuda"),
            first=("python3-dnf-plugin-versionlock",),
            lock="*nvidia*580*",
            packages=("nvidia-driver-cuda", "kmod-nvidia-open-dkms"),
            kind="dkms",
        ),
    ),
)
RADEON = Repository(
    name="amdgpu",
    kind="apt-line",
    line="https://repo.radeon.com/amdgpu/30.20/ubuntu noble main",
    key="https://repo.radeon.com/rocm/rocm.gpg.key",
    pin="release o=repo.radeon.com",
)
AMD = HostSetup(
    os="ubuntu 24.04",
    repositories=(RADEON,),
    steps=(
        HEADERS,
        SetupStep(
            component="amdgpu",
            version="30.20.0",
            repositories=("amdgpu",),
            packages=("linux-modules-extra-<kernel>", "amdgpu-dkms"),
        ),
    ),
)
AMD_ON_RHEL = HostSetup(
    os="rhel 9",
    repositories=(replace(RADEON, kind="yum", line="https://repo.radeon.com/amdgpu/30.20/el/<system>/main/x86_64/", pin=""),),
    steps=(SetupStep(component="amdgpu", version="30.20.0", repositories=("amdgpu",), packages=("amdgpu-dkms",)),),
)
MAC = HostSetup(
    os="macos 10.13.6+17G65",
    steps=(
        SetupStep(
            component="webdriver",
            version="387.10.10.10.40.105",
            url="https://images.nvidia.com/mac/pkg/387/WebDriver-387.10.10.10.40.105.pkg",
        ),
        SetupStep(
            component="cuda_driver",
            version="418.163",
            url="https://us.download.nvidia.com/Mac/cuda_418/cudadriver_418.163_macos.dmg",
        ),
        SetupStep(component="xcode", version="10.1"),
        SetupStep(
            component="nvcc",
            version="10.2.89",
            url="https://developer.download.nvidia.com/compute/cuda/10.2/Prod/local_installers/cuda_10.2.89_mac.dmg",
            sha256="51193fff427aad0a3a15223b1a202a6c6f0964fcc6fb0e6c77ca7cd5b6944d20",
        ),
        SetupStep(component="cudnn", version="7.6.5.32", file="cudnn-10.1-osx-x64-v7.6.5.32.tgz", sha256="8" * 64),
    ),
    build=BuildFromSource(
        component="pytorch",
        version="1.7.0",
        repository="https://github.com/pytorch/pytorch.git",
        environment={"USE_DISTRIBUTED": "0"},
        patches=("https://github.com/TomHeaven/pytorch-osx-build/blob/c83c43da/source_patches/v1.7.0.patch",),
        because="no binary is published",
        sources=("TomHeaven/pytorch-osx-build",),
    ),
)

ON_HOST = lock_of(replace(cuda_stack(), runs="host", image=None))
ROCM = lock_of(replace(cpu_stack(), accelerator="rocm", runs="host", image=None, host_requirements={"gpu": "gfx90a, gfx942"}))
ON_MAC = lock_of(
    replace(
        cpu_stack("macos/x86_64"),
        accelerator="cuda",
        runs="host",
        image=None,
        packages=(),
        environment={"CC": "clang", "CUDA_HOME": "/usr/local/cuda", "TORCH_CUDA_ARCH_LIST": "6.1"},
    )
)

LOCKS = {
    "ubuntu-24.04": with_setups(lock_of(cuda_stack())),
    "ubuntu-22.04": with_setups(ON_HOST, UBUNTU_TO_COMPILE),
    "debian-12": with_setups(lock_of(cuda_stack()), DEBIAN),
    "rocky-9": with_setups(ON_HOST, ROCKY),
    "rocky-10": with_setups(ON_HOST, ROCKY_10),
    "two-systems": with_setups(ON_HOST, UBUNTU_TO_COMPILE, ROCKY),
    "amd-ubuntu": with_setups(ROCM, AMD),
    "amd-rhel": with_setups(ROCM, AMD_ON_RHEL),
    "macos": with_setups(ON_MAC, MAC),
}
"""A lock for each family, by its name."""
