"""A law: whatever text or bytes a machine holds, a parser answers a fact or None and never raises."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.host import parse
from provisioner.host.profile import host_document, host_from_document
from tests.strategies import examples

if TYPE_CHECKING:
    from collections.abc import Callable

PARSERS: list[Callable[..., object]] = [
    function for name, function in sorted(vars(parse).items()) if not name.startswith("_") and inspect.isfunction(function)
]

FRAGMENTS = (
    "NVRM version: NVIDIA UNIX ", "Open Kernel Module for ", "x86_64", "  535.104.05", "Driver Version: ", "CUDA UMD Version: ",
    "license: ", "NVIDIA", "ID=", "VERSION_ID=", '"', "flags : ", "lm", "Linux version ", "(gcc (", ") 12.", "0x", "10de", "\n",
    "\0", "{", "[", '"cuda": ', "Package: ", "Status: install ok installed", "Version: ", "gfx_target_version ", "999999",
    "<key>", "</key><string>", "# R36 (release), REVISION: ", "12.4.1", "glibc ", "libc-", ".so", "release ", ", V", "٣", "²",
)  # fmt: skip

TEXTS = st.one_of(st.text(), st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=4)), max_size=12).map("".join))


def test_there_are_parsers_to_test() -> None:
    assert len(PARSERS) >= 40


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.__name__)
@examples(40)
@given(text=TEXTS)
def test_a_parser_is_total(parser: Callable[..., object], text: str) -> None:
    parameters = inspect.signature(parser).parameters
    is_binary = next(iter(parameters.values())).annotation == "bytes"
    first: str | bytes = text.encode("utf-8", "surrogatepass") if is_binary else text
    parser(first, *["key"] * (len(parameters) - 1))


@examples(100)
@given(name=st.text(), count=st.integers(min_value=1, max_value=64))
def test_a_profile_reads_back_whatever_a_gpu_is_called(name: str, count: int) -> None:
    from provisioner.document import parse_document
    from provisioner.host.model import Host, HostGpu

    host = Host(gpus=(HostGpu(name=name, count=count),))
    assert host_from_document(parse_document(host_document(host), file="host.yaml", kind="host profile")) == host
