"""A file that says it is something else than its name does is no candidate: pip discards it, and uv fails while it installs."""

from __future__ import annotations

import pytest

from provisioner.index.metadata.core_metadata import CoreMetadata, UnusableMetadataError, require_same_release


@pytest.mark.parametrize(
    ("filename", "name", "version"),
    [
        ("acme_tools-1.0-py3-none-any.whl", "Acme.Tools", "1.0.0"),
        ("acme_tools-1.0+cu126-py3-none-any.whl", "acme-tools", "1.0+CU126"),
        ("acme_tools-1!2.0rc1-7-py3-none-any.whl", "acme-tools", "1!2.0-rc.1"),
        ("acme-tools-1.0.tar.gz", "acme.tools", "1.0"),
        ("acme-tools-1.0-1.tar.gz", "acme-tools", "1.0.post1"),
        ("acme_tools-1.0-py3-none-any.whl", "", ""),
        ("acme_tools-1.0-py3-none-any.whl", "acme-tools", "no version"),
        ("no wheel at all", "acme-tools", "1.0"),
    ],
)
def test_the_same_however_it_is_spelled(filename: str, name: str, version: str) -> None:
    require_same_release(filename, CoreMetadata(name=name, version=version))


@pytest.mark.parametrize(
    ("filename", "name", "version"),
    [
        ("flash_attn-2.7.4.post1+cu12torch2.6cxx11abiFALSE-cp312-cp312-linux_x86_64.whl", "flash_attn", "2.7.4.post1"),
        ("release-1.0.tar.gz", "acme-tools", "2.0"),
        ("acme-tools-1.0.tar.gz", "acme-tools", "2.0"),
    ],
)
def test_of_a_file_that_is_named_installers_take_more(filename: str, name: str, version: str) -> None:
    require_same_release(filename, CoreMetadata(name=name, version=version), is_direct=True)
    with pytest.raises(UnusableMetadataError):
        require_same_release(filename, CoreMetadata(name=name, version=version))


@pytest.mark.parametrize(("name", "version"), [("acme-tool", "1.0"), ("acme-tools", "1.1"), ("acme-tools", "1.0+cu11")])
def test_a_wheel_that_is_named_and_is_something_else(name: str, version: str) -> None:
    with pytest.raises(UnusableMetadataError):
        require_same_release("acme_tools-1.0+cu12-py3-none-any.whl", CoreMetadata(name=name, version=version), is_direct=True)


@pytest.mark.parametrize(
    ("filename", "name", "version", "told"),
    [
        ("acme_tools-1.0-py3-none-any.whl", "acme-tools", "1.1", "acme-tools 1.1"),
        ("acme_tools-1.0-py3-none-any.whl", "acme-tools", "1.0+local", "acme-tools 1.0+local"),
        ("acme_tools-1.0+git-1-py3-none-any.whl", "acme-tools", "1.0+git-1", "acme-tools 1.0+git.1"),
        ("acme_tools-1.0-py3-none-any.whl", "acme-tool", "1.0", "acme-tool 1.0"),
        ("acme_tools-1.0.tar.gz", "acme-tools", "1.0.post1", "acme-tools 1.0.post1"),
    ],
)
def test_something_else(filename: str, name: str, version: str, told: str) -> None:
    with pytest.raises(UnusableMetadataError) as caught:
        require_same_release(filename, CoreMetadata(name=name, version=version))
    assert caught.value.message == f"`{filename}` says in its metadata that it is {told}, which installers refuse"


def test_of_what_was_named_after_its_build_is_told_who_refuses_it() -> None:
    with pytest.raises(UnusableMetadataError) as caught:
        require_same_release("acme-1.0+cu12-py3-none-any.whl", CoreMetadata(name="acme", version="1.0"))
    assert caught.value.message == (
        "`acme-1.0+cu12-py3-none-any.whl` says in its metadata that it is acme 1.0, which pip refuses of what an index lists"
    )
