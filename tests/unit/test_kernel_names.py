"""What a distribution writes behind the version of its kernel: its own number, and the flavour of the build."""

import pytest

from provisioner.versions import kernel_build, kernel_flavour


@pytest.mark.parametrize(
    ("kernel", "flavour"),
    [
        ("6.8.0-60-generic", "generic"),
        ("7.0.0-1019-azure-fde", "azure-fde"),
        ("7.0.0-1018-nvidia-64k", "nvidia-64k"),
        ("6.8.0-060800-generic", ""),  # Ubuntu's builds of mainline kernels
        ("6.8.0", ""),
        ("6.1.0-30-amd64", "amd64"),
        ("5.14.0-503.11.1.el9_5.x86_64", ""),
        ("6.14.6-arch1-1", ""),
    ],
)
def test_what_follows_a_numbered_kernel_is_its_flavour(kernel: str, flavour: str) -> None:
    assert kernel_flavour(kernel) == flavour


@pytest.mark.parametrize(
    ("kernel", "numbers"),
    [
        ("5.15.0-1070-aws", (5, 15, 0, 1070)),
        ("5.14.0-687.12.1.el9_8.x86_64", (5, 14, 0, 687, 12, 1)),
        ("4.18.0-305.el8.x86_64", (4, 18, 0, 305)),
        ("6.1.155-176.282.amzn2023.x86_64", (6, 1, 155, 176, 282)),
        ("6.1.0-18-cloud-amd64", (6, 1, 0, 18)),
        ("6.8.0-060800-generic", (6, 8, 0)),
        ("6.6.15-x64v3-xanmod1", (6, 6, 15)),
        ("6.14.6-arch1-1", (6, 14, 6)),
        ("6.1", (6, 1)),
    ],
)
def test_the_number_of_a_distribution_tells_its_builds_apart(kernel: str, numbers: tuple[int, ...]) -> None:
    assert kernel_build(kernel).release == numbers
