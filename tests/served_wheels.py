"""Wheels with members of their own on a loopback index, and a small matrix that is derived from them."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

from tests.built_files import metadata_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.loopback_index import LoopbackIndex

MATRIX = """\
order: [pytorch, triton, cudnn, nccl, cublas, cuda, python, glibc, kernel]
components:
  pytorch: {title: PyTorch, file: [pytorch.yaml, pytorch_variants.yaml]}
  triton: {title: Triton, file: triton.yaml}
  cudnn: {title: cuDNN, file: cudnn.yaml}
  nccl: {title: NCCL, file: nccl.yaml}
  cublas: {title: cuBLAS, file: cublas.yaml}
  cuda: {title: CUDA, file: cuda.yaml}
  python: {title: CPython, file: python.yaml}
  glibc: {title: glibc, file: glibc.yaml, virtual: true}
  kernel: {title: Linux, file: kernel.yaml, virtual: true}
"""
CUDA = """\
sources: {notes: {title: release notes}}
releases:
  - {version: "13.0.3", source: [notes]}
  - {version: "12.6.3", source: [notes]}
  - {version: "10.2.89", source: [notes]}
"""
PYTHON = """\
sources: {cycle: {title: release cycle}}
releases:
  - {version: "3.13", source: [cycle]}
  - {version: "3.12", source: [cycle]}
  - {version: "3.11", source: [cycle]}
  - {version: "3.8", source: [cycle]}
"""
X86 = "manylinux_2_28_x86_64"
ARM = "manylinux_2_28_aarch64"


def write_matrix(folder: Path) -> Path:
    """A matrix whose generated files are empty and whose curated ones hold a few releases."""
    folder.mkdir()
    texts = {"matrix": MATRIX, "cuda": CUDA, "python": PYTHON}
    for name in ("pytorch", "pytorch_variants", "triton", "cudnn", "nccl", "cublas", "glibc", "kernel"):
        texts[name] = "{}\n"
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder


def serve(
    index: LoopbackIndex,
    name: str,
    version: str,
    *,
    tag: str = f"cp312-cp312-{X86}",
    requires: Sequence[str] = (),
    members: Mapping[str, bytes] | None = None,
    build: str = "",
    yanked: str | None = None,
) -> str:
    """List a wheel that holds these members besides its metadata; returns its filename. The same name replaces the file."""
    metadata = metadata_text(name, version, requires)
    stem = f"{name.replace('-', '_')}-{version}"
    filename = f"{stem}-{build}-{tag}.whl" if build else f"{stem}-{tag}.whl"
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in {**(members or {}), f"{stem}.dist-info/METADATA": metadata.encode()}.items():
            archive.writestr(zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    page = index.pages.get("simple", {}).get(name, [])
    page[:] = [file for file in page if file.filename != filename]
    fields = {"upload_time": "2026-01-02T03:04:05Z", **({"yanked": yanked} if yanked is not None else {})}
    index._add(name, filename, stream.getvalue(), metadata.encode(), fields)  # type: ignore[arg-type]
    return filename


def serve_torch(index: LoopbackIndex) -> None:
    """Three PyTorch releases, one for each way of saying which CUDA is wanted, and what they pin."""
    pins = ("nvidia-cudnn-cu12==9.5.1.17", "nvidia-nccl-cu12==2.26.2", "nvidia-cuda-runtime-cu12==12.6.77")
    linux = "platform_system == 'Linux'"
    old = [f"{pin}; {linux} and platform_machine == 'x86_64'" for pin in pins]
    triton = f"triton==3.3.0; {linux} and platform_machine == 'x86_64' and python_version < '3.13'"
    new = (f"cuda-toolkit[cublas]==13.0.3; {linux}", f"nvidia-cudnn-cu13==9.24.0.43; {linux}", f"triton~=3.8.0; {linux}")
    for python in ("cp312-cp312", "cp313-cp313"):
        serve(index, "torch", "2.14.0", tag=f"{python}-{X86}", requires=new)
        serve(index, "torch", "2.14.0", tag=f"{python}-{ARM}", requires=new)
        serve(index, "torch", "2.7.0", tag=f"{python}-{X86}", requires=[*old, triton])
        serve(
            index,
            "torch",
            "2.7.0",
            tag=f"{python}-{ARM}",
            requires=[*old, triton],
            members={"torch/version.py": b"cuda = None\n"},
        )
    serve(index, "torch", "1.8.0", tag="cp38-cp38-manylinux1_x86_64", members={"torch/version.py": b"cuda = '10.2'\n"})
    serve(index, "torch", "1.8.0", tag="cp38-cp38-win_amd64")
    serve(index, "torch", "2.15.0rc1")
    for major, version in (("12", "9.5.1.17"), ("13", "9.24.0.43")):
        serve(index, f"nvidia-cudnn-cu{major}", version, tag="py3-none-manylinux_2_27_x86_64")
    serve(index, "nvidia-nccl-cu12", "2.26.2", tag="py3-none-manylinux2014_x86_64")
    serve(index, "nvidia-nccl-cu12", "2.26.2.post1", tag="py3-none-manylinux2014_x86_64")
    for version in ("3.3.0", "3.8.0"):
        serve(index, "triton", version, tag="cp312-abi3-manylinux_2_27_x86_64.manylinux_2_28_x86_64")
