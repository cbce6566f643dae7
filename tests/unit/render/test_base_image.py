from __future__ import annotations

import pytest
from msgspec.structs import replace

from provisioner.lock.format.model import LockedStack
from provisioner.render.base_image import Base, base_of
from provisioner.render.header import UnrenderableError
from provisioner.resolver.stack import BaseImage, ManagedPython

STACK = LockedStack(platform="linux/amd64", accelerator="cpu", components={"python": "3.12.7"})


def stack(
    reference: str = "debian:13", *, python: str = "", apt_python: str = "", managed: ManagedPython | None = None
) -> LockedStack:
    image = BaseImage(reference=reference, python=python, apt_python=apt_python, managed_python=managed)
    return replace(STACK, image=image)


@pytest.mark.parametrize("python", ["3.12", "3.12.11"])
def test_an_image_with_the_locked_series_needs_nothing(python: str) -> None:
    assert base_of(stack(python=python)) == Base(reference="debian:13", digest="", python="python3.12")


def test_a_distribution_that_has_the_locked_series_installs_it() -> None:
    assert base_of(stack(apt_python="3.12")) == Base(
        reference="debian:13",
        digest="",
        python="python3.12",
        packages=("python3.12",),
        builder_packages=("python3.12-venv",),
        header_packages=("libpython3.12-dev",),
    )


def test_the_images_own_python_is_preferred_to_the_distributions() -> None:
    assert base_of(stack(python="3.12", apt_python="3.12")).packages == ()


def test_an_image_nobody_knows_is_taken_to_have_the_python_and_the_build_checks_it() -> None:
    base = base_of(stack("registry.example.org:5000/team/base"))
    assert (base.python, base.packages, base.version) == ("python3.12", (), (3, 12))


def test_an_image_with_another_python_gets_the_archive_of_the_lock() -> None:
    archive = ManagedPython(version="3.12.16", url="https://example.org/cpython-3.12.16.tar.gz", sha256="0" * 64)
    base = base_of(stack(apt_python="3.10", managed=archive))
    assert (base.python, base.version, base.packages) == ("/opt/python/bin/python3.12", (3, 12), ())
    assert (base.archive, base.sha256) == (archive.url, archive.sha256)


def test_an_archive_of_another_python_is_of_no_use() -> None:
    archive = ManagedPython(version="3.13.18", url="https://example.org/cpython-3.13.18.tar.gz", sha256="0" * 64)
    with pytest.raises(UnrenderableError, match=r"^base image `debian:13` has Python 3\.10, and the lock is for 3\.12\.7"):
        base_of(stack(apt_python="3.10", managed=archive))


def test_an_image_with_another_python_is_refused() -> None:
    with pytest.raises(UnrenderableError) as caught:
        base_of(stack(python="3.11", apt_python="3.13"))
    assert caught.value.message == "base image `debian:13` has Python 3.11 and 3.13, and the lock is for 3.12.7"
    assert caught.value.exit_code == 2


def test_a_stack_without_an_image_says_what_to_write() -> None:
    with pytest.raises(UnrenderableError) as caught:
        base_of(STACK)
    assert caught.value.message == "the lock names no base image for linux/amd64, so there is nothing to build on"
    assert caught.value.hints == ("write `runs: container` in the specification and solve again",)


def test_a_stack_without_python_says_so() -> None:
    with pytest.raises(UnrenderableError, match=r"^the lock names no Python for linux/amd64\nhint: "):
        base_of(replace(stack(), components={}))


@pytest.mark.parametrize("python", ["3", "newest", "3.12; rm -rf /", "3.12\n"])
def test_what_is_not_a_version_never_reaches_a_shell(python: str) -> None:
    with pytest.raises(UnrenderableError, match=r"is not a Python version\nhint: "):
        base_of(replace(stack(), components={"python": python}))


@pytest.mark.parametrize("reference", ["", "debian:13\nRUN x", "a b", "-x", "debian@sha256:0"])
def test_what_is_not_a_reference_is_refused(reference: str) -> None:
    with pytest.raises(UnrenderableError, match=r"is not an image reference$"):
        base_of(stack(reference))
