"""Stacks and locks that tests of lock, render and commands share; the files named are real ones of the public index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.grounds.source import Documents
from provisioner.index.model import IndexFile
from provisioner.lock.create import create_lock
from provisioner.outputs import OUTPUTS
from provisioner.resolver.stack import BaseImage, PackagePin, Pin, Stack
from provisioner.setups import HostSetup, Repository, SetupStep
from provisioner.versions import Version
from tests.told import asks, needs, states

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.lock.format.model import Lock

FILES = "https://files.pythonhosted.org/packages"
MATRIX_DIGEST = f"sha256:{'a' * 64}"
SPEC_DIGEST = f"sha256:{'b' * 64}"
IMAGE_DIGEST = f"sha256:{'d' * 64}"

SIX = IndexFile(
    filename="six-1.17.0-py2.py3-none-any.whl",
    url=f"{FILES}/b7/ce/149a00dd41f10bc29e5921b496af8b574d8413afcd5e30dfa0ed46c2cc5e/six-1.17.0-py2.py3-none-any.whl",
    index="pypi",
    sha256="4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274",
    size=11050,
    upload_time="2024-12-04T17:35:26.475808Z",
)
DATEUTIL = IndexFile(
    filename="python_dateutil-2.9.0.post0-py2.py3-none-any.whl",
    url=(
        f"{FILES}/ec/57/56b9bcc3c9c6a792fcbaf139543cee77261f3651ca9da0c93f5c1221264b"
        "/python_dateutil-2.9.0.post0-py2.py3-none-any.whl"
    ),
    index="pypi",
    sha256="a8b2bc7bffae282281c8140a97d3aa9c14da0b136dfe83f850eea9a5f7470427",
)
UV_AMD64 = IndexFile(
    filename="uv-0.9.11-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    url=(
        f"{FILES}/73/da/2597becbc0fcbb59608d38fda5db79969e76dedf5b072f0e8564c8f0628b"
        "/uv-0.9.11-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"
    ),
    index="pypi",
    sha256="e97906ca1b90dac91c23af20e282e2e37c8eb80c3721898733928a295f2defda",
)
UV_ARM64 = IndexFile(
    filename="uv-0.9.11-py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64.whl",
    url=(
        f"{FILES}/d6/9a/d4080e95950a4fc6fdf20d67b9a43ffb8e3d6d6b7c8dda460ae73ddbecd9"
        "/uv-0.9.11-py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64.whl"
    ),
    index="pypi",
    sha256="cb680948e678590b5960744af2ecea6f2c0307dbb74ac44daf5c00e84ad8c09f",
)
INSTALLERS: Mapping[str, IndexFile] = {"linux/amd64": UV_AMD64, "linux/arm64": UV_ARM64}

PACKAGES = (
    PackagePin(name="six", version="1.17.0", file=SIX),
    PackagePin(name="python-dateutil", version="2.9.0.post0", file=DATEUTIL, requires=("six>=1.5",), dependencies=("six",)),
)
SLIM = BaseImage(reference="python:3.12-slim", digest=IMAGE_DIGEST, glibc="2.41", python="3.12")
UBUNTU = BaseImage(reference="nvidia/cuda:12.6.3-base-ubuntu24.04", glibc="2.39", apt_python="3.12")


UBUNTU_HOST = HostSetup(
    os="ubuntu 24.04",
    driver_module="open",
    repositories=(
        Repository(
            name="nvidia-container-toolkit",
            kind="apt-line",
            line="https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH) /",
            key="https://nvidia.github.io/libnvidia-container/gpgkey",
            sources=("NVIDIA Container Toolkit",),
        ),
    ),
    steps=(
        SetupStep(
            component="driver",
            version="580.95.05",
            packages=("linux-modules-nvidia-580-open-generic-6.8", "nvidia-headless-no-dkms-580-open", "nvidia-utils-580"),
            kind="precompiled",
            kernel="6.8.*-generic",
            sources=("Ubuntu 24.04 archive",),
        ),
        SetupStep(
            component="container_toolkit",
            repositories=("nvidia-container-toolkit",),
            packages=("nvidia-container-toolkit",),
            sources=("NVIDIA Container Toolkit",),
        ),
    ),
)


def torch_wheel(machine: str, *, variant: str = "cu126") -> IndexFile:
    filename = f"torch-2.7.1+{variant}-cp312-cp312-manylinux_2_28_{machine}.whl"
    url = f"https://download.pytorch.org/whl/{variant}/{filename.replace('+', '%2B')}"
    return IndexFile(filename=filename, url=url, index=f"pytorch-{variant}", sha256=("1" if machine == "x86_64" else "2") * 64)


def cpu_stack(platform: str = "linux/amd64") -> Stack:
    """A small environment without a GPU, of files that can be downloaded."""
    return Stack(
        platform=platform,
        accelerator="cpu",
        components={"python": "3.12", "image": "python:3.12-slim", "platform": platform},
        pins=(Pin(component="python", version=Version.parse("3.12")),),
        image=SLIM,
        packages=PACKAGES,
    )


def cuda_stack(platform: str = "linux/amd64") -> Stack:
    """A PyTorch stack as the solver gives it, host facts included."""
    rule = needs("pytorch 2.7.1+cu126", "cuda", "12.6", source=Documents(("wheel METADATA, torch 2.7.1",)), about="cuda")
    fact = states("driver", "535.104.05")
    request = asks("pytorch", ">=2.6", "provision.yaml:7")
    machine = "x86_64" if platform.endswith("amd64") else "aarch64"
    torch = PackagePin(
        name="torch",
        version="2.7.1+cu126",
        file=torch_wheel(machine),
        requires=("six>=1.5", "triton==3.3.1") if machine == "x86_64" else ("six>=1.5",),
    )
    return Stack(
        platform=platform,
        accelerator="cuda",
        components={
            "pytorch": "2.7.1",
            "pytorch_build": "cu126",
            "cuda": "12.6.3",
            "python": "3.12",
            "driver": "535.104.05",
            "kernel": "6.5.0-1017-aws",
            "gpu": "9.0",
        },
        pins=(
            Pin(component="pytorch", version=Version.parse("2.7.1"), build="cu126", reasons=(request,)),
            Pin(component="cuda", version=Version.parse("12.6.3"), reasons=(rule, fact)),
            Pin(component="driver", version=Version.parse("535.104.05"), host="hosts/a100.yaml", reasons=(fact,)),
        ),
        basis="minor-version",
        host_requirements={"driver": ">=525.60.13", "gpu": "7.5, 8.0, 9.0"},
        require_cuda="driver>=525.60.13",
        arch_list=("sm_75", "sm_80", "sm_90"),
        environment={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
        image=UBUNTU,
        packages=(*PACKAGES, torch),
    )


def lock_of(*stacks: Stack, name: str = "trainer", installers: Mapping[str, IndexFile] | None = None) -> Lock:
    """A lock of these stacks, as the command makes it."""
    return create_lock(
        stacks,
        name=name,
        matrix_digest=MATRIX_DIGEST,
        spec_digest=SPEC_DIGEST,
        installer=INSTALLERS if installers is None else installers,
    )


def with_setups(lock: Lock, *setups: HostSetup) -> Lock:
    """The lock as a spec that lists `host-script` gets it: with these setups in its first stack."""
    first, *rest = lock.stacks
    return replace(lock, stacks=(replace(first, host_setups=setups or (UBUNTU_HOST,)), *rest))


def for_output(lock: Lock, output: str) -> Lock:
    """The lock with what a format needs beyond what every lock has."""
    return with_setups(lock) if OUTPUTS[output].sets_up_hosts else lock


def with_file(stack: Stack, name: str, file: IndexFile) -> Stack:
    """The stack with another file for one of its packages."""
    packages = tuple(replace(package, file=file) if package.name == name else package for package in stack.packages)
    return replace(stack, packages=packages)
